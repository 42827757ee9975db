//! Compares the paths of hosts that look up segments with the daemon's.

use super::*;
use crate::beacons::CachedSegments;

/// The paths that sciparse combines from the looked-up segments, after encoding and decoding.
fn by_sciparse(plane: &mut Plane, dst: IsdAsn) -> BTreeSet<Interfaces> {
    let src = plane.isd_as();
    let found = plane.lookup(src, dst, NOW).unwrap();
    let read = |list: &CachedSegments| -> Vec<_> {
        list.iter()
            .map(|segment| {
                let bytes = segment.message(None).unwrap().encode_to_vec();
                let message = Message::decode_from_slice(&bytes).unwrap();
                sciparse::segment::SignedPathSegment::try_from_rpc(message).unwrap()
            })
            .collect()
    };
    let (up, core, down) = (read(&found.up), read(&found.core), read(&found.down));
    let paths = sciparse::path::combinator::combine(src, dst, core.iter(), up.iter().chain(&down));
    paths
        .iter()
        .map(|path| {
            let interfaces = path.metadata().unwrap().interfaces.as_ref().unwrap();
            interfaces
                .iter()
                .map(|i| (i.interface.isd_asn, i.interface.id))
                .collect()
        })
        .collect()
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
    let mut all = hawser_segment::Segments::default();
    for (src, dst) in split(network, src, dst) {
        let found = plane.lookup(src, dst, NOW).unwrap().segments();
        all.up.extend(found.up);
        all.core.extend(found.core);
        all.down.extend(found.down);
    }
    let paths = combine(&all, src, dst, MAX_PATHS);
    let paths = paths.iter().map(|path| &path.path.interfaces);
    let pairs = paths.map(|path| path.iter().map(|i| (i.isd_as, i.id)).collect());
    pairs.collect()
}

pub(super) fn compare_with_clients(network: &Network) {
    for src in network.ases.iter().map(|a| a.isd_as) {
        let mut plane = plane(network, src);
        for dst in network.ases.iter().map(|a| a.isd_as).filter(|&d| d != src) {
            let listed = listed(&mut plane, dst, NOW);
            let requested = by_requests(&mut plane, network, dst);
            assert_eq!(listed, requested, "{src} to {dst}");
            let ours: BTreeSet<_> = listed.into_iter().collect();
            let theirs = by_sciparse(&mut plane, dst);
            if theirs.len() <= MAX_PATHS {
                assert_eq!(ours, theirs, "{src} to {dst}");
            } else {
                assert_eq!(ours.len(), MAX_PATHS);
                assert!(ours.is_subset(&theirs), "{src} to {dst}");
            }
        }
    }
}

#[test]
fn a_client_that_combines_segments_itself_finds_the_same_paths() {
    compare_with_clients(&two_isds());
    compare_with_clients(&Network::ready("fig9").unwrap());
}
