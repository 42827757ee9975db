//! The form of the addresses in an answer.

use std::net::SocketAddr;

use hawser_address::{PeerAddr, compact_ip, ip_from_compact};

use crate::message::entries;

/// Longest payload of an answer, in bytes: it passes every network unfragmented, also with the headers of
/// SCION.
pub const MAX_PAYLOAD: usize = 1200;

/// The numbers of actions.
pub(super) mod action {
    pub const CONNECT: u32 = 0;
    pub const ANNOUNCE: u32 = 1;
    pub const SCRAPE: u32 = 2;
    pub const ERROR: u32 = 3;
}

/// The form of the addresses in an answer, which depends on the network that it is sent over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 6 bytes each, over IPv4.
    Ipv4,
    /// 18 bytes each, over IPv6.
    Ipv6,
    /// [Entries](entries) of addresses of either kind, over SCION.
    Scion,
}

impl Form {
    /// The form of answers to a client at `addr`.
    pub fn of(addr: PeerAddr) -> Self {
        match addr {
            PeerAddr::Scion(_) => Self::Scion,
            PeerAddr::Ip(addr) if addr.ip().to_canonical().is_ipv4() => Self::Ipv4,
            PeerAddr::Ip(_) => Self::Ipv6,
        }
    }

    /// The bytes of one address; `None` if an answer of this form cannot have it.
    pub(super) fn write(self, peer: PeerAddr) -> Option<Vec<u8>> {
        match (self, peer) {
            (Self::Scion, peer) => Some(entries::write([peer])),
            (Self::Ipv4, PeerAddr::Ip(addr)) if addr.is_ipv4() => Some(compact_ip(addr)),
            (Self::Ipv6, PeerAddr::Ip(addr)) if addr.is_ipv6() => Some(compact_ip(addr)),
            _ => None,
        }
    }

    /// The addresses in `bytes`, up to one that is cut short; also those that cannot be reached.
    pub(super) fn read(self, bytes: &[u8]) -> Vec<PeerAddr> {
        let fixed = |size| {
            let addrs = bytes.chunks_exact(size).filter_map(ip_from_compact);
            let canonical = |addr: SocketAddr| (addr.ip().to_canonical(), addr.port()).into();
            addrs.map(|addr| PeerAddr::Ip(canonical(addr))).collect()
        };
        match self {
            Self::Ipv4 => fixed(6),
            Self::Ipv6 => fixed(18),
            Self::Scion => entries::read(bytes).collect(),
        }
    }
}
