//! Congestion control for one connection, which stays on one path: CUBIC (RFC 9438) or BBRv3
//! (draft-ietf-ccwg-bbr-05), as the path's losses suggest.
//!
//! CUBIC has three additions that fill a long path with a short queue as well as any other:
//!
//! - Where ASes announce the path's bandwidth, slow start grows gently once the window reaches the
//!   announced bandwidth-delay product: doubling beyond it would fill the queue and lose up to a
//!   window of packets. An announcement only slows that growth: a false one costs time and nothing
//!   else.
//! - Where they announce its latency too, the first window is a part of that product, so that a
//!   long path is full some round trips earlier; a false announcement allows at most 64 packets.
//! - After a loss the window is cut to what the path holds without its queue, within bounds (the
//!   adaptive backoff of H-TCP, draft-leith-tcp-htcp-06, 3.2). CUBIC's 0.7 idles a link whose queue
//!   is shorter than 0.43 of the round trip.
//!
//! A loss without a queue means congestion to CUBIC, which then needs many round trips to fill a
//! long path again. BBR takes over there; see [`choice`].

mod announced;
mod bbr;
mod choice;
mod cubic;
mod delivery;
mod round;
mod start;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hawser_endhost::Path;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use self::announced::Announced;
use self::bbr::{Bbr, Known};
use self::choice::Evidence;
pub use self::choice::{Algorithm, Congestion, CongestionReason, CongestionState};
use self::cubic::Cubic;
use self::delivery::Delivery;
use crate::progress::Progress;

/// Time that packets sent at once take at the pacing rate. A queue that holds a millisecond at the
/// path's rate survives two such batches.
const BATCH: Duration = Duration::from_micros(500);
/// Most bytes sent at once: what the kernel cuts into packets in one call.
const MOST_AT_ONCE: u64 = 64 << 10;

/// Bytes to send at once at `rate` bytes per second (draft-ietf-ccwg-bbr-05, 5.6.3).
fn quantum(rate: f64, mtu: u64) -> u64 {
    let bytes = (rate * BATCH.as_secs_f64()) as u64;
    bytes.min(MOST_AT_ONCE).max(2 * mtu)
}

/// Makes the controller for a connection.
#[derive(Debug, Default)]
pub(crate) struct Factory {
    announced: Announced,
    pub(crate) records: Records,
}

/// What a controller records. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    /// Acknowledgements.
    pub(crate) progress: Progress,
    /// The choice of the algorithm.
    pub(crate) choice: Choice,
}

/// The algorithm that a connection uses. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    setting: Congestion,
    state: Arc<Mutex<CongestionState>>,
}

impl Choice {
    fn new(setting: Congestion) -> Self {
        let (algorithm, reason) = match setting {
            Congestion::Auto => (Algorithm::Cubic, CongestionReason::Default),
            Congestion::Cubic => (Algorithm::Cubic, CongestionReason::Requested),
            Congestion::Bbr => (Algorithm::Bbr, CongestionReason::Requested),
        };
        Self {
            setting,
            state: Arc::new(Mutex::new(CongestionState { algorithm, reason })),
        }
    }

    /// What is used now.
    pub(crate) fn get(&self) -> CongestionState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: CongestionState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Factory {
    /// A factory for a connection over a path that is not known.
    pub(crate) fn unknown(setting: Congestion) -> Self {
        Self {
            records: Records {
                choice: Choice::new(setting),
                ..Records::default()
            },
            ..Self::default()
        }
    }

    /// A factory for a connection over `path`, which takes QUIC packets of `mtu` bytes.
    pub(crate) fn of(path: &Path, mtu: u16, setting: Congestion) -> Self {
        Self {
            announced: Announced::of(path, mtu),
            ..Self::unknown(setting)
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(self.control(now, mtu, fastrand::Rng::new()))
    }
}

impl Factory {
    fn control(&self, now: Instant, mtu: u16, random: fastrand::Rng) -> Control {
        let mut control = Control {
            mtu,
            announced: self.announced,
            cubic: Cubic::new(mtu, self.announced),
            bbr: None,
            before: None,
            delivery: Delivery::default(),
            evidence: Evidence::default(),
            bandwidth: 0.0,
            records: self.records.clone(),
            random,
        };
        if self.records.choice.get().algorithm == Algorithm::Bbr {
            control.start_bbr(now);
        }
        control
    }
}

/// The controller for noq.
#[derive(Debug, Clone)]
struct Control {
    mtu: u16,
    announced: Announced,
    /// At work while `bbr` is `None`; it measures round-trip times in any case.
    cubic: Cubic,
    bbr: Option<Bbr>,
    /// CUBIC's state before the last loss, restored if that loss turns out to be spurious.
    before: Option<Cubic>,
    delivery: Delivery,
    evidence: Evidence,
    /// The last delivery rate that shows what the path carries, in bytes per second.
    bandwidth: f64,
    records: Records,
    random: fastrand::Rng,
}

impl Control {
    fn start_bbr(&mut self, now: Instant) {
        let known = Known {
            window: self.cubic.window(),
            bandwidth: self.bandwidth,
            min_rtt: self.cubic.rounds().min,
            delivered: self.delivery.delivered(),
        };
        let random = self.random.fork();
        self.bbr = Some(Bbr::new(now, self.mtu, self.announced, known, random));
    }

    /// Handles the acknowledgement of packet `number` of `bytes`, sent at `sent`.
    fn acked(&mut self, now: Instant, sent: Instant, bytes: u64, number: u64, app_limited: bool) {
        self.records.progress.on_ack(sent, bytes);
        self.delivery.acked(now, sent, bytes, number);
        match self.bbr {
            Some(_) => self.cubic.observe(now, sent, bytes),
            None => self.cubic.acked(now, sent, bytes, app_limited),
        }
    }

    /// Changes the algorithm where the losses suggest it; the last lost packet was sent at `sent`.
    fn choose(&mut self, now: Instant, sent: Instant) {
        let Some(min) = self.cubic.rounds().min else {
            return;
        };
        let current = self.records.choice.get().algorithm;
        let Some(state) = self.evidence.lost(now, sent, current, min) else {
            return;
        };
        tracing::debug!(algorithm = state.algorithm.name(), reason = %state.reason, "changed");
        match state.algorithm {
            Algorithm::Bbr => self.start_bbr(now),
            Algorithm::Cubic => {
                if let Some(bbr) = self.bbr.take() {
                    self.cubic.resume(now, bbr.known().window);
                }
            }
        }
        self.before = None;
        self.records.choice.set(state);
    }
}

impl Controller for Control {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        if let Some(bbr) = &mut self.bbr
            && self.delivery.is_idle()
        {
            bbr.restarted(now);
        }
        self.delivery.sent(now, bytes.into(), number);
    }

    fn on_cwnd_limited(&mut self) {
        if let Some(bbr) = &mut self.bbr {
            bbr.window_limited();
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.acked(now, sent, bytes, number, app_limited);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest: Option<u64>,
    ) {
        let min = self.cubic.rounds().min;
        let Some(sample) = self.delivery.end(now, in_flight, app_limited, min) else {
            return;
        };
        self.evidence.acked(now, sample.rtt);
        if let Some(rate) = sample.rate
            && (rate >= self.bandwidth || !sample.app_limited)
        {
            self.bandwidth = rate;
        }
        if let Some(bbr) = &mut self.bbr {
            bbr.acked(now, &sample, self.delivery.delivered());
        }
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        let loss = self.delivery.lost(bytes.into(), number);
        if let (Some(bbr), Some(loss)) = (&mut self.bbr, loss) {
            bbr.lost(now, &loss);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost: u64,
    ) {
        match &mut self.bbr {
            Some(bbr) if is_persistent_congestion => bbr.persistent_congestion(),
            Some(bbr) if is_ecn => bbr.marked(),
            // It has seen every lost packet.
            Some(_) => {}
            None => {
                let before = self.cubic.clone();
                if self.cubic.lost(now, sent, is_persistent_congestion) {
                    let (from, to) = (before.window(), self.cubic.window());
                    tracing::debug!(from, to, is_persistent_congestion, "the window is cut");
                    // Only a loss can turn out to be spurious, not a congestion mark.
                    self.before = (!is_ecn).then_some(before);
                }
            }
        }
        if self.records.choice.setting == Congestion::Auto && !is_ecn {
            self.choose(now, sent);
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        match &mut self.bbr {
            Some(bbr) => bbr.spurious(),
            None => {
                if let Some(before) = self.before.take()
                    && before.window() > self.cubic.window()
                {
                    self.cubic = before;
                }
            }
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.cubic.set_mtu(new_mtu);
        if let Some(bbr) = &mut self.bbr {
            bbr.set_mtu(new_mtu);
        }
    }

    fn window(&self) -> u64 {
        self.bbr
            .as_ref()
            .map_or_else(|| self.cubic.window(), Bbr::window)
    }

    fn metrics(&self) -> ControllerMetrics {
        let rate = match &self.bbr {
            Some(bbr) => Some(bbr.pacing_rate()),
            None => self.cubic.pacing_rate(),
        };
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = rate.map(|rate| rate as u64);
        metrics.send_quantum = rate.map(|rate| quantum(rate, self.mtu.into()));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
