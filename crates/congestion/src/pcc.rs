//! Performance-oriented congestion control (PCC): sends at one rate for a monitor interval, and
//! learns from what became of its packets.

use std::fmt;
use std::time::{Duration, Instant};

use super::announced::{Announced, INITIAL_RTT};
use super::control::RateControl;
use super::monitor::{Monitor, Outcome};

/// Fewest packets per second.
const MIN_RATE: f64 = 10.0;
/// Most bytes per second, so that windows stay far from overflow.
const MAX_RATE: f64 = 1e12;
/// Round trips that a window holds at the present rate. A rate is not to be limited by it while a
/// queue grows.
const WINDOW: f64 = 2.0;
/// The window holds this many packets more.
const MORE_PACKETS: f64 = 10.0;

/// Learns the rate.
pub(crate) trait Learner: fmt::Debug + Send {
    /// What an interval is for; nothing by default.
    type Step: fmt::Debug + Default + Send;

    /// Plans the next interval.
    fn next(&mut self, rtt: Duration) -> Plan<Self::Step>;

    /// Learns from an interval. Returns whether the present one is no longer wanted.
    fn judge(&mut self, outcome: &Outcome<Self::Step>) -> bool;

    /// All packets in flight are lost.
    fn restart(&mut self);

    /// The name of the algorithm.
    fn name(&self) -> &'static str;
}

/// An interval to come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<S> {
    pub(crate) step: S,
    /// Bytes per second.
    pub(crate) rate: f64,
    /// Round trips.
    pub(crate) length: f64,
}

/// Rate control by a learner.
#[derive(Debug)]
pub(crate) struct Pcc<L: Learner> {
    packet: f64,
    learner: L,
    monitor: Monitor<L::Step>,
    rate: f64,
    /// The round-trip time until packets measure it.
    first_rtt: Duration,
}

impl<L: Learner> Pcc<L> {
    /// Rate control for a subflow whose full packets have `packet` bytes, over a path that
    /// announces `announced`.
    pub(crate) fn new(packet: u64, announced: Announced, learner: L) -> Self {
        let rtt = announced.rtt.unwrap_or(INITIAL_RTT);
        let rate = announced.initial_window(packet) as f64 / rtt.as_secs_f64().max(1e-6);
        let rate = bounded(rate, packet as f64);
        Self {
            packet: packet as f64,
            monitor: Monitor::new(L::Step::default(), rate),
            rate,
            first_rtt: rtt,
            learner,
        }
    }

    fn begin(&mut self, now: Instant) {
        let Some(rtt) = self.monitor.rtt() else {
            return;
        };
        let plan = self.learner.next(rtt);
        self.rate = bounded(plan.rate, self.packet);
        let length = rtt.mul_f64(plan.length);
        self.monitor.begin(now, plan.step, self.rate, length);
    }
}

/// A usable rate.
pub(crate) fn bounded(rate: f64, packet: f64) -> f64 {
    rate.max(MIN_RATE * packet).min(MAX_RATE)
}

impl<L: Learner> RateControl for Pcc<L> {
    fn sent(&mut self, now: Instant, number: u64, bytes: u64) {
        self.monitor.sent(now, number, bytes);
    }

    fn acked(&mut self, _now: Instant, number: u64, sent: Instant, bytes: u64) {
        self.monitor.acked(number, sent, bytes);
    }

    fn lost(&mut self, _now: Instant, number: u64, _sent: Instant, bytes: u64) {
        self.monitor.lost(number, bytes);
    }

    fn end(&mut self, now: Instant, _in_flight: u64, app_limited: bool) {
        self.monitor.end(now, app_limited);
        let mut over = self.monitor.is_over(now);
        while let Some(outcome) = self.monitor.finished() {
            over |= self.learner.judge(&outcome);
        }
        if over {
            self.begin(now);
        }
    }

    fn timed_out(&mut self, now: Instant) {
        self.monitor.forget();
        self.learner.restart();
        self.begin(now);
    }

    fn rate(&self) -> f64 {
        self.rate
    }

    fn window(&self) -> u64 {
        let rtt = self.monitor.rtt().unwrap_or(self.first_rtt);
        let holds = WINDOW * self.rate * rtt.as_secs_f64();
        (holds + MORE_PACKETS * self.packet) as u64
    }

    fn name(&self) -> &'static str {
        self.learner.name()
    }
}
