//! What is known of a path.

use std::time::Duration;

/// The round-trip time and congestion window assumed until they are known.
pub(super) const INITIAL_ESTIMATE: Estimate = Estimate {
    rtt: Duration::from_millis(100),
    window: 14_720,
    loss: 0,
};
/// Round trips after which a frame that was lost has been delivered.
const REPAIR_ROUND_TRIPS: u32 = 10;

/// What is known of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window, in bytes.
    pub window: u64,
    /// Packets of a thousand that were lost of late.
    pub loss: u16,
}

impl Estimate {
    /// The rate that the window allows, in bytes per second.
    pub(super) fn rate(self) -> f64 {
        self.window as f64 / self.rtt.as_secs_f64().max(1e-6)
    }

    /// How long a frame without data takes, on average of those that are lost and sent again.
    pub(super) fn least_delay(self) -> Duration {
        self.rtt + self.rtt * u32::from(self.loss) * REPAIR_ROUND_TRIPS / 1000
    }
}
