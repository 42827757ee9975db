//! A packet over one link, for tests.

use hawser_address::ScionAddr;
use hawser_packet::Template;
use hawser_packet::path::{HopField, HopKey, InfoField};

/// The hop-field key of both ASes.
pub(crate) const KEY: [u8; 16] = [9; 16];

/// A packet between two hosts as the first sends it, over a link from interface 4 of its AS to
/// interface 5, in construction direction or against it.
pub(crate) fn packet(ends: [&str; 2], cons_dir: bool, timestamp: u32, payload: &[u8]) -> Vec<u8> {
    let key = HopKey::new(&KEY);
    let mut info = InfoField {
        cons_dir,
        peer: false,
        segment_id: 0,
        timestamp,
    };
    let hop = |info: &InfoField, ingress, egress| match cons_dir {
        true => key.hop_field(info, u8::MAX, ingress, egress),
        false => key.hop_field(info, u8::MAX, egress, ingress),
    };
    let after = |info: InfoField, hop: &HopField| InfoField {
        segment_id: hop.chain(info.segment_id),
        ..info
    };
    let hops = if cons_dir {
        let first = hop(&info, 0, 4);
        [first, hop(&after(info, &first), 5, 0)]
    } else {
        let last = hop(&info, 5, 0);
        info = after(info, &last);
        [hop(&info, 0, 4), last]
    };
    let mut path = (2u32 << 12).to_be_bytes().to_vec();
    path.extend(info.to_bytes());
    path.extend(hops.iter().flat_map(HopField::to_bytes));
    let [from, to] = ends.map(|end| end.parse::<ScionAddr>().unwrap());
    let mut packet = Vec::new();
    let template = Template::new(from, to, &path).unwrap();
    template.write(payload, 0, &mut packet);
    packet
}
