//! What the status report says of a session.

use super::ClientDriver;
use crate::protocol::Role;
use crate::report::{DecisionReport, PathReport, SessionReport};

impl ClientDriver {
    pub(super) fn report(&self) -> SessionReport {
        let sent = |lane: u64| self.streaming.instance.streams.sent_over(lane);
        let lanes = self.lanes.values().filter(|one| one.is_opened());
        let paths = lanes.map(|one| {
            let sent = sent(one.lane.key.0);
            PathReport::of(&one.lane, Some(&one.path), sent)
        });
        let address = self.session.block().map(|block| block.address(0));
        let connections = &self.streaming.connections;
        let streams = address.map(|address| connections.report(address, Role::Client));
        let mut streams = streams.unwrap_or_default();
        streams.totals.reinjected_bytes = self.streaming.instance.streams.repeated();
        let facts = self.session.facts();
        let decisions = facts.decisions.iter();
        SessionReport {
            peer: self.peer().to_string(),
            key: self.session.key().map(|key| key.to_string()),
            role: Role::Client,
            address,
            carrier: self.node.carrier().to_string(),
            streams,
            paths: paths.collect(),
            shared: self.session.shared(),
            lost: self.ended.lost.to_reports(),
            failovers: self.ended.failovers.clone(),
            unsent_packets: 0,
            decisions: decisions
                .map(|(path, decision)| DecisionReport::new(*path, decision))
                .collect(),
            error: facts.last_error.clone(),
            totals: None,
        }
    }
}
