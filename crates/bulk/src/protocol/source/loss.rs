//! Which packets count as lost, and how far a path may reorder them (RFC 9002, 6.1).

use std::ops::Range;
use std::time::{Duration, Instant};

use super::flight::{Flight, Run};
use super::rtt::Rtt;

/// Later packets that must be acknowledged before a packet is lost (RFC 9002, 6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// Most later packets that are waited for, on paths that reorder much; time then finds losses.
const MAX_PACKET_THRESHOLD: u64 = 1 << 14;

/// By how much more than a round trip a lost packet is late, in eighths of a round trip (RFC 9002,
/// 6.1.2).
const TIME_THRESHOLD: u32 = 1;

/// The same at most, on paths that reorder much.
const MAX_TIME_THRESHOLD: u32 = 8;

/// Which packets of a subflow count as lost.
#[derive(Debug)]
pub(super) struct LossDetection {
    /// Runs that count as lost, and whose acknowledgement would show that they were not.
    lost: Flight,
    largest_acked: Option<u64>,
    packet_threshold: u64,
    time_threshold: u32,
    /// When a packet that was overtaken counts as lost.
    pub(super) at: Option<Instant>,
}

impl LossDetection {
    pub(super) fn new() -> Self {
        Self {
            lost: Flight::default(),
            largest_acked: None,
            packet_threshold: PACKET_THRESHOLD,
            time_threshold: TIME_THRESHOLD,
            at: None,
        }
    }

    /// The runs that count as lost.
    pub(super) fn lost(&mut self) -> &mut Flight {
        &mut self.lost
    }

    /// The lowest number of a packet that counts as lost.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.lost.first().map(|(first, _)| first)
    }

    /// An acknowledgement whose largest number is `largest` is handled.
    pub(super) fn on_ack(&mut self, largest: u64) {
        self.largest_acked = self.largest_acked.max(Some(largest));
    }

    /// The next run in flight that counts as lost by now, with its first number. When there is none,
    /// [`Self::at`] says when the next one may.
    pub(super) fn next(
        &mut self,
        flight: &mut Flight,
        rtt: &Rtt,
        now: Instant,
    ) -> Option<(u64, Run)> {
        self.at = None;
        let largest = self.largest_acked?;
        let overtaken = 0..(largest + 1).saturating_sub(self.packet_threshold);
        if let Some(lost) = flight.pop_within(&overtaken) {
            return Some(lost);
        }
        let (first, run) = flight.first()?;
        if first >= largest {
            return None;
        }
        let late = run.sent + rtt.loss_delay(self.time_threshold);
        if late > now {
            self.at = Some(late);
            return None;
        }
        flight.pop_within(&(0..largest))
    }

    /// Packets that counted as lost are acknowledged: the path reorders them more than expected.
    pub(super) fn on_spurious(&mut self, first: u64, run: &Run, rtt: &Rtt, now: Instant) {
        let largest = self.largest_acked.unwrap_or(first).max(first);
        let overtaken = (largest - first + 1).min(MAX_PACKET_THRESHOLD);
        self.packet_threshold = self.packet_threshold.max(overtaken);
        if now.saturating_duration_since(run.sent) > rtt.loss_delay(self.time_threshold) {
            self.time_threshold = (self.time_threshold + 1).min(MAX_TIME_THRESHOLD);
        }
    }

    /// Forgets lost packets that were sent more than `age` ago: their acknowledgement is no longer
    /// expected.
    pub(super) fn forget(&mut self, age: Duration, now: Instant) {
        while let Some((first, run)) = self.lost.first()
            && run.sent + age < now
        {
            let range: Range<u64> = first..first + run.packets;
            self.lost.pop_within(&range);
        }
    }
}
