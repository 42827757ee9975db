//! What is simulated.

use std::time::Duration;

use hawser_path::Select;
use hawser_topology::IsdAsn;

/// A swarm, and how it chooses paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What all chance comes from.
    pub seed: u64,
    /// How many want the content.
    pub leechers: usize,
    /// How many have it from the beginning to the end.
    pub seeders: usize,
    /// Bytes of the content.
    pub size: u64,
    /// Leechers come at any time from the beginning until then.
    pub arrive: Duration,
    /// The simulation ends then, if not all leechers have all before.
    pub duration: Duration,
    /// Which paths are chosen; an uploader ranks by it.
    pub select: Select,
    /// How many paths to each peer are used at most.
    pub paths: usize,
    /// How many paths are known between two ASes at most, the shortest.
    pub known: usize,
    /// How many other leechers a leecher is told of when it comes, and again when it knows fewer
    /// than half as many; 0: it knows none but seeders.
    pub peers: usize,
    /// Rate in bit/s of links that say nothing of it.
    pub default_rate: u64,
    /// Rate in bit/s of each host, out and in.
    pub host_rate: u64,
    /// The ASes that seeders are in, in turn; any without children of its own when empty.
    pub seeders_in: Vec<IsdAsn>,
    /// The same of leechers.
    pub leechers_in: Vec<IsdAsn>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            leechers: 100,
            seeders: 1,
            size: 64 << 20,
            arrive: Duration::from_secs(10),
            duration: Duration::from_secs(600),
            select: Select::disjoint(),
            paths: 4,
            known: 8,
            peers: 8,
            default_rate: 1_000_000_000,
            host_rate: 1_000_000_000,
            seeders_in: Vec::new(),
            leechers_in: Vec::new(),
        }
    }
}

/// Why nothing can be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// An AS that hosts are to be in is not there.
    #[error("there is no AS {0} in the topology to put a host in")]
    NoAs(IsdAsn),
    /// There is no path between the ASes of two hosts that are to meet.
    #[error("there is no path between {0} and {1}: join them by links, or name other ASes")]
    NoPath(IsdAsn, IsdAsn),
    /// Something that has to be there is none.
    #[error("{0} is 0: it has to be more")]
    Zero(&'static str),
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), SimulateError> {
        let counts = [
            ("the number of leechers", self.leechers as u64),
            ("the number of seeders", self.seeders as u64),
            ("the size", self.size),
            ("the number of paths", self.paths as u64),
            ("the number of known paths", self.known as u64),
            ("the default rate", self.default_rate),
            ("the hosts' rate", self.host_rate),
        ];
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((what, _)) => Err(SimulateError::Zero(what)),
            None => Ok(()),
        }
    }
}
