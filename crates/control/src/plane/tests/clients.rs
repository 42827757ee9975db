//! Compares the paths of hosts that look up segments with the daemon's.

use hawser_path::{Fingerprint, Interface};
use hawser_segment::{Segment, Segments};

use super::*;
use crate::beacons::CachedSegments;

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
                let message = Message::decode_from_slice(&bytes).unwrap();
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

pub(super) fn compare_with_clients(network: &Network) {
    for src in network.ases.iter().map(|a| a.isd_as) {
        let mut plane = plane(network, src);
        for dst in network.ases.iter().map(|a| a.isd_as).filter(|&d| d != src) {
            let listed = listed(&mut plane, dst, NOW);
            let requested = by_requests(&mut plane, network, dst);
            assert_eq!(listed, requested, "{src} to {dst}");
            assert_eq!(listed, by_messages(&mut plane, dst), "{src} to {dst}");
        }
    }
}

#[test]
fn a_client_that_combines_segments_itself_finds_the_same_paths() {
    compare_with_clients(&two_isds());
    compare_with_clients(&Network::ready("fig9").unwrap());
}

/// `sciparse.combined` says what is recorded there.
#[test]
fn another_implementation_combined_the_same_paths() {
    let recorded = include_str!("../../../tests/recorded/sciparse.combined");
    let recorded = recorded.lines().filter(|line| !line.starts_with('#'));
    let mut ours = Vec::new();
    for (name, network) in [
        ("two_isds", two_isds()),
        ("fig9", Network::ready("fig9").unwrap()),
    ] {
        for src in network.ases.iter().map(|a| a.isd_as) {
            let mut plane = plane(&network, src);
            for dst in network.ases.iter().map(|a| a.isd_as).filter(|&d| d != src) {
                let paths: BTreeSet<_> = listed(&mut plane, dst, NOW).into_iter().collect();
                let interfaces = paths.iter().flatten();
                let interfaces = interfaces.map(|&(isd_as, id)| Interface { isd_as, id });
                let hash = Fingerprint::of(&interfaces.collect::<Vec<_>>()).short();
                ours.push(format!("{name} {src} {dst} {} {hash}", paths.len()));
            }
        }
    }
    assert_eq!(ours, recorded.collect::<Vec<_>>());
}
