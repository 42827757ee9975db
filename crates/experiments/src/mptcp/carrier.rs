//! What carries the bytes.

use std::fmt;

use crate::papers::{Spread, shila};
use crate::shape::Choice;

/// What carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MptcpCarrier {
    /// A TCP connection of an ordinary program through `hawser shim up`, by the kernel's MPTCP.
    Mptcp,
    /// The same through `hawser shim up --carrier quic`: a stream over several QUIC connections.
    Streams,
    /// A QUIC connection over each of the paths.
    Quic,
    /// The same program over plain IP, which has one path.
    Tcp,
}

impl MptcpCarrier {
    /// Whether it can use this number of paths.
    pub fn takes(self, paths: u8) -> bool {
        self != Self::Tcp || paths == 1
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Mptcp => "TCP through the shim",
            Self::Streams => "TCP through the shim by QUIC",
            Self::Quic => "QUIC, one connection per path",
            Self::Tcp => "TCP over plain IP",
        }
    }

    /// What the paper measured with this number of paths: goodput and throughput, in Mbit/s.
    pub fn paper(self, paths: u8) -> Option<[Spread; 2]> {
        match (self, paths) {
            (Self::Mptcp, 1) => Some(shila::ONE_PATH),
            (Self::Mptcp, 8) => Some(shila::EIGHT_PATHS),
            (Self::Quic, 1) => Some(shila::QUIC),
            _ => None,
        }
    }
}

impl fmt::Display for MptcpCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mptcp => "mptcp",
            Self::Streams => "shim-quic",
            Self::Quic => "quic",
            Self::Tcp => "tcp",
        })
    }
}

impl Choice for MptcpCarrier {
    const WHAT: &'static str = "carrier";
    const ALL: &'static [Self] = &[Self::Mptcp, Self::Streams, Self::Quic, Self::Tcp];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<MptcpCarrier>();
    }
}
