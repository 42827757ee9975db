//! How much is sent at once.

use std::time::Duration;

/// Time that packets sent at once take at the pacing rate. A queue that holds a millisecond at the
/// path's rate survives two such batches.
const BATCH: Duration = Duration::from_micros(500);
/// Most bytes sent at once: what the kernel cuts into packets in one call.
const MAX_QUANTUM: u64 = 64 << 10;

/// Bytes to send at once at `rate` bytes per second, at least two packets of `packet` bytes
/// (draft-ietf-ccwg-bbr-05, 5.6.3).
pub(crate) fn quantum(rate: f64, packet: u64) -> u64 {
    let bytes = (rate * BATCH.as_secs_f64()) as u64;
    bytes.min(MAX_QUANTUM).max(2 * packet)
}
