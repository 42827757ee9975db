//! QUIC connections, each pinned to one SCION path.
//!
//! An [`Endpoint`] is one UDP socket of a host in a SCION AS. A [`Connection`] leads to one peer
//! over one path and never leaves it; to use two paths, open two connections. When a router reports
//! the path down and nothing gets through, the connection closes with the reason, long before the
//! idle timeout.
//!
//! Congestion is controlled per connection, so per path: by CUBIC (RFC 9438) with HyStart++ (RFC
//! 9406), or by BBRv3 (draft-ietf-ccwg-bbr) where packets are lost without a queue. Both take into
//! account the bandwidth that the ASes on the path announce.

mod close;
mod congestion;
mod connection;
mod connection_id;
mod doubt;
mod driver;
mod endpoint;
mod progress;
mod reset;
mod stream;
mod tls;
mod transport;

pub use hawser_congestion::{Algorithm, Congestion, CongestionReason, CongestionState};

pub use self::close::{CloseReason, DISPLACED, NO_CODE, TOO_FRAGMENTED};
pub use self::connection::{Connection, DatagramError, Stats};
pub use self::endpoint::{BindError, ConnectError, Endpoint};
pub use self::stream::{RecvStream, SendStream, StreamError};
pub use self::tls::AnyPeer;
pub use self::transport::Config;
