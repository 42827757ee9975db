use proptest::prelude::*;

use super::*;

fn hop(exp_time: u8, cons_ingress: u16, cons_egress: u16) -> HopField {
    HopField {
        flags: 0,
        exp_time,
        cons_ingress,
        cons_egress,
        mac: [0; 6],
    }
}

fn info(segment_id: u16, timestamp: u32) -> InfoField {
    InfoField {
        cons_dir: true,
        peer: false,
        segment_id,
        timestamp,
    }
}

#[test]
fn a_mac_is_the_aes_cmac_of_one_block() {
    // RFC 4493, section 4, example 2.
    let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128;
    let block = 0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a_u128;
    let mac = HopKey::new(&key.to_be_bytes()).mac(&block.to_be_bytes());
    assert_eq!(mac, [0x07, 0x0a, 0x16, 0xb4, 0x6b, 0x4d]);
}

/// A key; segment identifier, timestamp, expiry, ingress and egress; and the MAC that `sciparse`
/// 0.8.6 computes of them.
type Recorded = (u128, (u16, u32, u8, u16, u16), u64);

const RECORDED: [Recorded; 12] = [
    (
        0x910a2dec89025cc1beeb8da1658eec67,
        (0x555e, 3997354251, 50, 61179, 37794),
        0x3472f49f8ea4,
    ),
    (
        0x71bb54d8d101b5b9c34d0bff90150280,
        (0x3ca5, 304579957, 54, 27863, 39404),
        0x24094a428fd0,
    ),
    (
        0x491718de357e3da8cb435c8e74616796,
        (0x4f61, 349146110, 86, 30465, 30172),
        0x78cb2dbdf6c5,
    ),
    (
        0x7476cf8a4baa5dc087b341d690d7a28a,
        (0x57a8, 2776189499, 76, 44655, 39789),
        0xc9eb3fdc3ac8,
    ),
    (
        0xa534a6a6b7fd0b63d0bad0da572baaf1,
        (0x89ee, 1945068808, 175, 38448, 33847),
        0x5b067d709db3,
    ),
    (
        0x10e2c46865e9874614d7973c5c2a449c,
        (0x8fcd, 1056114348, 84, 3793, 61949),
        0xf38a6e1d615e,
    ),
    (
        0x497305c5d1aab99f0c43407dc177b6f7,
        (0x7135, 221116331, 74, 42886, 63772),
        0x2a313d7fba02,
    ),
    (
        0x0b331645445bcd27ff6c67e81909778a,
        (0xd084, 3372714426, 197, 2834, 3287),
        0xc49e407cdfb0,
    ),
    (
        0x65ace2685a072c6d70616f2f48dce01c,
        (0xfc17, 1459552012, 243, 20014, 54914),
        0x848c294b877e,
    ),
    (
        0x8b2e02445e4be0f5bf8c59bb003553c1,
        (0x9d18, 3193639740, 235, 45718, 27300),
        0x8112dfaa89d4,
    ),
    (
        0xdca0c749607e2c86b54b3c40881e2907,
        (0x8163, 2257059762, 16, 48985, 33311),
        0x999b8a71e5f2,
    ),
    (
        0xde70d1019fc66081d6de6acd12c87e38,
        (0x685e, 810393494, 233, 24856, 3598),
        0x21477badc51f,
    ),
];

#[test]
fn macs_are_those_recorded() {
    for (key, (segment_id, timestamp, exp_time, ingress, egress), mac) in RECORDED {
        let key = HopKey::new(&key.to_be_bytes());
        let field = key.hop_field(&info(segment_id, timestamp), exp_time, ingress, egress);
        assert_eq!(mac.to_be_bytes()[2..], field.mac);
        // The next AS's segment identifier: the first two bytes are added without carry.
        assert_eq!(field.chain(segment_id), segment_id ^ (mac >> 32) as u16);
    }
}

proptest! {
    /// Each field that the MAC covers changes it; flags and direction do not.
    #[test]
    fn the_mac_covers_the_hop_and_its_segment(
        key: [u8; 16], segment_id: u16, timestamp: u32, exp_time: u8, ingress: u16, egress: u16,
        bit in 0u32..16,
    ) {
        let key = HopKey::new(&key);
        let mac = |info: InfoField, hop: HopField| key.mac(&hop.mac_input(&info));
        let (info, hop) = (info(segment_id, timestamp), hop(exp_time, ingress, egress));
        let signed = key.hop_field(&info, exp_time, ingress, egress);
        prop_assert_eq!(signed, HopField { mac: mac(info, hop), ..hop });
        let flip = 1u16 << bit;
        let others = [
            mac(InfoField { segment_id: segment_id ^ flip, ..info }, hop),
            mac(InfoField { timestamp: timestamp ^ u32::from(flip) << 16, ..info }, hop),
            mac(info, HopField { exp_time: exp_time ^ 1 << (bit % 8), ..hop }),
            mac(info, HopField { cons_ingress: ingress ^ flip, ..hop }),
            mac(info, HopField { cons_egress: egress ^ flip, ..hop }),
        ];
        prop_assert!(others.iter().all(|other| *other != signed.mac));
        let elsewhere = InfoField { cons_dir: false, peer: true, ..info };
        prop_assert_eq!(mac(elsewhere, HopField { flags: 3, ..hop }), signed.mac);
    }
}

#[test]
fn debug_output_hides_the_key() {
    assert_eq!(format!("{:?}", HopKey::new(&[7; 16])), "HopKey(..)");
}
