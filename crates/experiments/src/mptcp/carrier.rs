//! What carries the bytes.

use crate::papers::{Spread, shila};
use crate::shape::choices;

choices! {
    /// What carries the bytes.
    MptcpCarrier, "carrier" {
        /// A TCP connection of an ordinary program through `hawser shim up`, by the kernel's MPTCP.
        Mptcp = "mptcp",
        /// The same through `hawser shim up --carrier quic`: a stream over several QUIC connections.
        Streams = "shim-quic",
        /// A QUIC connection over each of the paths.
        Quic = "quic",
        /// The same program over plain IP, which has one path.
        Tcp = "tcp",
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<MptcpCarrier>();
    }
}
