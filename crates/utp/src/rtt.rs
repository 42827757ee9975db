//! Round-trip times, and how long an acknowledgement is waited for (RFC 6298, with the bounds of BEP 29).

use std::time::Duration;

/// The timeout before a round trip was measured (BEP 29).
const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Shortest timeout (BEP 29). Acknowledgements may be delayed by 100 ms, and hosts be busy.
const MIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest timeout, also after several in a row: a peer that comes back is noticed within it.
const MAX_TIMEOUT: Duration = Duration::from_secs(15);

/// What is known of the round-trip time of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct RttEstimator {
    /// Smoothed round-trip time, and its variation; `None` before the first sample.
    smoothed: Option<(Duration, Duration)>,
    /// Timeouts in a row.
    timeouts: u32,
}

impl RttEstimator {
    /// Takes the time between sending a packet once and its acknowledgement.
    pub fn sample(&mut self, rtt: Duration) {
        self.smoothed = Some(match self.smoothed {
            // RFC 6298, 2.2 and 2.3.
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => (
                smoothed * 7 / 8 + rtt / 8,
                variation * 3 / 4 + smoothed.abs_diff(rtt) / 4,
            ),
        });
    }

    /// The smoothed round-trip time, if one was measured.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|(smoothed, _)| smoothed)
    }

    /// How long the next acknowledgement is waited for: twice as long after each timeout in a row.
    pub fn timeout(&self) -> Duration {
        let timeout = match self.smoothed {
            None => INITIAL_TIMEOUT,
            Some((smoothed, variation)) => smoothed + variation * 4,
        };
        let factor = 1u32.checked_shl(self.timeouts).unwrap_or(u32::MAX);
        let backed_off = timeout.max(MIN_TIMEOUT).saturating_mul(factor);
        backed_off.min(MAX_TIMEOUT)
    }

    /// Records that nothing was acknowledged in time. Returns how often that was so in a row.
    pub fn on_timeout(&mut self) -> u32 {
        self.timeouts = self.timeouts.saturating_add(1);
        self.timeouts
    }

    /// Records an acknowledgement, which ends the row of timeouts.
    pub fn on_progress(&mut self) {
        self.timeouts = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_timeout_follows_the_variation_and_doubles_while_nothing_is_acknowledged() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(), ms(1000));
        rtt.sample(ms(400));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(ms(400)), ms(1200)));
        for timeouts in 1..=3 {
            assert_eq!(rtt.on_timeout(), timeouts);
        }
        assert_eq!(rtt.timeout(), ms(9600));
        rtt.on_timeout();
        assert_eq!(rtt.timeout(), MAX_TIMEOUT);
        rtt.on_progress();
        (0..100).for_each(|_| rtt.sample(ms(20)));
        assert_eq!(rtt.timeout(), MIN_TIMEOUT);
    }

    proptest! {
        #[test]
        fn the_timeout_keeps_its_bounds(
            samples in proptest::collection::vec(0..120_000_000u64, 0..20), timeouts in 0..40,
        ) {
            let mut rtt = RttEstimator::default();
            samples.into_iter().for_each(|it| rtt.sample(Duration::from_micros(it)));
            for _ in 0..timeouts {
                let before = rtt.timeout();
                rtt.on_timeout();
                prop_assert!(rtt.timeout() >= before);
            }
            prop_assert!((MIN_TIMEOUT..=MAX_TIMEOUT).contains(&rtt.timeout()));
        }
    }
}
