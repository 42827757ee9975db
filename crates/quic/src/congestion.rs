//! Congestion control for one connection, which stays on one path: `hawser-congestion` for noq.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hawser_congestion::{Announced, Congestion, CongestionState, RateControl, WindowControl};
use hawser_endhost::RateRecord;
use hawser_endhost::lanes::Lane;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::progress::Progress;

/// Makes the controller for a connection.
#[derive(Debug, Default)]
pub(crate) struct Factory {
    announced: Announced,
    setting: Congestion,
    /// What the path has carried before; `None` where no path is known yet.
    rates: Option<RateRecord>,
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
pub(crate) struct Choice(Arc<Mutex<CongestionState>>);

impl Choice {
    /// What is used now.
    pub(crate) fn get(&self) -> CongestionState {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: CongestionState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Factory {
    /// A factory for a connection over a path that is not known.
    pub(crate) fn unknown(setting: Congestion) -> Self {
        let factory = Self {
            setting,
            ..Self::default()
        };
        factory.records.choice.set(setting.begins());
        factory
    }

    /// A factory for a connection over `lane`, whose path takes QUIC packets of `mtu` bytes. It begins
    /// with what the path announces, if that is known, and with what it has carried before.
    pub(crate) fn of(lane: &Lane, mtu: u16, setting: Congestion) -> Self {
        let announced = lane.path().map(|path| {
            let info = path.info();
            let metadata = &info.metadata;
            Announced::of(&metadata.bandwidth, metadata.mtu, mtu, info.latency())
        });
        Self {
            announced: announced.unwrap_or_default(),
            rates: Some(lane.rate_record()),
            ..Self::unknown(setting)
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(self.control(now, mtu))
    }
}

impl Factory {
    fn control(&self, now: Instant, mtu: u16) -> Control {
        let (announced, seed) = (self.announced, fastrand::u64(..));
        let mut inner = WindowControl::new(now, mtu, announced, self.setting, seed);
        let before = self.rates.as_ref().and_then(|rates| rates.last(now));
        if let Some(carried) = before {
            inner.remember(carried);
        }
        Control {
            mtu,
            inner,
            rates: self.rates.clone(),
            records: self.records.clone(),
        }
    }
}

/// The controller for noq.
#[derive(Debug, Clone)]
struct Control {
    mtu: u16,
    inner: WindowControl,
    rates: Option<RateRecord>,
    records: Records,
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(rates) = &self.rates {
            rates.end(self.inner.carried());
        }
    }
}

impl Control {
    fn acked(&mut self, now: Instant, sent: Instant, bytes: u64, number: u64, app_limited: bool) {
        self.records.progress.on_ack(sent, bytes);
        self.inner.on_acked(now, sent, bytes, number, app_limited);
    }

    /// Records the algorithm if `event` changes it.
    fn recorded(&mut self, event: impl FnOnce(&mut WindowControl)) {
        let before = self.inner.state();
        event(&mut self.inner);
        if self.inner.state() != before {
            self.records.choice.set(self.inner.state());
        }
    }
}

impl Controller for Control {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.inner.on_sent(now, bytes.into(), number);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_window_limited();
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
        self.recorded(|inner| inner.on_end(now, in_flight, app_limited));
        if let Some(rates) = &mut self.rates {
            rates.observe(now, || self.inner.carried());
        }
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.inner.on_lost(now, bytes.into(), number);
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
        self.recorded(|inner| {
            inner.on_congestion(now, sent, is_persistent_congestion, is_ecn);
        });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.inner.set_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = self.inner.pacing_rate().map(|rate| rate as u64);
        // No `send_quantum`: noq's pacer bounds bursts (2 ms, at least ten packets). A smaller one only
        // cuts what is due anyway into more system calls.
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
