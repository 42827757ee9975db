//! What an acknowledgement shows to a start.

use std::time::{Duration, Instant};

use super::bbr::tolerated;
use super::round::grown;

/// Acknowledgements come in lumps if they cover what was sent in this time.
pub(crate) const LUMP: Duration = Duration::from_millis(4);

/// What an acknowledgement shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) now: Instant,
    /// Bytes delivered and lost so far, and in flight now.
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) in_flight: u64,
    /// Bytes that this acknowledgement covers first.
    pub(crate) acked: u64,
    /// Bytes that were delivered when its newest packet was sent.
    pub(crate) prior: u64,
    /// The round-trip time of its newest packet, and the shortest.
    pub(crate) rtt: Duration,
    pub(crate) min_rtt: Duration,
    /// The time within which its packets were sent, and the longest of all so far where acknowledgements come
    /// in lumps.
    pub(crate) spread: Duration,
    pub(crate) lump: Duration,
    /// The window, and a full packet, in bytes.
    pub(crate) window: u64,
    pub(crate) packet: u64,
    /// The application has less to send than the window allows.
    pub(crate) app_limited: bool,
}

impl Seen {
    /// Whether a queue has grown. A packet may have waited for an acknowledgement, too, where they come in
    /// lumps.
    pub(crate) fn has_queue(&self) -> bool {
        grown(self.min_rtt + self.lump, self.rtt)
    }
}

/// Whether `lost` bytes of the `of` that were sent, in packets of `packet` bytes, are more than is tolerated.
pub(crate) fn is_too_much(lost: u64, of: u64, packet: u64) -> bool {
    lost as f64 > tolerated(of, packet)
}
