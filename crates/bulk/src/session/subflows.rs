//! The subflows of a session, and what those did that have ended.

use std::collections::BTreeMap;

use hawser_endhost::Path;
use hawser_path::Fingerprint;

use crate::control::Outgoing;
use crate::data::{Measured, SubflowKey};
use crate::report::PathProgress;

/// A subflow of a session.
pub(super) struct Subflow {
    pub control: Outgoing,
    pub path: Option<Path>,
    pub fingerprint: Fingerprint,
    pub measured: Measured,
    pub up: bool,
    pub stalled: bool,
}

/// The subflows of a session.
#[derive(Default)]
pub(super) struct Subflows {
    open: BTreeMap<SubflowKey, Subflow>,
    /// Content delivered over subflows that have ended.
    ended: BTreeMap<Fingerprint, Measured>,
}

impl Subflows {
    pub(super) fn insert(&mut self, key: SubflowKey, subflow: Subflow) {
        self.open.insert(key, subflow);
    }

    pub(super) fn get(&self, key: SubflowKey) -> Option<&Subflow> {
        self.open.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: SubflowKey) -> Option<&mut Subflow> {
        self.open.get_mut(&key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Removes a subflow; `false` if it was not there.
    pub(super) fn remove(&mut self, key: SubflowKey) -> bool {
        let Some(one) = self.open.remove(&key) else {
            return false;
        };
        let ended = self.ended.entry(one.fingerprint).or_default();
        ended.delivered += one.measured.delivered;
        ended.packets += one.measured.packets;
        ended.lost += one.measured.lost;
        ended.rejected += one.measured.rejected;
        true
    }

    /// Sets the measurements of subflows.
    pub(super) fn measured(&mut self, all: Vec<(SubflowKey, Measured)>) {
        for (key, measured) in all {
            if let Some(one) = self.open.get_mut(&key) {
                one.measured = measured;
            }
        }
    }

    /// The subflow with the shortest round trip.
    pub(super) fn fastest(&self) -> Option<(SubflowKey, &Outgoing)> {
        let all = self.open.iter().map(|(key, one)| (*key, &one.control));
        all.min_by_key(|(_, control)| control.connection.stats().rtt)
    }

    /// Bytes received over the connections.
    pub(super) fn bytes_received(&self) -> u64 {
        let connections = self.open.values().map(|one| &one.control.connection);
        connections.map(|one| one.stats().bytes_received).sum()
    }

    /// Ends all.
    pub(super) fn into_controls(self) -> impl Iterator<Item = Outgoing> {
        self.open.into_values().map(|one| one.control)
    }

    /// What each path does and did.
    pub(super) fn paths(&self) -> Vec<PathProgress> {
        let ended = |path: &Fingerprint| self.ended.get(path).copied().unwrap_or_default();
        let open = self.open.values().map(|one| {
            let ended = ended(&one.fingerprint);
            PathProgress {
                fingerprint: one.fingerprint,
                path: one.path.clone(),
                delivered: one.measured.delivered + ended.delivered,
                rtt: one.measured.rtt,
                rate: one.measured.rate,
                packets: one.measured.packets + ended.packets,
                lost: one.measured.lost + ended.lost,
                rejected: one.measured.rejected + ended.rejected,
                stalled: one.stalled || !one.up,
                open: true,
            }
        });
        let open: Vec<_> = open.collect();
        let is_open = |path: &Fingerprint| open.iter().any(|one| one.fingerprint == *path);
        let gone = self.ended.iter().filter(|(path, _)| !is_open(path));
        let gone: Vec<_> = gone
            .map(|(path, measured)| PathProgress {
                fingerprint: *path,
                path: None,
                delivered: measured.delivered,
                rtt: None,
                rate: 0.0,
                packets: measured.packets,
                lost: measured.lost,
                rejected: measured.rejected,
                stalled: false,
                open: false,
            })
            .collect();
        open.into_iter().chain(gone).collect()
    }
}
