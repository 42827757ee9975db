//! Messages of the extension `ut_metadata`: what is read is written so that it is read as the same.

#![no_main]

use hawser_magnet::MetadataMessage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(Some(message)) = MetadataMessage::parse(input) {
        assert_eq!(MetadataMessage::parse(&message.encode()), Ok(Some(message)));
    }
});
