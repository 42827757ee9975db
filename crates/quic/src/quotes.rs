//! Which SCMP errors are about packets sent from here.
//!
//! SCMP errors are not authenticated: any host can send one to an address it knows, and the
//! addresses of peers and the paths between them are public. QUIC's connection ids, 64 random bits
//! here, are visible only on the path. So an error counts if the packet it quotes carries the
//! destination connection id of an open connection, goes to that connection's peer and over its
//! very path; an error that quotes too little to tell does not count (RFC 9000, 14.2.1, which says
//! so of ICMP). Errors that pass are rate-limited per path, so that replaying a true one gains
//! nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hawser_endhost::socket::Report;
use hawser_endhost::wire::ScmpError;
use hawser_endhost::{IsdAsn, Outage};

use crate::routes::Way;
use crate::transport::MIN_MTU;

/// Bytes of a connection id that are compared. Endpoints here make ids of this length; of longer
/// ones the beginning is compared, and with shorter ones no error counts.
pub(crate) const ID: usize = 8;
/// Errors acted upon per path: the first of a burst, then one in each interval.
const BURST: u32 = 4;
const EVERY: Duration = Duration::from_secs(1);

/// The beginning of a packet's destination connection id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId([u8; ID]);

impl ConnectionId {
    /// Reads the id from the beginning of a QUIC packet (RFC 9000, 17.2 and 17.3); `None` when it
    /// is cut short or the id is shorter than [`ID`].
    #[inline]
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        const LONG: u8 = 0x80;
        let (first, rest) = packet.split_first()?;
        let id = match first & LONG {
            // The length of a short header's id is not in the packet.
            0 => rest,
            _ => {
                let (_version, rest) = rest.split_first_chunk::<4>()?;
                let (length, rest) = rest.split_first()?;
                rest.get(..usize::from(*length))?
            }
        };
        id.first_chunk().copied().map(Self)
    }
}

/// The connection ids that packets are sent with now, and over which way.
#[derive(Debug, Default)]
pub(crate) struct SentIds(Mutex<HashMap<ConnectionId, Sent>>);

#[derive(Debug)]
struct Sent {
    way: Arc<Way>,
    /// The number of senders that use this id.
    senders: usize,
}

impl SentIds {
    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, Sent>> {
        // No operation on the table can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sender whose packets go over `way` with `id`.
    pub(crate) fn add(&self, id: ConnectionId, way: &Arc<Way>) {
        let mut ids = self.lock();
        let senders = ids.get(&id).map_or(0, |sent| sent.senders) + 1;
        let way = Arc::clone(way);
        ids.insert(id, Sent { way, senders });
    }

    /// Removes a sender of packets with `id`.
    pub(crate) fn remove(&self, id: ConnectionId) {
        let mut ids = self.lock();
        if let Some(sent) = ids.get_mut(&id) {
            sent.senders -= 1;
            if sent.senders == 0 {
                ids.remove(&id);
            }
        }
    }

    /// The way of the packet that `report` quotes, if it was sent from the AS `local` and the
    /// report may be true of it.
    pub(crate) fn way_of(&self, report: &Report<'_>, local: IsdAsn) -> Option<Arc<Way>> {
        // Most invented quotes are rejected here, by one look-up and without allocating.
        let id = ConnectionId::of(report.quote.payload)?;
        let way = Arc::clone(&self.lock().get(&id)?.way);
        fits(report, &way, local).then_some(way)
    }
}

/// Whether the packet that `report` quotes may have been sent over `way`, and be what it says.
fn fits(report: &Report<'_>, way: &Way, local: IsdAsn) -> bool {
    let current = way.route().leads(&report.quote);
    // Packets from before a refresh may still be under way.
    if !current && !(way.previous().as_ref()).is_some_and(|route| route.leads(&report.quote)) {
        return false;
    }
    match report.error {
        // A router that refuses the previous path says nothing about the present one.
        ScmpError::ParameterProblem { .. } => current,
        // QUIC's smallest packet fits every path that it uses (RFC 9000, 14.2.1).
        ScmpError::PacketTooBig { mtu } => {
            usize::from(mtu) >= way.route().overhead() + usize::from(MIN_MTU)
        }
        error => Outage::of(&error)
            .is_none_or(|outage| outage.may_cut(local, way.peer().isd_as, way.interfaces())),
    }
}

/// The rate limit of errors acted upon per path: a token bucket.
#[derive(Debug)]
pub(crate) struct Budget {
    tokens: f64,
    last: Instant,
}

impl Budget {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            tokens: BURST.into(),
            last: now,
        }
    }

    /// Takes a token, if there is one at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.tokens = (self.tokens + passed / EVERY.as_secs_f64()).min(BURST.into());
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests;
