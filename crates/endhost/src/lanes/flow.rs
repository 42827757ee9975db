//! A flow: packets to one remote over one path, and the packets that come back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use hawser_address::{IsdAsn, ScionAddr};
use hawser_packet::ScmpError;

use crate::headers::Headers;
use crate::outage::Outage;
use crate::socket::Report;
use crate::sync::lock;

/// Errors handled per flow: the first of a burst, then one in each interval.
const BURST: u32 = 4;
const INTERVAL: Duration = Duration::from_secs(1);

/// SCION's smallest MTU, in bytes: that of IPv6.
const MIN_MTU: u16 = 1280;

/// The number of a flow of a socket. Numbers count up and are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId(pub u64);

/// Packets between a socket and one remote over one path. All lanes with that remote and path share
/// it.
#[derive(Debug)]
pub struct Flow {
    /// The flow's number.
    pub id: FlowId,
    /// The address that packets are sent to.
    pub remote: ScionAddr,
    /// The ids of the path's interfaces, from here to the remote; empty inside one AS.
    pub interfaces: Box<[u16]>,
    headers: ArcSwap<Headers>,
    /// The headers before `headers`; packets with them may still be in flight.
    previous: ArcSwapOption<Headers>,
    /// The budget of SCMP errors about this flow that are handled.
    reports: Mutex<Budget>,
    /// When the path in `headers` expires, in seconds since the Unix epoch.
    expiry: AtomicU64,
}

/// The path of a packet that arrived, which answers of its flow may take instead of theirs.
///
/// Nothing authenticates it. It is for [`Lanes::adopt`](super::Lanes::adopt) once the packet was
/// authenticated, and for answers to the packet itself.
#[derive(Debug)]
pub struct Candidate {
    pub(super) flow: FlowId,
    pub(super) headers: Headers,
    /// When the path expires, in seconds since the Unix epoch.
    pub(super) expiry: u64,
}

impl Candidate {
    /// The flow whose answers may take the path.
    pub fn flow(&self) -> FlowId {
        self.flow
    }
}

impl Flow {
    pub(super) fn new(id: FlowId, headers: Headers, interfaces: &[u16], expiry: u64) -> Self {
        Self {
            id,
            remote: headers.remote,
            interfaces: interfaces.into(),
            headers: ArcSwap::from_pointee(headers),
            previous: ArcSwapOption::empty(),
            reports: Mutex::new(Budget::new(Instant::now())),
            expiry: AtomicU64::new(expiry),
        }
    }

    /// The headers of packets sent now.
    #[inline]
    pub fn headers(&self) -> Guard<Arc<Headers>> {
        self.headers.load()
    }

    /// The time until which routers accept packets sent now, in seconds since the Unix epoch.
    pub fn expiry(&self) -> u64 {
        self.expiry.load(Ordering::Relaxed)
    }

    /// Replaces the headers by others for the same path.
    pub(super) fn refresh(&self, headers: Headers, expiry: u64) {
        let before = self.headers.swap(Arc::new(headers));
        if before.path() != self.headers().path() {
            self.previous.store(Some(before));
        }
        self.expiry.store(expiry, Ordering::Relaxed);
    }

    /// The same flow over the path of a packet, to answer only that packet.
    pub(super) fn over(&self, candidate: &Candidate) -> Self {
        let headers = candidate.headers.clone();
        Self::new(self.id, headers, &self.interfaces, candidate.expiry)
    }

    /// Whether one more SCMP error about this flow may be handled.
    pub(super) fn takes_report(&self, now: Instant) -> bool {
        lock(&self.reports).take(now)
    }

    /// Whether the packet that `report` quotes may have been sent over this flow from the AS
    /// `local`, and whether the report is plausible, given that no path has an MTU below
    /// [`MIN_MTU`], and payloads of `min_payload` bytes are sent over every path.
    pub(super) fn may_have_sent(
        &self,
        report: &Report<'_>,
        local: IsdAsn,
        min_payload: u16,
    ) -> bool {
        let headers = self.headers();
        let current = headers.quoted_by(&report.quote);
        let previous = || {
            // Packets from before a refresh may still be in flight.
            let previous = self.previous.load();
            (previous.as_ref()).is_some_and(|headers| headers.quoted_by(&report.quote))
        };
        if !current && !previous() {
            return false;
        }
        match report.error {
            // A router that refuses the previous path says nothing about the current one.
            ScmpError::ParameterProblem { .. } => current,
            ScmpError::PacketTooBig { mtu } => {
                mtu >= MIN_MTU || headers.max_payload(mtu) >= min_payload
            }
            error => Outage::of(&error)
                .is_none_or(|outage| outage.may_cut(local, self.remote.isd_as, &self.interfaces)),
        }
    }
}

/// The rate limit of SCMP errors that are handled: a token bucket.
#[derive(Debug)]
struct Budget {
    left: f64,
    last: Instant,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self {
            left: BURST.into(),
            last: now,
        }
    }

    /// Takes one token, if there is one at `now`.
    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.left = (self.left + passed / INTERVAL.as_secs_f64()).min(BURST.into());
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handled_errors_are_rate_limited() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let mut taken = |after: Duration| (0..50).filter(|_| budget.take(start + after)).count();
        assert_eq!(taken(Duration::ZERO), BURST as usize);
        assert_eq!(taken(INTERVAL * 5 / 2), 2);
        assert_eq!(taken(INTERVAL * 600), BURST as usize);
    }
}
