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

mod losses;
mod model;
mod probe;
mod window;

use std::time::{Duration, Instant};

pub(crate) use self::losses::tolerated;
use self::losses::{Losses, Undo};
use self::model::{Aggregation, EXPECTED, MaxBandwidth};
use super::announced::{Announced, default_window};
use super::delivery::Sample;
use super::round::grown;

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

/// The state of the controller. Windows are in bytes, bandwidths in bytes per second.
#[derive(Debug, Clone)]
pub(crate) struct Bbr {
    mtu: u64,
    /// Bytes per second that a hint makes one expect.
    expected: Option<f64>,
    state: BbrState,
    window: u64,
    pacing_rate: f64,
    pacing_gain: f64,
    window_gain: f64,

    round: u64,
    round_start: bool,
    /// Bytes delivered when the present round ends.
    round_end: u64,
    /// Bytes delivered, as the last acknowledgement left it.
    delivered: u64,
    in_flight: u64,
    last_rtt: Duration,
    /// The window was full at some time of the last round, or of the present one.
    limited: bool,
    limited_now: bool,

    max_bw: MaxBandwidth,
    bw: f64,
    aggregation: Aggregation,
    min_rtt: Duration,
    min_rtt_at: Instant,
    probe_rtt_min: Duration,
    probe_rtt_min_at: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<Instant>,
    probe_rtt_round_done: bool,
    window_before_probe_rtt: u64,
    idle_restart: bool,

    full_bw_reached: bool,
    /// Startup has ended with what was expected: there may be more.
    is_as_expected: bool,
    full_bw_now: bool,
    full_bw: f64,
    full_bw_rounds: u32,
    drain_round: u64,
    /// When Cruise began.
    cruise_round: u64,

    /// Bounds by recent losses, until the next probe.
    short_bw: f64,
    short_window: u64,
    /// Most in flight that the path takes without many losses.
    long_window: u64,
    latest_bw: f64,
    latest_delivered: u64,
    loss_round_start: bool,
    loss_round_end: u64,
    losses: Losses,
    undo: Option<Undo>,

    /// Losses show how much the path takes.
    probing: bool,
    /// The last packets of a probe are being acknowledged.
    stopping: bool,
    cycle_at: Instant,
    probe_wait: Duration,
    rounds_since_probe: u64,
    most_rounds: u64,
    up_rounds: u32,
    up_acked: u64,
    /// Bytes to be acknowledged for each by which the long-term window grows.
    up_cost: u64,
    /// Subflows that probe as one flow, this one included.
    share: f64,
    /// Bytes per second to send in Up at least, until a queue grows: what others have given up.
    free: f64,
    random: fastrand::Rng,
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
            // More than that has arrived: it is of no use.
            expected: (announced.hint().map(|hint| hint.bandwidth))
                .filter(|expected| known.bandwidth < EXPECTED * expected),
            state: BbrState::Startup,
            window: known.window,
            pacing_rate: 0.0,
            pacing_gain: STARTUP_GAIN,
            window_gain: WINDOW_GAIN,
            round: 0,
            round_start: false,
            round_end: known.delivered,
            delivered: known.delivered,
            in_flight: 0,
            last_rtt: min_rtt,
            limited: false,
            limited_now: false,
            max_bw: MaxBandwidth::new(known.bandwidth),
            bw: known.bandwidth,
            aggregation: Aggregation::new(now),
            min_rtt,
            min_rtt_at: now,
            probe_rtt_min: min_rtt,
            probe_rtt_min_at: now,
            probe_rtt_expired: false,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            window_before_probe_rtt: 0,
            idle_restart: false,
            full_bw_reached: false,
            is_as_expected: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_rounds: 0,
            drain_round: 0,
            cruise_round: 0,
            short_bw: f64::INFINITY,
            short_window: u64::MAX,
            long_window: u64::MAX,
            latest_bw: 0.0,
            latest_delivered: 0,
            loss_round_start: false,
            loss_round_end: known.delivered,
            losses: Losses {
                before: known.delivered,
                ..Losses::default()
            },
            undo: None,
            probing: false,
            stopping: false,
            cycle_at: now,
            probe_wait: Duration::ZERO,
            rounds_since_probe: 0,
            most_rounds: 0,
            up_rounds: 0,
            up_acked: 0,
            up_cost: u64::MAX,
            share: 1.0,
            free: 0.0,
            random,
        };
        bbr.pacing_rate = bbr.first_pacing_rate(rtt);
        bbr
    }

    /// The pacing rate for the window, when `rtt` is the round-trip time (5.6.2). Before anything is
    /// delivered, a first window that an announcement allows is spread over the round trip; the
    /// default one is sent faster, as the draft has it.
    fn first_pacing_rate(&self, rtt: Duration) -> f64 {
        let rtt = rtt.as_secs_f64().max(1e-6);
        let nominal = self.window as f64 / rtt;
        if self.bw == 0.0 {
            let default = default_window(self.mtu).min(self.window) as f64 / rtt;
            return nominal.max(self.startup_gain(default) * default);
        }
        let bandwidth = self.bw.max(nominal);
        self.startup_gain(bandwidth) * bandwidth
    }

    /// Bytes that may be in flight.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Bytes per second to send.
    pub(crate) fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// What another controller may begin with: a window that fills the path, with a short queue.
    pub(crate) fn known(&self) -> Known {
        let holds = self.holds(self.bw, 1.0);
        Known {
            window: self.window.min(holds).max(self.least()),
            bandwidth: self.bw,
            min_rtt: (self.min_rtt < Duration::MAX).then_some(self.min_rtt),
            delivered: self.delivered,
        }
    }

    /// Whether it is in Startup.
    pub(crate) fn is_starting(&self) -> bool {
        self.state == BbrState::Startup
    }

    /// Jumps to `window` bytes, which are spread over the round trip.
    pub(crate) fn jump(&mut self, window: u64) {
        if self.state == BbrState::Startup && self.min_rtt < Duration::MAX {
            self.window = self.window.max(window);
            let rtt = self.min_rtt.as_secs_f64().max(1e-6);
            self.pacing_rate = self.pacing_rate.max(self.window as f64 / rtt);
        }
    }

    /// Lowers the window to `window` bytes. What is acknowledged of a jump raises it again, and may be
    /// sent at the rate of what is expected.
    pub(crate) fn settle(&mut self, window: u64) {
        self.window = self.window.min(window.max(self.least()));
        if let Some(expected) = self.expected.filter(|_| self.state == BbrState::Startup) {
            self.pacing_rate = self.pacing_rate.max(expected);
        }
    }

    /// Raises the window to `window` bytes in Startup.
    pub(crate) fn grow(&mut self, window: u64) {
        if self.state == BbrState::Startup {
            self.window = self.window.max(window);
        }
    }

    /// Ends Startup with a window of `window` bytes, after a jump that was too much for the path.
    pub(crate) fn retreat(&mut self, window: u64) {
        if self.state == BbrState::Startup {
            self.full_bw_reached = true;
            self.full_bw_now = true;
        }
        self.window = self.window.min(window.max(self.least()));
    }

    pub(crate) fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu.into();
        self.window = self.window.max(self.least());
    }

    /// From now on `share` subflows probe as one flow, this one included.
    pub(crate) fn couple(&mut self, share: u32) {
        self.share = f64::from(share.max(1));
    }

    /// Probes now for `rate` bytes per second, since others have given something up.
    pub(crate) fn take(&mut self, rate: f64) {
        match self.state {
            BbrState::Down | BbrState::Cruise | BbrState::Refill if rate > self.bw => {
                self.free = rate;
                self.start_probe();
            }
            BbrState::Up => self.free = self.free.max(rate),
            _ => return,
        }
        self.set_pacing_rate(self.gain());
    }

    /// Notes that a packet is sent after an idle time (5.4.1).
    pub(crate) fn restarted(&mut self, now: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
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
        self.limited_now = true;
    }

    /// Handles an acknowledgement; `delivered` bytes are delivered altogether (5.2.3).
    pub(crate) fn acked(&mut self, now: Instant, sample: &Sample, delivered: u64) {
        self.delivered = delivered;
        self.in_flight = sample.in_flight;
        self.last_rtt = sample.rtt;
        if self.min_rtt == Duration::MAX {
            // Until now the round-trip time of the handshake, or an assumed one.
            self.pacing_rate = self.first_pacing_rate(sample.rtt);
        }
        self.update_round(sample);
        self.update_latest(sample);
        if let Some(rate) = sample.rate
            && (rate >= self.max_bw.get() || !sample.app_limited)
        {
            self.max_bw.update(rate);
        }
        if self.loss_round_start {
            self.lower_bounds();
        }
        self.aggregation.update(
            now,
            self.bw,
            sample.acked,
            self.window,
            (self.round, self.full_bw_reached),
        );
        self.check_full_bandwidth(sample);
        self.check_startup_done(sample);
        self.check_drain_done(now);
        self.update_probing(now, sample);
        self.update_min_rtt(now, sample);
        self.check_probe_rtt(now, sample);
        if self.loss_round_start {
            self.latest_bw = sample.rate.unwrap_or_default();
            self.latest_delivered = sample.delivered;
            self.losses = Losses {
                before: delivered,
                ..Losses::default()
            };
        }
        self.bw = self.max_bw.get().min(self.short_bw);
        self.set_pacing_rate(self.gain());
        self.set_window(sample);
    }

    fn update_round(&mut self, sample: &Sample) {
        self.round_start = sample.prior >= self.round_end;
        if self.round_start {
            self.start_round();
            self.round += 1;
            self.rounds_since_probe += 1;
            self.limited = std::mem::take(&mut self.limited_now);
        }
    }

    fn start_round(&mut self) {
        self.round_end = self.delivered;
    }

    fn enter(&mut self, state: BbrState) {
        self.state = state;
        if state == BbrState::Cruise {
            self.cruise_round = self.round;
        }
        (self.pacing_gain, self.window_gain) = match state {
            BbrState::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            BbrState::Drain => (DRAIN_GAIN, WINDOW_GAIN),
            BbrState::Down => (DOWN_GAIN, WINDOW_GAIN),
            BbrState::Cruise | BbrState::Refill => (1.0, WINDOW_GAIN),
            BbrState::Up => (UP_GAIN, UP_WINDOW_GAIN),
            BbrState::ProbeRtt => (1.0, self.probe_rtt_gain()),
        };
    }

    /// The window in ProbeRTT, in bandwidth-delay products. Coupled subflows see the queue at the same
    /// times, so each gives way by its share of what one flow would.
    fn probe_rtt_gain(&self) -> f64 {
        1.0 - (1.0 - PROBE_RTT_WINDOW_GAIN) / self.share
    }

    fn gain(&self) -> f64 {
        match self.state {
            BbrState::Startup => self.startup_gain(self.bw),
            BbrState::Up if grown(self.min_rtt, self.last_rtt) => {
                1.0 + (UP_GAIN - 1.0) / self.share
            }
            BbrState::Up if self.bw > 0.0 => self.pacing_gain.max(self.free / self.bw),
            _ => self.pacing_gain,
        }
    }

    /// The gain of Startup from `bandwidth` on: full up to what is expected, and none beyond it.
    fn startup_gain(&self, bandwidth: f64) -> f64 {
        match self.expected {
            Some(expected) if bandwidth > 0.0 => (expected / bandwidth).clamp(1.0, STARTUP_GAIN),
            _ => STARTUP_GAIN,
        }
    }

    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * MARGIN;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate.max(self.mtu as f64);
        }
    }
}
