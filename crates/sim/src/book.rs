//! The network as the simulation uses it: links, and the paths between the hosts' ASes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use hawser_control::NetworkPaths;
use hawser_manager::SelectBy;
use hawser_path::{Fingerprint, Interface, Path};
use hawser_topology::{IsdAsn, Network, Side};

use crate::host::Host;
use crate::options::Options;

/// Shortest round trip.
const MIN_RTT: Duration = Duration::from_millis(1);

/// A path between two ASes.
#[derive(Debug)]
pub(crate) struct KnownPath {
    pub path: Rc<Path>,
    pub fingerprint: Fingerprint,
    /// The link directions that data takes.
    pub links: Vec<u32>,
    pub rtt: Duration,
}

/// The paths between an uploader's AS and a leecher's, as seen from the side that chooses.
#[derive(Debug)]
pub(crate) struct PairPaths {
    pub known: Vec<KnownPath>,
}

impl PairPaths {
    pub fn find(&self, fingerprint: Fingerprint) -> Option<usize> {
        let mut known = self.known.iter();
        known.position(|one| one.fingerprint == fingerprint)
    }
}

/// The links of the network, and the paths looked up so far.
pub(crate) struct Book {
    paths: NetworkPaths,
    /// By interface: the direction that leaves by it, and the link's delay.
    links: BTreeMap<Interface, (u32, Duration)>,
    /// Bytes per second of each link direction, then of each host out and in.
    pub capacity: Vec<f64>,
    /// How many entries of `capacity` are link directions.
    pub directions: usize,
    by: SelectBy,
    limit: usize,
    between: BTreeMap<(IsdAsn, IsdAsn), Rc<PairPaths>>,
}

impl Book {
    pub fn new(network: &Network, hosts: &[Host], options: &Options, by: SelectBy) -> Self {
        let mut links = BTreeMap::new();
        let mut capacity = Vec::new();
        for link in &network.links {
            for side in [Side::A, Side::B] {
                let end = link.end(side);
                let interface = Interface {
                    isd_as: end.isd_as,
                    id: end.id,
                };
                links.insert(interface, (capacity.len() as u32, link.shape.delay));
                capacity.push(link.shape.rate.unwrap_or(options.default_rate) as f64 / 8.0);
            }
        }
        let directions = capacity.len();
        capacity.extend(vec![options.hosts.rate as f64 / 8.0; 2 * hosts.len()]);
        Self {
            paths: NetworkPaths::new(network),
            links,
            capacity,
            directions,
            by,
            limit: options.known,
            between: BTreeMap::new(),
        }
    }

    /// The directions out of a host and into it, as indices into `capacity`.
    pub fn host(&self, host: u32) -> (u32, u32) {
        let out = self.directions as u32 + 2 * host;
        (out, out + 1)
    }

    /// The interface that a direction leaves by.
    pub fn interface(&self, direction: usize) -> Option<Interface> {
        let mut links = self.links.iter();
        links
            .find(|(_, (one, _))| *one as usize == direction)
            .map(|(interface, _)| *interface)
    }

    /// The paths from an uploader's AS to a leecher's.
    pub fn between(&mut self, from: IsdAsn, to: IsdAsn) -> Rc<PairPaths> {
        if let Some(between) = self.between.get(&(from, to)) {
            return between.clone();
        }
        let (here, there) = match self.by {
            SelectBy::Uploader => (from, to),
            SelectBy::Downloader => (to, from),
        };
        let paths = match here == there {
            true => Path::new(here, there, Vec::new(), Default::default())
                .into_iter()
                .collect(),
            false => self.paths.between(here, there, self.limit),
        };
        let known = paths.into_iter().map(|path| self.known(path)).collect();
        let between = Rc::new(PairPaths { known });
        self.between.insert((from, to), between.clone());
        between
    }

    fn known(&self, path: Path) -> KnownPath {
        let mut delay = Duration::ZERO;
        let mut links = Vec::with_capacity(path.links());
        for ends in path.interfaces.chunks_exact(2) {
            // A downloader's path leads to the uploader, so data takes its links in the other
            // direction.
            let leaves = match self.by {
                SelectBy::Uploader => ends[0],
                SelectBy::Downloader => ends[1],
            };
            if let Some((direction, one)) = self.links.get(&leaves) {
                links.push(*direction);
                delay += *one;
            }
        }
        KnownPath {
            fingerprint: path.fingerprint(),
            path: Rc::new(path),
            links,
            rtt: (delay * 2).max(MIN_RTT),
        }
    }
}
