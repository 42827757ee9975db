use std::collections::{BTreeMap, BTreeSet};

use hawser_proto::Message;
use hawser_proto::daemon::Path;
use hawser_proto::well_known::Timestamp;
use hawser_topology::{LinkAddresses, LinkKind, Network};

use super::*;
use crate::beacons::SEGMENTS_PER_PAIR;
use crate::testing::{TWO_ISDS, ia, plain_as, plain_link, plane, walk};

mod clients;
mod isds;
mod random;

use self::clients::{by_requests, compare_with_clients};

/// The time in the tests, in 2033.
const NOW: u64 = 2_000_000_000;

type Interfaces = Vec<(IsdAsn, u16)>;

fn ask(plane: &mut Plane, dst: IsdAsn, now: u64) -> Vec<Path> {
    let answer = plane.paths(IsdAsn::WILDCARD, dst, now).unwrap();
    PathsResponse::decode(answer.bytes()).unwrap().paths
}

fn at(seconds: u64) -> Option<Timestamp> {
    Some(Timestamp::from_unix_secs(seconds))
}

/// The address of the router that takes packets over the path.
fn router(path: &Path) -> &str {
    let interface = path.interface.as_ref().unwrap();
    &interface.address.as_ref().unwrap().address
}

fn interfaces(path: &Path) -> Interfaces {
    path.interfaces
        .iter()
        .map(|i| (IsdAsn::from_u64(i.isd_as), u16::try_from(i.id).unwrap()))
        .collect()
}

fn listed(plane: &mut Plane, dst: IsdAsn, now: u64) -> Vec<Interfaces> {
    ask(plane, dst, now).iter().map(interfaces).collect()
}

/// The paths as `113#1 111#3 …`, with the last part of each AS number.
fn texts(network: &Network, src: &str, dst: &str) -> Vec<String> {
    let show = |path: Interfaces| {
        path.iter()
            .map(|(isd_as, id)| format!("{:x}#{id}", isd_as.asn().to_u64() & 0xffff))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let found = listed(&mut plane(network, ia(src)), ia(dst), NOW);
    found.into_iter().map(show).collect()
}

fn two_isds() -> Network {
    Network::parse(TWO_ISDS).unwrap()
}

#[test]
fn network_paths_equal_the_answers_of_the_services() {
    let network = two_isds();
    let mut paths = crate::NetworkPaths::new(&network);
    let ases = || network.ases.iter().map(|one| one.isd_as);
    for src in ases() {
        let mut plane = plane(&network, src);
        for dst in ases().filter(|&dst| dst != src) {
            let planned = paths.between(src, dst, MAX_PATHS).into_iter();
            let planned =
                planned.map(|path| path.interfaces.iter().map(|i| (i.isd_as, i.id)).collect());
            let planned: Vec<Interfaces> = planned.collect();
            assert_eq!(planned, listed(&mut plane, dst, NOW), "{src} to {dst}");
            assert_eq!(paths.between(src, dst, 1).len(), planned.len().min(1));
        }
        assert!(paths.between(src, src, 9).is_empty());
    }
}

/// Checks every path between any two ASes: the MACs in both directions, that the listed interfaces
/// are those crossed, that there are no duplicates and no loops, the order, and that the reversed
/// paths exist unless paths had to be left out. Returns the number of paths.
fn check_all(network: &Network) -> usize {
    let (mut count, mut capped) = (0, false);
    let mut all = BTreeSet::new();
    for src in network.ases.iter().map(|a| a.isd_as) {
        let mut plane = plane(network, src);
        for dst in network.ases.iter().map(|a| a.isd_as).filter(|&d| d != src) {
            // Beyond the maximum number of segments, the selection may differ for the opposite
            // direction.
            if let Ok(found) = plane.lookup(src, dst, NOW) {
                let kept = [&found.core, &found.up, &found.down];
                capped |= kept.iter().any(|list| list.len() >= SEGMENTS_PER_PAIR);
            }
            let paths = ask(&mut plane, dst, NOW);
            let lists: Vec<_> = paths.iter().map(interfaces).collect();
            for (path, list) in paths.iter().zip(&lists) {
                let crossed = walk(network, &path.raw, src, dst, NOW);
                assert_eq!(crossed.as_ref(), Ok(list), "{src} to {dst}");
                let ases: BTreeSet<_> = list.iter().map(|i| i.0).collect();
                assert_eq!(ases.len(), list.len() / 2 + 1, "a loop in {list:?}");
            }
            let by_links = lists.iter().map(Vec::len).is_sorted();
            assert!(by_links, "{src} to {dst}: {lists:?}");
            assert_eq!(lists.iter().collect::<BTreeSet<_>>().len(), lists.len());
            count += paths.len();
            capped |= paths.len() >= MAX_PATHS;
            all.extend(lists);
        }
    }
    for path in all.iter().filter(|_| !capped) {
        let back: Vec<_> = path.iter().rev().copied().collect();
        assert!(all.contains(&back), "no reversed path of {path:?}");
    }
    count
}

#[test]
fn ready_topologies_have_the_papers_paths() {
    let fig4 = Network::ready("fig4").unwrap();
    assert_eq!(
        texts(&fig4, "1-ff00:0:110", "1-ff00:0:111"),
        ["110#1 111#1", "110#2 111#2"]
    );
    let fig7a = Network::ready("fig7a").unwrap();
    assert_eq!(
        texts(&fig7a, "1-ff00:0:4", "1-ff00:0:1"),
        [
            "4#1 2#2 2#1 1#1",
            "4#2 3#2 3#1 2#3 2#1 1#1",
            "4#3 7#2 7#1 6#2 6#1 5#2 5#1 1#2",
        ]
    );
    let fig9 = Network::ready("fig9").unwrap();
    assert_eq!(
        texts(&fig9, "1-ff00:0:5", "1-ff00:0:1"),
        ["5#1 2#3 2#1 1#1", "5#2 3#3 3#1 1#2"]
    );
    assert_eq!(
        texts(&fig9, "1-ff00:0:5", "1-ff00:0:4"),
        ["5#1 2#3 2#2 4#1", "5#2 3#3 3#2 4#2"]
    );
    for network in [fig4, fig7a, fig9] {
        assert!(check_all(&network) > 0);
    }
}

#[test]
fn segments_join_by_shortcut_and_peering_and_over_the_core() {
    let network = two_isds();
    // Two children of one parent: over their peering link, over their parent, and over detours.
    let siblings = texts(&network, "1-ff00:0:113", "1-ff00:0:114");
    assert_eq!(siblings[..2], ["113#8 114#8", "113#1 111#3 111#4 114#1"]);
    assert!(siblings.contains(&"113#1 111#3 111#1 110#5 110#6 112#1 112#4 114#2".to_owned()));
    // Across ISDs: over a peering link between leaves, and over one between their parents.
    let across = texts(&network, "1-ff00:0:114", "2-ff00:0:212");
    assert_eq!(
        across[..2],
        ["114#9 212#9", "114#2 112#4 112#9 211#9 211#2 212#1"]
    );
    let over_core = "114#2 112#4 112#2 120#5 120#3 210#1 210#5 211#1 211#2 212#1";
    assert!(across.contains(&over_core.to_owned()));
    // A peering link serves only its ends and the ASes below them.
    let over_core = "113#1 111#3 111#1 110#5 110#1 120#1 120#3 210#1 210#5 211#1";
    let across = texts(&network, "1-ff00:0:113", "2-ff00:0:211");
    assert_eq!(across[0].len(), over_core.len());
    assert!(across.contains(&over_core.to_owned()));
    // An AS above the source or below it.
    assert_eq!(
        texts(&network, "1-ff00:0:113", "1-ff00:0:111"),
        ["113#1 111#3"]
    );
    assert_eq!(
        texts(&network, "1-ff00:0:110", "1-ff00:0:113")[0],
        "110#5 111#1 111#3 113#1"
    );
    // sciparse combines as many paths from the same segments, see `clients`.
    assert_eq!(check_all(&network), 352);
}

#[test]
fn metadata_is_that_of_the_network() {
    let network = two_isds();
    let mut plane = plane(&network, ia("1-ff00:0:110"));
    let paths = ask(&mut plane, ia("2-ff00:0:212"), NOW);
    // 110#1 120#1, 120#3 210#1, 210#5 211#1, 211#2 212#1.
    let path = paths
        .iter()
        .find(|path| path.interfaces[0].id == 1 && path.interfaces[2].id == 3)
        .unwrap();
    assert_eq!(path.mtu, 1472);
    let millis: Vec<_> = path.latency.iter().map(|l| l.nanos / 1_000_000).collect();
    assert_eq!(millis, [5, 0, 0, 0, 0, 0, 0]);
    assert_eq!(path.bandwidth, [10_000, 0, 0, 0, 0, 0, 0]);
    assert_eq!(path.notes, ["one", "", "", "", ""]);
    assert_eq!(path.internal_hops, [0, 0, 0]);
    assert_eq!(path.link_type.len(), 4);
    assert_eq!(path.geo.len(), 8);
    assert_eq!(router(path), "10.0.1.254:30042");
    // The next hop is the other router of the AS; an AS and a link have a smaller MTU.
    let path = &ask(&mut plane, ia("1-ff00:0:112"), NOW)[0];
    assert_eq!(path.mtu, 1400);
    assert_eq!(router(path), "10.0.1.254:30043");
    let narrow = ask(&mut plane, ia("2-ff00:0:210"), NOW)
        .into_iter()
        .find(|path| path.interfaces[2].id == 4);
    assert_eq!(narrow.unwrap().mtu, 1300);
    // Through the AS from one of its routers to the other.
    let mut plane = super::tests::plane(&network, ia("1-ff00:0:111"));
    let path = &ask(&mut plane, ia("1-ff00:0:112"), NOW)[0];
    assert_eq!(path.interfaces[1].id, 5);
    assert_eq!(path.internal_hops, [1]);
}

/// The paths from an AS to all others.
#[test]
fn paths_announce_what_fits_what_carries_their_first_link() {
    let network = two_isds();
    let mut plane = plane(&network, ia("1-ff00:0:110"));
    let mtus = |plane: &mut Plane| -> Vec<(u64, u32)> {
        let paths = ask(plane, ia("2-ff00:0:212"), NOW);
        let both = paths.iter().map(|path| (path.interfaces[0].id, path.mtu));
        both.collect()
    };
    let before = mtus(&mut plane);
    let (start, first) = (Instant::now(), before[0].0);
    let mut find = |seconds: u64, mtu: u32| {
        let at = start + Duration::from_secs(seconds);
        let links = [(u16::try_from(first).unwrap(), LinkAddresses::default())];
        plane.set_underlays(links.into());
        if plane.carriers.look(at, |_| Some(mtu)) {
            plane.forget_answers();
        }
        mtus(&mut plane)
    };
    let narrow = find(0, 1400);
    assert_eq!(narrow.len(), before.len());
    for (before, now) in before.iter().zip(&narrow) {
        let most = if now.0 == first { 1372 } else { u32::MAX };
        assert_eq!(*now, (before.0, before.1.min(most)));
    }
    assert_ne!(narrow, before);
    // The topology's MTU is an upper bound.
    assert_eq!(find(1, 9000), before);
}

fn to_all(plane: &mut Plane, network: &Network) -> BTreeMap<IsdAsn, Vec<Path>> {
    let ends = network.ases.iter().map(|a| a.isd_as);
    ends.map(|dst| (dst, ask(plane, dst, NOW))).collect()
}

/// Takes each link down in turn, and checks that the remaining paths are those of a network without
/// it. Returns the number of lost paths that do not cross the link: a segment that they are part of
/// does.
fn take_each_link_down(network: &Network) -> usize {
    let mut lost = 0;
    for src in network.ases.iter().map(|a| a.isd_as) {
        let mut plane = plane(network, src);
        let before = to_all(&mut plane, network);
        for (at, link) in network.links.iter().enumerate() {
            plane.set_link(at, false, link.shape);
            let mut without = network.clone();
            without.links.remove(at);
            let mut without = crate::testing::plane(&without, src);
            let over = (link.a.isd_as, link.a.id);
            for (&dst, paths) in &before {
                let after = listed(&mut plane, dst, NOW);
                assert_eq!(after, listed(&mut without, dst, NOW));
                let mut rest: Vec<_> = paths.iter().map(interfaces).collect();
                rest.retain(|path| !path.contains(&over));
                assert!(after.iter().all(|path| rest.contains(path)));
                lost += rest.len() - after.len();
            }
            plane.set_link(at, true, link.shape);
        }
        assert_eq!(to_all(&mut plane, network), before);
    }
    lost
}

#[test]
fn a_link_that_is_down_removes_its_paths() {
    for name in Network::ready_names() {
        assert_eq!(
            take_each_link_down(&Network::ready(name).unwrap()),
            0,
            "{name}"
        );
    }
    // A shortcut is part of a segment from the core, and is lost with the segment.
    assert!(take_each_link_down(&two_isds()) > 0);
}

#[test]
fn metadata_follows_a_links_shape() {
    let network = Network::ready("fig4").unwrap();
    let mut plane = plane(&network, ia("1-ff00:0:110"));
    let before = ask(&mut plane, ia("1-ff00:0:111"), NOW);
    assert_eq!(before[0].bandwidth, [300_000]);
    let shape = Shape {
        rate: Some(500),
        delay: Duration::from_millis(1500),
        ..Shape::default()
    };
    plane.set_link(0, true, shape);
    let after = ask(&mut plane, ia("1-ff00:0:111"), NOW);
    assert_eq!(after[0].latency[0], Duration::from_millis(1500).into());
    // A rate below 1 kbit/s is announced as 1, because 0 means no limit.
    assert_eq!(after[0].bandwidth, [1]);
    assert_eq!(after[0].raw, before[0].raw);
    assert_eq!(after[1], before[1]);
}

#[test]
fn paths_expire_and_are_renewed_at_half_their_lifetime() {
    let network = Network::ready("fig7a").unwrap();
    let (src, dst) = (ia("1-ff00:0:4"), ia("1-ff00:0:1"));
    for lifetime in [2, 10, 337, 338, 675, 21_600, 86_400] {
        let mut plane = plane(&network, src);
        plane.lifetime = Duration::from_secs(lifetime);
        let first = ask(&mut plane, dst, NOW);
        let expiry = NOW + lifetime;
        assert_eq!(first[0].expiration, at(expiry));
        assert!(walk(&network, &first[0].raw, src, dst, NOW).is_ok());
        assert!(walk(&network, &first[0].raw, src, dst, expiry - 1).is_ok());
        // The lifetime of a hop field may end at half a second.
        let late = walk(&network, &first[0].raw, src, dst, expiry + 1);
        assert!(late.unwrap_err().contains("expired"));

        let half = NOW + lifetime / 2;
        assert_eq!(ask(&mut plane, dst, half - 1), first);
        let second = ask(&mut plane, dst, half);
        assert_eq!(second[0].expiration, at(half + lifetime));
        assert_ne!(second[0].raw, first[0].raw);
        assert!(walk(&network, &second[0].raw, src, dst, half).is_ok());
        let lists = |paths: &[Path]| paths.iter().map(interfaces).collect::<Vec<_>>();
        assert_eq!(lists(&second), lists(&first));
        // After the clock is set back, the timestamps of paths must not be in the future.
        let third = ask(&mut plane, dst, NOW - 100);
        assert!(walk(&network, &third[0].raw, src, dst, NOW - 100).is_ok());
    }
}

#[test]
fn the_walk_refuses_a_path_altered_anywhere() {
    // The other tests rely on the walk to detect wrong MACs.
    let network = two_isds();
    let (src, dst) = (ia("1-ff00:0:114"), ia("2-ff00:0:212"));
    for path in ask(&mut plane(&network, src), dst, NOW) {
        for at in 4..path.raw.len() {
            let mut raw = path.raw.clone();
            raw[at] ^= 0x80;
            let walked = walk(&network, &raw, src, dst, NOW);
            // Reserved bits and those of other flags are not authenticated.
            let infos = path.raw[..4].len() + 8 * info_fields(&path.raw);
            let free = if at < infos {
                (at - 4) % 8 < 2
            } else {
                (at - infos).is_multiple_of(12)
            };
            assert!(free || walked.is_err(), "byte {at} of {:?}", path.raw);
        }
    }
}

/// The number of info fields of a raw path: its segments with a length above 0.
fn info_fields(raw: &[u8]) -> usize {
    let meta = u32::from_be_bytes(raw[..4].try_into().unwrap());
    [12, 6, 0]
        .iter()
        .filter(|&&at| meta >> at & 0x3f > 0)
        .count()
}

#[test]
fn lookups_without_an_answer_are_refused() {
    let network = two_isds();
    let mut plane = plane(&network, ia("1-ff00:0:114"));
    let (own, core) = (ia("1-ff00:0:114"), ia("1-ff00:0:110"));
    for (src, dst, error) in [
        (own, ia("3-0"), LookupError::Unknown(ia("3-0"))),
        (own, ia("0-0"), LookupError::Wildcard(ia("0-0"))),
        (
            own,
            ia("1-ff00:0:999"),
            LookupError::Unknown(ia("1-ff00:0:999")),
        ),
        (
            core,
            own,
            LookupError::Foreign {
                local: own,
                requested: core,
            },
        ),
    ] {
        assert_eq!(plane.paths(src, dst, NOW).unwrap_err(), error);
    }
    for (src, dst, error) in [
        (own, ia("0-0"), LookupError::Wildcard(ia("0-0"))),
        (own, ia("3-0"), LookupError::Unknown(ia("3-0"))),
        (
            ia("1-ff00:0:113"),
            core,
            LookupError::Foreign {
                local: own,
                requested: ia("1-ff00:0:113"),
            },
        ),
    ] {
        assert_eq!(plane.lookup(src, dst, NOW).unwrap_err(), error);
    }
}

#[test]
fn the_only_path_to_the_own_as_is_empty() {
    let network = two_isds();
    let own = ia("1-ff00:0:112");
    let paths = ask(&mut plane(&network, own), own, NOW);
    assert_eq!(paths.len(), 1);
    assert!(paths[0].raw.is_empty() && paths[0].interfaces.is_empty());
    assert_eq!(paths[0].mtu, 1400);
    assert_eq!(paths[0].expiration, at(NOW + 24 * 3600));
}

#[test]
fn lookups_return_the_requested_segments() {
    let network = two_isds();
    let mut plane = plane(&network, ia("1-ff00:0:114"));
    let mut count = |src: &str, dst: &str| {
        let found = plane.lookup(ia(src), ia(dst), NOW).unwrap();
        (found.up.len(), found.core.len(), found.down.len())
    };
    // There are three up segments: over 111, and over 112 to either core AS.
    assert_eq!(count("0-0", "1-0"), (3, 0, 0));
    assert_eq!(count("1-ff00:0:114", "1-0"), (3, 0, 0));
    assert_eq!(count("1-ff00:0:114", "2-0"), (0, 0, 0));
    assert_eq!(count("1-0", "1-ff00:0:114"), (0, 0, 3));
    assert_eq!(count("1-ff00:0:120", "1-ff00:0:114"), (0, 0, 1));
    assert_eq!(count("1-0", "2-0"), (0, 2 + 4, 0));
    assert_eq!(count("1-0", "2-ff00:0:210"), (0, 2 + 4, 0));
    assert_eq!(count("1-ff00:0:120", "2-0"), (0, 2, 0));
    // The core ASes of an ISD have two links between them, each in both directions.
    assert_eq!(count("1-0", "1-0"), (0, 4, 0));
    assert_eq!(count("1-ff00:0:110", "1-0"), (0, 2, 0));
    assert_eq!(count("1-ff00:0:110", "1-ff00:0:120"), (0, 2, 0));
    assert_eq!(count("2-0", "2-ff00:0:212"), (0, 0, 1));
    assert_eq!(count("2-ff00:0:210", "2-ff00:0:212"), (0, 0, 1));
    assert_eq!(count("1-0", "2-ff00:0:212"), (0, 0, 0));
    // From this AS to one AS: all segments that paths need.
    assert_eq!(count("1-ff00:0:114", "2-ff00:0:210"), (3, 2 + 4, 0));
    assert_eq!(count("1-ff00:0:114", "2-ff00:0:212"), (3, 2 + 4, 1));
    assert_eq!(count("1-ff00:0:114", "1-ff00:0:120"), (3, 2, 0));
    assert_eq!(count("1-ff00:0:114", "1-ff00:0:114"), (0, 0, 0));
}

#[test]
fn segments_are_created_once() {
    let network = two_isds();
    let mut plane = plane(&network, ia("1-ff00:0:114"));
    let mut lookup = |now| plane.lookup(ia("1-ff00:0:114"), ia("1-0"), now).unwrap().up;
    let first = lookup(NOW);
    assert!(std::sync::Arc::ptr_eq(&first[0], &lookup(NOW + 60)[0]));
    let renewed = lookup(NOW + 24 * 3600);
    let message = |segment: &CachedSegment| segment.message(None).unwrap();
    assert_ne!(message(&first[0]), message(&renewed[0]));
    assert_eq!(first[0].segment.id(), renewed[0].segment.id());
}

#[test]
fn paths_over_an_interface_reported_down_are_left_out_for_a_time() {
    let network = Network::ready("fig7a").unwrap();
    let (src, dst) = (ia("1-ff00:0:4"), ia("1-ff00:0:1"));
    let mut plane = plane(&network, src);
    let before = ask(&mut plane, dst, NOW);
    assert_eq!(before.len(), 3);
    plane.revoke(ia("1-ff00:0:2"), 1, NOW);
    // Interfaces that the network does not have are ignored.
    plane.revoke(ia("1-ff00:0:2"), 77, NOW);
    plane.revoke(ia("1-ff00:0:2"), 65536 + 2, NOW);
    for later in [0, 1, 3] {
        assert_eq!(ask(&mut plane, dst, NOW + later), before[2..]);
    }
    // Lookups still return the segments: their users receive SCMP errors themselves.
    assert_eq!(by_requests(&mut plane, &network, dst).len(), 3);
    plane.revoke(ia("1-ff00:0:2"), 1, NOW + 3);
    assert_eq!(ask(&mut plane, dst, NOW + 6), before[2..]);
    assert_eq!(ask(&mut plane, dst, NOW + 7), before);
    // Setting the clock back does not extend the time.
    plane.revoke(ia("1-ff00:0:2"), 1, NOW + 1000);
    assert_eq!(ask(&mut plane, dst, NOW + 500), before);
}

#[test]
fn the_core_of_an_isd_is_reached_by_its_wildcard() {
    let network = two_isds();
    let mut plane = plane(&network, ia("1-ff00:0:110"));
    for (isd, ases) in [("1-0", &["1-ff00:0:120"][..]), ("2-0", &["2-ff00:0:210"])] {
        let each = ases.iter().flat_map(|dst| listed(&mut plane, ia(dst), NOW));
        let each: Vec<_> = each.collect();
        assert!(!each.is_empty());
        assert_eq!(listed(&mut plane, ia(isd), NOW), each);
    }
    let mut plane = super::tests::plane(&network, ia("1-ff00:0:114"));
    let both = ["1-ff00:0:110", "1-ff00:0:120"];
    let both = both.map(|dst| listed(&mut plane, ia(dst), NOW)).concat();
    assert_eq!(listed(&mut plane, ia("1-0"), NOW), both);
}

#[test]
fn the_cache_of_answers_is_bounded() {
    // 32 core ASes, each joined to the next three, twice.
    let name = |at: usize| format!("1-ff00:0:{:x}", 1 + at % 32);
    let mut text = "ASes:\n".to_owned();
    for at in 0..32 {
        text += &format!("  \"{}\": {{core: true}}\n", name(at));
    }
    text += "links:\n";
    for at in 0..32 {
        for (n, far) in [1, 1, 2, 2, 3, 3].into_iter().enumerate() {
            text += &format!(
                "  - {{a: \"{}#{}\", b: \"{}#{}\", linkAtoB: CORE}}\n",
                name(at),
                n + 1,
                name(at + far),
                n + 11,
            );
        }
    }
    let network = Network::parse(&text).unwrap();
    let src = ia(&name(0));
    let mut plane = plane(&network, src);
    for at in 1..32 {
        let dst = ia(&name(at));
        let paths = ask(&mut plane, dst, NOW);
        assert_eq!(paths.len(), SEGMENTS_PER_PAIR);
        for path in &paths {
            assert_eq!(
                walk(&network, &path.raw, src, dst, NOW),
                Ok(interfaces(path))
            );
        }
        assert!(plane.kept <= MAX_KEPT);
    }
    // The cache has reached its limit.
    assert_eq!(plane.answers.len(), 31);
    plane.kept = MAX_KEPT;
    let shape = network.links[0].shape;
    plane.answers.remove(&ia(&name(1)));
    ask(&mut plane, ia(&name(1)), NOW);
    assert_eq!(plane.answers.len(), 1);
    plane.set_link(0, true, shape);
    assert_eq!(plane.answers.len(), 1, "nothing changed");
    plane.set_link(0, false, shape);
    assert_eq!((plane.answers.len(), plane.kept), (0, 0));
}
