//! QUIC connections, each pinned to one SCION path.
//!
//! An [`Endpoint`] is one UDP socket of a host in a SCION AS. A [`Connection`] leads to one peer
//! over one path and never leaves it; to use two paths, open two connections. When a router reports
//! the path down and nothing gets through, the connection closes with the reason, long before the
//! idle timeout.
//!
//! An endpoint has a thread that receives, more that help it if [`Config`] asks for them, and a
//! task that accepts. It is open until [`Endpoint::close`], or until it and all its connections are
//! dropped; its thread ends once the last connection has drained after that. A connection is being
//! set up, then open, and closes once, with a [`CloseReason`]. At most 64 connections of peers are
//! being set up at a time; of those that are set up, eight wait to be accepted, and others wait in
//! their tasks. Locks and their order are those of the module `driver`, but for the table of
//! connections being set up, which is locked alone, and the queue of accepted ones, which
//! [`Endpoint::accept`] holds while it waits.
//!
//! Congestion is controlled per connection, so per path: by CUBIC (RFC 9438) with HyStart++ (RFC
//! 9406), or by BBRv3 (draft-ietf-ccwg-bbr) where packets are lost without a queue. Both take into
//! account the bandwidth that the ASes on the path announce.
//!
//! The protocol is that of `noq-proto`; the endpoint, its threads and its sockets are ours. What
//! differs from other QUIC libraries:
//!
//! - No certificate is checked: both sides show a key, and the application judges
//!   [`Connection::peer_key`].
//! - What a peer costs is a fixed sum until the application calls [`Connection::expect_data`]: it may send
//!   64 KiB ahead of what is read, and its connection may give way to others
//!   ([`Connection::set_known`]).
//! - Both ends may name a path differently ([`Connection::fingerprint`]).
//! - Each protocol sets its own [`Config::alpn`].
//!
//! The example `pipe` sends bytes over one connection for each path.

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
