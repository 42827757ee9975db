//! What happens to the lanes of a session.

use std::time::Instant;

use hawser_manager::Failure;

use super::connections::new_streams;
use super::dial::SessionError;
use super::{ClientSession, OpenLane, Use};
use crate::carrier::lane::{LaneEvent, LaneKey};
use crate::carrier::report::PathReport;
use crate::protocol::Message;

impl ClientSession {
    pub(super) fn on_message(
        &mut self,
        key: LaneKey,
        message: Message,
    ) -> Result<(), SessionError> {
        let peer = self.peer;
        let is_only = self.open.len() == 1;
        let Some(one) = self.open.get(&key) else {
            return Ok(());
        };
        match message {
            Message::Accept { port, carriers } if one.lane.lane().is_none() => {
                self.carriers = Some(self.node.carriers().intersection(carriers));
                let mut remote = one.lane.remote;
                remote.host.set_port(port);
                let opened = one.underlay.open(&one.lane, remote, one.path.clone());
                if let Err(error) = opened {
                    self.leave(key, error.to_string());
                }
                self.answer_waiting();
            }
            Message::Segment { bound, segment } => {
                self.node.plane().inject(&one.lane.table, bound, &segment);
            }
            Message::Packet { packet } => {
                self.node.plane().receive_packet(&one.lane.table, &packet);
            }
            Message::Down { slot, epoch } => {
                if let Some(suspect) = self.slots.lane(slot, epoch) {
                    let reason = "the other side receives nothing over it";
                    self.leave(suspect, reason.to_owned());
                }
            }
            Message::Refuse { code, text } => {
                // What answers at a guessed address need not be the peer.
                let is_peer = is_only || matches!(one.of, Use::Path(_));
                if is_peer && !code.may_pass() {
                    return Err(SessionError::Refused { peer, code, text });
                }
                self.leave(key, text);
            }
            Message::Announce { address } => {
                let is_host = !address.ip().is_unspecified() && !address.ip().is_multicast();
                if let Some(beside) = self.beside.as_mut().filter(|_| is_host) {
                    beside.announce(address);
                }
            }
            Message::Accept { .. } | Message::Open(_) | Message::Bye => {
                return Err(SessionError::Protocol { peer });
            }
        }
        Ok(())
    }

    pub(super) fn on_event(&mut self, key: LaneKey, event: LaneEvent) {
        match event {
            LaneEvent::Failed(error) => self.leave(key, error),
            LaneEvent::Stalled | LaneEvent::Recovered => {
                let is_stalled = matches!(event, LaneEvent::Stalled);
                if let Some(one) = self.open.get_mut(&key) {
                    one.stalled = is_stalled;
                    match is_stalled {
                        true => self.streams.streams.suspend_path(key.0),
                        false => self.streams.streams.resume_path(key.0),
                    }
                    match (one.of, is_stalled) {
                        (Use::Path(subflow), true) => {
                            self.dialer.paths.stalled(subflow, Instant::now())
                        }
                        (Use::Path(subflow), false) => self.dialer.paths.recovered(subflow),
                        (Use::PlainIp(_), _) => {}
                    }
                }
            }
            LaneEvent::StreamsLost(number) if number == self.streams.number => {
                tracing::warn!(peer = %self.peer, "the other host has lost the streams");
                self.streams.end();
                self.streams = new_streams();
                let lanes: Vec<LaneKey> = self.open.keys().copied().collect();
                lanes.into_iter().for_each(|lane| self.carry_over(lane));
            }
            LaneEvent::StreamsLost(_) => {}
            LaneEvent::Up | LaneEvent::Bound => {}
        }
    }

    /// Puts lanes that have given their slots up, and deliver after all, under slots that are free. The
    /// other side follows the first packet.
    pub(super) fn place_lanes(&mut self) {
        for (key, one) in &self.open {
            if one.stalled || one.closes.is_some() || self.slots.has(*key) {
                continue;
            }
            let Some((slot, epoch)) = self.slots.take(*key) else {
                return;
            };
            one.lane.table.bind(slot, epoch, &one.lane);
        }
    }

    /// Removes a lane whose path or connection failed.
    fn leave(&mut self, key: LaneKey, error: String) {
        if let Some(one) = self.open.get(&key) {
            (self.failovers).record(&one.lane, Some(&one.path), &error);
        }
        if let Some(one) = self.remove(key) {
            tracing::debug!(peer = %self.peer, lane = ?one.of, error, "a lane failed");
            self.last_error = Some(error.clone());
            self.lost(one.of, Failure::Closed, error);
        }
    }

    /// Removes a lane. The other side learns of it over the other lanes: its own path may be dead.
    pub(super) fn remove(&mut self, key: LaneKey) -> Option<OpenLane> {
        let one = self.open.remove(&key)?;
        self.lost.add(PathReport::of(
            &one.lane,
            Some(&one.path),
            self.streams.streams.sent_over(key.0),
        ));
        self.slots.lose(key);
        for (slot, epoch) in self.node.plane().remove(&one.lane) {
            for other in self.open.values() {
                other.lane.send(Message::Down { slot, epoch });
            }
        }
        Some(one)
    }
}
