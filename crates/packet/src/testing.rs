//! Addresses and paths for tests.

use hawser_address::ScionAddr;

pub(crate) fn addr(text: &str) -> ScionAddr {
    text.parse().unwrap()
}

/// The bytes with these hexadecimal digits.
pub(crate) fn bytes(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Flags of an info field: against construction direction, in construction direction, and the
/// peering flag to combine with either.
pub(crate) const UP: u8 = 0;
pub(crate) const DOWN: u8 = 1;
pub(crate) const PEERING: u8 = 2;

/// A path of `segments`, each (flags, hops as (ingress, egress) in construction direction).
pub(crate) fn raw(segments: &[(u8, &[(u16, u16)])]) -> Vec<u8> {
    let length = |at: usize| segments.get(at).map_or(0, |(_, hops)| hops.len() as u32);
    let meta = length(0) << 12 | length(1) << 6 | length(2);
    let mut raw = meta.to_be_bytes().to_vec();
    for (at, (flags, _)) in segments.iter().enumerate() {
        raw.extend_from_slice(&[*flags, 0, 0, at as u8]);
        raw.extend_from_slice(&(1000 + at as u32).to_be_bytes());
    }
    for (at, (_, hops)) in segments.iter().enumerate() {
        for (ingress, egress) in *hops {
            raw.extend_from_slice(&[0, 10 * at as u8]);
            raw.extend_from_slice(&ingress.to_be_bytes());
            raw.extend_from_slice(&egress.to_be_bytes());
            raw.extend_from_slice(&[1, 2, 3, 4, 5, at as u8]);
        }
    }
    raw
}

/// A path of two hops over one link, from interface 7 to interface 8.
pub(crate) fn raw_path() -> Vec<u8> {
    raw(&[(DOWN, &[(0, 7), (8, 0)])])
}
