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
pub(crate) use self::ip::{Ends, Received, TCP, UDP, write};
pub(crate) use self::tcp::reset;
pub(crate) use self::udp::Datagram;
