//! Random bytes for everything that reads datagrams and messages.

use hawser_fuzz::{fuzz, samples};
use hawser_session::ControlMessage;

use super::segment::{Compact, Header};
use super::{Framing, SlotEpoch, message, segment};
use crate::protocol::Role;

#[test]
fn any_compact_segment_is_decoded_or_refused() {
    let valid: Vec<_> = samples(segment::tests::headers())
        .iter()
        .filter_map(|header| Compact::encode(header, Role::Client))
        .map(|compact| [compact.bytes(), &[7; 3]].concat())
        .collect();
    fuzz(&valid, |input| {
        for sender in [Role::Client, Role::Server] {
            if let Some((header, data)) = Header::decode(input, sender) {
                let again = Compact::encode(header.bytes(), sender).unwrap();
                assert_eq!([again.bytes(), data].concat(), input);
            }
        }
    });
}

#[test]
fn any_slot_is_decoded_or_refused() {
    fuzz(&[vec![0x18, 3, 9], vec![0x31, 255]], |input| {
        if let Some((bound, rest)) = SlotEpoch::decode(input) {
            assert_eq!([&bound.encode()[..], rest].concat(), input);
        }
    });
}

#[test]
fn any_message_is_decoded_or_refused() {
    let valid: Vec<_> = samples(message::tests::messages())
        .iter()
        .map(|message| {
            let mut out = Vec::new();
            message.encode(&mut out);
            out
        })
        .collect();
    fuzz(&valid, |input| {
        let mut framing = Framing::default();
        framing.push(input);
        while let Ok(Some(message)) = framing.pop() {
            let (mut again, mut bytes) = (Framing::default(), Vec::new());
            message.encode(&mut bytes);
            again.push(&bytes);
            assert_eq!(again.pop(), Ok(Some(message)));
        }
    });
}
