//! Time of one call to [`Assignment`] with many downloaders, beside a selection for each downloader
//! alone, without regard to the others.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

use divan::{Bencher, black_box};
use hawser_address::IsdAsn;
use hawser_path::{Assignment, Fingerprint, Interface, Metadata, Path, Select, select};

fn main() {
    divan::main();
}

/// Numbers of downloaders, of paths to each, and of links out of the uploader's AS.
const SWARMS: [(usize, usize, u16); 5] = [
    (500, 8, 1),
    (500, 8, 4),
    (500, 8, 16),
    (500, 8, 64),
    (2000, 4, 16),
];

/// A network of 100 ASes: the uploader's, 24 in two rows of core ASes, and 75 at the edge, each of
/// which has three providers in the second row.
struct Network {
    dice: fastrand::Rng,
    links_out: u16,
}

const CORE: usize = 12;
const EDGE: usize = 75;

impl Network {
    fn new(links_out: u16) -> Self {
        Self {
            dice: fastrand::Rng::with_seed(7),
            links_out,
        }
    }

    /// A path to an AS at the edge, over some link out, some core ASes and one of its providers.
    fn path(&mut self, edge: usize) -> Path {
        let isd_as = |row: u64, n: usize| IsdAsn(0x0001_ff00_0000_0000 + (row << 16) + n as u64);
        let out = self.dice.usize(..usize::from(self.links_out));
        let (first, into) = (out % CORE, self.dice.usize(..3));
        let second = (edge * 5 + into * 3) % CORE;
        let end = |isd_as, id: usize| Interface {
            isd_as,
            id: id as u16 + 1,
        };
        let mut interfaces = vec![end(isd_as(0, 0), out), end(isd_as(1, first), out)];
        // Directly, or over one more AS of the second row.
        let over = match self.dice.usize(..2) {
            0 => second,
            _ => (second + 1 + self.dice.usize(..CORE - 1)) % CORE,
        };
        interfaces.extend([
            end(isd_as(1, first), 100 + over),
            end(isd_as(2, over), first),
        ]);
        if over != second {
            interfaces.extend([
                end(isd_as(2, over), 200 + second),
                end(isd_as(2, second), 200 + over),
            ]);
        }
        interfaces.extend([
            end(isd_as(2, second), 400 + edge),
            end(isd_as(3, edge), into),
        ]);
        let (src, dst) = (isd_as(0, 0), isd_as(3, edge));
        Path::new(src, dst, interfaces, Metadata::default()).unwrap()
    }

    fn paths(&mut self, peer: usize, count: usize) -> Vec<Path> {
        (0..count).map(|_| self.path(peer % EDGE)).collect()
    }
}

fn swarm((peers, count, links_out): (usize, usize, u16)) -> (Assignment<usize>, Network) {
    let mut network = Network::new(links_out);
    let mut assignment = Assignment::new();
    for peer in 0..peers {
        assignment.set_peer(peer, network.paths(peer, count), count);
    }
    (assignment, network)
}

#[divan::bench(args = SWARMS, sample_count = 20, sample_size = 1)]
fn set_peer(bencher: Bencher, (peers, count, links_out): (usize, usize, u16)) {
    let (mut assignment, mut network) = swarm((peers, count, links_out));
    let mut peer = 0;
    let paths = || {
        peer = (peer + 37) % peers;
        (peer, network.paths(peer, count))
    };
    bencher
        .with_inputs(paths)
        .bench_local_values(|(peer, paths)| assignment.set_peer(peer, paths, count));
}

#[divan::bench(args = SWARMS, sample_count = 20, sample_size = 1)]
fn remove_peer(bencher: Bencher, sizes: (usize, usize, u16)) {
    let (mut assignment, _) = swarm(sizes);
    // Peers with the most paths are removed first.
    let mut peers: Vec<_> = (0..sizes.0).collect();
    peers.sort_by_key(|peer| assignment.assigned(*peer).len());
    let peer = || peers.pop().unwrap();
    bencher
        .with_inputs(peer)
        .bench_local_values(|peer| assignment.remove_peer(peer));
}

#[divan::bench(args = SWARMS, sample_count = 20, sample_size = 1)]
fn turn(bencher: Bencher, sizes: (usize, usize, u16)) {
    let (mut assignment, _) = swarm(sizes);
    bencher.bench_local(|| assignment.turn());
}

#[divan::bench(args = SWARMS, sample_count = 20, sample_size = 1)]
fn allow(bencher: Bencher, sizes: (usize, usize, u16)) {
    let (mut assignment, _) = swarm(sizes);
    let of = |assignment: &Assignment<_>, peer: usize, rank: usize| -> (usize, Fingerprint) {
        let decisions = assignment.decisions(peer);
        (peer, decisions[rank % decisions.len()].0)
    };
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let (one, other) = (
            of(&assignment, n * 7 % sizes.0, n),
            of(&assignment, n * 11 % sizes.0, n),
        );
        assignment.allow(one, other)
    });
}

/// The baseline: a selection for one downloader, without regard to others.
#[divan::bench(args = SWARMS, sample_count = 20, sample_size = 1)]
fn one_downloader_alone(bencher: Bencher, (_, count, links_out): (usize, usize, u16)) {
    let mut network = Network::new(links_out);
    let options = Select::disjoint();
    bencher
        .with_inputs(|| network.paths(0, count))
        .bench_local_values(|paths| select(black_box(&paths), &options, count));
}

/// The baseline for all downloaders, one after another.
#[divan::bench(args = SWARMS, sample_count = 5, sample_size = 1)]
fn all_downloaders_alone(bencher: Bencher, (peers, count, links_out): (usize, usize, u16)) {
    let mut network = Network::new(links_out);
    let all: Vec<_> = (0..peers).map(|peer| network.paths(peer, count)).collect();
    let options = Select::disjoint();
    bencher.bench_local(|| {
        for paths in &all {
            black_box(select(black_box(paths), &options, count));
        }
    });
}
