//! Carries out what a session wants.

use std::time::Instant;

use super::ClientDriver;
use super::dial::{dial, dial_plain_ip};
use crate::address::Slot;
use crate::link::ToHolder;
use crate::plane::lane::LaneKey;
use crate::protocol::{Epoch, Role};
use crate::report::PathReport;
use crate::session::{Action, Ending, Figures, LaneOrigin};
use hawser_endhost::Path;

impl ClientDriver {
    /// Carries out all that is to be done now. Returns how and why the session ends, if it does.
    pub(super) fn carry_out(&mut self, now: Instant) -> Option<(Ending, String)> {
        loop {
            let (lanes, streaming) = (&self.lanes, &self.streaming);
            let figures = |key: LaneKey| {
                let lane = lanes.get(&key);
                let sent = || streaming.instance.streams.sent_over(key.0);
                lane.map_or_else(Figures::default, |lane| lane.figures(sent()))
            };
            let is_used = !streaming.connections.is_empty();
            let actions = self.session.advance(figures, is_used, now);
            if actions.is_empty() {
                return None;
            }
            for action in actions {
                if let Action::End { ending, reason } = action {
                    return Some((ending, reason));
                }
                self.obey(action, now);
            }
        }
    }

    fn obey(&mut self, action: Action<Path>, now: Instant) {
        let peer = self.peer();
        match action {
            Action::DialPath { subflow, path } => {
                let dial = dial(self.node.clone(), peer, path);
                self.dials.start(LaneOrigin::Path(subflow), dial);
            }
            Action::DialPlainIp(to) => {
                let dial = dial_plain_ip(self.node.clone(), peer, to);
                self.dials.start(LaneOrigin::PlainIp(to), dial);
            }
            Action::CancelDial(subflow) => {
                self.dials.cancel(LaneOrigin::Path(subflow));
            }
            Action::Open { lane, slot, epoch } => self.open(lane, slot, epoch),
            Action::OpenPath { lane, port } => {
                if let Err(error) = self.open_path(lane, port) {
                    self.session.on_failed(lane, error, now);
                }
            }
            Action::Bind { lane, slot, epoch } => self.bind(lane, slot, epoch),
            Action::Send { lane, message } => {
                if let Some(one) = self.lanes.get(&lane) {
                    one.lane.send(message);
                }
            }
            Action::Probe { lane, count } => self.probe(lane, count),
            Action::Failover { lane, reason, .. } => {
                if let Some(one) = self.lanes.get(&lane) {
                    let path = Some(&one.path);
                    (self.ended.failovers).record(&one.lane, path, &reason);
                }
            }
            Action::Close(lane) => self.close(lane),
            Action::Publish(live) => self.publish(live),
            Action::Answer { request, found } => {
                if let Some(answer) = self.answers.all.remove(&request) {
                    answer.give(found);
                }
            }
            Action::WarnOfShared { paths, interfaces } => {
                let [one, other] = paths.map(|path| path.short());
                let interfaces: Vec<String> = interfaces.iter().map(ToString::to_string).collect();
                tracing::warn!(
                    "to {peer}: paths {one} and {other} share {}: where that is full, the session gets \
                     two shares",
                    interfaces.join(", "),
                );
            }
            // Its caller has taken it.
            Action::End { .. } => {}
        }
    }

    fn bind(&self, lane: LaneKey, slot: Slot, epoch: Epoch) {
        if let Some(one) = self.lanes.get(&lane) {
            one.lane.table.bind(slot, epoch, &one.lane);
        }
    }

    fn probe(&self, lane: LaneKey, count: usize) {
        let Some(one) = self.lanes.get(&lane) else {
            return;
        };
        if let Some(bound) = one.lane.table.bound_of(lane) {
            (0..count).for_each(|_| one.lane.probe(bound, 0, true));
        }
    }

    /// Has the holder use these slots.
    fn publish(&self, live: Vec<Slot>) {
        if let Some(table) = &self.table {
            self.node.tell(ToHolder::Slots {
                peer: table.peer.address(0),
                role: Role::Client,
                live,
                name: self.peer().to_string(),
            });
        }
    }

    /// Closes a lane and its connection.
    pub(super) fn close(&mut self, lane: LaneKey) {
        let Some(one) = self.lanes.remove(&lane) else {
            return;
        };
        if one.is_opened() {
            let sent = self.streaming.instance.streams.sent_over(lane.0);
            let report = PathReport::of(&one.lane, Some(&one.path), sent);
            self.ended.lost.add(report);
        }
        self.node.plane().remove(&one.lane);
    }
}
