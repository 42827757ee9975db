//! The hosts of a swarm: their ASes, when they join, and their pieces.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_choker::{Choker, Goal};
use hawser_topology::{IsdAsn, LinkKind, Network};

use crate::names::HostId;
use crate::options::{Options, SimulateError};
use crate::pieces::Pieces;
use crate::random::generator;

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub isd_as: IsdAsn,
    /// When it joins; seeders at the beginning.
    pub arrives: Duration,
    pub here: bool,
    /// When it was complete; seeders at the beginning.
    pub finished: Option<Duration>,
    pub pieces: Pieces,
    /// The leechers that a leecher knows, without itself; seeders know all.
    pub peers: BTreeSet<HostId>,
    /// Which of them it serves.
    pub choker: Choker<HostId>,
    /// Whether it serves nobody.
    pub rides_free: bool,
}

impl Host {
    /// It has left, complete, and needs nothing of what it knew of others.
    pub fn leave(&mut self, now: Instant) {
        self.here = false;
        self.peers.clear();
        self.choker = Choker::new(Goal::Seeding, 1, 0, now);
        self.pieces.forget();
    }
}

/// Places the hosts of a swarm in a network, `base` being the beginning. The result depends only on
/// the network and the options.
///
/// # Errors
/// When an AS that is named for hosts does not exist.
pub(crate) fn hosts(
    network: &Network,
    options: &Options,
    base: Instant,
) -> Result<Vec<Host>, SimulateError> {
    let rng = |purpose| generator(options.seed, purpose);
    let seeders = places(
        network,
        &options.hosts.seeders_in,
        options.hosts.seeders,
        rng(1),
    )?;
    let leechers = places(
        network,
        &options.hosts.leechers_in,
        options.hosts.leechers,
        rng(2),
    )?;
    let (mut rng, mut seeds, mut picks) = (rng(3), rng(5), rng(6));
    let mut host = |isd_as, arrives, pieces, goal| Host {
        isd_as,
        arrives,
        here: false,
        finished: None,
        pieces,
        peers: BTreeSet::new(),
        choker: Choker::new(goal, options.slots, seeds.u64(..), base),
        rides_free: false,
    };
    let mut hosts: Vec<Host> = seeders
        .into_iter()
        .zip(0..)
        .map(|(isd_as, at)| Host {
            here: true,
            finished: Some(Duration::ZERO),
            ..host(
                isd_as,
                Duration::ZERO,
                Pieces::all(options.size, at),
                Goal::Seeding,
            )
        })
        .collect();
    for (at, isd_as) in leechers.into_iter().enumerate() {
        let arrives = options.arrive.mul_f64(rng.f64());
        let number = (options.hosts.seeders + at) as HostId;
        let pieces = Pieces::none(options.size, number, picks.u64(..));
        hosts.push(Host {
            rides_free: at < options.hosts.free_riders,
            ..host(isd_as, arrives, pieces, Goal::Fetching)
        });
    }
    Ok(hosts)
}

/// The ASes of `count` hosts.
fn places(
    network: &Network,
    named: &[IsdAsn],
    count: usize,
    mut rng: Rng,
) -> Result<Vec<IsdAsn>, SimulateError> {
    if let Some(absent) = named.iter().find(|one| network.find(**one).is_none()) {
        return Err(SimulateError::NoAs(*absent));
    }
    if !named.is_empty() {
        return Ok(named.iter().copied().cycle().take(count).collect());
    }
    let children = network
        .links
        .iter()
        .filter(|link| link.kind == LinkKind::Child);
    let parents: BTreeSet<IsdAsn> = children.map(|link| link.a.isd_as).collect();
    let all = || network.ases.iter().filter(|one| !one.core);
    let mut open: Vec<IsdAsn> = all().map(|one| one.isd_as).collect();
    open.retain(|one| !parents.contains(one));
    if open.is_empty() {
        open = network.ases.iter().map(|one| one.isd_as).collect();
    }
    let draw = (0..count).filter_map(|_| rng.choice(&open).copied());
    Ok(draw.collect())
}
