//! Compares the paths of whole networks with those of a reference network.
//!
//! The files in `recorded/` are facts of scionproto v0.15.1, seen in networks of its own
//! topologies with its own routers and services. `NAME.topo` has the ASes and links of a network,
//! with the interface numbers that they had; `NAME.paths` the answers of its daemons after
//! beaconing, for all ordered pairs of ASes. A line is `SRC DST: PATH PATH …` in the daemon's
//! order. A path is written as its egress interfaces (`1.3`): in a known network these determine
//! it.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::collections::BTreeMap;
use std::path::Path as File;

use hawser_control::NetworkPaths;
use hawser_path::{Interface, Path};
use hawser_topology::{IsdAsn, LinkKind, Network, Side};

/// The recorded paths of a network, by source and destination.
type Recorded = BTreeMap<(IsdAsn, IsdAsn), Vec<String>>;

fn read(name: &str) -> (Network, Recorded) {
    let folder = File::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let text = |ending| std::fs::read_to_string(folder.join(name).with_extension(ending)).unwrap();
    let network = Network::parse(&text("topo")).unwrap();
    let paths = text("paths");
    let recorded = paths.lines().map(|line| {
        let (ends, paths) = line.split_once(": ").unwrap();
        let (src, dst) = ends.split_once(' ').unwrap();
        let ends = (src.parse().unwrap(), dst.parse().unwrap());
        (ends, paths.split_whitespace().map(str::to_owned).collect())
    });
    (network, recorded.collect())
}

/// A path as in the recorded files.
fn short(path: &Path) -> String {
    let leaves = path.interfaces.iter().step_by(2);
    let leaves: Vec<_> = leaves.map(|leaves| leaves.id.to_string()).collect();
    leaves.join(".")
}

/// Checks that the path follows links of the network, from AS to AS.
fn check_links(network: &Network, path: &Path) {
    for pair in path.interfaces.chunks(2) {
        let far = |near: &Interface| {
            let (link, side) = network.link_at(near.isd_as, near.id).unwrap();
            let far = network.links[link].end(side.other());
            (far.isd_as, far.id)
        };
        assert_eq!(far(&pair[0]), (pair[1].isd_as, pair[1].id));
    }
}

/// The number of paths that cross peering links of core ASes.
fn over_core_peerings(network: &Network, paths: &[Path]) -> usize {
    let is_core = |isd_as| network.ases.iter().any(|a| a.isd_as == isd_as && a.core);
    let crosses = |interface: &Interface| {
        let (link, _) = network.link_at(interface.isd_as, interface.id).unwrap();
        let link = &network.links[link];
        let ends = [Side::A, Side::B].map(|side| link.end(side).isd_as);
        link.kind == LinkKind::Peer && ends.into_iter().any(is_core)
    };
    let over = |path: &&Path| path.interfaces.iter().any(crosses);
    paths.iter().filter(over).count()
}

/// Compares all paths of a network; returns how many there are, and how many of them cross peering
/// links of core ASes.
fn compare(name: &str) -> (usize, usize) {
    let (network, recorded) = read(name);
    let ases = network.ases.len();
    assert_eq!(recorded.len(), ases * (ases - 1), "{name}");
    let mut all = NetworkPaths::new(&network);
    let (mut count, mut over) = (0, 0);
    for ((src, dst), theirs) in recorded {
        let paths = all.between(src, dst, usize::MAX);
        let ours: Vec<_> = paths.iter().map(short).collect();
        assert_eq!(ours, theirs, "{name}: {src} to {dst}");
        paths.iter().for_each(|path| check_links(&network, path));
        count += paths.len();
        over += over_core_peerings(&network, &paths);
    }
    (count, over)
}

#[test]
fn paths_of_whole_networks_equal_those_of_the_reference() {
    for (name, expected) in [
        // Before v0.12 scionproto had no paths over peering links of core ASes.
        ("big", (172, 6)),
        ("default", (2352, 0)),
        ("peering-test-multi", (88, 0)),
        ("wide", (1420, 0)),
    ] {
        assert_eq!(compare(name), expected, "{name}");
    }
}
