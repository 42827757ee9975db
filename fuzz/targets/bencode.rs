//! Bencode: what is read strictly is written as it was, and read tolerantly as the same.

#![no_main]

use hawser_bencode::{parse, parse_tolerant};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let tolerant = parse_tolerant(input);
    if let Ok(value) = parse(input) {
        assert_eq!(value.encode(), input);
        assert_eq!(tolerant, Ok(value));
    }
});
