//! What moves bytes.

use std::fmt;

use super::course::Course;
use crate::shape::Choice;

/// What moves bytes from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// UDP over plain IP in batches (GSO), with bounded data in flight.
    Udp,
    /// TCP over plain IP, by `iperf3`.
    Tcp,
    /// TLS 1.3 over TCP over plain IP.
    Tls,
    /// BitTorrent over TCP over plain IP: the engine of the others.
    TorrentIp,
    /// SCION/UDP packets, with bounded data in flight.
    Scion,
    /// A QUIC stream over one path.
    Quic,
    /// BitTorrent over this many paths.
    Torrent(u8),
}

impl Carrier {
    /// Whether the course has the paths that the carrier needs.
    pub fn fits(self, course: &Course) -> bool {
        match self {
            Self::Torrent(paths) => paths <= course.paths(),
            _ => true,
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp => f.write_str("udp"),
            Self::Tcp => f.write_str("tcp"),
            Self::Tls => f.write_str("tls"),
            Self::TorrentIp => f.write_str("torrent-ip"),
            Self::Scion => f.write_str("scion"),
            Self::Quic => f.write_str("quic"),
            Self::Torrent(paths) => write!(f, "torrent-{paths}"),
        }
    }
}

impl Choice for Carrier {
    const WHAT: &'static str = "carrier";
    const ALL: &'static [Self] = &[
        Self::Udp,
        Self::Tcp,
        Self::Tls,
        Self::TorrentIp,
        Self::Scion,
        Self::Quic,
        Self::Torrent(1),
        Self::Torrent(2),
        Self::Torrent(4),
        Self::Torrent(8),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Carrier>();
    }
}
