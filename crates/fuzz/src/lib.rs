//! Inputs for tests of what reads bytes from outside, and whether an API answers as it is described. Only
//! tests depend on this crate.
//!
//! `HAWSER_FUZZ_CASES` says how many inputs each parser gets; ten million take some minutes in a
//! release build. The inputs are the same each time.

mod description;

pub use self::description::{Answered, Description};

use fastrand::Rng;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Inputs of each parser without the variable.
const CASES: u64 = 20_000;

/// How many inputs each parser gets.
///
/// # Panics
/// If `HAWSER_FUZZ_CASES` is not a number.
pub fn cases() -> u64 {
    match std::env::var("HAWSER_FUZZ_CASES") {
        Ok(text) => text.parse().expect("HAWSER_FUZZ_CASES is a number"),
        Err(_) => CASES,
    }
}

/// Calls `parse` with `valid` inputs, changed in some places, and with random ones.
///
/// # Panics
/// If there is no valid input.
pub fn fuzz(valid: &[Vec<u8>], mut parse: impl FnMut(&[u8])) {
    let mut random = Rng::with_seed(0x5eed);
    let mut input = Vec::new();
    for case in 0..cases() {
        input.clear();
        if case % 4 == 0 {
            let length = random.usize(..80);
            input.extend((0..length).map(|_| random.u8(..)));
        } else {
            input.extend_from_slice(&valid[random.usize(..valid.len())]);
            for _ in 0..random.u8(..4) {
                change(&mut input, &mut random);
            }
        }
        parse(&input);
    }
}

fn change(input: &mut Vec<u8>, random: &mut Rng) {
    let at = random.usize(..=input.len());
    match random.u8(..4) {
        0 => input.truncate(at),
        1 => input.insert(at, random.u8(..)),
        2 if at < input.len() => drop(input.remove(at)),
        // Numbers at the ends of their ranges are the most likely to overflow.
        _ if at < input.len() => {
            input[at] = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff][random.usize(..9)];
        }
        _ => {}
    }
}

/// 50 values of a strategy, the same ones each time.
///
/// # Panics
/// If the strategy filters nearly all of its values.
pub fn samples<S: Strategy>(strategy: S) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    let sample = |_| {
        strategy
            .new_tree(&mut runner)
            .expect("a strategy that filters little")
            .current()
    };
    (0..50).map(sample).collect()
}
