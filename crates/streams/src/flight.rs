//! What is under way over one path: when each part of it is expected to arrive, and when it did.
//!
//! QUIC delivers what a path was given in order, and reports nothing of it. So the other side reports
//! how much of streams has arrived over each path ([`Frame::Arrived`](super::Frame)), counted in units:
//! a byte is one, and so is the end of a stream. Rates and delays follow from these reports.

use std::collections::VecDeque;
use std::time::Duration;

use super::StreamId;
use super::estimate::Estimate;

/// Longest time for which arrivals wait until they are reported, unless there are many.
const REPORT_DELAY: Duration = Duration::from_millis(25);
/// Time for which a measured rate counts, unless a higher one is measured.
const RATE_AGE: Duration = Duration::from_secs(1);
/// Time after which half of a delay beyond what was expected is forgotten: a path that is not used
/// because of it is tried again some time later.
const FORGOTTEN: Duration = Duration::from_secs(2);
/// What is late by more, and by half of what was expected, is sent again over another path. That half
/// counts up to a bound, so that readers do not wait for long.
const TOLERANCE: Duration = Duration::from_millis(20);
const LONGEST_TOLERANCE: Duration = Duration::from_millis(50);
/// So many units are never too many: a path that begins has a small window, which grows as long as
/// there is more to send.
const MIN_FULL: u64 = 128 << 10;
/// The lowest rate that is assumed, in units per second.
const MIN_RATE: f64 = 1000.0;

#[derive(Debug)]
struct Entry {
    /// The block, by its stream and offset, until it is of no use any more.
    block: Option<(StreamId, u64)>,
    /// Units sent over the path with this entry.
    end: u64,
    /// The last report before it was sent: when, and how many units had arrived.
    since: Duration,
    arrived: u64,
    /// When its arrival was expected to be reported, by the path's rate and delay alone.
    expected: Duration,
    /// Whether it kept the path busy: then its arrival shows the path's rate.
    is_full: bool,
    /// When it is late.
    late: Duration,
    /// Whether it was late, and was sent again.
    is_repeated: bool,
}

/// What is under way over one path.
#[derive(Debug, Default)]
pub(super) struct Flight {
    entries: VecDeque<Entry>,
    sent: u64,
    arrived: u64,
    /// When the last report came, or when something was sent after a time without.
    reported: Duration,
    /// The highest rate measured of late, in units per second, and when.
    rate: Option<(f64, Duration)>,
    /// By how much more than expected it took of late, and when that was measured.
    excess: (Duration, Duration),
}

/// More was reported as arrived than was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NeverSent;

impl Flight {
    /// Units that are under way.
    fn under_way(&self) -> u64 {
        self.sent - self.arrived
    }

    /// Units per second.
    pub(super) fn rate(&self, estimate: Estimate, now: Duration) -> f64 {
        let fresh = |(_, at): &(f64, Duration)| now.saturating_sub(*at) <= 2 * RATE_AGE;
        let measured = self.rate.filter(fresh).map(|(rate, _)| rate);
        let rate = measured.unwrap_or_else(|| estimate.rate());
        rate.max(MIN_RATE)
    }

    /// How long it takes until further `units` have arrived, and this side could have learned of it.
    pub(super) fn delay(&self, units: u64, estimate: Estimate, now: Duration) -> Duration {
        self.usual_delay(units, estimate, now) + self.excess(now)
    }

    /// The same by the rate and the round-trip time alone.
    fn usual_delay(&self, units: u64, estimate: Estimate, now: Duration) -> Duration {
        let queue = (self.under_way() + units) as f64 / self.rate(estimate, now);
        Duration::from_secs_f64(queue).max(estimate.rtt)
    }

    fn excess(&self, now: Duration) -> Duration {
        let (excess, at) = self.excess;
        let age = now.saturating_sub(at).as_secs_f64() / FORGOTTEN.as_secs_f64();
        excess.mul_f64(0.5_f64.powf(age.min(60.0)))
    }

    /// Whether enough is under way to keep the path busy until more can be sent: more would wait here
    /// where it could be sent over another path.
    pub(super) fn is_full(&self, estimate: Estimate, now: Duration) -> bool {
        let unreported = self.rate(estimate, now) * REPORT_DELAY.as_secs_f64();
        self.under_way() > (estimate.window * 2 + unreported as u64).max(MIN_FULL)
    }

    /// Records that `units` are sent. Returns when their arrival is expected.
    pub(super) fn send(
        &mut self,
        block: (StreamId, u64),
        units: u64,
        estimate: Estimate,
        now: Duration,
    ) -> Duration {
        let usual = self.usual_delay(units, estimate, now);
        let delay = usual + self.excess(now);
        if self.under_way() == 0 {
            self.reported = now;
        }
        self.sent += units;
        self.entries.push_back(Entry {
            block: Some(block),
            end: self.sent,
            since: self.reported,
            arrived: self.arrived,
            expected: now + usual + REPORT_DELAY,
            is_full: self.under_way() >= estimate.window / 2,
            late: now + delay + REPORT_DELAY + (delay / 2).min(LONGEST_TOLERANCE) + TOLERANCE,
            is_repeated: false,
        });
        now + delay + REPORT_DELAY
    }

    /// The other side reports that so many units have arrived in all. Returns the blocks that are
    /// complete with these.
    pub(super) fn arrive(
        &mut self,
        units: u64,
        now: Duration,
    ) -> Result<Vec<(StreamId, u64)>, NeverSent> {
        if units > self.sent {
            return Err(NeverSent);
        }
        self.arrived = self.arrived.max(units);
        self.reported = now;
        let mut blocks = Vec::new();
        while self.entries.front().is_some_and(|entry| entry.end <= units)
            && let Some(entry) = self.entries.pop_front()
        {
            self.measure(&entry, now);
            blocks.extend(entry.block);
        }
        Ok(blocks)
    }

    fn measure(&mut self, entry: &Entry, now: Duration) {
        let took = now.saturating_sub(entry.since).as_secs_f64();
        let rate = (self.arrived - entry.arrived) as f64 / took.max(1e-3);
        let is_better = match self.rate {
            Some((best, at)) => rate >= best || entry.is_full && now.saturating_sub(at) > RATE_AGE,
            None => entry.is_full,
        };
        if is_better {
            self.rate = Some((rate, now));
        }
        let (before, excess) = (self.excess(now), now.saturating_sub(entry.expected));
        let excess = match excess > before {
            true => before + (excess - before) / 2,
            false => before - (before - excess) / 8,
        };
        self.excess = (excess, now);
    }

    /// Whether something is late, so that nothing shows that the path delivers.
    pub(super) fn is_late(&self, now: Duration) -> bool {
        self.entries.front().is_some_and(|entry| entry.late < now)
    }

    /// The blocks that are late and were not sent again, the first first.
    pub(super) fn late(&self, now: Duration) -> impl Iterator<Item = (StreamId, u64)> {
        let late = (self.entries.iter()).take_while(move |entry| entry.late < now);
        late.filter(|entry| !entry.is_repeated)
            .filter_map(|entry| entry.block)
    }

    /// Records that a block was sent again, over another path.
    pub(super) fn on_repeated(&mut self, block: (StreamId, u64)) {
        let is = |entry: &&mut Entry| !entry.is_repeated && entry.block == Some(block);
        if let Some(entry) = self.entries.iter_mut().find(is) {
            entry.is_repeated = true;
        }
    }

    /// Nothing that is under way is counted on any more.
    pub(super) fn abandon(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.block = None);
    }

    /// Whether anything is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
