use bytes::Bytes;
use proptest::prelude::*;

use super::message::MAX_EXTENDED;
use super::request::MAX_REQUEST;
use super::*;
use crate::bitfield::Bitfield;
use hawser_magnet::InfoHash;

const PIECES: u32 = 100;

fn any_bytes(most: usize) -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 1..most).prop_map(Bytes::from)
}

fn any_request() -> impl Strategy<Value = Request> {
    (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(piece, begin, length)| Request {
        piece,
        begin,
        length,
    })
}

fn any_hashes() -> impl Strategy<Value = Message> {
    let hashes = proptest::collection::vec(any::<[u8; 32]>(), 0..20);
    (0..3, any::<[u8; 48]>(), hashes).prop_map(|(kind, named, hashes)| {
        let named = HashRequest::decode(&named);
        match kind {
            0 => Message::HashRequest(named),
            1 => Message::Hashes(named, hashes),
            _ => Message::HashReject(named),
        }
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let bits = proptest::collection::vec(any::<u8>(), Bitfield::byte_len(PIECES));
    prop_oneof![
        Just(Message::KeepAlive),
        Just(Message::Choke),
        Just(Message::Unchoke),
        Just(Message::Interested),
        Just(Message::NotInterested),
        any::<u32>().prop_map(Message::Have),
        bits.prop_map(|bits| Message::Bitfield(Bytes::from(bits))),
        any_request().prop_map(Message::Request),
        any_request().prop_map(Message::Cancel),
        any::<u16>().prop_map(Message::Port),
        any_hashes(),
        (any::<u32>(), any::<u32>(), any_bytes(BLOCK as usize))
            .prop_map(|(piece, begin, data)| Message::Piece { piece, begin, data }),
        (any::<u8>(), any_bytes(300)).prop_map(|(id, payload)| Message::Extended { id, payload }),
    ]
}

/// Feeds `bytes` in steps of the given sizes and takes out what there is after each.
fn decode(bytes: &[u8], steps: &[usize]) -> Result<Vec<Message>, WireError> {
    let mut decoder = Decoder::new(PIECES);
    let mut messages = Vec::new();
    let mut steps = steps.iter().copied().cycle();
    let mut rest = bytes;
    while !rest.is_empty() {
        let step = steps.next().unwrap_or(1).clamp(1, rest.len());
        decoder.buffer(step).extend_from_slice(&rest[..step]);
        rest = &rest[step..];
        while let Some(message) = decoder.next_message()? {
            messages.push(message);
        }
        let held = decoder.buffer(0).len();
        assert!(held <= 4 + MAX_EXTENDED as usize, "{held} bytes held");
    }
    Ok(messages)
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in(
        messages in proptest::collection::vec(any_message(), 0..8),
        steps in proptest::collection::vec(1usize..5000, 1..6),
    ) {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| encode(message, &mut bytes));
        prop_assert_eq!(decode(&bytes, &steps), Ok(messages));
    }

    #[test]
    fn random_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        steps in proptest::collection::vec(1usize..50, 1..6),
    ) {
        let _ = decode(&bytes, &steps);
    }

    #[test]
    fn random_frames_never_panic(
        frames in proptest::collection::vec(
            (any::<u8>().prop_map(|id| id % 24), proptest::collection::vec(any::<u8>(), 0..40)), 0..10),
    ) {
        let mut bytes = Vec::new();
        for (id, body) in frames {
            bytes.extend_from_slice(&(1 + body.len() as u32).to_be_bytes());
            bytes.push(id);
            bytes.extend_from_slice(&body);
        }
        let _ = decode(&bytes, &[7]);
    }

    #[test]
    fn handshakes_come_out_as_they_went_in(
        hash: [u8; 20], id: [u8; 20], extended: bool, dht: bool, version_two: bool,
    ) {
        let (info_hash, peer_id) = (InfoHash(hash), PeerId(id));
        let handshake = Handshake { info_hash, peer_id, extended, dht, version_two };
        let refusal = handshake.refusal().encode();
        let other = InfoHash([7; 20]);
        for expected in [&[info_hash][..], &[info_hash, other], &[other, info_hash]] {
            let refused = Handshake::decode(&refusal, expected);
            prop_assert_eq!(refused, Err(WireError::NotThisTorrent));
            prop_assert_eq!(Handshake::decode(&handshake.encode(), expected), Ok(handshake));
        }
    }

    #[test]
    fn extended_handshakes_come_out_as_they_went_in(
        client in proptest::option::of("[a-zA-Z0-9/. ]{0,100}"),
        request_queue in any::<Option<u32>>(),
        port in any::<Option<u16>>(),
        multipath in proptest::option::of(1..=u8::MAX),
        ut_pex in proptest::option::of(1..=u8::MAX),
        scion_pex in proptest::option::of(1..=u8::MAX),
        ut_metadata in proptest::option::of(1..=u8::MAX),
        metadata_size in any::<Option<u32>>(),
        upload_only: bool,
    ) {
        let handshake = ExtendedHandshake {
            client, request_queue, port, multipath, ut_pex, scion_pex, ut_metadata, metadata_size,
            upload_only,
        };
        prop_assert_eq!(ExtendedHandshake::decode(&handshake.encode()), Ok(handshake));
    }

    #[test]
    fn random_extended_handshakes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = ExtendedHandshake::decode(&bytes);
    }

    #[test]
    fn requests_that_fit_are_inside(request in any_request(), size in any::<u32>()) {
        if request.fits(size) {
            prop_assert!(request.length > 0 && request.length <= MAX_REQUEST);
            prop_assert!(u64::from(request.begin) + u64::from(request.length) <= u64::from(size));
        }
    }
}

/// As KTorrent 22.12 sends it.
#[test]
fn an_extended_handshake_with_keys_in_another_order_is_read() {
    let payload = b"d1:md6:ut_pexi1e11:ut_metadatai2ee1:pi7401e13:metadata_sizei9e1:v8:KTorrente";
    let handshake = ExtendedHandshake::decode(payload).unwrap();
    let ids = (handshake.ut_pex, handshake.ut_metadata);
    assert_eq!((ids, handshake.port), ((Some(1), Some(2)), Some(7401)));
    assert_eq!(handshake.metadata_size, Some(9));
    assert_eq!(handshake.client.as_deref(), Some("KTorrent"));
    assert!(ExtendedHandshake::decode(b"d1:md6:ut_pexi1e").is_err());
    assert!(ExtendedHandshake::decode(b"le").is_err());
}

#[test]
fn lengths_are_judged_before_the_body_arrives() {
    let head = |length: u32, id: u8| {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.push(id);
        decode(&bytes, &[5])
    };
    assert!(matches!(head(u32::MAX, 7), Err(WireError::Oversize { .. })));
    assert!(matches!(
        head(9 + BLOCK + 1, 7),
        Err(WireError::Oversize { .. })
    ));
    assert!(matches!(head(9, 7), Err(WireError::WrongLength { .. })));
    assert!(matches!(head(13, 5), Err(WireError::BadBitfield { .. })));
    assert!(matches!(head(15, 5), Err(WireError::BadBitfield { .. })));
    assert!(matches!(head(6, 4), Err(WireError::WrongLength { .. })));
    assert!(matches!(head(2, 0), Err(WireError::Oversize { .. })));
    assert!(matches!(head(1, 99), Err(WireError::UnknownMessage(99))));
    assert_eq!(head(14, 5), Ok(vec![]));
    assert_eq!(head(9 + BLOCK, 7), Ok(vec![]));
}

#[test]
fn handshakes_of_others_are_refused() {
    let ours = InfoHash([1; 20]);
    let handshake = Handshake {
        info_hash: InfoHash([2; 20]),
        peer_id: PeerId::random(),
        extended: true,
        dht: false,
        version_two: false,
    };
    let mut bytes = handshake.encode();
    assert_eq!(
        Handshake::decode(&bytes, &[ours]),
        Err(WireError::WrongInfoHash(InfoHash([2; 20])))
    );
    bytes[3] ^= 1;
    assert_eq!(
        Handshake::decode(&bytes, &[ours]),
        Err(WireError::NotBitTorrent)
    );
}

#[test]
fn the_header_of_a_block_is_that_of_the_message() {
    let data = Bytes::from_static(b"block");
    let (piece, begin) = (3, 16384);
    let request = Request {
        piece,
        begin,
        length: 5,
    };
    let mut whole = Vec::new();
    encode(&Message::Piece { piece, begin, data }, &mut whole);
    assert_eq!(whole[..PIECE_HEADER], encode_piece_header(request));
}

#[test]
fn ids_name_programs() {
    let id = |text: &[u8; 8]| {
        let mut id = [0xff; 20];
        id[..8].copy_from_slice(text);
        PeerId(id).client()
    };
    for (text, expected) in [
        (b"-qB4650-", Some("qBittorrent 4.6.5.0")),
        (b"-ZZ12A0-", Some("ZZ 1.2.A.0")),
        (b"-qB46\x000-", None),
        (b"-\xc3\xa41234-", None),
        (b"M7-9-2--", None),
    ] {
        assert_eq!(id(text).as_deref(), expected, "{text:?}");
    }
    assert!(PeerId::random().client().unwrap().starts_with("hawser "));
    assert!(PeerId::random().is_hawser());
    assert!(!PeerId(*b"-qB4650-123456789012").is_hawser());
}
