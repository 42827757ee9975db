use proptest::prelude::*;
use sciparse::core::view::View;
use sciparse::dataplane_path::standard::view::StandardPathView;

use super::*;
use crate::testing::{DOWN, PEERING, UP, raw as path};

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
    fn any_fields_are_read_and_reversed_as_sciparse_does(
        meta: u32, lengths in prop::array::uniform3(0u32..8), fields in prop::collection::vec(any::<u8>(), 400),
    ) {
        let [a, b, c] = lengths;
        let meta = meta & 0xfffc_0000 | a << 12 | b << 6 | c;
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
        let mut theirs = raw.clone();
        let view = StandardPathView::try_from_mut_slice(&mut theirs);
        if let (Ok(mut ours), Ok((view, _))) = (reverse(&raw), view) {
            let their_expiry = u64::from(view.expiration());
            prop_assert_eq!(expiry(&raw).map(|at| at.min(u32::MAX.into())), Ok(their_expiry));
            view.try_reverse().unwrap();
            // Ignore the reserved bits.
            (ours[1], theirs[1]) = (ours[1] & 0b11, theirs[1] & 0b11);
            prop_assert_eq!(ours[0], theirs[0]);
            prop_assert!(same_path(&ours, &theirs));
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
