//! BBRv3 (draft-ietf-ccwg-bbr-05): a model of the path, its bandwidth and its round-trip time, sets
//! the rate and the window. Section numbers are the draft's.
//!
//! It differs from the draft in these points:
//!
//! - Outside of probing, a round with losses lowers the bounds (5.5.10.3) only if more than
//!   [`LOSS_THRESHOLD`] of it was lost, or the round-trip time had grown while cruising. The draft lowers
//!   them at any loss to what was delivered, which in Down is nine tenths of the bandwidth: a path
//!   that loses 0.1 % at random would be idle for a tenth of the time.
//! - Losses of a probe, of Startup or of a round are too many (5.5.10.2) only where they exceed
//!   [`LOSS_THRESHOLD`] by more than chance: of 200 packets on a path that loses 1 % at random, 2 % are
//!   often lost, and the bounds would fall each time.
//! - In Up (5.3.3.6) a window at its long-term bound is a reason to go on only until a queue has
//!   grown: a larger window then brings losses to others and no bandwidth.
//! - A round-trip time close to the shortest confirms it, so that [`BbrState::ProbeRtt`] (5.3.4) is
//!   left to paths with a standing queue. It costs a path of 200 ms 4 % of its time.
//! - In Up (5.3.3.4) a window at its long-term bound is spread over the round trip. At the pacing rate
//!   of Up it would be a burst at more than the bandwidth, of which a short queue loses so much that
//!   the bound falls each time: a path of 194 ms with a queue of 1 ms would be two thirds full.
//! - ProbeRTT leaves 0.78 of the window, not a half, and lasts 120 ms, not 200: subflows over one link
//!   see its queue at the same times, and half of the link would be idle. That is deep and long enough
//!   to see the queue empty. A flow measures its bandwidth anew after it, which leaves more to flows
//!   that have come.
//! - Subflows that share a link (see [`Coupling`](crate::Coupling)) probe and give way as one flow
//!   does: where a queue has grown, each raises the rate in Up by its part of what one flow would, and
//!   it may build a smaller queue; in ProbeRTT it gives up its part. In Up without a queue it probes
//!   like any other, and at once where another gave something up.
//! - Where a hint says what the path carries (see [`resume`](super::resume)), Startup (5.3.1) ends when
//!   that is reached, and what is beyond is left to probing.

mod bandwidth;
mod bounds;
mod losses;
mod pacing;
mod probe;
mod probe_rtt;
mod round;
mod startup;
mod window;

use std::time::{Duration, Instant};

use self::bandwidth::Bandwidth;
use self::bounds::Bounds;
pub(crate) use self::losses::tolerated;
use self::losses::{LossRound, Losses};
use self::pacing::Sending;
use self::probe::Cycle;
use self::probe_rtt::{ProbeRtt, RoundTrip};
use self::round::Rounds;
use self::startup::{FullBandwidth, Startup};
use super::announced::Announced;
use super::delivery::Sample;

/// Pacing gain of Startup: doubles the rate each round (5.6.1).
const STARTUP_GAIN: f64 = 2.773;
/// Pacing gain of Drain (5.3.2).
const DRAIN_GAIN: f64 = 0.5;
/// Pacing gains while probing for bandwidth (5.6.1).
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
/// Windows in bandwidth-delay products: most of the time, in Up, and in ProbeRTT (5.6.1).
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
const PROBE_RTT_WINDOW_GAIN: f64 = 0.78;
/// The part of the estimated bandwidth that is used, so that a queue drains (5.6.2).
const MARGIN: f64 = 0.99;
/// Most of a round that may be lost without a reaction (`BBR.LossThresh`).
const LOSS_THRESHOLD: f64 = 0.02;
/// What a loss leaves (`BBR.Beta`).
const BETA: f64 = 0.7;
/// The part of the longest queue-free window that is left to others (`BBR.Headroom`).
const HEADROOM: f64 = 0.15;
/// What is sent in a round trip of Up at most, in windows. A little more than one, so that the window
/// remains what limits.
const SPREAD: f64 = 1.05;
/// The minimum window, in packets (`BBR.MinPipeCwnd`).
const MIN_WINDOW_PACKETS: u64 = 4;

/// The phases (5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BbrState {
    /// Doubles the rate until the bandwidth is found.
    Startup,
    /// Empties the queue that Startup has built.
    Drain,
    /// Probing for bandwidth: sends less than arrives, to empty the queue.
    Down,
    /// Sends as much as arrives.
    Cruise,
    /// Fills the path, before it is probed.
    Refill,
    /// Sends more than arrives.
    Up,
    /// Sends little, to see the round-trip time of an empty queue.
    ProbeRtt,
}

/// The state of the controller, each concern in a part of its own. Windows are in bytes, bandwidths in
/// bytes per second.
#[derive(Debug, Clone)]
pub(crate) struct Bbr {
    mtu: u64,
    state: BbrState,
    sending: Sending,
    flight: Flight,
    rounds: Rounds,
    bandwidth: Bandwidth,
    rtt: RoundTrip,
    probe_rtt: ProbeRtt,
    startup: Startup,
    full: FullBandwidth,
    bounds: Bounds,
    loss_round: LossRound,
    cycle: Cycle,
    coupled: Coupled,
}

/// What the last acknowledgement left.
#[derive(Debug, Clone, Copy)]
struct Flight {
    /// Bytes delivered so far.
    delivered: u64,
    /// Bytes in flight.
    bytes: u64,
    /// The round-trip time.
    rtt: Duration,
    /// Nothing is acknowledged yet that was sent after an idle time.
    after_idle: bool,
}

/// Subflows that share links with this one.
#[derive(Debug, Clone, Copy)]
struct Coupled {
    /// Subflows that probe as one flow, this one included.
    share: f64,
    /// Bytes per second to send in Up at least, until a queue grows: what others have given up.
    free: f64,
}

/// What another controller knows of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) window: u64,
    /// Bytes per second that arrive; 0 if nothing has.
    pub(crate) bandwidth: f64,
    pub(crate) min_rtt: Option<Duration>,
    /// Bytes delivered so far.
    pub(crate) delivered: u64,
}

impl Bbr {
    /// A controller that begins with Startup from what is `known` of a path that announces
    /// `announced`.
    pub(crate) fn new(
        now: Instant,
        mtu: u16,
        announced: Announced,
        known: Known,
        random: fastrand::Rng,
    ) -> Self {
        let min_rtt = known.min_rtt.unwrap_or(Duration::MAX);
        // Without a measurement or announcement, a round-trip time of 1 ms (5.6.2).
        let rtt = known.min_rtt.or(announced.rtt);
        let rtt = rtt.unwrap_or(Duration::from_millis(1));
        let mut bbr = Self {
            mtu: mtu.into(),
            state: BbrState::Startup,
            sending: Sending::new(known.window),
            flight: Flight {
                delivered: known.delivered,
                bytes: 0,
                rtt: min_rtt,
                after_idle: false,
            },
            rounds: Rounds::new(known.delivered),
            bandwidth: Bandwidth::new(now, known.bandwidth),
            rtt: RoundTrip::new(now, min_rtt),
            probe_rtt: ProbeRtt::default(),
            startup: Startup::new(announced, known.bandwidth),
            full: FullBandwidth::default(),
            bounds: Bounds::default(),
            loss_round: LossRound::new(known.delivered),
            cycle: Cycle::new(now, random),
            coupled: Coupled {
                share: 1.0,
                free: 0.0,
            },
        };
        bbr.sending.rate = bbr.first_pacing_rate(rtt);
        bbr
    }

    /// Bytes that may be in flight.
    pub(crate) fn window(&self) -> u64 {
        self.sending.window
    }

    /// Bytes per second to send.
    pub(crate) fn pacing_rate(&self) -> f64 {
        self.sending.rate
    }

    /// What another controller may begin with: a window that fills the path, with a short queue.
    pub(crate) fn known(&self) -> Known {
        let holds = self.holds(self.bandwidth.used, 1.0);
        Known {
            window: self.sending.window.min(holds).max(self.least()),
            bandwidth: self.bandwidth.used,
            min_rtt: (self.rtt.min < Duration::MAX).then_some(self.rtt.min),
            delivered: self.flight.delivered,
        }
    }

    /// Whether it is in Startup.
    pub(crate) fn is_starting(&self) -> bool {
        self.state == BbrState::Startup
    }

    /// Jumps to `window` bytes, which are spread over the round trip.
    pub(crate) fn jump(&mut self, window: u64) {
        if self.state == BbrState::Startup && self.rtt.min < Duration::MAX {
            self.sending.window = self.sending.window.max(window);
            let rtt = self.rtt.min.as_secs_f64().max(1e-6);
            self.sending.rate = self.sending.rate.max(self.sending.window as f64 / rtt);
        }
    }

    /// Lowers the window to `window` bytes. What is acknowledged of a jump raises it again, and may be
    /// sent at the rate of what is expected.
    pub(crate) fn settle(&mut self, window: u64) {
        self.sending.window = self.sending.window.min(window.max(self.least()));
        if let Some(expected) = self
            .startup
            .expected
            .filter(|_| self.state == BbrState::Startup)
        {
            self.sending.rate = self.sending.rate.max(expected);
        }
    }

    /// Raises the window to `window` bytes in Startup, for a train. What one of them brings says nothing about
    /// the growth of the bandwidth.
    pub(crate) fn train(&mut self, window: u64) {
        if self.state == BbrState::Startup {
            self.full.reset();
        }
        self.grow(window);
    }

    /// Lowers the window to `window` bytes, for the end of a train.
    pub(crate) fn hold(&mut self, window: u64) {
        self.sending.window = self.sending.window.min(window.max(self.least()));
    }

    /// Sets the window to `window` bytes in Startup, over a path that carries `bandwidth` bytes per second.
    pub(crate) fn fill(&mut self, bandwidth: f64, window: u64) {
        if self.state == BbrState::Startup {
            self.startup.expected = Some(bandwidth);
            self.sending.window = window.max(self.least());
            let rtt = self.rtt.min.as_secs_f64().max(1e-6);
            self.sending.rate = self.sending.window as f64 / rtt;
        }
    }

    /// Raises the window to `window` bytes in Startup.
    pub(crate) fn grow(&mut self, window: u64) {
        if self.state == BbrState::Startup {
            self.sending.window = self.sending.window.max(window);
        }
    }

    /// Sets the bandwidth, in bytes per second, with which Startup ends.
    pub(crate) fn expect(&mut self, bandwidth: Option<f64>) {
        self.startup.expected = bandwidth;
    }

    /// Ends Startup with a window of `window` bytes, after a jump that was too much for the path.
    pub(crate) fn retreat(&mut self, window: u64) {
        if self.state == BbrState::Startup {
            self.full.reach();
        }
        self.sending.window = self.sending.window.min(window.max(self.least()));
    }

    pub(crate) fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu.into();
        self.sending.window = self.sending.window.max(self.least());
    }

    /// From now on `share` subflows probe as one flow, this one included.
    pub(crate) fn couple(&mut self, share: u32) {
        self.coupled.share = f64::from(share.max(1));
    }

    /// Probes now for `rate` bytes per second, since others have given something up.
    pub(crate) fn take(&mut self, rate: f64) {
        match self.state {
            BbrState::Down | BbrState::Cruise | BbrState::Refill if rate > self.bandwidth.used => {
                self.coupled.free = rate;
                self.start_probe();
            }
            BbrState::Up => self.coupled.free = self.coupled.free.max(rate),
            _ => return,
        }
        self.set_pacing_rate(self.gain());
    }

    /// Notes that a packet is sent after an idle time (5.4.1).
    pub(crate) fn restarted(&mut self, now: Instant) {
        self.flight.after_idle = true;
        self.bandwidth.aggregation.restart(now);
        match self.state {
            BbrState::Down | BbrState::Cruise | BbrState::Refill | BbrState::Up => {
                self.set_pacing_rate(1.0)
            }
            BbrState::ProbeRtt => self.end_probe_rtt_if_done(now),
            BbrState::Startup | BbrState::Drain => {}
        }
    }

    /// Notes that the window kept a packet from being sent.
    pub(crate) fn window_limited(&mut self) {
        self.rounds.limited_now = true;
    }

    /// Handles an acknowledgement; `delivered` bytes are delivered altogether (5.2.3).
    pub(crate) fn acked(&mut self, now: Instant, sample: &Sample, delivered: u64) {
        self.flight.delivered = delivered;
        self.flight.bytes = sample.in_flight;
        self.flight.rtt = sample.rtt;
        if self.rtt.min == Duration::MAX {
            // Until now the round-trip time of the handshake, or an assumed one.
            self.sending.rate = self.first_pacing_rate(sample.rtt);
        }
        self.rounds.update(sample, delivered);
        if self.rounds.starts {
            self.cycle.count_round();
        }
        self.update_latest(sample);
        if let Some(rate) = sample.rate
            && (rate >= self.bandwidth.max.get() || !sample.app_limited)
        {
            self.bandwidth.max.update(rate);
        }
        if self.loss_round.starts {
            self.lower_bounds();
        }
        self.bandwidth.aggregation.update(
            now,
            self.bandwidth.used,
            sample.acked,
            self.sending.window,
            (self.rounds.count, self.full.reached),
        );
        self.check_full_bandwidth(sample);
        self.check_startup_done(sample);
        self.check_drain_done(now);
        self.update_probing(now, sample);
        self.rtt.update(now, sample.rtt);
        self.check_probe_rtt(now, sample);
        if self.loss_round.starts {
            self.loss_round.bandwidth = sample.rate.unwrap_or_default();
            self.loss_round.delivered = sample.delivered;
            self.loss_round.losses = Losses {
                before: delivered,
                ..Losses::default()
            };
        }
        self.bandwidth.used = self.bandwidth.max.get().min(self.bounds.short_bw);
        self.set_pacing_rate(self.gain());
        self.set_window(sample);
    }

    fn enter(&mut self, state: BbrState) {
        self.state = state;
        if state == BbrState::Cruise {
            self.cycle.cruise_round = self.rounds.count;
        }
        (self.sending.gain, self.sending.window_gain) = match state {
            BbrState::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            BbrState::Drain => (DRAIN_GAIN, WINDOW_GAIN),
            BbrState::Down => (DOWN_GAIN, WINDOW_GAIN),
            BbrState::Cruise | BbrState::Refill => (1.0, WINDOW_GAIN),
            BbrState::Up => (UP_GAIN, UP_WINDOW_GAIN),
            BbrState::ProbeRtt => (1.0, self.probe_rtt_gain()),
        };
    }
}
