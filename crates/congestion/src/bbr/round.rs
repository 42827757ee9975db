//! Rounds: from the sending of a packet to its acknowledgement.

use crate::delivery::Sample;

/// The rounds of a subflow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// The last acknowledgement began one.
    pub(super) starts: bool,
    /// Bytes delivered when the present round ends.
    end: u64,
    /// The window was full at some time of the last round, or of the present one.
    pub(super) limited: bool,
    pub(super) limited_now: bool,
}

impl Rounds {
    /// Rounds that begin once `delivered` bytes are delivered.
    pub(super) fn new(delivered: u64) -> Self {
        Self {
            count: 0,
            starts: false,
            end: delivered,
            limited: false,
            limited_now: false,
        }
    }

    /// Handles an acknowledgement, after which `delivered` bytes are delivered.
    pub(super) fn update(&mut self, sample: &Sample, delivered: u64) {
        self.starts = sample.prior >= self.end;
        if self.starts {
            self.start(delivered);
            self.count += 1;
            self.limited = std::mem::take(&mut self.limited_now);
        }
    }

    /// Begins a round, which ends with a packet that is sent after `delivered` bytes were delivered.
    pub(super) fn start(&mut self, delivered: u64) {
        self.end = delivered;
    }
}
