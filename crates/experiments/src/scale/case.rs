//! What is compared.

use std::fmt;

use super::axis::{Axis, KIB, Work};
use crate::clients::Client;
use crate::shape::Choice;

/// One measurement of several that differ in one respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// In which respect it differs; `None` for the downloads from which all others differ.
    pub axis: Option<Axis>,
    /// The value on that axis.
    pub value: u64,
    /// The client, where several are compared.
    pub client: Option<Client>,
    /// What is downloaded, where that is the work.
    pub downloads: Shape,
}

/// Downloads at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Paths between each leecher and each seeder.
    pub paths: u64,
    /// Seeders of each torrent.
    pub peers: u64,
    /// Leechers of each torrent, which fetch from its seeders alone.
    pub leechers: u64,
    /// Torrents.
    pub torrents: u64,
    /// Bytes of all downloads together.
    pub bytes: u64,
    /// Bytes of a piece.
    pub piece: u64,
}

impl Case {
    /// The downloads from which others differ in one respect: one torrent of `bytes` bytes, one seeder,
    /// one leecher, one path.
    pub const fn base(bytes: u64) -> Self {
        Self {
            axis: None,
            value: 0,
            client: None,
            downloads: Shape {
                paths: 1,
                peers: 1,
                leechers: 1,
                torrents: 1,
                bytes,
                piece: 256 * KIB,
            },
        }
    }

    /// All cases of one kind of work on these axes, a base case first. `bytes` are those of the base.
    pub fn all(work: Work, axes: &[Axis], bytes: u64, whole: bool) -> Vec<Self> {
        let base = Self::base(bytes);
        let axes = axes.iter().filter(|axis| axis.work() == work);
        let cases = axes.flat_map(|&axis| {
            let values = axis.values(whole).iter();
            values.flat_map(move |&value| base.on(axis, value))
        });
        match work {
            Work::Downloads => {
                let others = cases.filter(|case| case.downloads != base.downloads);
                std::iter::once(base).chain(others).collect()
            }
            _ => cases.collect(),
        }
    }

    /// The base case with another value on an axis: one for each client that is compared.
    fn on(self, axis: Axis, value: u64) -> Vec<Self> {
        let mut case = Self {
            axis: Some(axis),
            value,
            ..self
        };
        let downloads = &mut case.downloads;
        match axis {
            Axis::Paths => downloads.paths = value,
            Axis::Peers => downloads.peers = value,
            Axis::Leechers => downloads.leechers = value,
            Axis::Torrents => downloads.torrents = value,
            Axis::Size => downloads.bytes = value,
            Axis::Piece => downloads.piece = value,
            Axis::Flows | Axis::Senders | Axis::Shim => {}
            Axis::TcpPeers => {
                let client = |&client| Self {
                    client: Some(client),
                    ..case
                };
                return Client::ALL.iter().map(client).collect();
            }
        }
        vec![case]
    }

    /// The value on its axis, as people write it; empty for the base case.
    pub fn value_text(&self) -> String {
        self.axis
            .map_or_else(String::new, |axis| axis.text(self.value))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.axis {
            None => f.write_str("base"),
            Some(axis) => write!(f, "{axis} {}", self.value_text()),
        }?;
        match self.client {
            None => Ok(()),
            Some(client) => write!(f, " {client}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_begins_with_a_base_case() {
        for &axis in Axis::ALL {
            for whole in [false, true] {
                let cases = Case::all(axis.work(), &[axis], 256_000_000, whole);
                let base = &cases[0];
                match axis.work() {
                    Work::Downloads => assert_eq!(base.axis, None, "{axis}"),
                    _ => assert_eq!(base.value, 1, "{axis}"),
                }
                for (at, case) in cases.iter().enumerate() {
                    assert!(!cases[..at].contains(case), "{case} is there twice");
                    assert!(at == 0 || case.to_string().starts_with(&axis.to_string()));
                }
            }
        }
    }

    #[test]
    fn clients_are_compared_over_tcp() {
        let cases = Case::all(Work::Tcp, Axis::ALL, 1, false);
        assert_eq!(cases.len(), 3 * Client::ALL.len());
        assert_eq!(cases[0].to_string(), "tcp-peers 1 hawser");
    }
}
