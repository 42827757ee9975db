//! The round trip of a subflow (RFC 9002, 5).

use std::time::Duration;

/// The round trip that is assumed until one is measured (RFC 9002, 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The precision of timers (RFC 9002, 6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);

/// The round trip, as far as measured.
#[derive(Debug, Clone)]
pub(super) struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    measured: bool,
}

impl Rtt {
    /// `rtt`: as measured by other means.
    pub(super) fn new(rtt: Option<Duration>) -> Self {
        let initial = rtt.unwrap_or(INITIAL_RTT);
        Self {
            latest: initial,
            smoothed: initial,
            variance: initial / 2,
            min: initial,
            measured: false,
        }
    }

    /// Whether the subflow itself measured a round trip.
    pub(super) fn is_measured(&self) -> bool {
        self.measured
    }

    pub(super) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    pub(super) fn min(&self) -> Duration {
        self.min
    }

    /// Takes a round trip of `sample`, of which the sink waited `delay` before it answered.
    pub(super) fn update(&mut self, sample: Duration, delay: Duration) {
        if !self.measured {
            self.measured = true;
            // The delay of the first answer is not known to be within the round trip.
            self.min = sample;
            self.latest = sample;
            self.smoothed = sample;
            self.variance = sample / 2;
            return;
        }
        self.min = self.min.min(sample);
        let without = sample.saturating_sub(delay);
        self.latest = if without >= self.min { without } else { sample };
        let difference = self.smoothed.abs_diff(self.latest);
        self.variance = (self.variance * 3 + difference) / 4;
        self.smoothed = (self.smoothed * 7 + self.latest) / 8;
    }

    /// How much earlier than an acknowledged packet a lost one was sent: a round trip and `eighths`
    /// of it.
    pub(super) fn loss_delay(&self, eighths: u32) -> Duration {
        let longest = self.smoothed.max(self.latest);
        (longest + longest * eighths / 8).max(GRANULARITY)
    }

    /// The time in which a packet is acknowledged, if the sink waits `interval` (RFC 9002, 6.2.1).
    pub(super) fn probe_timeout(&self, interval: Duration) -> Duration {
        self.smoothed + (self.variance * 4).max(GRANULARITY) + interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_smoothed_without_the_delay_of_the_answer() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::new(None);
        assert_eq!(rtt.probe_timeout(ms(0)), ms(999));
        rtt.update(ms(100), ms(50));
        assert_eq!(
            (rtt.smoothed(), rtt.variance, rtt.min()),
            (ms(100), ms(50), ms(100))
        );
        rtt.update(ms(140), ms(32));
        assert_eq!((rtt.latest, rtt.smoothed()), (ms(108), ms(101)));
        // A delay that cannot be true is not believed.
        rtt.update(ms(110), ms(90));
        assert_eq!((rtt.latest, rtt.min()), (ms(110), ms(100)));
        assert_eq!(rtt.loss_delay(1), ms(110) * 9 / 8);
    }
}
