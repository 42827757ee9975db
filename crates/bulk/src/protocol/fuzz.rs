//! Random bytes for everything that reads bytes from outside.
//!
//! `HAWSER_FUZZ_CASES` says how many inputs each parser gets; ten million take some minutes in a
//! release build. The parsers of manifests and of keys are tested beside them, in the same manner.

use hawser_seal::{Cipher, SECRET};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::model::Random;
use super::*;

/// Inputs of each parser without the variable.
const CASES: u64 = 20_000;

fn cases() -> u64 {
    match std::env::var("HAWSER_FUZZ_CASES") {
        Ok(text) => text.parse().expect("HAWSER_FUZZ_CASES is a number"),
        Err(_) => CASES,
    }
}

/// Calls `parse` with valid inputs, changed in some places, and with random ones.
pub(crate) fn fuzz(valid: &[Vec<u8>], mut parse: impl FnMut(&[u8])) {
    let mut random = Random(0x5eed);
    let mut input = Vec::new();
    for case in 0..cases() {
        input.clear();
        if case % 4 == 0 {
            let length = random.below(80);
            input.extend((0..length).map(|_| random.next() as u8));
        } else {
            let one = &valid[random.below(valid.len() as u64) as usize];
            input.extend_from_slice(one);
            for _ in 0..random.below(4) {
                change(&mut input, &mut random);
            }
        }
        parse(&input);
    }
}

fn change(input: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(input.len() as u64 + 1) as usize;
    match random.below(4) {
        0 => input.truncate(at),
        1 => input.insert(at, random.next() as u8),
        2 if at < input.len() => drop(input.remove(at)),
        // Numbers at the ends of their ranges are the most likely to overflow.
        _ if at < input.len() => {
            input[at] = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff][random.below(9) as usize];
        }
        _ => {}
    }
}

/// Some values of a strategy, the same ones each time.
pub(crate) fn samples<S: Strategy>(strategy: S) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    let sample = |_| {
        strategy
            .new_tree(&mut runner)
            .expect("nothing is filtered")
            .current()
    };
    (0..50).map(sample).collect()
}

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
