use hawser_proto::control_plane::{HopEntry as HopEntryMessage, PathSegmentExtensions};
use hawser_proto::crypto::SignedMessage;
use proptest::prelude::*;

use super::*;
use crate::testing::{body as body_of, entry as signed, ia, message, spec};

/// A segment of three ASes, the second with a peer.
fn three() -> Vec<crate::testing::Spec> {
    let mut specs = vec![spec(1, 0, 2), spec(2, 1, 3), spec(3, 1, 0)];
    specs[1].peers = vec![(9, ia(7), 8)];
    specs
}

#[test]
fn every_field_is_read() {
    let mut specs = three();
    specs[1].exp_time = 10;
    specs[2].mtu = 100_000;
    let segment = Segment::from_message(&message(1_000_000, &specs)).unwrap();
    assert_eq!((segment.first(), segment.last()), (ia(1), ia(3)));
    assert_eq!(segment.ases().collect::<Vec<_>>(), [1, 2, 3].map(ia));
    assert_eq!(segment.timestamp(), 1_000_000);
    // 11 units of 337.5 s.
    assert_eq!(segment.expiry(), 1_000_000 + 3712);
    assert_eq!(segment.entries[2].mtu, u16::MAX);
    let peer = &segment.entries[1].peers[0];
    assert_eq!((peer.isd_as, peer.interface, peer.mtu), (ia(7), 8, 1400));
    assert_eq!((peer.hop.cons_ingress, peer.hop.cons_egress), (9, 3));
    // Beta begins as the segment's identifier; the first two bytes of each MAC are folded into it.
    let macs = segment.entries.iter().map(|entry| entry.hop.mac);
    let mut beta = 0x1234;
    for (at, mac) in macs.enumerate() {
        assert_eq!(segment.betas[at], beta);
        beta ^= u16::from_be_bytes([mac[0], mac[1]]);
    }
    // The name depends on the ASes and interfaces, not on the time or the peers.
    specs[1].peers.clear();
    let renewed = Segment::from_message(&message(2_000_000, &specs)).unwrap();
    assert_eq!(renewed.id(), segment.id());
    specs[1].egress = 4;
    let other = Segment::from_message(&message(2_000_000, &specs)).unwrap();
    assert_ne!(other.id(), segment.id());
}

#[test]
fn the_name_is_the_hash_of_ases_and_interfaces() {
    // printf '\x00\x01\xff\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x01\xff\x00\x00\x00\x00\x02\x00\x01\x00\x00' | sha256sum
    let segment = crate::testing::segment(0, &[spec(1, 0, 2), spec(2, 1, 0)]);
    let hex: String = segment.id().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, NAME);
}

const NAME: &str = "6e0954401312a64572a632ba72d839ed68385cb5a83046f802ac0be202fe0f09";

/// The error about the three ASes after `change` to the second one's body.
fn refused(change: impl Fn(&mut ASEntrySignedBody)) -> String {
    let specs = three();
    let mut message = message(0, &specs);
    let mut body = body_of(&specs[1], Some(ia(3)));
    change(&mut body);
    let before = body_of(&specs[0], Some(IsdAsn::from_u64(body.isd_as)));
    message.as_entries[0] = signed(&before);
    message.as_entries[1] = signed(&body);
    let error = Segment::from_message(&message).unwrap_err().to_string();
    assert!(error.contains("entry 1"), "{error}");
    error
}

#[test]
fn invalid_fields_are_refused() {
    type Change = fn(&mut ASEntrySignedBody);
    let cases: [(Change, &str); 16] = [
        (|b| b.isd_as = 0, "0-0 as its AS"),
        (
            |b| b.isd_as = ia(2).to_u64() & 0xffff_ffff_ffff,
            "as its AS",
        ),
        (
            |b| b.next_isd_as = 0,
            "0-0 as the next AS, where 1-ff00:0:3 follows",
        ),
        (
            |b| b.next_isd_as = ia(4).to_u64(),
            "1-ff00:0:4 as the next AS",
        ),
        (|b| b.hop_entry = None, "no hop entry"),
        (|b| hop_entry(b).hop_field = None, "no hop field"),
        (|b| hop_field(b).ingress = 0, "ingress 0"),
        (|b| hop_field(b).ingress = 65536, "ingress 65536"),
        (|b| hop_field(b).egress = 0, "egress 0"),
        (|b| hop_field(b).exp_time = 256, "256 units"),
        (|b| hop_field(b).mac.clear(), "a MAC of 0 bytes"),
        (|b| hop_field(b).mac.push(0), "a MAC of 7 bytes"),
        (|b| b.peer_entries[0].hop_field = None, "no hop field"),
        (
            |b| b.peer_entries[0].peer_isd_as = 1 << 48,
            "1-0 as its peer",
        ),
        (|b| b.peer_entries[0].peer_interface = 0, "peer interface 0"),
        (
            |b| hop_field(b).egress = 4,
            "egress 3, where the beacon leaves by 4",
        ),
    ];
    for (change, text) in cases {
        let error = refused(change);
        assert!(error.contains(text), "{error}");
    }
}

fn hop_entry(body: &mut ASEntrySignedBody) -> &mut HopEntryMessage {
    body.hop_entry.get_or_insert_default()
}

fn hop_field(body: &mut ASEntrySignedBody) -> &mut HopFieldMessage {
    hop_entry(body).hop_field.get_or_insert_default()
}

#[test]
fn announced_services_are_read_and_invalid_addresses_left_out() {
    let mut body = body_of(&spec(1, 0, 0), None);
    let read = |body: &ASEntrySignedBody| {
        let message = PathSegment {
            segment_info: Vec::new(),
            as_entries: vec![signed(body)],
        };
        Segment::from_message(&message).unwrap().entries[0]
            .discovery
            .clone()
    };
    assert_eq!(read(&body), Discovery::default());
    let bytes = |texts: &[&[u8]]| texts.iter().map(|text| text.to_vec()).collect();
    body.extensions = Some(PathSegmentExtensions {
        static_info: None,
        discovery: Some(DiscoveryExtension {
            version: 1,
            control_service_addresses: bytes(&[b"10.0.0.1:30252", b"10.0.0.2", b"10.0.0.4:1"]),
            discovery_service_addresses: bytes(&[b"\xff", b"[fd00::1]:8041"]),
        }),
    });
    let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let expected = Discovery {
        control_services: addresses(&["10.0.0.1:30252", "10.0.0.4:1"]),
        discovery_services: addresses(&["[fd00::1]:8041"]),
    };
    assert_eq!(read(&body), expected);
}

#[test]
fn inconsistent_segments_are_refused() {
    let error = |message: &PathSegment| Segment::from_message(message).unwrap_err().to_string();
    let whole = message(0, &three());

    let mut none = whole.clone();
    none.as_entries.clear();
    assert_eq!(error(&none), "a segment without AS entries");

    let chain: Vec<_> = (0..64)
        .map(|at| spec(at + 1, u16::from(at > 0), if at < 63 { 2 } else { 0 }))
        .collect();
    assert!(error(&message(0, &chain)).contains("of 64 AS entries"));
    let mut shorter = chain[..63].to_vec();
    shorter[62].egress = 0;
    assert!(Segment::from_message(&message(0, &shorter)).is_ok());

    for at in [-1, 1 << 32] {
        assert!(error(&message(at, &three())).contains(&format!("made at {at}")));
    }
    let mut large = whole.clone();
    large.segment_info = SegmentInformation {
        segment_id: 65536,
        ..SegmentInformation::default()
    }
    .encode_to_vec();
    assert!(error(&large).contains("with ID 65536"));
    large.segment_info = vec![0xff];
    assert!(error(&large).contains("information cannot be read"));

    // A part of a segment is not a valid segment.
    for range in [1..3, 0..2] {
        let mut part = whole.clone();
        part.as_entries = part.as_entries[range].to_vec();
        assert!(error(&part).contains("whose AS entry"));
    }
    let mut unsigned = whole;
    unsigned.as_entries[2].signed = None;
    let text = error(&unsigned);
    assert!(text.contains("entry 2 has no signed part"), "{text}");
}

/// Bodies in which most fields are valid.
fn bodies() -> impl Strategy<Value = ASEntrySignedBody> {
    let hop = (0..4u64, 0..4u64, 0..300u32, 0..8usize);
    let hop = hop.prop_map(|(ingress, egress, exp_time, mac)| HopFieldMessage {
        ingress,
        egress,
        exp_time,
        mac: vec![7; if mac == 0 { 5 } else { 6 }],
    });
    let peer = (0..4u64, 0..4u64, prop::option::of(hop.clone()));
    let peer = peer.prop_map(|(n, peer_interface, hop)| PeerEntry {
        peer_isd_as: ia(n).to_u64(),
        peer_interface,
        peer_mtu: u32::MAX,
        hop_field: hop,
    });
    let hops = prop::option::of(prop::option::of(hop));
    let ases = (0..3u64, 0..3u64, any::<u32>());
    let peers = prop::collection::vec(peer, 0..3);
    (ases, hops, peers).prop_map(|((own, next, mtu), hop, peer_entries)| ASEntrySignedBody {
        isd_as: ia(own).to_u64(),
        next_isd_as: if next == 0 { 0 } else { ia(next).to_u64() },
        hop_entry: hop.map(|hop| HopEntryMessage {
            hop_field: hop,
            ingress_mtu: mtu,
        }),
        peer_entries,
        mtu,
        extensions: Some(PathSegmentExtensions::default()),
    })
}

proptest! {
    #[test]
    fn reading_any_bytes_never_panics(
        info in prop::collection::vec(any::<u8>(), 0..20),
        signed in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4),
    ) {
        let entries = signed.into_iter().map(|header_and_body| ASEntry {
            signed: Some(SignedMessage {
                header_and_body,
                signature: Vec::new(),
            }),
            ..ASEntry::default()
        });
        let message = PathSegment { segment_info: info, as_entries: entries.collect() };
        let _ = Segment::from_message(&message);
    }

    #[test]
    fn reading_an_altered_segment_never_panics(at: prop::sample::Index, to: u8) {
        let mut bytes = message(1_000_000, &three()).encode_to_vec();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(message) = PathSegment::decode(bytes.as_slice())
            && let Ok(segment) = Segment::from_message(&message)
        {
            prop_assert!(segment.expiry() > segment.timestamp());
            prop_assert_eq!(segment.betas.len(), segment.entries.len() + 1);
        }
    }

    #[test]
    fn segments_that_are_read_are_complete(bodies in prop::collection::vec(bodies(), 1..4)) {
        let message = PathSegment {
            segment_info: Vec::new(),
            as_entries: bodies.iter().map(signed).collect(),
        };
        let Ok(segment) = Segment::from_message(&message) else {
            return Ok(());
        };
        let last = segment.entries.len() - 1;
        for (at, entry) in segment.entries.iter().enumerate() {
            prop_assert_eq!(entry.hop.cons_ingress == 0, at == 0);
            prop_assert_eq!(entry.hop.cons_egress == 0, at == last);
            prop_assert!(!entry.isd_as.is_wildcard());
            for peer in &entry.peers {
                prop_assert_eq!(peer.hop.cons_egress, entry.hop.cons_egress);
                prop_assert!(peer.hop.cons_ingress != 0 && peer.interface != 0);
            }
        }
    }
}
