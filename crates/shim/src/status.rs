//! Status of a shim: of its carrier and its holder, together.

mod metrics;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::metrics::metrics;
pub use crate::report::Totals;
use crate::report::{
    CarrierReport, ConnectionReport, FailureReport, HolderReport, PathReport, SessionReport,
    SubflowReport,
};

/// The status of a shim. Its fields in JSON are those of `docs/tcp-programs.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Whether the carrier runs. Without it connections stand still.
    pub up: bool,
    /// Milliseconds since the carrier began.
    pub uptime_ms: Option<u64>,
    /// Milliseconds since the holder began, which has the connections.
    pub holder_uptime_ms: u64,
    /// The sessions with other hosts; none without a carrier.
    pub sessions: Vec<SessionReport>,
    /// The connections that are open.
    pub connections: Vec<ConnectionReport>,
    /// Connections that have ended since the holder began.
    pub connections_ended: u64,
    /// Connections that could not be set up since the holder began.
    pub setups_failed: u64,
    /// The latest connections that failed, oldest first.
    pub failures: Vec<FailureReport>,
    /// Why no connection by MPTCP gets further subflows at present, if so.
    #[serde(default)]
    pub problem: Option<String>,
}

impl StatusReport {
    /// What holder and carrier report; `None` if no carrier answers.
    pub fn new(held: HolderReport, carrier: Option<CarrierReport>) -> Self {
        let uptime_ms = carrier.as_ref().map(|carrier| carrier.uptime_ms);
        let mut sessions = carrier.map_or_else(Vec::new, |carrier| carrier.sessions);
        for session in &mut sessions {
            session.paths.sort_by_key(|path| (path.slot, path.lane));
            let held = held.sessions.iter();
            let mut held = held.filter(|one| session.is(one.address, one.role));
            session.totals = Some(
                held.next()
                    .map(|one| one.totals.clone())
                    .unwrap_or_default(),
            );
            if let Some(totals) = &session.totals {
                for path in &mut session.paths {
                    let slot = path.slot.and_then(|slot| totals.retransmits.get(&slot));
                    path.retransmits = slot.copied().unwrap_or_default();
                }
            }
        }
        let mut connections = held.connections;
        // Streams are the carrier's.
        for session in &mut sessions {
            let streams = std::mem::take(&mut session.streams);
            connections.extend(streams.connections);
            if let Some(totals) = &mut session.totals {
                totals.connections += streams.totals.connections;
                totals.sent_bytes += streams.totals.sent_bytes;
                totals.received_bytes += streams.totals.received_bytes;
            }
        }
        for connection in &mut connections {
            let mut found = sessions.iter();
            let found = found.find(|one| one.is(connection.address, connection.role));
            let Some(session) = found else { continue };
            connection.peer = Some(session.peer.clone());
            for subflow in &mut connection.subflows {
                let mut paths = session.paths.iter();
                let path = paths.find(|path| path.slot.is_some() && path.slot == subflow.slot);
                subflow.path = path.and_then(|path| path.fingerprint.clone());
            }
        }
        Self {
            up: uptime_ms.is_some(),
            uptime_ms,
            holder_uptime_ms: held.uptime_ms,
            sessions,
            connections,
            connections_ended: held.connections_ended,
            setups_failed: held.setups_failed,
            failures: held.failures,
            problem: held.problem,
        }
    }

    /// Adds the rates since an earlier reading. What has begun since, or is of another process, has
    /// none.
    #[must_use]
    pub fn with_rates(mut self, before: &Self) -> Self {
        let since = |now: Option<u64>, before: Option<u64>| {
            now.zip(before)
                .and_then(|(now, before)| now.checked_sub(before))
        };
        if let Some(millis) = since(self.uptime_ms, before.uptime_ms) {
            let earlier = before.sessions.iter().flat_map(|session| &session.paths);
            let earlier: BTreeMap<u64, &PathReport> = earlier.map(|one| (one.lane, one)).collect();
            let paths = self.sessions.iter_mut().flat_map(|one| &mut one.paths);
            for path in paths {
                if let Some(then) = earlier.get(&path.lane) {
                    path.traffic.set_rates(&then.traffic, millis);
                }
            }
        }
        let holder = (self.holder_uptime_ms, before.holder_uptime_ms);
        if let Some(millis) = since(Some(holder.0), Some(holder.1)) {
            let earlier = before.connections.iter().map(|one| (one.id, one));
            let earlier: BTreeMap<u64, &ConnectionReport> = earlier.collect();
            for connection in &mut self.connections {
                if let Some(then) = earlier.get(&connection.id) {
                    connection.add_rates(then, millis);
                }
            }
        }
        self
    }

    /// The connections of a session.
    pub fn connections_of<'a>(
        &'a self,
        session: &'a SessionReport,
    ) -> impl Iterator<Item = &'a ConnectionReport> {
        let all = self.connections.iter();
        all.filter(|one| session.is(one.address, one.role))
    }
}

impl SessionReport {
    /// Whether it is the session with this address and role.
    fn is(&self, address: std::net::Ipv6Addr, role: crate::protocol::Role) -> bool {
        self.address == Some(address) && self.role == role
    }
}

impl ConnectionReport {
    fn add_rates(&mut self, then: &Self, millis: u64) {
        self.traffic.set_rates(&then.traffic, millis);
        for subflow in &mut self.subflows {
            let mut earlier = then.subflows.iter();
            let Some(then) = earlier.find(|one: &&SubflowReport| one.id == subflow.id) else {
                continue;
            };
            subflow.traffic.set_rates(&then.traffic, millis);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
