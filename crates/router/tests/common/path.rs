//! Paths for tests: made hop by hop with the keys of the ASes, and changed at will.

use hawser_packet::path::{HopField, HopKey, InfoField};

use super::{NOW, key};

/// A path at its first hop. Segments and hops are in direction of travel.
#[derive(Debug, Clone)]
pub struct TestPath {
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone)]
pub struct Segment {
    pub info: InfoField,
    pub hops: Vec<HopField>,
}

/// Hops of a segment in direction of travel: AS, ingress, egress.
pub type Hops<'a> = &'a [(u16, u16, u16)];

impl TestPath {
    /// The hop fields of all segments.
    pub fn hops(&mut self) -> impl Iterator<Item = &mut HopField> {
        let segments = self.segments.iter_mut();
        segments.flat_map(|segment| &mut segment.hops)
    }
}

/// The path header.
impl From<TestPath> for Vec<u8> {
    fn from(path: TestPath) -> Self {
        let length = |at: usize| {
            path.segments
                .get(at)
                .map_or(0, |segment| segment.hops.len())
        };
        let meta = (length(0) << 12 | length(1) << 6 | length(2)) as u32;
        let mut raw = meta.to_be_bytes().to_vec();
        raw.extend(path.segments.iter().flat_map(|s| s.info.to_bytes()));
        let hops = path.segments.iter().flat_map(|s| &s.hops);
        raw.extend(hops.flat_map(HopField::to_bytes));
        raw
    }
}

impl Segment {
    /// A segment of hops (ingress, egress) in direction of travel, with MACs made with `keys`.
    pub fn new(cons_dir: bool, timestamp: u32, hops: &[(u16, u16)], keys: &[[u8; 16]]) -> Self {
        let mut segment = Self::unsigned(cons_dir, timestamp, hops);
        segment.sign(0, keys);
        segment
    }

    /// A segment that leads to a peering link, with an initial identifier.
    pub fn peering(cons_dir: bool, id: u16, hops: Hops) -> Self {
        let ends: Vec<_> = hops.iter().map(|hop| (hop.1, hop.2)).collect();
        let keys: Vec<_> = hops.iter().map(|hop| key(hop.0)).collect();
        let mut segment = Self::unsigned(cons_dir, NOW - 60, &ends);
        segment.info.peer = true;
        segment.hops.iter_mut().for_each(|hop| hop.exp_time = 63);
        segment.sign(id, &keys);
        segment
    }

    fn unsigned(cons_dir: bool, timestamp: u32, hops: &[(u16, u16)]) -> Self {
        let hop = |&(ingress, egress): &(u16, u16)| {
            let (cons_ingress, cons_egress) = match cons_dir {
                true => (ingress, egress),
                false => (egress, ingress),
            };
            HopField {
                flags: 0,
                exp_time: 255,
                cons_ingress,
                cons_egress,
                mac: [0; 6],
            }
        };
        let info = InfoField {
            cons_dir,
            peer: false,
            segment_id: 0,
            timestamp,
        };
        Self {
            info,
            hops: hops.iter().map(hop).collect(),
        }
    }

    /// Makes the MACs, with the key of each hop's AS, from the initial identifier `id` on. The MAC of
    /// a peering hop uses the same identifier as the hop below it.
    pub fn sign(&mut self, id: u16, keys: &[[u8; 16]]) {
        assert_eq!(keys.len(), self.hops.len(), "one key for each hop");
        let Self { info, hops } = self;
        let mut signed: Vec<_> = hops.iter_mut().zip(keys).collect();
        if !info.cons_dir {
            signed.reverse();
        }
        let mut beta = id;
        info.segment_id = id;
        for (hop, key) in signed {
            let at_hop = InfoField {
                segment_id: beta,
                ..*info
            };
            hop.mac = HopKey::new(key).mac(&hop.mac_input(&at_hop));
            // Against construction direction, the first router has the last identifier.
            if !info.cons_dir {
                info.segment_id = beta;
            }
            if !info.peer {
                beta = hop.chain(beta);
            }
        }
    }
}

/// A path of up, core and down segments, any of which may be empty.
pub fn segments(up: Hops, core: Hops, down: Hops) -> TestPath {
    let parts = [(false, up), (true, core), (true, down)];
    let segment = |(cons_dir, hops): (bool, Hops)| {
        let ends: Vec<_> = hops.iter().map(|hop| (hop.1, hop.2)).collect();
        let keys: Vec<_> = hops.iter().map(|hop| key(hop.0)).collect();
        Segment::new(cons_dir, NOW - 60, &ends, &keys)
    };
    let parts = parts.into_iter().filter(|(_, hops)| !hops.is_empty());
    TestPath {
        segments: parts.map(segment).collect(),
    }
}

/// The path from 1-5 to 1-8 over the peering link between 1-3 and 1-7.
fn peering() -> TestPath {
    TestPath {
        segments: vec![
            Segment::peering(false, 0xabcd, &[(5, 0, 1), (3, 2, 4)]),
            Segment::peering(true, 0x1234, &[(7, 3, 2), (8, 1, 0)]),
        ],
    }
}

/// The path from 1-3 directly over its peering link to 1-7: its segments have one hop each.
fn short_peering() -> TestPath {
    TestPath {
        segments: vec![
            Segment::peering(false, 7, &[(3, 0, 4)]),
            Segment::peering(true, 9, &[(7, 3, 0)]),
        ],
    }
}

/// Name, source, destination, path and the egress interfaces of packets.
pub type PathCase = (&'static str, u16, u16, TestPath, &'static [(u16, u16)]);

/// Every kind of path.
pub fn path_cases() -> Vec<PathCase> {
    let up: Hops = &[(5, 0, 1), (3, 2, 1), (1, 2, 0)];
    let down: Hops = &[(2, 0, 2), (7, 1, 2), (8, 1, 0)];
    vec![
        (
            "core",
            1,
            2,
            segments(&[], &[(1, 0, 1), (2, 1, 0)], &[]),
            &[(1, 1)],
        ),
        ("up", 5, 1, segments(up, &[], &[]), &[(5, 1), (3, 1)]),
        ("down", 2, 8, segments(&[], &[], down), &[(2, 2), (7, 2)]),
        (
            "up, core, down",
            5,
            8,
            segments(up, &[(1, 0, 1), (2, 1, 0)], down),
            &[(5, 1), (3, 1), (1, 1), (2, 2), (7, 2)],
        ),
        (
            "up, down at a core AS",
            5,
            4,
            segments(up, &[], &[(1, 0, 3), (4, 1, 0)]),
            &[(5, 1), (3, 1), (1, 3)],
        ),
        (
            "shortcut",
            5,
            6,
            segments(&[(5, 0, 1), (3, 2, 1)], &[], &[(3, 1, 3), (6, 1, 0)]),
            &[(5, 1), (3, 3)],
        ),
        ("peering", 5, 8, peering(), &[(5, 1), (3, 4), (7, 2)]),
        ("short peering", 3, 7, short_peering(), &[(3, 4)]),
    ]
}

/// The path case `name`.
pub fn path_case(name: &str) -> PathCase {
    path_cases()
        .into_iter()
        .find(|case| case.0 == name)
        .unwrap()
}

/// The AS of each hop field of the path case `name`.
fn hop_fields(name: &str) -> &'static [u16] {
    match name {
        "core" => &[1, 2],
        "up" => &[5, 3, 1],
        "down" => &[2, 7, 8],
        "up, core, down" => &[5, 3, 1, 1, 2, 2, 7, 8],
        "up, down at a core AS" => &[5, 3, 1, 1, 4],
        "shortcut" => &[5, 3, 3, 6],
        "peering" => &[5, 3, 7, 8],
        "short peering" => &[3, 7],
        other => panic!("no path case {other}"),
    }
}

/// What may differ between paths over the same interfaces.
#[derive(Debug, Clone)]
pub struct Fields {
    /// The initial identifier of each segment, in order of travel.
    pub segment_ids: [u16; 3],
    /// The age of each segment, in seconds.
    pub ages: [u32; 3],
    /// The expiry of each hop field.
    pub exp_times: [u8; 8],
}

/// The path case `name` with the `fields` of another beacon.
pub fn path_case_with(name: &str, fields: &Fields) -> PathCase {
    let mut case = path_case(name);
    let mut exp_times = fields.exp_times.iter();
    let mut keys = hop_fields(name).iter().map(|number| key(*number));
    for (number, segment) in case.3.segments.iter_mut().enumerate() {
        segment.info.timestamp = NOW - fields.ages[number];
        for (hop, exp_time) in segment.hops.iter_mut().zip(&mut exp_times) {
            hop.exp_time = *exp_time;
        }
        let keys: Vec<_> = keys.by_ref().take(segment.hops.len()).collect();
        segment.sign(fields.segment_ids[number], &keys);
    }
    case
}
