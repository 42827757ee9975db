//! uTP (BEP 29): streams over UDP that give way to other traffic.
//!
//! [`Endpoint`] is the protocol without I/O and without a clock: datagrams, calls and the time go in, datagrams
//! and events come out. It has the connections of one UDP socket. [`UtpSocket`] is such a socket with its
//! endpoint, for tokio.
//!
//! One task for each socket receives and sends, several datagrams with one system call where the kernel does
//! that. Streams and that task share the endpoint under a lock that is held for single calls, never at an await;
//! what they keep is bounded by [`Config`].
//!
//! What differs from BEP 29, or is left open there:
//!
//! - The congestion control is LEDBAT of RFC 6817: slow start, ten minutes of base delays, at most one reduction
//!   of the window in a round trip. Timeouts are those of RFC 6298, 500 ms at least; after two round trips without an
//!   acknowledgement the last packet is sent again (RFC 8985, tail loss probe).
//! - Once a packet has been sent with a sequence number, another one with that number has the same bytes. So there
//!   is no search for the largest packet: IP packets have 1400 bytes, may be cut into fragments on their way, and
//!   become smaller, for bytes not sent before, if the own device refuses them.
//! - The first packet that the accepting side sends has the number that its answer to the SYN names, as in libutp
//!   and libtorrent, not the one after.
//! - The accepting side sends no bytes before a second packet of the peer has shown that the SYN was from the
//!   peer's address. The side that connects sends one at once.
//! - A FIN ends one direction. A connection is gone when both have ended.
//! - A reset counts only if it acknowledges something near to what was sent.

mod config;
mod connection;
mod delay;
mod driver;
mod endpoint;
mod ledbat;
mod packet;
mod receive;
mod rtt;
mod send;
mod sequence;
mod shared;
#[cfg(test)]
mod simulation;
mod socket;
mod stream;

pub use self::config::Config;
pub use self::connection::{CloseReason, Read};
pub use self::endpoint::{ConnectError, Endpoint, Event, Handle, Transmit};
pub use self::packet::{
    HEADER_LENGTH, Header, MAX_SELECTIVE_LENGTH, Packet, PacketError, PacketKind, SelectiveAck,
};
pub use self::socket::UtpSocket;
pub use self::stream::UtpStream;
