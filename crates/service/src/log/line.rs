//! A line of the file: a value as JSON, a tab, and a checksum of the value in hexadecimal digits.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Digits of a checksum.
const DIGITS: usize = 16;

/// Why a line has no value.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum LineError {
    /// It ends before its end, as one that a crash cut off.
    #[error("it has no end")]
    Incomplete,
    /// It has an end and no checksum, as those of an older format.
    #[error("it has no checksum")]
    Unchecked,
    /// It is not what was written.
    #[error("it has not its checksum")]
    Changed,
    /// It is not such a value.
    #[error("{0}")]
    Value(String),
}

/// A value as a line.
pub(super) fn write(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    let sum = checksum(&line);
    line.push(b'\t');
    line.extend(sum);
    line.push(b'\n');
    Ok(line)
}

/// The value of a line.
pub(super) fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    // JSON as it is written here has no tab.
    let (json, sum) = match line.iter().position(|byte| *byte == b'\t') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None if line.ends_with(b"\n") => return Err(LineError::Unchecked),
        None => return Err(LineError::Incomplete),
    };
    let expected = checksum(json);
    match sum.strip_prefix(&expected) {
        Some(b"\n") => value(json),
        // A crash cuts a line off; it leaves nothing in place of its end.
        Some([]) => Err(LineError::Incomplete),
        None if expected.starts_with(sum) => Err(LineError::Incomplete),
        _ => Err(LineError::Changed),
    }
}

/// The value of a line without a checksum.
pub(super) fn read_unchecked<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    match line.ends_with(b"\n") {
        true => value(line),
        false => Err(LineError::Incomplete),
    }
}

fn value<T: DeserializeOwned>(json: &[u8]) -> Result<T, LineError> {
    serde_json::from_slice(json).map_err(|error| LineError::Value(error.to_string()))
}

/// FNV-1a over 64 bits: damage of a disk is to be found, not a forger.
fn checksum(bytes: &[u8]) -> [u8; DIGITS] {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(PRIME);
    let sum = bytes.iter().fold(BASIS, add);
    let mut digits = [0; DIGITS];
    for (at, digit) in digits.iter_mut().enumerate() {
        let nibble = (sum >> (60 - 4 * at)) & 0xf;
        *digit = b"0123456789abcdef"[nibble as usize];
    }
    digits
}
