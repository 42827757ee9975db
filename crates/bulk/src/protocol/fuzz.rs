//! Random bytes for everything that reads packets and messages. The parser of manifests is tested
//! beside it, in the same manner.

use hawser_fuzz::{fuzz, samples};
use hawser_seal::{Cipher, SECRET};
use hawser_session::ControlMessage;

use super::*;

#[test]
fn any_acknowledgement_is_decoded_or_refused() {
    let valid: Vec<_> = (samples(ack::tests::ack()).iter())
        .map(|ack| {
            let mut out = Vec::new();
            ack.encode(&mut out, 1400);
            out
        })
        .collect();
    let mut again = Vec::new();
    fuzz(&valid, |input| {
        if let Ok(ack) = Ack::decode(input) {
            // What is accepted is canonical but for the length of its varints.
            again.clear();
            ack.encode(&mut again, usize::MAX);
            assert_eq!(Ack::decode(&again).as_ref(), Ok(&ack));
            assert!(again.len() <= input.len());
        }
    });
}

#[test]
fn any_message_is_decoded_or_refused() {
    let encode = |message: &Message| {
        let mut out = Vec::new();
        message.encode(&mut out);
        out
    };
    let valid: Vec<_> = samples(message::tests::message())
        .iter()
        .map(encode)
        .collect();
    fuzz(&valid, |input| {
        let mut framing = Framing::default();
        framing.push(input);
        while let Ok(Some(message)) = framing.pop() {
            let mut again = Framing::default();
            again.push(&encode(&message));
            assert_eq!(again.pop(), Ok(Some(message)));
        }
    });
}

#[test]
fn any_packet_is_opened_or_rejected() {
    let secret = [9; SECRET];
    let mut sealer = Sealer::new(Cipher::preferred(), &secret);
    let valid: Vec<_> = (0..50)
        .map(|size| {
            let mut out = Vec::new();
            match size % 2 {
                0 => drop(sealer.seal_data(&mut out, size, &vec![1; 1 + size as usize], 99, true)),
                _ => drop(sealer.seal_probe(&mut out, size as usize)),
            }
            out
        })
        .collect();
    let mut opener = Opener::new(Cipher::preferred(), &secret);
    let (mut opened, mut scratch) = (0, Vec::new());
    fuzz(&valid, |input| {
        (FORMAT.token)(input);
        hawser_seal::subflow_id(input);
        let before = opener.rejections().total();
        match opener.open(input, &mut scratch) {
            Ok(_) => opened += 1,
            Err(_) => assert_eq!(opener.rejections().total(), before + 1),
        }
    });
    assert!(
        (1..=50).contains(&opened),
        "each packet opens once: {opened}"
    );
}
