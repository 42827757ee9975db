//! The downloads that are compared.

use std::fmt;

use crate::shape::choices;

const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Downloads at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// In which respect they differ from the base case; `None` for that one.
    pub axis: Option<Axis>,
    /// Paths between each leecher and each seeder.
    pub paths: u64,
    /// Seeders of each torrent.
    pub peers: u64,
    /// Torrents, each with a leecher of its own.
    pub torrents: u64,
    /// Bytes of all torrents together.
    pub bytes: u64,
    /// Bytes of a piece.
    pub piece: u64,
}

impl Case {
    /// The case from which others differ in one respect: one torrent of `bytes` bytes, one seeder,
    /// one path.
    pub const fn base(bytes: u64) -> Self {
        Self {
            axis: None,
            paths: 1,
            peers: 1,
            torrents: 1,
            bytes,
            piece: 256 * KIB,
        }
    }

    /// Whether another case has the same downloads.
    pub fn is_same(&self, other: &Self) -> bool {
        let axis = other.axis;
        Self { axis, ..*self } == *other
    }

    /// The value on its axis, as people write it; empty for the base case.
    pub fn value_text(&self) -> String {
        let Some(axis) = self.axis else {
            return String::new();
        };
        axis.text(match axis {
            Axis::Paths => self.paths,
            Axis::Peers => self.peers,
            Axis::Torrents => self.torrents,
            Axis::Size => self.bytes,
            Axis::Piece => self.piece,
        })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.axis {
            None => f.write_str("base"),
            Some(axis) => write!(f, "{axis} {}", self.value_text()),
        }
    }
}

choices! {
    /// A respect in which cases differ.
    Axis, "axis" {
        /// Paths between two hosts.
        Paths = "paths",
        /// Seeders of a torrent.
        Peers = "peers",
        /// Torrents at once, with a seeder and a leecher each.
        Torrents = "torrents",
        /// Bytes of the torrent.
        Size = "size",
        /// Bytes of a piece.
        Piece = "piece",
    }
}

impl Axis {
    /// The values that are measured: those of a few minutes, or with `all` the whole range.
    pub fn values(self, all: bool) -> &'static [u64] {
        match (self, all) {
            (Self::Paths, false) => &[1, 2, 4, 8],
            (Self::Paths, true) => &[1, 2, 3, 4, 5, 6, 7, 8],
            (Self::Peers, false) => &[1, 4, 16],
            (Self::Peers, true) => &[1, 2, 4, 8, 16, 32, 64],
            (Self::Torrents, false) => &[1, 4],
            (Self::Torrents, true) => &[1, 2, 4, 8, 16],
            (Self::Size, false) => &[16 * MB, 64 * MB, 256 * MB, GB],
            (Self::Size, true) => &[MB, 16 * MB, 64 * MB, 256 * MB, GB, 4 * GB, 16 * GB, 50 * GB],
            (Self::Piece, false) => &[16 * KIB, 256 * KIB, 4 * MIB, 16 * MIB],
            (Self::Piece, true) => &[16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB],
        }
    }

    /// The base case with another value on this axis.
    pub fn case(self, base: Case, value: u64) -> Case {
        let mut case = base;
        case.axis = Some(self);
        match self {
            Self::Paths => case.paths = value,
            Self::Peers => case.peers = value,
            Self::Torrents => case.torrents = value,
            Self::Size => case.bytes = value,
            Self::Piece => case.piece = value,
        }
        case
    }

    /// A value as people write it.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::Paths | Self::Peers | Self::Torrents => value.to_string(),
            Self::Size if value.is_multiple_of(GB) => format!("{} GB", value / GB),
            Self::Size => format!("{} MB", value / MB),
            Self::Piece if value.is_multiple_of(MIB) => format!("{} MiB", value / MIB),
            Self::Piece => format!("{} KiB", value / KIB),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Choice, assert_named};

    #[test]
    fn every_axis_has_the_base_case_and_a_part_of_its_range() {
        assert_named::<Axis>();
        for &axis in Axis::ALL {
            let base = Case::base(256 * MB);
            let cases = |all| axis.values(all).iter().map(|value| axis.case(base, *value));
            assert!(cases(false).any(|case| case.is_same(&base)), "{axis}");
            assert!(cases(false).all(|case| cases(true).any(|one| one == case)));
            assert!(cases(false).all(|case| case.to_string().starts_with(&axis.to_string())));
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
