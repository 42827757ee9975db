//! A rate control of tests.

use std::time::{Duration, Instant};

use hawser_congestion::RateControl;

/// Sends at a fixed share of the path's rate, with a window of two round trips.
#[derive(Debug)]
pub(super) struct Fixed {
    rate: f64,
    window: u64,
    in_flight: u64,
}

/// What is left to others of the path, so that its queue stays empty.
const SHARE: f64 = 0.99;

impl Fixed {
    pub(super) fn new(rate: f64, rtt: Duration) -> Self {
        let window = rate * (rtt + Duration::from_millis(60)).as_secs_f64() * 2.0;
        Self {
            rate: rate * SHARE,
            window: (window as u64).max(20_000),
            in_flight: 0,
        }
    }
}

impl RateControl for Fixed {
    fn sent(&mut self, _: Instant, _: u64, bytes: u64) {
        self.in_flight += bytes;
        assert!(self.in_flight <= self.window, "beyond the window");
    }

    fn acked(&mut self, _: Instant, _: u64, _: Instant, bytes: u64) {
        self.in_flight -= bytes;
    }

    fn lost(&mut self, _: Instant, _: u64, _: Instant, bytes: u64) {
        self.in_flight -= bytes;
    }

    fn end(&mut self, _: Instant, in_flight: u64, _: bool) {
        assert_eq!(in_flight, self.in_flight);
    }

    fn timed_out(&mut self, _: Instant) {
        self.in_flight = 0;
    }

    fn rate(&self) -> f64 {
        self.rate
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn name(&self) -> &'static str {
        "fixed"
    }
}
