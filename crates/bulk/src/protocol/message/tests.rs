use hawser_session::ControlError;
use proptest::prelude::*;

use super::super::wire::MAX_VARINT;
use super::*;

pub(in super::super) fn session_message() -> impl Strategy<Value = SessionMessage> {
    let number = || 0..=MAX_VARINT;
    let reason = prop_oneof![
        Just(SkipReason::Failed),
        Just(SkipReason::Changed),
        Just(SkipReason::Kept),
    ];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300)
            .prop_map(|entry| SessionMessage::Entry(entry.into())),
        (number(), number(), any::<[u8; 32]>()).prop_map(|(entries, content, hash)| {
            SessionMessage::ManifestEnd {
                entries,
                content,
                hash,
            }
        }),
        (number(), prop::collection::vec(any::<[u8; 32]>(), 1..9))
            .prop_map(|(first, values)| SessionMessage::Have { first, values }),
        Just(SessionMessage::Ready),
        (number(), any::<[u8; 32]>())
            .prop_map(|(range, value)| SessionMessage::Hash { range, value }),
        (number(), 1..=MAX_VARINT)
            .prop_map(|(first, count)| SessionMessage::Confirm { first, count }),
        number().prop_map(SessionMessage::Again),
        number().prop_map(SessionMessage::Rate),
        number().prop_map(SessionMessage::Stripped),
        (number(), reason, ".{0,50}")
            .prop_map(|(entry, reason, text)| SessionMessage::skip(entry, reason, &text)),
        (number(), 1..=MAX_VARINT)
            .prop_map(|(first, count)| SessionMessage::Zeros { first, count }),
        any::<[u8; 32]>().prop_map(SessionMessage::Done),
        (number(), ".{0,50}").prop_map(|(code, text)| SessionMessage::fail(ErrorCode(code), &text)),
    ]
}

fn wants() -> impl Strategy<Value = Wants> {
    let patterns = prop::collection::vec(".{0,20}", 0..4);
    (any::<[bool; 3]>(), patterns).prop_map(|([strict, no_overwrite, update], exclude)| Wants {
        choices: Choices::NONE
            .with(Choices::STRICT, strict)
            .with(Choices::NO_OVERWRITE, no_overwrite)
            .with(Choices::UPDATE, update),
        exclude,
    })
}

pub(in super::super) fn message() -> impl Strategy<Value = Message> {
    let number = || 0..=MAX_VARINT;
    let cipher = || prop_oneof![Just(Cipher::Aes128Gcm), Just(Cipher::ChaCha20Poly1305)];
    let session = || any::<[u8; 16]>().prop_map(SessionId);
    let role = prop_oneof![Just(Role::Source), Just(Role::Sink)];
    prop_oneof![
        (
            cipher(),
            any::<u16>(),
            any::<u64>(),
            role,
            number(),
            ".{0,50}",
            wants(),
        )
            .prop_map(|(cipher, port, instance, role, credit, name, wants)| {
                Message::Open(Open {
                    cipher,
                    port,
                    instance,
                    role,
                    credit,
                    name,
                    wants,
                })
            }),
        (session(), cipher(), any::<u16>()).prop_map(|(session, cipher, port)| Message::Join {
            session,
            cipher,
            port
        }),
        (session(), any::<u16>(), number()).prop_map(|(session, port, credit)| Message::Accept {
            session,
            port,
            credit
        }),
        (number(), ".{0,50}").prop_map(|(code, text)| Message::refuse(ErrorCode(code), &text)),
        number().prop_map(Message::AckInterval),
        (number(), session_message())
            .prop_map(|(number, message)| Message::Ordered { number, message }),
        number().prop_map(Message::Seen),
        any::<u8>().prop_map(|byte| Message::Code([byte; 65])),
        any::<[u8; 32]>().prop_map(Message::CodeConfirm),
    ]
}

fn encode(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

#[test]
fn messages_have_the_specified_bytes() {
    let open = Message::Open(Open {
        cipher: Cipher::ChaCha20Poly1305,
        port: 0x7918,
        instance: 0x0102,
        role: Role::Sink,
        credit: 5,
        name: "a".into(),
        wants: Wants {
            choices: Choices::NONE.with(Choices::UPDATE, true),
            exclude: vec!["b".into()],
        },
    });
    let bytes = [
        21, 1, 2, 2, 0x79, 0x18, 0, 0, 0, 0, 0, 0, 1, 2, 2, 5, 1, b'a', 4, 1, 1, b'b',
    ];
    assert_eq!(encode(&open), bytes);
    let message = SessionMessage::Confirm {
        first: 0x1234,
        count: 3,
    };
    let ordered = Message::Ordered { number: 9, message };
    assert_eq!(encode(&ordered), [6, 6, 9, 21, 0x52, 0x34, 3]);
    let message = SessionMessage::Rate(100_000_000);
    let ordered = Message::Ordered { number: 1, message };
    assert_eq!(encode(&ordered), [7, 6, 1, 25, 0x85, 0xf5, 0xe1, 0x00]);
    let message = SessionMessage::skip(7, SkipReason::Changed, "x");
    let ordered = Message::Ordered { number: 2, message };
    assert_eq!(encode(&ordered), [7, 6, 2, 26, 7, 2, 1, b'x']);
    let message = SessionMessage::Zeros { first: 4, count: 2 };
    let ordered = Message::Ordered { number: 3, message };
    assert_eq!(encode(&ordered), [5, 6, 3, 27, 4, 2]);
}

#[test]
fn another_version_is_refused_as_such() {
    // Type, version, and whatever that version has.
    let body = Bytes::from_static(&[1, 3, 99, 99]);
    assert_eq!(
        Message::decode_body(body),
        Err(DecodeError::UnknownVersion(3))
    );
}

#[test]
fn fields_have_only_valid_values() {
    let invalid: [(&[u8], DecodeError); 12] = [
        (&[99], DecodeError::UnknownType(99)),
        (&[], DecodeError::Truncated),
        (&[1, 2, 3, 0, 0, 1, 0], DecodeError::Invalid("cipher")),
        (
            &[
                1, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0x80, 0, 0x80, 0,
            ],
            DecodeError::Invalid("choices"),
        ),
        (
            &[1, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 0x44, 1],
            DecodeError::Invalid("number of patterns"),
        ),
        (
            &[1, 2, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0, 0],
            DecodeError::Invalid("role"),
        ),
        (&[7, 1, 1], DecodeError::Trailing(1)),
        (
            &[6, 0, 18, 0],
            DecodeError::Invalid("list of chaining values"),
        ),
        (&[6, 0, 21, 0, 0], DecodeError::Invalid("number of ranges")),
        (&[6, 0, 27, 0, 0], DecodeError::Invalid("number of ranges")),
        (&[6, 0, 26, 0, 4, 0], DecodeError::Invalid("reason")),
        (&[6, 0, 7, 0], DecodeError::UnknownType(7)),
    ];
    for (bytes, error) in invalid {
        assert_eq!(Message::decode_body(Bytes::from_static(bytes)), Err(error));
    }
    let mut body = vec![4, 0];
    Writer::new(&mut body).bytes(&[b'x'; MAX_TEXT + 1]);
    assert_eq!(
        Message::decode_body(body.into()),
        Err(DecodeError::Invalid("text"))
    );
}

#[test]
fn long_texts_are_cut_between_characters() {
    let Message::Refuse { text, .. } = Message::refuse(ErrorCode::STORAGE, &"ß".repeat(3000))
    else {
        panic!("not a refusal");
    };
    assert_eq!(text.len(), MAX_TEXT);
    let text = format!("a{text}");
    let fail = SessionMessage::fail(ErrorCode::STORAGE, &text);
    assert!(matches!(fail, SessionMessage::Fail { text, .. } if text.len() == MAX_TEXT - 1));
}

#[test]
fn have_is_split_into_messages_of_allowed_size() {
    let values: Vec<[u8; 32]> = (0..10_000_u32)
        .map(|at| std::array::from_fn(|byte| at.to_be_bytes()[byte % 4]))
        .collect();
    let mut framing = Framing::default();
    let mut next = MAX_VARINT - 10_000;
    let mut received = Vec::new();
    for message in SessionMessage::have(next, &values) {
        let number = MAX_VARINT;
        framing.push(&encode(&Message::Ordered { number, message }));
        let Some(Message::Ordered { message, .. }) = framing.pop().unwrap() else {
            panic!("not a message of the session");
        };
        let SessionMessage::Have { first, values } = message else {
            panic!("not a Have");
        };
        assert_eq!(first, next);
        next += values.len() as u64;
        received.extend(values);
    }
    assert!(received == values && framing.is_empty());
}

#[test]
fn only_reports_take_the_place_of_others_that_wait() {
    let reported = |message: &Message| message.reported_state();
    assert!(reported(&Message::Seen(1)).is_some());
    assert!(reported(&Message::AckInterval(1)).is_some());
    assert_ne!(
        reported(&Message::Seen(1)),
        reported(&Message::AckInterval(1))
    );
    let (number, message) = (1, SessionMessage::Again(1));
    assert_eq!(reported(&Message::Ordered { number, message }), None);
}

#[test]
fn too_long_messages_are_refused_before_they_arrive() {
    let mut framing = Framing::default();
    let mut length = Vec::new();
    Writer::new(&mut length).varint(MAX_MESSAGE as u64 + 1);
    framing.push(&length);
    assert_eq!(
        framing.pop(),
        Err(ControlError::TooLong {
            length: MAX_MESSAGE as u64 + 1,
            max: MAX_MESSAGE,
        })
    );
}

proptest! {
    #[test]
    fn messages_survive_in_any_pieces(
        messages in prop::collection::vec(message(), 1..10),
        pieces in prop::collection::vec(1..50_usize, 1..20),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(encode).collect();
        let (mut framing, mut popped, mut rest) = (Framing::default(), Vec::new(), &bytes[..]);
        for piece in pieces.iter().cycle() {
            let (piece, after) = rest.split_at(rest.len().min(*piece));
            framing.push(piece);
            while let Some(message) = framing.pop().unwrap() {
                popped.push(message);
            }
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert!(framing.is_empty());
        prop_assert_eq!(popped, messages);
    }
}
