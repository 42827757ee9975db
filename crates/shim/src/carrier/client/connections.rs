//! What carries the connections of a session, how fast, and what there is to see of it.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use super::{ClientSession, Connect};
use crate::carrier::lane::LaneKey;
use crate::carrier::report::{DecisionReport, PathReport, SessionReport};
use crate::carrier::streams::{self, Instance};
use crate::carrier::table::SlotTable;
use crate::choice::CarrierKind;
use crate::link::Role;
use hawser_streams::Side;

impl ClientSession {
    /// Answers the requests that wait for a path, if there is one.
    pub(super) fn answer_waiting(&mut self) {
        let Some((_, table)) = self.known.as_ref().filter(|_| !self.open.is_empty()) else {
            return;
        };
        let carrier = self.node.carrier();
        // Until the peer has said which it has: one that does not have this one refuses.
        let carriers = self.carriers.unwrap_or(self.node.carriers());
        for waiting in self.waiting.drain(..) {
            waiting.give(match carrier {
                _ if !carriers.has(carrier) => {
                    Err(format!("--carrier {carrier} cannot be used here"))
                }
                CarrierKind::Mptcp => Ok(Connect::Mptcp(table.peer)),
                CarrierKind::Quic => Ok(Connect::Quic(table.peer)),
            });
        }
    }

    /// Sends the frames of streams over a lane's connection.
    pub(super) fn carry_over(&self, key: LaneKey) {
        if self.node.carrier() != CarrierKind::Quic {
            return;
        }
        if let Some(one) = self.open.get(&key) {
            let (lane, connection) = (Arc::clone(&one.lane), one.connection.clone());
            tokio::spawn(streams::open_path(
                Arc::clone(&self.streams),
                lane,
                connection,
            ));
        }
    }

    /// Programs of this host have connections by MPTCP with these peers.
    pub(super) fn in_use(&self, peers: &[Ipv6Addr]) {
        let is_peer = |table: &SlotTable| peers.contains(&table.peer.address(0));
        if self.known.as_ref().is_some_and(|(_, table)| is_peer(table)) {
            self.usage.touch(Instant::now());
        }
    }

    /// Records whether streams or packets use the session.
    pub(super) fn watch_use(&mut self) {
        let known = self.known.as_ref();
        let packets = known.map_or(0, |(_, table)| table.contacts.packets());
        let has_packets = std::mem::replace(&mut self.packets, packets) != packets;
        if has_packets || !self.connections.is_empty() || !self.waiting.is_empty() {
            self.usage.touch(Instant::now());
        }
    }

    pub(super) fn report(&self) -> SessionReport {
        let paths = self.open.values().map(|one| {
            let sent = self.streams.streams.sent_over(one.lane.key.0);
            PathReport::of(&one.lane, Some(&one.path), sent)
        });
        let address = self.known.as_ref().map(|(_, table)| table.peer.address(0));
        let streams = address.map(|address| self.connections.report(address, Role::Client));
        let mut streams = streams.unwrap_or_default();
        streams.totals.reinjected_bytes = self.streams.streams.repeated();
        SessionReport {
            peer: self.peer.to_string(),
            key: self.known.as_ref().map(|(key, _)| key.to_string()),
            role: Role::Client,
            address,
            carrier: self.node.carrier().to_string(),
            streams,
            paths: paths.collect(),
            shared: self.shared().into_keys().collect(),
            lost: self.lost.to_reports(),
            failovers: self.failovers.clone(),
            unsent_packets: 0,
            decisions: (self.decisions.iter())
                .map(|(path, decision)| DecisionReport::new(*path, decision))
                .collect(),
            error: self.last_error.clone(),
            totals: None,
        }
    }
}

/// Streams of this process, that the other side has not seen.
pub(super) fn new_streams() -> Arc<Instance> {
    // The other side opens none.
    let (opened, _) = mpsc::unbounded_channel();
    let number = fastrand::u64(..);
    Arc::new(Instance::new(Side::Opens, number, opened))
}
