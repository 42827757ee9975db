//! The rates of a torrent over time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::view::Rates;

/// Most samples that are kept: five minutes of seconds.
pub const MAX_SAMPLES: usize = 300;

/// Least time between two samples, less than a tick of the owner by what that may be early.
const MIN_INTERVAL: Duration = Duration::from_millis(500);

/// The rates of a torrent at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When: since any beginning in [`History`], and before now where it is shown.
    pub at: Duration,
    /// Rate of blocks received, in bit/s.
    pub down: u64,
    /// Rate of blocks sent, in bit/s.
    pub up: u64,
}

/// The rates of a torrent in its present run, one sample a second, of which the latest are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(VecDeque<Sample>);

impl History {
    /// Takes a sample, unless the last one was taken just before.
    pub fn observe(&mut self, rates: Rates, now: Duration) {
        let last = self.0.back();
        if last.is_some_and(|last| now < last.at.saturating_add(MIN_INTERVAL)) {
            return;
        }
        if self.0.len() >= MAX_SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(Sample {
            at: now,
            down: rates.down,
            up: rates.up,
        });
    }

    /// The samples from the oldest on, each with its age.
    pub fn samples(&self, now: Duration) -> Vec<Sample> {
        let samples = self.0.iter().map(|sample| Sample {
            at: now.saturating_sub(sample.at),
            ..*sample
        });
        samples.collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_latest_samples_are_kept_in_order(steps in proptest::collection::vec(0u64..3000, 0..700)) {
            let (mut history, mut now, mut taken) = (History::default(), Duration::ZERO, Vec::new());
            for (number, step) in (0u64..).zip(steps) {
                now += Duration::from_millis(step);
                let rates = Rates { down: number, up: 2 * number, ..Rates::default() };
                history.observe(rates, now);
                if taken.last().is_none_or(|(_, at)| now - *at >= MIN_INTERVAL) {
                    taken.push((number, now));
                }
            }
            let kept = &taken[taken.len().saturating_sub(MAX_SAMPLES)..];
            let expected: Vec<_> = kept.iter().map(|(number, at)| (now - *at, *number, 2 * number)).collect();
            let samples = history.samples(now);
            let shown: Vec<_> = samples.iter().map(|it| (it.at, it.down, it.up)).collect();
            prop_assert_eq!(shown, expected);
        }
    }
}
