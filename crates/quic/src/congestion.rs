//! Congestion control for one connection, which stays on one path: CUBIC (RFC 9438), with three
//! additions that fill a long path with a short queue as well as any other.
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

mod announced;
mod cubic;
mod round;
mod start;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use hawser_endhost::Path;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory};

use self::announced::Announced;
use self::cubic::Cubic;
use crate::progress::Progress;

/// Makes the controller for a connection.
#[derive(Debug, Default)]
pub(crate) struct Factory {
    pub(crate) announced: Announced,
    /// Where acknowledgements are recorded.
    pub(crate) progress: Progress,
}

impl Factory {
    /// A factory for a connection over `path`, which takes QUIC packets of `mtu` bytes.
    pub(crate) fn of(path: &Path, mtu: u16) -> Self {
        Self {
            announced: Announced::of(path, mtu),
            progress: Progress::default(),
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Control {
            cubic: Cubic::new(mtu, self.announced),
            before: None,
            progress: self.progress.clone(),
        })
    }
}

/// The controller for noq.
#[derive(Debug, Clone)]
struct Control {
    cubic: Cubic,
    /// The state before the last loss, restored if that loss turns out to be spurious.
    before: Option<Cubic>,
    progress: Progress,
}

impl Controller for Control {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _pn: u64,
        app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.progress.on_ack(sent, bytes);
        self.cubic.acked(now, sent, bytes, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let before = self.cubic.clone();
        if !self.cubic.lost(now, sent, is_persistent_congestion) {
            return;
        }
        let (from, to) = (before.window(), self.cubic.window());
        tracing::debug!(from, to, is_persistent_congestion, "the window is cut");
        // Only a loss can turn out to be spurious, not a congestion mark.
        self.before = (!is_ecn).then_some(before);
    }

    fn on_spurious_congestion_event(&mut self) {
        if let Some(before) = self.before.take()
            && before.window() > self.cubic.window()
        {
            self.cubic = before;
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cubic.set_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.cubic.window()
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
