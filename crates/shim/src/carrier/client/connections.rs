//! What carries the connections of a session, how fast, and what there is to see of it.

use std::net::Ipv6Addr;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc;

use super::{ClientSession, Connect};
use crate::carrier::lane::LaneKey;
use crate::carrier::report::{DecisionReport, MeasuredReport, PathReport, SessionReport};
use crate::carrier::streams::{self, Instance};
use crate::carrier::table::SlotTable;
use crate::choice::{CarrierChoice, CarrierKind};
use crate::link::Role;
use hawser_streams::Side;

impl ClientSession {
    /// Answers the requests that wait for a path, if there is one.
    pub(super) fn answer_waiting(&mut self) {
        let Some((_, table)) = self.known.as_ref().filter(|_| !self.open.is_empty()) else {
            return;
        };
        let choice = self.node.choice();
        let carriers = match (choice, self.carriers) {
            // A peer that does not have it refuses.
            (CarrierChoice::Always(_), None) => choice.among(self.node.carriers()),
            (_, Some(carriers)) => choice.among(carriers),
            (CarrierChoice::Auto, None) => return,
        };
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        for waiting in self.waiting.drain(..) {
            let chosen = measured.choose(carriers, self.node.uptime());
            waiting.give(match chosen {
                Some(CarrierKind::Mptcp) => Ok(Connect::Mptcp(table.peer)),
                Some(CarrierKind::Quic) => Ok(Connect::Quic(table.peer)),
                None => Err(format!("--carrier {choice} cannot be used here")),
            });
        }
    }

    /// Sends the frames of streams over a lane's connection.
    pub(super) fn carry_over(&self, key: LaneKey) {
        let choice = self.node.choice().among(self.node.carriers());
        if let Some(one) = self
            .open
            .get(&key)
            .filter(|_| choice.has(CarrierKind::Quic))
        {
            let (lane, connection) = (Arc::clone(&one.lane), one.connection.clone());
            tokio::spawn(streams::open_path(
                Arc::clone(&self.streams),
                lane,
                connection,
            ));
        }
    }

    /// Records how fast each carrier was since the last call.
    pub(super) fn measure(&mut self, carried: &[(Ipv6Addr, u64)]) {
        let address = self.known.as_ref().map(|(_, table)| table.peer.address(0));
        let mut peers = carried.iter().filter(|(peer, _)| Some(*peer) == address);
        let mptcp = peers.next().map_or(0, |(_, bytes)| *bytes);
        let (quic, now) = (self.streams.streams.carried(), self.node.uptime());
        if let Some(interval) = self.meter.read(mptcp, quic, now) {
            let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
            measured.observe(interval.mptcp, interval.quic, interval.span, now);
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
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        SessionReport {
            peer: self.peer.to_string(),
            key: self.known.as_ref().map(|(key, _)| key.to_string()),
            role: Role::Client,
            address,
            carrier: self.node.choice().among(self.node.carriers()).to_string(),
            streams,
            measured: MeasuredReport {
                mptcp: measured.rate(CarrierKind::Mptcp),
                quic: measured.rate(CarrierKind::Quic),
            },
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
