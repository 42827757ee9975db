//! The respects in which cases differ.

use crate::shape::choices;

pub(super) const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;

/// What moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// BitTorrent downloads over SCION.
    Downloads,
    /// QUIC streams, each between two processes of its own.
    Flows,
    /// Bulk transfers into one server.
    Senders,
    /// TCP connections through a shim at either end.
    Connections,
    /// Downloads of BitTorrent clients over TCP on this host.
    Tcp,
}

choices! {
    /// A respect in which cases differ.
    Axis, "axis" {
        /// Paths between two hosts.
        Paths = "paths",
        /// Seeders of a torrent.
        Peers = "peers",
        /// Downloads of one seeder.
        Leechers = "leechers",
        /// Torrents at once, with a seeder and a leecher each.
        Torrents = "torrents",
        /// Bytes of the torrent.
        Size = "size",
        /// Bytes of a piece.
        Piece = "piece",
        /// QUIC streams through the same two routers.
        Flows = "flows",
        /// Senders into one `hawser receive`.
        Senders = "senders",
        /// TCP connections through the shim.
        Shim = "shim",
        /// Seeders of a torrent over TCP on this host, beside other clients.
        TcpPeers = "tcp-peers",
    }
}

impl Axis {
    /// What moves the bytes.
    pub fn work(self) -> Work {
        match self {
            Self::Flows => Work::Flows,
            Self::Senders => Work::Senders,
            Self::Shim => Work::Connections,
            Self::TcpPeers => Work::Tcp,
            _ => Work::Downloads,
        }
    }

    /// The values that are measured: those of a few minutes, or with `all` the whole range.
    pub fn values(self, all: bool) -> &'static [u64] {
        match (self, all) {
            (Self::Paths, false) => &[1, 2, 4, 8],
            (Self::Paths, true) => &[1, 2, 3, 4, 5, 6, 7, 8],
            (Self::Peers | Self::Leechers | Self::TcpPeers, false) => &[1, 4, 16],
            (Self::Flows | Self::Senders | Self::Shim, false) => &[1, 4, 16],
            (Self::Peers | Self::Leechers, true) => &[1, 2, 4, 8, 16, 32, 64],
            (Self::Flows | Self::Senders | Self::Shim | Self::TcpPeers, true) => &[1, 4, 16, 64],
            (Self::Torrents, false) => &[1, 4],
            (Self::Torrents, true) => &[1, 2, 4, 8, 16],
            (Self::Size, false) => &[16 * MB, 64 * MB, 256 * MB, GB],
            (Self::Size, true) => &[MB, 16 * MB, 64 * MB, 256 * MB, GB, 4 * GB, 16 * GB, 50 * GB],
            (Self::Piece, false) => &[16 * KIB, 256 * KIB, 4 * MIB, 16 * MIB],
            (Self::Piece, true) => &[16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB],
        }
    }

    /// A value as people write it.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::Size if value.is_multiple_of(GB) => format!("{} GB", value / GB),
            Self::Size => format!("{} MB", value / MB),
            Self::Piece if value.is_multiple_of(MIB) => format!("{} MiB", value / MIB),
            Self::Piece => format!("{} KiB", value / KIB),
            _ => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Choice, assert_named};

    #[test]
    fn every_axis_has_a_part_of_its_range() {
        assert_named::<Axis>();
        for &axis in Axis::ALL {
            let all = axis.values(true);
            assert!(
                axis.values(false).iter().all(|one| all.contains(one)),
                "{axis}"
            );
        }
    }

    #[test]
    fn values_have_units() {
        assert_eq!(Axis::Size.text(50 * GB), "50 GB");
        assert_eq!(Axis::Size.text(16 * MB), "16 MB");
        assert_eq!(Axis::Piece.text(16 * KIB), "16 KiB");
        assert_eq!(Axis::Peers.text(64), "64");
    }
}
