use std::collections::BTreeSet;
use std::time::Duration;

use hawser_path::LinkType;
use hawser_proto::control_plane::{
    BandwidthInfo, LatencyInfo, LinkType as LinkTypeMessage, StaticInfoExtension,
};
use proptest::prelude::*;

use super::*;
use crate::testing::{Spec, ia, segment, spec};

/// The paths as `3#1 2#4 …`.
fn texts(paths: &[Combined]) -> Vec<String> {
    let show = |path: &Combined| {
        let interfaces = path.path.interfaces.iter();
        let texts = interfaces.map(|i| format!("{:x}#{}", i.isd_as.to_u64() & 0xffff, i.id));
        texts.collect::<Vec<_>>().join(" ")
    };
    paths.iter().map(show).collect()
}

fn up(segments: Vec<Segment>) -> Segments {
    Segments {
        up: segments,
        ..Segments::default()
    }
}

#[test]
fn no_segments_give_no_paths() {
    assert_eq!(combine(&Segments::default(), ia(1), ia(2), 10), []);
    let one = segment(0, &[spec(1, 0, 2), spec(2, 1, 0)]);
    assert_eq!(combine(&up(vec![one.clone()]), ia(2), ia(2), 10), []);
    assert_eq!(combine(&up(vec![one.clone()]), ia(2), ia(1), 0), []);
    assert_eq!(combine(&up(vec![one]), ia(2), ia(1), 1).len(), 1);
    // A segment of a single AS.
    let alone = segment(0, &[spec(1, 0, 0)]);
    let all = Segments {
        up: vec![alone.clone()],
        core: vec![alone.clone()],
        down: vec![alone],
    };
    assert_eq!(combine(&all, ia(1), ia(2), 10), []);
}

#[test]
fn the_duplicate_that_expires_last_is_kept() {
    let line = |at| segment(at, &[spec(1, 0, 2), spec(2, 1, 0)]);
    for order in [[5, 7, 6], [7, 6, 5], [6, 5, 7]] {
        let paths = combine(&up(order.map(line).into()), ia(2), ia(1), 10);
        assert_eq!(texts(&paths), ["2#1 1#2"]);
        assert_eq!(paths[0].path.metadata.expiry, 7 + 21_600);
        // The info field's timestamp.
        assert_eq!(paths[0].raw[8..12], 7u32.to_be_bytes());
    }
    // A difference of half a second counts.
    let mut short = [spec(1, 0, 2), spec(2, 1, 0)];
    short[0].exp_time = 62;
    let half = vec![segment(337, &short), segment(0, &short), line(0)];
    let paths = combine(&up(half), ia(2), ia(1), 10);
    assert_eq!(paths[0].raw[8..12], 0u32.to_be_bytes());
}

#[test]
fn only_crossed_hops_count_for_expiry_and_mtu() {
    // 1 is a core AS, 2 its child, 3 and 4 are children of 2: the path from 3 to 4 has a shortcut
    // at 2.
    let line = |egress, last| {
        let mut top = spec(1, 0, 2);
        (top.exp_time, top.mtu) = (0, 500);
        let mut middle = spec(2, 1, egress);
        middle.ingress_mtu = 600;
        vec![top, middle, spec(last, 1, 0)]
    };
    let mut down = line(4, 4);
    down[2].exp_time = 20;
    down[2].ingress_mtu = 1300;
    let segments = Segments {
        up: vec![segment(1000, &line(3, 3))],
        down: vec![segment(2000, &down)],
        ..Segments::default()
    };
    let paths = combine(&segments, ia(3), ia(4), 10);
    assert_eq!(texts(&paths), ["3#1 2#3 2#4 4#1"]);
    let metadata = &paths[0].path.metadata;
    assert_eq!(metadata.mtu, 1300);
    assert_eq!(metadata.expiry, 2000 + 21 * 675 / 2);
}

/// An up segment from the source 3 over 2 to the core AS 1, and a down segment from 1 to the
/// destination 4.
fn peers() -> Segments {
    let mut up = [spec(1, 0, 2), spec(2, 1, 3), spec(3, 1, 0)];
    up[1].peers = vec![(9, ia(4), 8), (7, ia(4), 6)];
    let mut down = [spec(1, 0, 4), spec(4, 1, 0)];
    // Only one end announces the second link.
    down[1].peers = vec![(8, ia(2), 9)];
    Segments {
        up: vec![segment(0, &up)],
        core: Vec::new(),
        down: vec![segment(0, &down)],
    }
}

#[test]
fn peering_links_are_used_if_both_ends_announce_them() {
    let paths = combine(&peers(), ia(3), ia(4), 10);
    assert_eq!(
        texts(&paths),
        ["3#1 2#3 2#9 4#8", "3#1 2#3 2#1 1#2 1#4 4#1"]
    );
    assert_eq!(paths[0].path.metadata.mtu, 1400);
    let [first, second] = [4, 12].map(|at| paths[0].raw[at]);
    // The flags: peering, and the directions against and along that of beaconing.
    assert_eq!((first, second), (2, 3));
}

fn announced(info: StaticInfoExtension, ingress: u16, egress: u16, n: u64) -> Spec {
    Spec {
        info: Some(info),
        ..spec(n, ingress, egress)
    }
}

fn latency(intra: &[(u64, u32)], inter: &[(u64, u32)]) -> StaticInfoExtension {
    StaticInfoExtension {
        latency: Some(LatencyInfo {
            intra: intra.iter().copied().collect(),
            inter: inter.iter().copied().collect(),
        }),
        ..StaticInfoExtension::default()
    }
}

#[test]
fn the_conservative_one_of_contradicting_announcements_counts() {
    // 1 is the core AS where the up and the down segment meet; 2 has two links to it.
    let say = |inter, kbit, kind, note: &str| StaticInfoExtension {
        bandwidth: Some(BandwidthInfo {
            intra: [(1, 9), (5, 8)].into(),
            inter: [(2, kbit), (4, kbit)].into(),
        }),
        link_type: [(2, i32::from(kind)), (4, LinkTypeMessage::Direct.into())].into(),
        internal_hops: [(2, 0), (4, 3), (3, 7)].into(),
        note: note.to_owned(),
        ..latency(&[(4, inter), (2, inter)], &[(2, inter), (4, inter)])
    };
    let first = say(10, 100, LinkTypeMessage::OpenNet, "one");
    let second = say(20, 50, LinkTypeMessage::Direct, "two");
    let segments = Segments {
        up: vec![segment(
            0,
            &[announced(first.clone(), 0, 2, 1), spec(2, 1, 0)],
        )],
        core: Vec::new(),
        down: vec![segment(0, &[announced(second, 0, 4, 1), spec(3, 1, 0)])],
    };
    let paths = combine(&segments, ia(2), ia(3), 10);
    assert_eq!(texts(&paths), ["2#1 1#2 1#4 3#1"]);
    let metadata = &paths[0].path.metadata;
    let micros = |n| Some(Duration::from_micros(n));
    assert_eq!(metadata.latency, [micros(20), micros(20), micros(20)]);
    assert_eq!(
        metadata.bandwidth,
        [Some(50_000), None, Some(50_000)],
        "in bit/s"
    );
    // The first link has two types, opennet and direct; the second is announced as direct twice.
    assert_eq!(metadata.link_types, [LinkType::Unset, LinkType::Direct]);
    assert_eq!(metadata.internal_hops, [3]);
    assert_eq!(metadata.notes, ["", "one\ntwo", ""]);
    assert_eq!(metadata.geo, vec![None; 4]);

    // Equal notes are shown once.
    let same = Segments {
        down: vec![segment(0, &[announced(first, 0, 4, 1), spec(3, 1, 0)])],
        ..segments
    };
    let paths = combine(&same, ia(2), ia(3), 10);
    assert_eq!(paths[0].path.metadata.notes, ["", "one", ""]);
}

#[test]
fn hops_through_the_last_as_of_a_segment_are_not_counted() {
    // The beacon ends in this AS, so the segment has no hop through it.
    let info = latency(&[(1, 5)], &[(1, 6)]);
    let lines = vec![segment(0, &[spec(1, 0, 2), announced(info, 1, 0, 2)])];
    let paths = combine(&up(lines), ia(2), ia(1), 10);
    let micros = Some(Duration::from_micros(6));
    assert_eq!(paths[0].path.metadata.latency, [micros]);
}

#[test]
fn a_path_too_long_for_a_packet_is_left_out() {
    let chain = |count: u64, first: u64| -> Vec<Spec> {
        (0..count)
            .map(|at| {
                let (ingress, egress) = (u16::from(at > 0), 2 * u16::from(at + 1 < count));
                spec(first + at, ingress, egress)
            })
            .collect()
    };
    // Two segments with 32 hop fields each, then one more hop field.
    let both = |down| Segments {
        up: vec![segment(0, &chain(32, 1))],
        down: vec![segment(0, &{
            let mut chain = chain(down, 100);
            chain[0].isd_as = ia(1);
            chain
        })],
        ..Segments::default()
    };
    assert_eq!(combine(&both(32), ia(32), ia(131), 10).len(), 1);
    assert_eq!(combine(&both(33), ia(32), ia(132), 10).len(), 0);
}

#[test]
fn the_number_of_combinations_tried_is_bounded() {
    // 1000 segments of each kind that can all be joined: a thousand million paths.
    let many = |from: u64, to: u64| -> Vec<Segment> {
        let line = |id| segment(0, &[spec(from, 0, id), spec(to, id, 0)]);
        (1..=1000).map(line).collect()
    };
    let segments = Segments {
        up: many(1, 2),
        core: many(3, 1),
        down: many(3, 4),
    };
    let paths = combine(&segments, ia(2), ia(4), usize::MAX);
    assert_eq!(paths.len(), MAX_WORK / WORK_OF_ONE - 1);
    assert_eq!(combine(&segments, ia(2), ia(4), 7).len(), 7);
}

/// Every sequence of one to three edges from `src` to `dst`, sorted and without duplicates.
fn naive(segments: &Segments, src: IsdAsn, dst: IsdAsn) -> Vec<Vec<Interface>> {
    let all = [
        edges(SegmentKind::Up, &segments.up),
        edges(SegmentKind::Core, &segments.core),
        edges(SegmentKind::Down, &segments.down),
    ]
    .concat();
    let mut open: Vec<(Vertex, Vec<Edge>)> = vec![(Vertex::As(src), Vec::new())];
    let mut found = Vec::new();
    while let Some((at, so_far)) = open.pop() {
        for next in all.iter().filter(|next| next.from == at) {
            if so_far
                .last()
                .is_some_and(|last| last.kind >= next.edge.kind)
            {
                continue;
            }
            let edges = [&so_far[..], &[next.edge]].concat();
            if next.to == Vertex::As(dst) {
                found.extend(candidate(edges));
            } else {
                open.push((next.to, edges));
            }
        }
    }
    found.sort_by_cached_key(|c| {
        let links = c.edges.iter().map(Edge::links).sum::<usize>();
        assert_eq!(c.interfaces.len(), 2 * links);
        let names = c.edges.iter().map(|e| (e.segment.id(), e.cut, e.peer));
        (links, c.edges.len(), names.collect::<Vec<_>>())
    });
    let latest = |c: &Candidate| {
        let copies = found.iter().filter(|o| o.interfaces == c.interfaces);
        copies.map(|o| o.expiry).max().unwrap()
    };
    let mut seen = BTreeSet::new();
    let kept = found.iter().filter(|c| c.expiry == latest(c));
    kept.filter(|c| seen.insert(c.interfaces.clone()))
        .map(|c| c.interfaces.clone())
        .collect()
}

/// Segments over a handful of ASes. Core ASes are 1 to 3, others 4 to 7.
fn segments() -> impl Strategy<Value = Segments> {
    let hop = (
        1..4u16,
        1..4u16,
        prop::option::of((1..8u64, 1..4u16, 1..4u16)),
        60..64u8,
    );
    let list = |first: std::ops::Range<u64>, rest: std::ops::Range<u64>| {
        let ases = (first, prop::collection::vec((rest, hop.clone()), 1..4));
        let one = (ases, 0..3i64).prop_map(|((first, rest), at)| {
            let mut specs = vec![spec(first, 0, 1)];
            for (n, (ingress, egress, peer, exp_time)) in rest {
                let mut spec = spec(n, ingress, egress);
                spec.exp_time = exp_time;
                spec.peers = peer
                    .map(|(n, own, far)| (own, ia(n), far))
                    .into_iter()
                    .collect();
                specs.push(spec);
            }
            specs.last_mut().unwrap().egress = 0;
            segment(337 * at, &specs)
        });
        prop::collection::vec(one, 0..6)
    };
    (list(1..4, 4..8), list(1..4, 1..4), list(1..4, 4..8)).prop_map(|(up, core, down)| Segments {
        up,
        core,
        down,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn all_paths_are_found_in_order(segments in segments(), src in 1..8u64, dst in 1..8u64) {
        prop_assume!(src != dst);
        let (src, dst) = (ia(src), ia(dst));
        let all = combine(&segments, src, dst, usize::MAX);
        let interfaces: Vec<_> = all.iter().map(|p| p.path.interfaces.clone()).collect();
        prop_assert_eq!(&interfaces, &naive(&segments, src, dst));
        for limit in [0, 1, 3] {
            let some = combine(&segments, src, dst, limit);
            prop_assert_eq!(&some[..], &all[..limit.min(all.len())]);
        }
        for path in &all {
            // 4 bytes of meta header, 8 for an info field, 12 for a hop field.
            let meta = u32::from_be_bytes(path.raw[..4].try_into().unwrap());
            let lengths = [12, 6, 0].map(|at| (meta >> at & 0x3f) as usize);
            let infos = lengths.iter().filter(|&&length| length > 0).count();
            let hops = lengths.iter().sum::<usize>();
            prop_assert_eq!(path.raw.len(), 4 + 8 * infos + 12 * hops);
        }
    }
}
