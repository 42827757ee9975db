//! QUIC connections, each pinned to one SCION path.
//!
//! An [`Endpoint`] is one UDP socket of a host in a SCION AS. A [`Connection`] leads to one peer
//! over one path and never leaves it: who wants two paths opens two connections. When a router says
//! that the path is down and nothing gets through, the connection closes with the reason, long
//! before the idle timeout.
//!
//! Congestion is controlled per connection, so per path, by CUBIC (RFC 9438) with HyStart++ (RFC
//! 9406); slow start heeds the bandwidth that the ASes on the path announce.

mod config;
mod congestion;
mod connection;
mod doubt;
mod endpoint;
mod faults;
mod progress;
mod quotes;
mod routes;
mod socket;
mod stream;
mod tls;
mod transport;

pub use self::config::Config;
pub use self::connection::{CloseReason, Connection, OpenStreamError, PeerKey, Stats};
pub use self::endpoint::{BindError, ConnectError, Endpoint};
pub use self::stream::{FinishError, ReadError, RecvStream, SendStream, WriteError};
