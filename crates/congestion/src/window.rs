//! CUBIC (RFC 9438) or BBRv3 (draft-ietf-ccwg-bbr-05), as the path's losses suggest.
//!
//! CUBIC has three additions that fill a long path with a short queue as well as any other:
//!
//! - Where ASes announce the path's bandwidth, slow start grows gently once the window reaches the
//!   announced bandwidth-delay product: doubling beyond it would fill the queue and lose up to a
//!   window of packets.
//! - Where they announce its latency too, the first window is a part of that product, at most 64
//!   packets, so that a slower path is full a round trip earlier.
//! - After a loss the window is cut to what the path holds without its queue, within bounds (the
//!   adaptive backoff of H-TCP, draft-leith-tcp-htcp-06, 3.2). CUBIC's 0.7 idles a link whose queue
//!   is shorter than 0.43 of the round trip.
//!
//! A loss without a queue means congestion to CUBIC, which then needs many round trips to fill a
//! long path again. BBR takes over there; see [`choice`](super::choice).

use std::time::{Duration, Instant};

use super::announced::{Announced, INITIAL_RTT};
use super::bbr::{Bbr, Known};
use super::carried::Carried;
use super::choice::{Congestion, CongestionState, Evidence};
use super::control::RateControl;
use super::cubic::Cubic;
use super::delivery::{Delivery, Sample};
use super::resume::{Order, Resume};
use super::seen::Seen;

/// CUBIC, BBR, or the one of them that suits the path.
///
/// A QUIC connection calls its own methods, which follow RFC 9002; a subflow uses it as a
/// [`RateControl`].
#[derive(Debug, Clone)]
pub struct WindowControl {
    mtu: u16,
    announced: Announced,
    setting: Congestion,
    state: CongestionState,
    /// At work while `bbr` is `None`; it measures round-trip times in any case.
    cubic: Cubic,
    bbr: Option<Bbr>,
    /// CUBIC's state before the last loss, restored if that loss turns out to be spurious.
    before: Option<Cubic>,
    delivery: Delivery,
    evidence: Evidence,
    resume: Resume,
    /// The last delivery rate that shows what the path carries, in bytes per second.
    bandwidth: f64,
    random: fastrand::Rng,
    /// For [`RateControl`]: whether there was nothing to send at the last acknowledgement, and when
    /// the last packet was sent that was lost since.
    app_limited: bool,
    lost: Option<Instant>,
}

impl WindowControl {
    /// Begins with packets of `mtu` bytes over a path that announces `announced`. `seed` determines
    /// all random choices.
    pub fn new(
        now: Instant,
        mtu: u16,
        announced: Announced,
        setting: Congestion,
        seed: u64,
    ) -> Self {
        let mut control = Self {
            mtu,
            announced,
            setting,
            state: setting.begins(),
            cubic: Cubic::new(mtu, announced),
            bbr: None,
            before: None,
            delivery: Delivery::default(),
            evidence: Evidence::default(),
            resume: Resume::new(announced.hint()),
            bandwidth: 0.0,
            random: fastrand::Rng::with_seed(seed),
            app_limited: false,
            lost: None,
        };
        if setting == Congestion::Bbr {
            control.start_bbr(now);
        }
        control
    }

    /// The algorithm at work, with the reason.
    pub fn state(&self) -> CongestionState {
        self.state
    }

    /// Bytes that may be in flight.
    pub fn window(&self) -> u64 {
        self.bbr
            .as_ref()
            .map_or_else(|| self.cubic.window(), Bbr::window)
    }

    /// The first window, in bytes.
    pub fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    /// Bytes per second to send; `None` before the first round-trip time, unless one is announced.
    pub fn pacing_rate(&self) -> Option<f64> {
        if let Some(rate) = self.resume.pace() {
            return Some(rate);
        }
        match &self.bbr {
            Some(bbr) => Some(bbr.pacing_rate()),
            None => self.cubic.pacing_rate(),
        }
    }

    /// Records the sending of packet `number`.
    pub fn on_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        if let Some(bbr) = &mut self.bbr
            && self.delivery.is_idle()
        {
            bbr.restarted(now);
        }
        self.delivery.sent(now, bytes, number);
    }

    /// Records that the window kept a packet from being sent.
    pub fn on_window_limited(&mut self) {
        if let Some(bbr) = &mut self.bbr {
            bbr.window_limited();
        }
    }

    /// Handles the acknowledgement of packet `number` of `bytes`, sent at `sent`.
    pub fn on_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
    ) {
        self.delivery.acked(now, sent, bytes, number);
        match self.bbr {
            Some(_) => self.cubic.observe(now, sent, bytes),
            None => self.cubic.acked(now, sent, bytes, app_limited),
        }
    }

    /// Ends an acknowledgement, after which `in_flight` bytes are in flight.
    pub fn on_end(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        let min = self.cubic.rounds().min;
        let Some(sample) = self.delivery.end(now, in_flight, app_limited, min) else {
            return;
        };
        let change = self.evidence.acked(now, sample.rtt, self.state.algorithm);
        if let Some(state) = change.filter(|_| self.setting == Congestion::Auto) {
            self.change(now, state);
        }
        if let Some(rate) = sample.rate
            && (rate >= self.bandwidth || !sample.app_limited)
        {
            self.bandwidth = rate;
        }
        if let Some(bbr) = &mut self.bbr {
            bbr.acked(now, &sample, self.delivery.delivered());
        }
        self.resume(now, &sample, app_limited);
    }

    /// Lets the start send trains, jump, settle or retreat, as an acknowledgement suggests.
    fn resume(&mut self, now: Instant, sample: &Sample, app_limited: bool) {
        let Some(min_rtt) = self.cubic.rounds().min else {
            return;
        };
        let seen = Seen {
            now,
            delivered: self.delivery.delivered(),
            lost: self.delivery.lost_so_far(),
            in_flight: self.delivery.in_flight(),
            acked: sample.acked,
            prior: sample.prior,
            rtt: sample.rtt,
            min_rtt,
            spread: sample.spread,
            lump: Duration::ZERO,
            window: Self::window(self),
            packet: self.mtu.into(),
            app_limited,
        };
        let is_starting = match &self.bbr {
            Some(bbr) => bbr.is_starting(),
            None => self.cubic.is_starting(),
        };
        if !is_starting && !self.resume.is_jumping() {
            self.resume.end();
        }
        let Some(order) = self.resume.acked(&seen) else {
            return;
        };
        tracing::debug!(?order, window = seen.window, "the start is resumed");
        match (order, &mut self.bbr) {
            (Order::Jump(window), Some(bbr)) => bbr.jump(window),
            (Order::Jump(window), None) => self.cubic.jump(window),
            (Order::Train(window), Some(bbr)) => bbr.train(window),
            (Order::Train(window), None) => self.cubic.jump(window),
            (Order::Hold(window), Some(bbr)) => bbr.hold(window),
            (Order::Hold(window), None) => self.cubic.settle(window),
            (Order::Fill(bandwidth, window), Some(bbr)) => bbr.fill(bandwidth, window),
            (Order::Fill(bandwidth, window), None) => self.cubic.fill(bandwidth, window),
            (Order::Settle(window), Some(bbr)) => bbr.settle(window),
            (Order::Settle(window), None) => self.cubic.settle(window),
            (Order::Grow(window, _), Some(bbr)) => bbr.grow(window),
            (Order::Grow(window, most), None) => self.cubic.grow(window.min(most)),
            (Order::Retreat(_), Some(bbr)) if self.resume.learned().is_some() => {
                bbr.expect(None);
                self.resume.end();
            }
            (Order::Retreat(window), Some(bbr)) => bbr.retreat(window),
            (Order::Retreat(window), None) => self.cubic.retreat(now, window),
            // It has a bandwidth to go by.
            (Order::Recover(_), Some(_)) => {}
            (Order::Recover(window), None) => self.cubic.recover(window),
        }
    }

    /// Handles the loss of packet `number`.
    pub fn on_lost(&mut self, now: Instant, bytes: u64, number: u64) {
        let loss = self.delivery.lost(bytes, number);
        if let (Some(bbr), Some(loss)) = (&mut self.bbr, loss)
            && !self.resume.are_losses_of_train()
        {
            bbr.lost(now, &loss);
        }
    }

    /// Handles congestion: packets were lost, or marked if `is_ecn`, the last of them sent at
    /// `sent`. `is_persistent`: in persistent congestion (RFC 9002, 7.6).
    pub fn on_congestion(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
    ) {
        if self.resume.is_jumping() && !is_persistent && !is_ecn {
            // Whether it is too much is judged with the next acknowledgement.
            return;
        }
        if self.bbr.is_none() || is_persistent || is_ecn {
            self.resume.end();
        }
        let starting = self.bbr.is_none() && !is_persistent && self.cubic.is_starting();
        match &mut self.bbr {
            Some(bbr) if is_persistent => bbr.persistent_congestion(),
            Some(bbr) if is_ecn => bbr.marked(),
            // It has seen every lost packet.
            Some(_) => {}
            None => {
                let before = self.cubic.clone();
                if self.cubic.lost(now, sent, is_persistent) {
                    let (from, to) = (before.window(), self.cubic.window());
                    tracing::debug!(from, to, is_persistent, "the window is cut");
                    // Only a loss can turn out to be spurious, not a congestion mark.
                    self.before = (!is_ecn).then_some(before);
                }
            }
        }
        if self.setting == Congestion::Auto && !is_ecn {
            self.choose(now, sent, starting);
        }
    }

    /// Takes back what the last losses did: they were spurious.
    pub fn on_spurious(&mut self) {
        match &mut self.bbr {
            Some(bbr) => bbr.spurious(),
            None => {
                self.evidence.withdraw();
                if let Some(before) = self.before.take()
                    && before.window() > self.cubic.window()
                {
                    self.cubic = before;
                }
            }
        }
    }

    /// From now on full packets have `mtu` bytes.
    pub fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.cubic.set_mtu(mtu);
        if let Some(bbr) = &mut self.bbr {
            bbr.set_mtu(mtu);
        }
    }

    fn start_bbr(&mut self, now: Instant) {
        let known = Known {
            window: self.cubic.window(),
            bandwidth: self.bandwidth,
            min_rtt: self.cubic.rounds().min,
            delivered: self.delivery.delivered(),
        };
        let hint = self.announced.hint();
        if !self.resume.is_jumping() && hint.is_some() {
            self.resume = Resume::new(hint);
        }
        let random = self.random.fork();
        let mut bbr = Bbr::new(now, self.mtu, self.announced, known, random);
        if let Some(learned) = self.resume.learned() {
            bbr.expect(Some(learned));
        }
        self.bbr = Some(bbr);
    }

    /// Changes the algorithm where the losses suggest it; the last lost packet was sent at `sent`.
    /// `starting`: slow start was not over.
    fn choose(&mut self, now: Instant, sent: Instant, starting: bool) {
        let Some(min) = self.cubic.rounds().min else {
            return;
        };
        let Some(state) = self
            .evidence
            .lost(now, sent, self.state.algorithm, starting, min)
        else {
            return;
        };
        self.change(now, state);
    }

    fn change(&mut self, now: Instant, state: CongestionState) {
        tracing::debug!(algorithm = state.algorithm.name(), reason = %state.reason, "changed");
        match self.bbr.take() {
            None => self.start_bbr(now),
            Some(bbr) => self.cubic.resume(now, bbr.known().window),
        }
        self.before = None;
        self.state = state;
    }
}

impl RateControl for WindowControl {
    fn sent(&mut self, now: Instant, number: u64, bytes: u64) {
        self.on_sent(now, bytes, number);
        if self.delivery.in_flight() + u64::from(self.mtu) > Self::window(self) {
            self.on_window_limited();
        }
    }

    fn acked(&mut self, now: Instant, number: u64, sent: Instant, bytes: u64) {
        self.on_acked(now, sent, bytes, number, self.app_limited);
    }

    fn lost(&mut self, now: Instant, number: u64, sent: Instant, bytes: u64) {
        self.on_lost(now, bytes, number);
        self.lost = self.lost.max(Some(sent));
    }

    fn end(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        self.app_limited = app_limited;
        self.on_end(now, in_flight, app_limited);
        if let Some(sent) = self.lost.take() {
            self.on_congestion(now, sent, false, false);
        }
    }

    fn timed_out(&mut self, now: Instant) {
        self.delivery.forget();
        self.lost = None;
        self.on_congestion(now, now, true, false);
    }

    fn rate(&self) -> f64 {
        let first = || Self::window(self) as f64 / INITIAL_RTT.as_secs_f64();
        self.pacing_rate().unwrap_or_else(first)
    }

    fn window(&self) -> u64 {
        Self::window(self)
    }

    fn couple(&mut self, share: u32) {
        if share > 1 && self.resume.is_probing() {
            // The trains of subflows that share a link would slow each other down.
            self.resume.end();
        }
        if let Some(bbr) = &mut self.bbr {
            bbr.couple(share);
        }
    }

    fn take(&mut self, rate: f64) {
        if let Some(bbr) = &mut self.bbr {
            bbr.take(rate);
        }
    }

    fn carried(&self) -> Option<Carried> {
        let (is_starting, rate) = match &self.bbr {
            Some(bbr) => (bbr.is_starting(), bbr.known().bandwidth),
            None => (self.cubic.is_starting(), self.bandwidth),
        };
        let rtt = self.cubic.rounds().min?;
        let is_known = rate > 0.0 && !is_starting && !self.resume.is_jumping();
        is_known.then_some(Carried { rate, rtt })
    }

    fn remember(&mut self, carried: Carried) {
        self.resume.remember(carried);
    }

    fn is_probing(&self) -> bool {
        self.resume.is_probing()
    }

    fn name(&self) -> &'static str {
        self.state.algorithm.name()
    }
}
