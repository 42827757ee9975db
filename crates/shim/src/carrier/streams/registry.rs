//! The connections of a session that are streams, for reports.

use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::shared::{Stream, User};
use crate::choice::CarrierKind;
use crate::protocol::{Preamble, Role};
use crate::report::{ConnectionReport, StreamsReport, Totals, Traffic};

/// The number of the next connection. The holder counts its own from 0.
static NEXT: AtomicU64 = AtomicU64::new(1 << 48);

/// The connections. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    totals: Totals,
    all: BTreeMap<u64, Entry>,
}

struct Entry {
    ends: Preamble,
    began: Instant,
    user: Arc<User>,
}

/// A connection, until this is dropped.
pub(super) struct NewConnection {
    number: u64,
    connections: Connections,
}

impl Connections {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the connection that `stream` carries.
    pub(super) fn add(&self, ends: Preamble, stream: &Stream) -> NewConnection {
        let mut entries = self.entries();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        entries.totals.connections += 1;
        let entry = Entry {
            ends,
            began: Instant::now(),
            user: Arc::clone(&stream.user),
        };
        entries.all.insert(number, entry);
        NewConnection {
            number,
            connections: self.clone(),
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries().all.is_empty()
    }

    /// What the connections have carried, and those with the host at `address` that are open.
    pub(crate) fn report(&self, address: Ipv6Addr, role: Role) -> StreamsReport {
        let entries = self.entries();
        let mut totals = entries.totals.clone();
        let all = entries.all.iter().map(|(number, entry)| {
            entry.count(&mut totals);
            ConnectionReport {
                id: *number,
                peer: None,
                address,
                role,
                carrier: CarrierKind::Quic,
                source: entry.ends.source,
                destination: entry.ends.destination,
                age_ms: u64::try_from(entry.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                traffic: Traffic::of(
                    entry.user.written.load(Ordering::Relaxed),
                    entry.user.read.load(Ordering::Relaxed),
                ),
                reinjected_bytes: 0,
                subflows: Vec::new(),
                error: None,
            }
        });
        let connections = all.collect();
        StreamsReport {
            connections,
            totals,
        }
    }
}

impl Entry {
    /// Adds what it has carried.
    fn count(&self, totals: &mut Totals) {
        totals.sent_bytes += self.user.written.load(Ordering::Relaxed);
        totals.received_bytes += self.user.read.load(Ordering::Relaxed);
    }
}

impl Drop for NewConnection {
    fn drop(&mut self) {
        let entries = &mut *self.connections.entries();
        if let Some(entry) = entries.all.remove(&self.number) {
            entry.count(&mut entries.totals);
        }
    }
}

/// The addresses of a connection, for messages.
pub(super) fn name(ends: &Preamble) -> String {
    let (from, to): (SocketAddr, SocketAddr) = (ends.source, ends.destination);
    format!("{from} to {to}")
}
