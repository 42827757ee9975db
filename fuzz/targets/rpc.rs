//! Transmission's RPC: any body is answered in JSON, or is a notification.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/transmission/tests/memory/mod.rs"]
mod memory;

use self::memory::{Memory, SESSION_ID};

fuzz_target!(|input: &[u8]| {
    let mut client = Memory::default();
    if let Some(answer) = hawser_transmission::answer(input, SESSION_ID, &mut client) {
        let answer: Result<serde_json::Value, _> = serde_json::from_slice(&answer);
        assert!(answer.is_ok());
    }
});
