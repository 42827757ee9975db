//! Options of a simulation.

use std::time::Duration;

use hawser_choker::DEFAULT_SLOTS;
use hawser_path::Select;
use hawser_topology::IsdAsn;

/// The step of virtual time. Events within a step take effect at its end, except that the
/// completion time of a leecher is exact.
pub const STEP: Duration = Duration::from_millis(100);

/// A swarm, and how it chooses paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Seed of all random numbers.
    pub seed: u64,
    /// The hosts.
    pub hosts: Hosts,
    /// Bytes of the content.
    pub size: u64,
    /// Leechers join at random times from the beginning until this time.
    pub arrive: Duration,
    /// The simulation ends at this time at the latest, even if leechers are not complete.
    pub duration: Duration,
    /// How paths are selected; an uploader only ranks by it.
    pub select: Select,
    /// Most paths used to each peer.
    pub paths: usize,
    /// Most paths known between two ASes, the shortest first.
    pub known: usize,
    /// Number of other leechers that a leecher learns of when it joins, and again when it knows
    /// fewer than half as many; with 0, it knows only seeders.
    pub peers: usize,
    /// Most leechers that a host serves at once.
    pub slots: usize,
    /// Rate in bit/s of links without one.
    pub default_rate: u64,
}

/// The hosts of a swarm.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosts {
    /// Number of leechers.
    pub leechers: usize,
    /// How many of the leechers send nothing to others.
    pub free_riders: usize,
    /// Number of seeders, which stay to the end.
    pub seeders: usize,
    /// Rate in bit/s of each host, out and in.
    pub rate: u64,
    /// The ASes of seeders, in turn; if empty, random non-core ASes without child ASes.
    pub seeders_in: Vec<IsdAsn>,
    /// The ASes of leechers, in the same manner.
    pub leechers_in: Vec<IsdAsn>,
}

impl Default for Hosts {
    fn default() -> Self {
        Self {
            leechers: 100,
            free_riders: 0,
            seeders: 1,
            rate: 1_000_000_000,
            seeders_in: Vec::new(),
            leechers_in: Vec::new(),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            hosts: Hosts::default(),
            size: 64 << 20,
            arrive: Duration::from_secs(10),
            duration: Duration::from_secs(600),
            select: Select::disjoint(),
            paths: 4,
            known: 8,
            peers: 8,
            slots: DEFAULT_SLOTS,
            default_rate: 1_000_000_000,
        }
    }
}

/// Why a simulation is impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// An AS that is named for hosts does not exist.
    #[error("there is no AS {0} in the topology to put a host in")]
    NoAs(IsdAsn),
    /// There is no path between the ASes of two hosts that must be connected.
    #[error("there is no path between {0} and {1}: join them by links, or name other ASes")]
    NoPath(IsdAsn, IsdAsn),
    /// There are more free riders than leechers.
    #[error("{0} free riders are more than the {1} leechers that they are a part of")]
    FreeRiders(usize, usize),
    /// A number that must be positive is 0.
    #[error("{0} is 0: it has to be more")]
    Zero(&'static str),
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), SimulateError> {
        let counts = [
            ("the number of leechers", self.hosts.leechers as u64),
            ("the number of seeders", self.hosts.seeders as u64),
            ("the size", self.size),
            ("the number of paths", self.paths as u64),
            ("the number of known paths", self.known as u64),
            ("the number of slots", self.slots as u64),
            ("the default rate", self.default_rate),
            ("the hosts' rate", self.hosts.rate),
        ];
        match counts.iter().find(|(_, count)| *count == 0) {
            Some((what, _)) => Err(SimulateError::Zero(what)),
            None if self.hosts.free_riders > self.hosts.leechers => Err(SimulateError::FreeRiders(
                self.hosts.free_riders,
                self.hosts.leechers,
            )),
            None => Ok(()),
        }
    }
}
