//! Compares the paths of hosts that look up segments with the daemon's, and with those of another
//! implementation.

use hawser_segment::{Segment, Segments};

use super::*;
use crate::beacons::CachedSegments;

/// The paths of a network between all pairs of its ASes, as [`short`] ones by `SRC DST`.
type Paths = BTreeMap<String, BTreeSet<String>>;

/// A network, and the paths in it that `sciparse` 0.8.6 has combined from the segments that lookups in
/// this version had returned, encoded and decoded.
#[derive(serde::Deserialize)]
struct Recorded {
    network: Network,
    paths: Paths,
}

/// A path as its egress interfaces: in a known network these determine it.
fn short(path: &[(IsdAsn, u16)]) -> String {
    let leaves: Vec<_> = path
        .iter()
        .step_by(2)
        .map(|(_, id)| id.to_string())
        .collect();
    leaves.join(".")
}

/// The networks of these tests, and some random ones with many paths.
fn recorded() -> Vec<Recorded> {
    let text = include_str!("../../../tests/recorded/sciparse.json");
    serde_json::from_str(text).unwrap()
}

/// The interfaces of the paths that a host combines.
fn combined(segments: &Segments, src: IsdAsn, dst: IsdAsn) -> Vec<Interfaces> {
    let paths = combine(segments, src, dst, MAX_PATHS);
    let paths = paths.iter().map(|path| &path.path.interfaces);
    let pairs = paths.map(|path| path.iter().map(|i| (i.isd_as, i.id)).collect());
    pairs.collect()
}

/// The paths that a host combines from the looked-up segments, after encoding and decoding.
fn by_messages(plane: &mut Plane, dst: IsdAsn) -> Vec<Interfaces> {
    let src = plane.isd_as();
    let found = plane.lookup(src, dst, NOW).unwrap();
    let read = |list: &CachedSegments| -> Vec<_> {
        list.iter()
            .map(|segment| {
                let bytes = segment.message(None).unwrap().encode_to_vec();
                let message = PathSegment::decode(bytes.as_slice()).unwrap();
                Segment::from_message(&message).unwrap()
            })
            .collect()
    };
    let (up, core, down) = (read(&found.up), read(&found.core), read(&found.down));
    combined(&Segments { up, core, down }, src, dst)
}

/// The requests into which scionproto's clients split a request for paths: one each for up, core
/// and down segments. The clients know which ASes are core ASes.
fn split(network: &Network, src: IsdAsn, dst: IsdAsn) -> Vec<(IsdAsn, IsdAsn)> {
    let core = |isd_as| network.find(isd_as).unwrap().core;
    let any = |isd_as: IsdAsn| ia(&format!("{}-0", isd_as.isd()));
    let cores = network.ases.iter().filter(|a| a.core);
    let cores: Vec<_> = cores
        .filter(|a| a.isd_as.isd() == src.isd() && src.isd() == dst.isd())
        .map(|a| a.isd_as)
        .collect();
    match (core(src), core(dst), &cores[..]) {
        (false, false, &[one]) => vec![(src, one), (one, dst)],
        (false, false, _) => vec![(src, any(src)), (any(src), any(dst)), (any(dst), dst)],
        (false, true, &[one]) if one == dst => vec![(src, dst)],
        (false, true, _) => vec![(src, any(src)), (any(src), dst)],
        (true, false, &[one]) if one == src => vec![(src, dst)],
        (true, false, _) => vec![(src, any(dst)), (any(dst), dst)],
        (true, true, _) => vec![(src, dst)],
    }
}

/// The paths that a host combines from the answers to such requests.
pub(super) fn by_requests(plane: &mut Plane, network: &Network, dst: IsdAsn) -> Vec<Interfaces> {
    let src = plane.isd_as();
    let mut all = Segments::default();
    for (src, dst) in split(network, src, dst) {
        let found = plane.lookup(src, dst, NOW).unwrap().segments();
        all.up.extend(found.up);
        all.core.extend(found.core);
        all.down.extend(found.down);
    }
    combined(&all, src, dst)
}

/// Checks that a host that combines segments itself finds the same paths; returns them.
pub(super) fn compare_with_clients(network: &Network) -> Paths {
    let mut paths = Paths::new();
    for src in network.ases.iter().map(|a| a.isd_as) {
        let mut plane = plane(network, src);
        for dst in network.ases.iter().map(|a| a.isd_as).filter(|&d| d != src) {
            let listed = listed(&mut plane, dst, NOW);
            let requested = by_requests(&mut plane, network, dst);
            assert_eq!(listed, requested, "{src} to {dst}");
            assert_eq!(listed, by_messages(&mut plane, dst), "{src} to {dst}");
            let shown = listed.iter().map(|path| short(path)).collect();
            paths.insert(format!("{src} {dst}"), shown);
        }
    }
    paths
}

#[test]
fn a_client_that_combines_segments_itself_finds_the_same_paths() {
    let mut count = 0;
    for Recorded { network, paths } in recorded() {
        count += paths.values().map(BTreeSet::len).sum::<usize>();
        assert_eq!(compare_with_clients(&network), paths);
    }
    assert!(count > 500, "{count}");
}
