//! Random networks, and random requests.

use proptest::prelude::*;

use super::*;

/// Networks of a few ASes with links of all kinds between them.
fn networks() -> impl Strategy<Value = Network> {
    let cores = prop::collection::vec(any::<bool>(), 2..8);
    let links = prop::collection::vec((any::<usize>(), any::<usize>(), any::<bool>()), 1..14);
    (cores, links).prop_map(|(cores, links)| {
        let count = cores.len();
        let name = |at| ia(&format!("{}-ff00:0:{:x}", 1 + at % 2, at + 1));
        let ases = (0..count).map(|at| plain_as(name(at), cores[at])).collect();
        let links = links
            .into_iter()
            .enumerate()
            .filter_map(|(at, (a, b, peer))| {
                let (a, b) = (a % count, b % count);
                // Parents have smaller indices than their children, so there is no cycle, and the
                // same ISD (SCION control plane, path segments).
                let (a, b) = (a.min(b), a.max(b));
                let kind = match (cores[a], cores[b]) {
                    (true, true) => LinkKind::Core,
                    (_, false) if !peer && a % 2 == b % 2 => LinkKind::Child,
                    _ => LinkKind::Peer,
                };
                let id = u16::try_from(at + 1).unwrap();
                (a != b).then(|| plain_link([a, b].map(name), id, kind))
            });
        let links = links.collect();
        Network { ases, links }
    })
}

/// An ISD-AS of the network of two ISDs, a wildcard, or any number.
fn requested() -> impl Strategy<Value = IsdAsn> {
    let known = two_isds().ases.into_iter().map(|a| a.isd_as);
    prop_oneof![
        prop::sample::select(known.collect::<Vec<_>>()),
        (0..4u16).prop_map(|isd| ia(&format!("{isd}-0"))),
        any::<u64>().prop_map(IsdAsn::from_u64),
    ]
}

proptest! {
    #[test]
    fn any_request_has_an_answer(src in requested(), dst in requested()) {
        let mut plane = plane(&two_isds(), ia("1-ff00:0:114"));
        let known = plane.ends(dst).is_ok();
        let local = src == IsdAsn::WILDCARD || src == plane.isd_as();
        let paths = plane.paths(src, dst, NOW);
        assert_eq!(paths.is_ok(), known && local);
        if let Ok(found) = plane.lookup(src, dst, NOW) {
            let counts = [&found.up, &found.core, &found.down].map(Vec::len);
            let isd = src.asn().is_wildcard();
            assert!(src != dst || isd || counts == [0, 0, 0]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn routers_accept_the_paths_of_any_network(network in networks()) {
        check_all(&network);
        compare_with_clients(&network);
    }
}
