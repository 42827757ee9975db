//! Handshakes of Message Stream Encryption, on both sides; and what the first bytes of a connection are.

#![no_main]

use fastrand::Rng;
use hawser_mse::{Initiator, Methods, Policy, Responder, sniff};
use libfuzzer_sys::fuzz_target;

const HASH: [u8; 20] = *b"an info-hash of 20 b";

fuzz_target!(|input: &[u8]| {
    let _ = sniff(input);
    let seed = &mut Rng::with_seed(1);
    let initiator = Initiator::new(HASH, Methods::ALL, Vec::new(), seed);
    let mut initiator = initiator.expect("no data is short enough");
    if let Ok(received) = initiator.receive(input) {
        assert!(received.used <= input.len());
    }
    let mut responder = Responder::new(Policy::Prefer, seed);
    if let Ok(received) = responder.receive(input, |shown| shown.find(&[HASH])) {
        assert!(received.used <= input.len());
    }
});
