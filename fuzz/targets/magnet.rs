//! Magnet links: what is read is written so that it is read as the same.

#![no_main]

use hawser_magnet::Magnet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    match text.parse::<Magnet>() {
        Ok(magnet) => {
            assert!(!magnet.info_hashes.is_empty());
            assert_eq!(magnet.to_string().parse(), Ok(magnet));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
});
