//! The bandwidth of the path, and how much more than that is acknowledged at once.

use std::time::Instant;

/// The bandwidth of the path, in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bandwidth {
    pub(super) max: MaxBandwidth,
    /// What is used of it: losses may have lowered it until the next probe.
    pub(super) used: f64,
    pub(super) aggregation: Aggregation,
}

impl Bandwidth {
    pub(super) fn new(now: Instant, known: f64) -> Self {
        Self {
            max: MaxBandwidth::new(known),
            used: known,
            aggregation: Aggregation::new(now),
        }
    }
}

/// The highest bandwidth of the last two cycles of probing (5.5.5).
#[derive(Debug, Clone, Copy)]
pub(super) struct MaxBandwidth {
    last: f64,
    present: f64,
}

impl MaxBandwidth {
    pub(super) fn new(bandwidth: f64) -> Self {
        Self {
            last: 0.0,
            present: bandwidth,
        }
    }

    pub(super) fn get(&self) -> f64 {
        self.last.max(self.present)
    }

    pub(super) fn update(&mut self, rate: f64) {
        self.present = self.present.max(rate);
    }

    /// Begins another cycle, unless the present one has no sample.
    pub(super) fn advance(&mut self) {
        if self.present > 0.0 {
            self.last = self.present;
            self.present = 0.0;
        }
    }
}

/// How many more bytes than expected are acknowledged together (5.5.9).
#[derive(Debug, Clone, Copy)]
pub(super) struct Aggregation {
    since: Instant,
    acked: u64,
    /// The most of the last rounds and of the present ones.
    last: u64,
    present: u64,
    from: u64,
}

impl Aggregation {
    /// Rounds for which a maximum counts at least.
    const MIN_FILTER_ROUNDS: u64 = 5;

    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            acked: 0,
            last: 0,
            present: 0,
            from: 0,
        }
    }

    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
        self.acked = 0;
    }

    pub(super) fn extra(&self) -> u64 {
        self.last.max(self.present)
    }

    /// Adds `acked` bytes to what was expected at `bandwidth`, in a round; `full`: the bandwidth is
    /// known, so that the extra counts for several rounds.
    pub(super) fn update(
        &mut self,
        now: Instant,
        bandwidth: f64,
        acked: u64,
        window: u64,
        (round, full): (u64, bool),
    ) {
        let since = now.saturating_duration_since(self.since);
        let mut expected = (bandwidth * since.as_secs_f64()) as u64;
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked;
        let extra = self.acked.saturating_sub(expected).min(window);
        if !full {
            (self.last, self.present) = (0, extra);
            return;
        }
        if round >= self.from + Self::MIN_FILTER_ROUNDS {
            (self.from, self.last, self.present) = (round, self.present, 0);
        }
        self.present = self.present.max(extra);
    }
}
