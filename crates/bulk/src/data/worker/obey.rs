//! What the thread does when it is given a command.

use std::time::Instant;

use super::super::incoming::Incoming;
use super::super::outgoing::Outgoing;
use super::super::subflow::Subflow;
use super::super::{Command, DataEvent, SessionKey};
use super::{Part, Session, Worker};
use crate::limit::Allowance;

impl Worker {
    /// Carries out a command.
    pub(super) fn carry_out(&mut self, command: Command) {
        let now = Instant::now();
        match command {
            Command::Send {
                session,
                credit,
                gate,
                limit,
                events,
            } => {
                let outgoing = Outgoing::new(credit, gate, Allowance::new(limit));
                let part = Part::Source(outgoing);
                self.sessions.insert(session, Session::new(events, part));
            }
            Command::Offer(session, content) => {
                if let Some(Part::Source(outgoing)) = self.part(session) {
                    outgoing.set_content(content);
                }
            }
            Command::SinkLimit(session, limit) => {
                if let Some(Part::Source(outgoing)) = self.part(session) {
                    outgoing.set_sink_limit(limit);
                }
            }
            Command::Receive {
                session,
                credit,
                promised,
                events,
            } => {
                let part = Part::Sink(Incoming::new(credit, promised));
                self.sessions.insert(session, Session::new(events, part));
            }
            Command::Window(session, window) => {
                if let Some(incoming) = self.incoming(session) {
                    incoming.set_window(window, now);
                }
            }
            Command::Content(session, content, arrived) => {
                if let Some(incoming) = self.incoming(session) {
                    incoming.set_content(content, arrived);
                }
            }
            Command::Add(session, subflow, added) => {
                let Some(one) = self.sessions.get_mut(&session) else {
                    return;
                };
                let sender = self.lanes.sender();
                let added = Subflow::new(*added, sender);
                let is_known = added.lane.is_some();
                self.ids.insert(added.id(), (session, subflow));
                one.subflows.insert(subflow, added);
                // Of a peer that dialed, the first packet shows over which path to answer.
                if is_known {
                    self.admit(session, subflow, now);
                }
            }
            Command::Remove(session, subflow) => {
                let Some(one) = self.sessions.get_mut(&session) else {
                    return;
                };
                if let Some(removed) = one.subflows.remove(subflow) {
                    self.ids.remove(&removed.id());
                }
                match &mut one.part {
                    Part::Source(outgoing) => {
                        outgoing.remove(subflow);
                        self.coupled.remove((session, subflow));
                    }
                    Part::Sink(incoming) => incoming.remove(subflow),
                }
            }
            Command::Hold(session, subflow, held) => {
                if let Some(Part::Source(outgoing)) = self.part(session) {
                    outgoing.hold(subflow, held);
                }
            }
            Command::Drain(session, subflow) => {
                let Some(one) = self.sessions.get_mut(&session) else {
                    return;
                };
                if let Part::Source(outgoing) = &mut one.part {
                    outgoing.hold(subflow, true);
                }
                if let Some(subflow) = one.subflows.get_mut(subflow) {
                    subflow.drain(now);
                }
            }
            Command::AckInterval(session, subflow, interval) => {
                if let Some(incoming) = self.incoming(session) {
                    incoming.set_interval(subflow, interval);
                }
            }
            Command::Want(session, ranges) => {
                if let Some(Part::Source(outgoing)) = self.part(session) {
                    outgoing.want(ranges);
                }
            }
            Command::Unwant(session, range) => {
                if let Some(one) = self.sessions.get_mut(&session)
                    && let Part::Source(outgoing) = &mut one.part
                {
                    let left_out = outgoing.unwant(range);
                    one.subflows.report(DataEvent::Unwanted(range, left_out));
                }
            }
            Command::Loaded(session, loaded) => {
                if let Some(Part::Source(outgoing)) = self.part(session) {
                    outgoing.load(loaded);
                }
            }
            Command::Confirmed(session, first, end) => {
                if let Some(Part::Source(outgoing)) = self.part(session) {
                    outgoing.confirm(first..end);
                }
            }
            Command::Written(session, bytes, length) => {
                if let Some(incoming) = self.incoming(session) {
                    incoming.written(bytes, length, now);
                }
            }
            Command::Again(session, range, bytes) => {
                if let Some(incoming) = self.incoming(session) {
                    incoming.again(range, bytes);
                }
            }
            Command::Measure(session, answer) => {
                if let Some(one) = self.sessions.get(&session) {
                    // The session may wait no longer.
                    let _ = answer.send(one.measurements());
                }
            }
            Command::End(session) => {
                if let Some(one) = self.sessions.remove(&session) {
                    for id in one.subflows.ids() {
                        self.ids.remove(&id);
                    }
                    for (subflow, _) in one.subflows.iter() {
                        self.coupled.remove((session, subflow));
                    }
                }
            }
            // Handled by the caller.
            Command::Stop => {}
            #[cfg(test)]
            Command::Panic => panic!("as the test wants"),
            #[cfg(test)]
            Command::Count(answer) => drop(answer.send(self.sessions.len())),
        }
    }

    fn part(&mut self, session: SessionKey) -> Option<&mut Part> {
        Some(&mut self.sessions.get_mut(&session)?.part)
    }

    fn incoming(&mut self, session: SessionKey) -> Option<&mut Incoming> {
        match self.part(session)? {
            Part::Sink(incoming) => Some(incoming),
            Part::Source(_) => None,
        }
    }
}
