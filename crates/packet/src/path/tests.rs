use proptest::prelude::*;

use super::*;
use crate::testing::{DOWN, PEERING, UP, bytes, raw as path};

#[test]
fn reads_interfaces_in_order_of_travel() {
    let one = path(&[(DOWN, &[(0, 1), (2, 3), (4, 0)])]);
    assert_eq!(interface_ids(&one), Ok(vec![1, 2, 3, 4]));
    let against = path(&[(UP, &[(4, 0), (2, 3), (0, 1)])]);
    assert_eq!(interface_ids(&against), Ok(vec![4, 3, 2, 1]));
}

#[test]
fn segments_meet_inside_an_as() {
    let both = path(&[(UP, &[(1, 0), (0, 2)]), (DOWN, &[(0, 3), (4, 0)])]);
    assert_eq!(interface_ids(&both), Ok(vec![1, 2, 3, 4]));
    let three = path(&[
        (UP, &[(1, 0), (0, 2)]),
        (UP, &[(3, 0), (0, 4)]),
        (DOWN, &[(0, 5), (6, 0)]),
    ]);
    assert_eq!(interface_ids(&three), Ok(vec![1, 2, 3, 4, 5, 6]));
}

#[test]
fn shortcuts_do_not_cross_unused_interfaces() {
    // The AS in the middle is not the end of either segment: its interface 9 leads further up.
    let shortcut = path(&[(UP, &[(1, 0), (9, 2)]), (DOWN, &[(9, 3), (4, 0)])]);
    assert_eq!(interface_ids(&shortcut), Ok(vec![1, 2, 3, 4]));
    // If a segment extends beyond the path, the interfaces at the outer ends are not crossed.
    let cut = path(&[(DOWN, &[(7, 1), (2, 8)])]);
    assert_eq!(interface_ids(&cut), Ok(vec![1, 2]));
}

#[test]
fn a_peering_link_is_crossed() {
    let peering = path(&[
        (UP | PEERING, &[(1, 0), (5, 2)]),
        (DOWN | PEERING, &[(6, 3), (4, 0)]),
    ]);
    assert_eq!(interface_ids(&peering), Ok(vec![1, 2, 5, 6, 3, 4]));
}

#[test]
fn the_earliest_expiry_of_a_hop_field_counts() {
    let both = path(&[(UP, &[(1, 0), (0, 2)]), (DOWN, &[(0, 3), (4, 0)])]);
    // Expiry unit n is (n + 1) times 337.5 s (SCION header specification, "Hop Field").
    assert_eq!(expiry(&both), Ok(1000 + 337));
    for (exp_time, milliseconds) in [(0, 337_500), (63, 6 * 3_600_000), (255, 24 * 3_600_000)] {
        assert_eq!(HopField::lifetime(exp_time).as_millis(), milliseconds);
    }
}

#[test]
fn a_path_is_as_old_as_its_youngest_segment() {
    let mut both = path(&[(UP, &[(1, 0), (0, 2)]), (DOWN, &[(0, 3), (4, 0)])]);
    assert_eq!(originated(&both), Ok(1001));
    both[META + INFO + 4..META + 2 * INFO].copy_from_slice(&2000u32.to_be_bytes());
    assert_eq!(originated(&both), Ok(2000));
    assert!(originated(&both[1..]).is_err());
}

#[test]
fn the_reverse_path_has_the_same_interfaces() {
    let mut both = path(&[(UP, &[(1, 0), (0, 2)]), (DOWN, &[(0, 3), (4, 0)])]);
    let there = both.clone();
    // The packet has arrived: the current hop is the last one.
    both[0] = 1 << 6 | 3;
    both = reverse(&both).unwrap();
    assert_eq!(both[0], 0, "at the first hop");
    assert_eq!(interface_ids(&both), Ok(vec![4, 3, 2, 1]));
    assert!(!same_path(&there, &both), "reversed");
    both[0] = 1 << 6 | 3;
    both = reverse(&both).unwrap();
    assert!(same_path(&there, &both));
}

#[test]
fn fields_that_routers_change_do_not_distinguish_paths() {
    let sent = path(&[(UP, &[(1, 0), (0, 2)]), (DOWN, &[(0, 3), (4, 0)])]);
    let (infos, hops) = (4, 4 + 2 * 8);
    let may_change = |byte: usize, bit: u8| match byte {
        0 => true,
        byte if (infos..hops).contains(&byte) => (2..4).contains(&((byte - infos) % 8)),
        byte if byte >= hops => (byte - hops) % 12 == 0 && bit < 2,
        _ => false,
    };
    for byte in 0..sent.len() {
        for bit in 0..8 {
            let mut seen = sent.clone();
            seen[byte] ^= 1 << bit;
            let same = may_change(byte, bit);
            assert_eq!(same_path(&sent, &seen), same, "byte {byte}, bit {bit}");
        }
    }
    assert!(!same_path(&sent, &sent[..sent.len() - 12]));
    assert!(!same_path(&sent, &[]));
    assert!(same_path(&[], &[]));
}

#[test]
fn invalid_paths_are_refused() {
    let whole = path(&[(DOWN, &[(0, 1), (2, 0)])]);
    for length in 0..whole.len() {
        assert!(interface_ids(&whole[..length]).is_err(), "{length} bytes");
    }
    let mut longer = whole.clone();
    longer.extend_from_slice(&[0; 4]);
    assert_eq!(interface_ids(&longer), Err(MalformedPath::Trailing(4)));
    for position in [9, 1 << 6] {
        let mut outside = whole.clone();
        outside[0] = position;
        assert_eq!(reverse(&outside), Err(MalformedPath::Position));
    }
    let hops = [(1, 1); 33];
    let long = path(&[(UP, &hops), (DOWN, &hops)]);
    assert_eq!(interface_ids(&long), Err(MalformedPath::TooManyHops(66)));
}

/// The reverse of a path with these `fields`, made of lists; `None` if there is no such path.
fn simple_reverse(
    fields: &[u8],
    lengths: [usize; 3],
    (info, hop): (usize, usize),
) -> Option<Vec<u8>> {
    let (infos, hops) = match lengths {
        [0, ..] => return None,
        [a, 0, 0] => (1, a),
        [_, 0, _] => return None,
        [a, b, 0] => (2, a + b),
        [a, b, c] => (3, a + b + c),
    };
    let segment_of = (0..3).flat_map(|at| std::iter::repeat_n(at, lengths[at]));
    if segment_of.collect::<Vec<_>>().get(hop) != Some(&info) {
        return None;
    }
    let mut lengths = lengths[..infos].to_vec();
    lengths.reverse();
    lengths.resize(3, 0);
    let position = (infos - 1 - info) << 30 | (hops - 1 - hop) << 24;
    let meta = position | lengths[0] << 12 | lengths[1] << 6 | lengths[2];
    let mut reversed = (meta as u32).to_be_bytes().to_vec();
    let (info_fields, hop_fields) = fields.split_at(8 * infos);
    for field in info_fields.chunks(8).rev() {
        // The other direction of construction.
        reversed.push(field[0] ^ 1);
        reversed.extend_from_slice(&field[1..]);
    }
    for field in hop_fields.chunks(12).rev() {
        // No router is alerted.
        reversed.push(field[0] & !3);
        reversed.extend_from_slice(&field[1..]);
    }
    Some(reversed)
}

/// The first expiry of all hops, by steps of 337.5 s.
fn simple_expiry(fields: &[u8], infos: usize, lengths: [u32; 3]) -> u64 {
    let (info_fields, hop_fields) = fields.split_at(8 * infos);
    let mut hops = hop_fields.chunks(12);
    let segments = info_fields.chunks(8).zip(lengths);
    let expiries = segments.flat_map(|(info, length)| {
        let timestamp = u32::from_be_bytes([info[4], info[5], info[6], info[7]]);
        let hops: Vec<_> = hops.by_ref().take(length as usize).collect();
        let expiry = move |hop: &&[u8]| f64::from(timestamp) + (f64::from(hop[1]) + 1.0) * 337.5;
        hops.iter().map(expiry).collect::<Vec<_>>()
    });
    expiries.fold(f64::INFINITY, f64::min) as u64
}

/// Paths with their expiry and their reverse, from `sciparse` 0.8.6.
const RECORDED: [(&str, u64, &str); 14] = [
    (
        "000010000200532f65540f12004fc446b53f17fb2958bc3c",
        1700034698,
        "000010000300532f65540f12004fc446b53f17fb2958bc3c",
    ),
    (
        "000010000300ccff655403470056e84498e8b0e635701560",
        1700034041,
        "000010000200ccff655403470056e84498e8b0e635701560",
    ),
    (
        "0100200002005df36554044a00333c04e09d9ae7125d3e470060b92d2a699b5d5235ceed",
        1700022488,
        "0000200003005df36554044a0060b92d2a699b5d5235ceed00333c04e09d9ae7125d3e47",
    ),
    (
        "01002000010028b16553fc9000ea8bbd50dcc507e4bd80b4008675d8d1e5ceef8e9ea956",
        1700048522,
        "00002000000028b16553fc90008675d8d1e5ceef8e9ea95600ea8bbd50dcc507e4bd80b4",
    ),
    (
        "020050000200c6396553fbde00444bcaba22bb690f57c88300e2311b535f1fb0a9594dac0047602afae0d99c3c02bdde00e6efa7fa171cc347391cf000cb0714a2c315d7be2b3757",
        1700026069,
        "020050000300c6396553fbde00cb0714a2c315d7be2b375700e6efa7fa171cc347391cf00047602afae0d99c3c02bdde00e2311b535f1fb0a9594dac00444bcaba22bb690f57c883",
    ),
    (
        "0000500003000e506553ff9500fac91851b0a82be1d9d9fe002cddd68e22c9399e8cb48600789e2d53857ddf21c069b90051595134ecf9dcc79839e70099865fd6f4009b0d3b3a87",
        1700018920,
        "0400500002000e506553ff950099865fd6f4009b0d3b3a870051595134ecf9dcc79839e700789e2d53857ddf21c069b9002cddd68e22c9399e8cb48600fac91851b0a82be1d9d9fe",
    ),
    (
        "000020c003009191655414600300e953655402f900530a8475bf4879d0017536009d84c218a3dff3bc98e99e002d57fe002233bec594dd0d00d0e5c3767c8efa673f1ff7001f0a010d1838e891867c64",
        1700015401,
        "440030800200e953655402f90200919165541460001f0a010d1838e891867c6400d0e5c3767c8efa673f1ff7002d57fe002233bec594dd0d009d84c218a3dff3bc98e99e00530a8475bf4879d0017536",
    ),
    (
        "010020c00300bddd6553f100020012286553f91100d0140f443f63ef0b5eb314002c256428715e16f413132c004e10e46c6ed5e2497a969a00f6f2e3414c8f366dee14a500c27b9fafae3e2397ef085b",
        1700015187,
        "43003080030012286553f9110200bddd6553f10000c27b9fafae3e2397ef085b00f6f2e3414c8f366dee14a5004e10e46c6ed5e2497a969a002c256428715e16f413132c00d0140f443f63ef0b5eb314",
    ),
    (
        "0000104000000fd865540361000031bd6553fcab00f8606cc314fb6b962067fe008bc513e5906a18abb1ea02",
        1700050237,
        "41001040010031bd6553fcab01000fd865540361008bc513e5906a18abb1ea0200f8606cc314fb6b962067fe",
    ),
    (
        "000010400100a743655411fd0300cf606554195600000bbe1e4ae78dcac47e4300b7422dfe9e97ec961eedc9",
        1700008782,
        "410010400200cf60655419560000a743655411fd00b7422dfe9e97ec961eedc900000bbe1e4ae78dcac47e43",
    ),
    (
        "44003082030042e06553fd5b0300c3d065541490010097146554174b0069d0a0f25f40d7c18923a100e17fd85bdc0247e6630342004495775e6dfd8d8f7ace0e00755cf36e6886f3e870d935006a109bc5a16570af4f16bd00eca8be5ea6a8a61aa7fad50059927723f6098ebc39f3cf",
        1700026450,
        "42002083000097146554174b0200c3d065541490020042e06553fd5b0059927723f6098ebc39f3cf00eca8be5ea6a8a61aa7fad5006a109bc5a16570af4f16bd00755cf36e6886f3e870d935004495775e6dfd8d8f7ace0e00e17fd85bdc0247e66303420069d0a0f25f40d7c18923a1",
    ),
    (
        "440030820000fec6655401a60000aa5a6553f5550200fb73655402b5005fd76a559c11329235e3b50003811ac1bb42d5b0b669b600ae01825f2ca91fda3da49400363a91e9b7ef55bbe3d73f000e4694e1f0ad58c9b86641002e6c4f9ba30a2a9905fca900f87916ddb06bb977d1b2f5",
        1700005612,
        "420020830300fb73655402b50100aa5a6553f5550100fec6655401a600f87916ddb06bb977d1b2f5002e6c4f9ba30a2a9905fca9000e4694e1f0ad58c9b8664100363a91e9b7ef55bbe3d73f00ae01825f2ca91fda3da4940003811ac1bb42d5b0b669b6005fd76a559c11329235e3b5",
    ),
    (
        "820010410200d26065540ede000096ae6554150a0000789d65541f8100b3a89d4d7ef1ffade1b5b000baf40c6b2d4c0d1091e04800684b68b0ad6526b2d5b5ae",
        1700047342,
        "000010410100789d65541f81010096ae6554150a0300d26065540ede00684b68b0ad6526b2d5b5ae00baf40c6b2d4c0d1091e04800b3a89d4d7ef1ffade1b5b0",
    ),
    (
        "000010410000d3f66553fc4501004b42655411e70300a6da6553fb2500e346c0750db621442a66570061c62d5c4a485f50b7f38a000f3165d3589db6d63f399d",
        1700007997,
        "820010410200a6da6553fb2500004b42655411e70100d3f66553fc45000f3165d3589db6d63f399d0061c62d5c4a485f50b7f38a00e346c0750db621442a6657",
    ),
];

#[test]
fn paths_are_reversed_and_expire_as_recorded() {
    for (path, expires, reversed) in RECORDED {
        let path = bytes(path);
        assert_eq!(reverse(&path), Ok(bytes(reversed)));
        assert_eq!(expiry(&path), Ok(expires));
        // Its own reverse is the path again.
        assert_eq!(reverse(&bytes(reversed)), Ok(path));
    }
}

proptest! {
    #[test]
    fn reading_any_bytes_never_panics(raw in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = interface_ids(&raw);
        let _ = expiry(&raw);
        let _ = same_path(&raw, &raw);
        let _ = reverse(&raw);
    }

    /// The path has the right total length, but segment lengths that may be invalid.
    #[test]
    fn any_fields_are_read_and_reversed(
        meta: u32, lengths in prop::array::uniform3(0u32..8), fields in prop::collection::vec(any::<u8>(), 400),
    ) {
        let [a, b, c] = lengths;
        let meta = meta & 0xdffc_0000 | a << 12 | b << 6 | c;
        let mut raw = meta.to_be_bytes().to_vec();
        let infos = lengths.iter().filter(|length| **length > 0).count();
        let size = 8 * infos + 12 * (a + b + c) as usize;
        raw.extend_from_slice(&fields[..size]);
        if let Ok(ids) = interface_ids(&raw) {
            prop_assert_eq!(ids.len() % 2, 0);
        }
        if let Ok(reversed) = reverse(&raw) {
            let mut back = interface_ids(&reversed);
            if let Ok(back) = &mut back {
                back.reverse();
            }
            prop_assert_eq!(interface_ids(&raw), back);
        }
        let position = ((meta >> 30) as usize, (meta >> 24 & 0x3f) as usize);
        let expected = simple_reverse(&raw[4..], lengths.map(|length| length as usize), position);
        prop_assert_eq!(reverse(&raw).ok(), expected);
        if reverse(&raw).is_ok() {
            prop_assert_eq!(expiry(&raw), Ok(simple_expiry(&raw[4..], infos, lengths)));
        }
    }

    #[test]
    fn fields_are_read_as_written(
        (cons_dir, peer, segment_id, timestamp) in any::<(bool, bool, u16, u32)>(),
        (flags, exp_time, cons_ingress, cons_egress, mac) in any::<(u8, u8, u16, u16, [u8; 6])>(),
    ) {
        let info = InfoField { cons_dir, peer, segment_id, timestamp };
        prop_assert_eq!(InfoField::read(&info.to_bytes(), 0), info);
        let hop = HopField { flags, exp_time, cons_ingress, cons_egress, mac };
        prop_assert_eq!(HopField::read(&hop.to_bytes(), 0), hop);
    }
}
