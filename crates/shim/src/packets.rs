//! IP packets of programs that are not TCP: read and written, without I/O.

mod fragments;
mod icmp;
mod ip;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

pub(crate) use self::fragments::Fragments;
pub(crate) use self::icmp::{Echo, Problem, error, protocol as icmp_protocol};
pub(crate) use self::ip::{Ends, Received, write};
pub(crate) use self::tcp::reset;
pub(crate) use self::udp::Datagram;

/// Protocol numbers (IANA).
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP6: u8 = 58;
