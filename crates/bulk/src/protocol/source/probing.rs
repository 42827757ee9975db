//! Packets without content: they ask for an answer, or try a larger size.

use std::time::{Duration, Instant};

use hawser_seal::{HEADER, TAG};

use super::rtt::Rtt;
use super::size::PacketSize;

/// Probe timeouts in a row after which a subflow is stalled.
const STALL_TIMEOUTS: u32 = 3;

/// The longest time between probes.
const MAX_PROBE_TIME: Duration = Duration::from_secs(1);

/// The size of a probe that only asks for an answer.
const PROBE: usize = HEADER + TAG;

/// When a subflow probes, and what its probes have shown.
#[derive(Debug)]
pub(super) struct Probing {
    size: PacketSize,
    /// A probe of this size is to be sent.
    due: Option<usize>,
    /// When nothing was acknowledged for a probe timeout.
    at: Option<Instant>,
    /// Probe timeouts since anything was acknowledged.
    timeouts: u32,
}

impl Probing {
    pub(super) fn new(per_packet: usize) -> Self {
        Self {
            size: PacketSize::new(per_packet),
            due: None,
            at: None,
            timeouts: 0,
        }
    }

    /// Bytes of content in each data packet.
    pub(super) fn per_packet(&self) -> usize {
        self.size.per_packet()
    }

    /// Takes the size of the probe that is to be sent now.
    pub(super) fn take_due(&mut self) -> Option<usize> {
        self.due.take()
    }

    /// When nothing was acknowledged for a probe timeout.
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Whether a probe timeout has passed since anything was acknowledged.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.timeouts > 0
    }

    /// Whether several have.
    pub(super) fn is_stalled(&self) -> bool {
        self.timeouts >= STALL_TIMEOUTS
    }

    /// Data packets have `packet` bytes, `per_packet` of them content, once a probe has shown that the
    /// path takes them.
    pub(super) fn try_larger(&mut self, packet: usize, per_packet: usize) {
        let size = self.size.try_larger(packet, per_packet);
        self.due = self.due.max(size);
    }

    /// Has a probe ask for an answer.
    pub(super) fn ask(&mut self) {
        self.due = self.due.max(Some(PROBE));
    }

    /// Something is sent while the sink answers after `interval` at the latest.
    pub(super) fn on_send(&mut self, rtt: &Rtt, interval: Duration, now: Instant) {
        if self.at.is_none() {
            self.at = Some(now + self.time(rtt, interval));
        }
    }

    /// Something is acknowledged; `waits` if more is in flight.
    pub(super) fn on_ack(&mut self, waits: bool, rtt: &Rtt, interval: Duration, now: Instant) {
        self.timeouts = 0;
        self.at = waits.then(|| now + self.time(rtt, interval));
    }

    /// Nothing is in flight, because it was acknowledged or counts as lost.
    pub(super) fn on_nothing_in_flight(&mut self) {
        if self.timeouts == 0 {
            self.at = None;
        }
    }

    /// A probe timeout is over. Returns whether the subflow is stalled since this one.
    pub(super) fn on_timeout(&mut self, rtt: &Rtt, interval: Duration, now: Instant) -> bool {
        self.timeouts += 1;
        self.ask();
        self.at = Some(now + self.time(rtt, interval));
        self.timeouts == STALL_TIMEOUTS
    }

    /// A probe of `size` bytes was acknowledged.
    pub(super) fn on_probe_acked(&mut self, size: usize) {
        self.size.on_probe_acked(size);
    }

    /// A probe of `size` bytes was lost. That says something about sizes only.
    pub(super) fn on_probe_lost(&mut self, size: usize) {
        let next = self.size.on_probe_lost(size);
        self.due = self.due.max(next);
    }

    /// The time without an acknowledgement until the next probe.
    pub(super) fn time(&self, rtt: &Rtt, interval: Duration) -> Duration {
        let time = rtt.probe_timeout(interval);
        (time * 2_u32.pow(self.timeouts.min(8))).min(MAX_PROBE_TIME.max(time))
    }
}
