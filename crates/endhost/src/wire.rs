//! SCION packets as bytes: reading those that arrive, writing those that leave.
//!
//! Sending and receiving happens hundreds of thousands of times a second, so nothing here allocates
//! per packet. Source of the formats: SCION header specification; SCMP specification.

mod checksum;
mod packet;
mod quote;
mod route;
mod scmp;

pub(crate) use self::checksum::Sum;
pub use self::packet::{Malformed, Packet, Udp};
pub use self::quote::Quote;
pub use self::route::{Route, RouteError};
pub use self::scmp::{Scmp, ScmpError};
pub(crate) use self::scmp::{echo, traceroute_reply, traceroute_request};

/// Next-header number of UDP.
pub(crate) const UDP: u8 = 17;
/// Next-header number of SCMP.
pub(crate) const SCMP: u8 = 202;
/// Bytes of a UDP header.
pub(crate) const UDP_HEADER: usize = 8;
/// Bytes of the common header.
pub(crate) const COMMON_HEADER: usize = 12;
/// The longest SCION header: its length field counts units of four bytes.
pub(crate) const MAX_HEADER: usize = 255 * 4;
