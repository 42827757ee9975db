//! The subflows of a session, and what those did that have ended.

use std::collections::BTreeMap;

use hawser_endhost::Path;
use hawser_manager::SubflowId;
use hawser_path::Fingerprint;
use hawser_quic::Connection;
use hawser_session::MessageSender;

use crate::data::{Measured, SubflowKey};
use crate::protocol::Message;
use crate::report::PathProgress;

/// A subflow of a session. Its packets are the data thread's.
pub(super) struct OpenSubflow {
    /// Its name in the path manager's orders, if this side dialed it; `None` once it was ordered to end.
    pub ordered: Option<SubflowId>,
    pub connection: Connection,
    /// Sends messages over the connection. What waits is bounded by what may be sent and not seen
    /// ([`Outbox`](crate::protocol::Outbox)).
    pub control: MessageSender<Message>,
    pub path: Option<Path>,
    pub fingerprint: Fingerprint,
    pub measured: Measured,
    pub up: bool,
    pub stalled: bool,
    /// Whether it ends once what is in flight over it has arrived.
    pub drains: bool,
}

/// The subflows of a session.
#[derive(Default)]
pub(super) struct Subflows {
    open: BTreeMap<SubflowKey, OpenSubflow>,
    /// What was done over the paths of subflows that have ended.
    ended: BTreeMap<Fingerprint, EndedPath>,
}

#[derive(Default, Clone)]
struct EndedPath {
    path: Option<Path>,
    measured: Measured,
    failures: u32,
}

impl Subflows {
    pub(super) fn insert(&mut self, key: SubflowKey, subflow: OpenSubflow) {
        self.open.insert(key, subflow);
    }

    pub(super) fn get(&self, key: SubflowKey) -> Option<&OpenSubflow> {
        self.open.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: SubflowKey) -> Option<&mut OpenSubflow> {
        self.open.get_mut(&key)
    }

    /// The subflow that the path manager has ordered as `id`.
    pub(super) fn ordered(&self, id: SubflowId) -> Option<(SubflowKey, &OpenSubflow)> {
        let mut open = self.open.iter().map(|(key, one)| (*key, one));
        open.find(|(_, one)| one.ordered == Some(id))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Removes a subflow; `false` if it was not there.
    pub(super) fn remove(&mut self, key: SubflowKey) -> bool {
        let Some(one) = self.open.remove(&key) else {
            return false;
        };
        let ended = self.ended.entry(one.fingerprint).or_default();
        ended.path = one.path;
        ended.measured.delivered += one.measured.delivered;
        ended.measured.packets += one.measured.packets;
        ended.measured.lost += one.measured.lost;
        ended.measured.rejected += one.measured.rejected;
        true
    }

    /// Counts a failure of a subflow's path.
    pub(super) fn failed(&mut self, key: SubflowKey) {
        if let Some(one) = self.open.get(&key) {
            self.ended.entry(one.fingerprint).or_default().failures += 1;
        }
    }

    /// Counts a failure of the path of every subflow.
    pub(super) fn all_failed(&mut self) {
        for one in self.open.values() {
            self.ended.entry(one.fingerprint).or_default().failures += 1;
        }
    }

    /// Sets the measurements of subflows.
    pub(super) fn measured(&mut self, all: Vec<(SubflowKey, Measured)>) {
        for (key, measured) in all {
            if let Some(one) = self.open.get_mut(&key) {
                one.measured = measured;
            }
        }
    }

    /// The subflow with the shortest round trip, of those that do not end if there are any.
    pub(super) fn fastest(&self) -> Option<(SubflowKey, &MessageSender<Message>)> {
        let rank = |one: &OpenSubflow| (one.drains, one.connection.stats().rtt);
        let fastest = self.open.iter().min_by_key(|(_, one)| rank(one));
        fastest.map(|(key, one)| (*key, &one.control))
    }

    /// Bytes received over the connections.
    pub(super) fn bytes_received(&self) -> u64 {
        let connections = self.open.values().map(|one| &one.connection);
        connections.map(|one| one.stats().bytes_received).sum()
    }

    /// Ends all.
    pub(super) fn into_controls(self) -> impl Iterator<Item = MessageSender<Message>> {
        self.open.into_values().map(|one| one.control)
    }

    /// What each path does and did.
    pub(super) fn paths(&self) -> Vec<PathProgress> {
        let ended = |path: &Fingerprint| self.ended.get(path).cloned().unwrap_or_default();
        let open = self.open.values().map(|one| {
            let EndedPath {
                measured: ended,
                failures,
                ..
            } = ended(&one.fingerprint);
            PathProgress {
                fingerprint: one.fingerprint,
                path: one.path.clone(),
                delivered: one.measured.delivered + ended.delivered,
                rtt: one.measured.rtt,
                rate: one.measured.rate,
                packets: one.measured.packets + ended.packets,
                lost: one.measured.lost + ended.lost,
                rejected: one.measured.rejected + ended.rejected,
                failures,
                stalled: one.stalled || !one.up,
                open: true,
            }
        });
        let open: Vec<_> = open.collect();
        let is_open = |path: &Fingerprint| open.iter().any(|one| one.fingerprint == *path);
        let gone = self.ended.iter().filter(|(path, _)| !is_open(path));
        let gone: Vec<_> = gone
            .map(|(fingerprint, ended)| PathProgress {
                fingerprint: *fingerprint,
                path: ended.path.clone(),
                delivered: ended.measured.delivered,
                rtt: None,
                rate: 0.0,
                packets: ended.measured.packets,
                lost: ended.measured.lost,
                rejected: ended.measured.rejected,
                failures: ended.failures,
                stalled: false,
                open: false,
            })
            .collect();
        open.into_iter().chain(gone).collect()
    }
}
