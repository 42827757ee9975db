//! The window: slow start, then CUBIC (RFC 9438).

use std::time::{Duration, Instant};

use super::announced::Announced;
use super::round::Rounds;
use super::slow_start::SlowStart;

/// Smallest part of the window that a loss leaves: CUBIC's (RFC 9438, 4.6).
const MIN_BETA: f64 = 0.7;
/// Largest part that a loss leaves: H-TCP's (draft-leith-tcp-htcp-06, 3.2), so that flows over one
/// link still converge.
const MAX_BETA: f64 = 0.8;
/// Smallest part that the loss at the end of slow start leaves: the last doubling may be too much.
const START_KEPT: f64 = 0.5;
/// Packets per cubic second (RFC 9438, 5.1).
const C: f64 = 0.4;
/// What is sent in a round trip while there is enough to send, in windows.
const PACE: f64 = 1.25;
/// A congestion window, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cubic {
    mtu: u16,
    known: Announced,
    /// Bytes per second that the path is expected to carry.
    expected: Option<f64>,
    window: f64,
    /// The window at the last loss (W_max); `None` before the first.
    plateau: Option<f64>,
    phase: Phase,
    rounds: Rounds,
    /// Lost packets that were sent before this time do not cut the window again.
    recovery: Option<Instant>,
}

#[derive(Debug, Clone)]
enum Phase {
    SlowStart(SlowStart),
    Avoidance(Curve),
}

impl Cubic {
    /// The first window, for packets of `mtu` bytes over a path that announces `known`.
    pub(crate) fn new(mtu: u16, known: Announced) -> Self {
        Self {
            mtu,
            known,
            expected: known.hint().map(|hint| hint.bandwidth),
            window: known.initial_window(mtu.into()) as f64,
            plateau: None,
            phase: Phase::SlowStart(SlowStart::default()),
            rounds: Rounds::default(),
            recovery: None,
        }
    }

    /// Continues after another controller with a window that fills the path.
    pub(crate) fn resume(&mut self, now: Instant, window: u64) {
        let window = (window as f64).max(self.least());
        self.window = window;
        self.plateau = Some(window);
        let mtu = f64::from(self.mtu);
        self.phase = Phase::Avoidance(Curve::new(now, window, window, window, mtu));
        self.recovery = Some(now);
    }

    /// Raises the window to `window` bytes, and stays in slow start, or enters it.
    pub(crate) fn jump(&mut self, window: u64) {
        self.window = (window as f64).max(self.window);
        if !self.is_starting() {
            self.phase = Phase::SlowStart(SlowStart::default());
        }
    }

    /// Lowers the window to `window` bytes.
    pub(crate) fn settle(&mut self, window: u64) {
        self.window = self.window.min((window as f64).max(self.least()));
    }

    /// Raises the window to `window` bytes in slow start.
    pub(crate) fn grow(&mut self, window: u64) {
        if self.is_starting() {
            self.window = self.window.max(window as f64);
        }
    }

    /// Sets the window to `window` bytes in slow start, over a path that carries `bandwidth` bytes per
    /// second.
    pub(crate) fn fill(&mut self, bandwidth: f64, window: u64) {
        self.expected = Some(bandwidth);
        self.window = (window as f64).max(self.least());
        self.phase = Phase::SlowStart(SlowStart::default());
    }

    /// Ends slow start with a window of `window` bytes, after a jump that was too much for the path.
    pub(crate) fn retreat(&mut self, now: Instant, window: u64) {
        self.resume(now, window);
    }

    /// Grows by slow start up to `window` bytes.
    pub(crate) fn recover(&mut self, window: u64) {
        let window = window as f64;
        if window > self.window {
            self.plateau = None;
            self.phase = Phase::SlowStart(SlowStart::up_to(window));
        }
    }

    /// Records an acknowledgement while another controller is at work.
    pub(crate) fn observe(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.rounds.acked(now, sent, bytes);
    }

    /// What it knows of the path.
    pub(crate) fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// Bytes per second to send: a quarter more than a window each round trip (RFC 9002, 7.7). `None`
    /// where the round-trip time is neither measured nor announced.
    pub(crate) fn pacing_rate(&self) -> Option<f64> {
        let rtt = self.rounds.smoothed.or(self.known.rtt);
        let rtt = rtt.filter(|rtt| !rtt.is_zero())?;
        let even = self.window / rtt.as_secs_f64();
        let expected = self.expected.filter(|_| self.is_starting());
        // Until losses show how short the queue is, no more than what the path is expected to carry.
        let most = expected.map_or(f64::INFINITY, |expected| expected.max(even));
        Some((PACE * even).min(most))
    }

    /// The first window, in bytes.
    pub(crate) fn initial_window(&self) -> u64 {
        self.known.initial_window(self.mtu.into())
    }

    pub(crate) fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.window = self.window.max(self.least());
    }

    /// Bytes that may be in flight.
    pub(crate) fn window(&self) -> u64 {
        self.window as u64
    }

    /// Whether it is in slow start.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::SlowStart(_))
    }

    /// The window at which slow start ended; `None` before.
    #[cfg(test)]
    pub(crate) fn threshold(&self) -> Option<u64> {
        match self.phase {
            Phase::SlowStart(_) => None,
            Phase::Avoidance(_) => Some(self.plateau.unwrap_or(self.window) as u64),
        }
    }

    /// Handles the acknowledgement of a packet of `bytes` sent at `sent`. `app_limited`: the
    /// application had no more to send.
    pub(crate) fn acked(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool) {
        let new_round = self.rounds.acked(now, sent, bytes);
        if self.recovery.is_some_and(|recovery| sent <= recovery) {
            return;
        }
        let (mtu, expected) = (f64::from(self.mtu), self.expected);
        match &mut self.phase {
            Phase::SlowStart(_) if app_limited => {}
            Phase::SlowStart(start) => {
                match start.step(&self.rounds, new_round, self.window, bytes, expected) {
                    Some(more) => self.window += more,
                    None => {
                        let window = self.window;
                        self.plateau = Some(window);
                        self.phase = Phase::Avoidance(Curve::new(now, window, window, window, mtu));
                    }
                }
            }
            Phase::Avoidance(curve) if app_limited => curve.idle(now),
            Phase::Avoidance(curve) => {
                let rtt = self.rounds.smoothed.unwrap_or_default();
                self.window = curve.grow(now, rtt, self.window, bytes, mtu);
            }
        }
    }

    /// Handles the loss of packets, the last of them sent at `sent`; `persistent` in persistent
    /// congestion (RFC 9002, 7.6). Returns whether the window was cut: once for all packets in
    /// flight.
    pub(crate) fn lost(&mut self, now: Instant, sent: Instant, persistent: bool) -> bool {
        if self.recovery.is_some_and(|recovery| sent <= recovery) {
            return false;
        }
        let (prior, mtu) = (self.window, f64::from(self.mtu));
        let (window, plateau) = match self.phase {
            Phase::SlowStart(_) => self.after_start(),
            Phase::Avoidance(_) => self.after_loss(),
        };
        let window = window.max(self.least());
        self.recovery = Some(now);
        if persistent {
            // Restart slow start, up to the window that a loss would leave (RFC 9438, 4.8).
            self.window = self.least();
            self.plateau = None;
            self.phase = Phase::SlowStart(SlowStart::up_to(window));
        } else {
            let plateau = plateau.max(window);
            self.window = window;
            self.plateau = Some(plateau);
            self.phase = Phase::Avoidance(Curve::new(now, window, plateau, prior, mtu));
        }
        true
    }

    /// Window and plateau after the loss that ends slow start. The link carries what was
    /// acknowledged in the last round; the window may be twice that.
    fn after_start(&self) -> (f64, f64) {
        let rounds = &self.rounds;
        let (Some(rate), Some(min), Some(rtt)) = (rounds.rate(), rounds.min, rounds.smoothed)
        else {
            return (self.window * MIN_BETA, self.window);
        };
        let empty = rate * min.as_secs_f64();
        // What the path is expected to carry is reached by less than a doubling.
        let (least, most) = match self.expected {
            Some(expected) if self.window >= expected * min.as_secs_f64() => (MIN_BETA, MAX_BETA),
            _ => (START_KEPT, MIN_BETA),
        };
        let window = empty.clamp(self.window * least, self.window * most);
        let plateau = (rate * rtt.as_secs_f64()).clamp(window, self.window);
        (window, plateau)
    }

    /// Window and plateau after any other loss.
    fn after_loss(&self) -> (f64, f64) {
        let rounds = &self.rounds;
        let empty = match (rounds.min, rounds.smoothed) {
            (Some(min), Some(rtt)) if !rtt.is_zero() => min.as_secs_f64() / rtt.as_secs_f64(),
            _ => MIN_BETA,
        };
        let kept = empty.clamp(MIN_BETA, MAX_BETA);
        // Fast convergence: a loss below the last plateau makes room for new flows (RFC 9438, 4.7).
        let plateau = match self.plateau {
            Some(last) if self.window < last => self.window * (1.0 + kept) / 2.0,
            _ => self.window,
        };
        (self.window * kept, plateau)
    }

    /// The minimum window (RFC 9002, 7.2).
    fn least(&self) -> f64 {
        2.0 * f64::from(self.mtu)
    }
}

/// The curve that the window follows from one loss to the next (RFC 9438, 4). Windows are in bytes.
#[derive(Debug, Clone)]
struct Curve {
    /// Time zero, moved forward by the time in which the sender had nothing to send.
    epoch: Instant,
    idle_since: Option<Instant>,
    /// The window at which the curve is flat (W_max).
    plateau: f64,
    /// Seconds until the plateau (K).
    k: f64,
    /// The window of Reno at this time (W_est).
    reno: f64,
    /// The window before the loss (cwnd_prior).
    prior: f64,
    /// Packets that Reno adds per round trip to match one that halves its window (RFC 9438, 4.3).
    gain: f64,
}

impl Curve {
    /// A curve that starts at `window`, with `plateau`; `prior` was the window before the loss.
    fn new(now: Instant, window: f64, plateau: f64, prior: f64, mtu: f64) -> Self {
        let kept = (window / prior).min(1.0);
        Self {
            epoch: now,
            idle_since: None,
            plateau,
            k: ((plateau - window) / mtu / C).cbrt(),
            reno: window,
            prior,
            gain: 3.0 * (1.0 - kept) / (1.0 + kept),
        }
    }

    /// The window after `bytes` more are acknowledged.
    fn grow(&mut self, now: Instant, rtt: Duration, window: f64, bytes: u64, mtu: f64) -> f64 {
        if let Some(since) = self.idle_since.take() {
            self.epoch += now.saturating_duration_since(since);
        }
        let bytes = bytes as f64;
        let gain = if self.reno < self.prior {
            self.gain
        } else {
            1.0
        };
        self.reno += gain * mtu * bytes / window;
        let ahead = now.saturating_duration_since(self.epoch) + rtt;
        let target = self.plateau + C * (ahead.as_secs_f64() - self.k).powi(3) * mtu;
        let target = target.clamp(window, 1.5 * window);
        (window + (target - window) * bytes / window).max(self.reno.min(window + bytes))
    }

    /// The application has nothing to send: the curve pauses (RFC 9438, 5.8).
    fn idle(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }
}
