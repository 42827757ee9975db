//! A flow: what is sent to one remote over one path, and what comes back the same way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use hawser_packet::{ScionAddr, ScmpError};
use sciparse::identifier::isd_asn::IsdAsn;

use super::budget::Budget;
use crate::headers::Headers;
use crate::outage::Outage;
use crate::socket::Report;
use crate::sync::lock;

/// The number of a flow among those of its socket. It counts up and is never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId(pub u64);

/// Packets between a socket and one remote over one path. All lanes with that remote and path share
/// it.
#[derive(Debug)]
pub struct Flow {
    id: FlowId,
    remote: ScionAddr,
    interfaces: Box<[u16]>,
    headers: ArcSwap<Headers>,
    /// Those before, of which packets may still be under way.
    previous: ArcSwapOption<Headers>,
    /// SCMP errors about it that may still be acted upon.
    reports: Mutex<Budget>,
    /// When the path in `headers` expires, in seconds since the Unix epoch.
    expiry: AtomicU64,
}

impl Flow {
    pub(super) fn new(id: FlowId, headers: Headers, interfaces: &[u16], expiry: u64) -> Self {
        Self {
            id,
            remote: headers.remote(),
            interfaces: interfaces.into(),
            headers: ArcSwap::from_pointee(headers),
            previous: ArcSwapOption::empty(),
            reports: Mutex::new(Budget::new(Instant::now())),
            expiry: AtomicU64::new(expiry),
        }
    }

    /// Its number.
    #[inline]
    pub fn id(&self) -> FlowId {
        self.id
    }

    /// The address packets are sent to.
    pub fn remote(&self) -> ScionAddr {
        self.remote
    }

    /// The ids of the path's interfaces, from here to the remote; empty inside one AS.
    pub fn interfaces(&self) -> &[u16] {
        &self.interfaces
    }

    /// The headers of packets sent now.
    #[inline]
    pub fn headers(&self) -> Guard<Arc<Headers>> {
        self.headers.load()
    }

    /// When routers stop accepting what is sent now, in seconds since the Unix epoch.
    pub fn expiry(&self) -> u64 {
        self.expiry.load(Ordering::Relaxed)
    }

    /// Goes on with other headers for the same path.
    pub(super) fn refresh(&self, headers: Headers, expiry: u64) {
        let before = self.headers.swap(Arc::new(headers));
        if before.path() != self.headers().path() {
            self.previous.store(Some(before));
        }
        self.expiry.store(expiry, Ordering::Relaxed);
    }

    /// Whether one more SCMP error about it may be acted upon.
    pub(super) fn takes_report(&self, now: Instant) -> bool {
        lock(&self.reports).take(now)
    }

    /// Whether the packet that `report` quotes may have been sent over this flow from the AS
    /// `local`, and be what the report says; every path in use takes payloads of `min_payload`.
    pub(super) fn may_have_sent(
        &self,
        report: &Report<'_>,
        local: IsdAsn,
        min_payload: u16,
    ) -> bool {
        let headers = self.headers();
        let current = headers.quoted_by(&report.quote);
        let previous = || {
            // Packets from before a refresh may still be under way.
            let previous = self.previous.load();
            (previous.as_ref()).is_some_and(|headers| headers.quoted_by(&report.quote))
        };
        if !current && !previous() {
            return false;
        }
        match report.error {
            // A router that refuses the previous path says nothing about the present one.
            ScmpError::ParameterProblem { .. } => current,
            ScmpError::PacketTooBig { mtu } => headers.max_payload(mtu) >= min_payload,
            error => Outage::of(&error)
                .is_none_or(|outage| outage.may_cut(local, self.remote.isd_as, &self.interfaces)),
        }
    }
}
