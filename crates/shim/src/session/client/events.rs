//! What happens to a session.

use std::time::{Duration, Instant};

use hawser_keys::PeerKey;
use hawser_manager::Failure;
use hawser_path::{Path, Policy};

use super::{Action, ClientSession, DialError, Lane, LaneOrigin, RequestId, SessionError, shared};
use crate::address::Slot;
use crate::protocol::{Epoch, Message};
use crate::session::lane_key::LaneKey;

/// Why a lane gives its slot up that does not deliver, or is ended as the other side wants.
const STALLED_REASON: &str = "nothing comes back over it";
const REPORTED_DOWN: &str = "the other side receives nothing over it";

/// A dial that has succeeded.
#[derive(Debug)]
pub(crate) struct Connected<P> {
    pub lane: LaneKey,
    /// The key that the other host has shown.
    pub key: PeerKey,
    pub path: P,
    pub rtt: Duration,
}

impl<P: AsRef<Path> + Clone> ClientSession<P> {
    /// The paths to the other host were looked up: there are some, or there are none for this reason.
    pub(crate) fn looked_up(&mut self, found: Result<(), String>) {
        let Err(reason) = found else { return };
        if self.plain_ip.is_none() {
            let peer = self.peer;
            self.end(Some(SessionError::NoPath { peer, reason }));
        } else {
            self.facts.last_error = Some(reason);
        }
    }

    /// These paths to the other host are offered, and no others. `fits` says why nothing can be sent over
    /// one, if so.
    pub(crate) fn offer(
        &mut self,
        paths: &[P],
        fits: impl Fn(&P) -> Result<(), String>,
        now: Instant,
    ) {
        if !self.is_over() {
            self.paths.offer(paths, fits, now);
        }
    }

    /// Only these paths may be used from now on.
    pub(crate) fn set_policy(&mut self, policy: Option<Policy>) {
        if self.is_over() {
            return;
        }
        self.paths.set_policy(policy);
        // The path manager does not judge again what it has ordered to close.
        for (lane, origin) in self.lanes.closing() {
            if let LaneOrigin::Path(subflow) = origin {
                self.paths.closed(subflow);
            }
            self.remove(lane);
        }
    }

    /// Somebody asks where connections go.
    pub(crate) fn on_request(&mut self, request: RequestId) {
        match self.is_over() {
            false => self.waiting.add(request),
            true => {
                let found = Err("the session has ended".to_owned());
                self.actions.push(Action::Answer { request, found });
            }
        }
    }

    /// Nobody wants the session any more.
    pub(crate) fn release(&mut self) {
        self.end(None);
    }

    /// This host no longer trusts the key of the other one.
    pub(crate) fn distrust(&mut self) {
        if let Some(key) = self.key {
            let peer = self.peer;
            self.end(Some(SessionError::Distrusted { peer, key }));
        }
    }

    /// A dial has succeeded. The lane has a part in the session once an [`Action::Open`] says so.
    pub(crate) fn on_connected(&mut self, origin: LaneOrigin, dialed: Connected<P>, now: Instant) {
        let key = dialed.lane;
        if !self.take_dial(origin) {
            return self.actions.push(Action::Close(key));
        }
        if self.key.is_some_and(|known| known != dialed.key) {
            self.actions.push(Action::Close(key));
            return self.on_other_key(origin, dialed.key, now);
        }
        let lane = Lane::new(origin, dialed.path, dialed.rtt);
        let giving = self.lanes.giving().filter(|_| lane.is_over_path());
        let giving = giving.map(|(giving, lane)| {
            // It is a failover if it worked.
            let failed = lane.is_stalled && lane.is_up;
            (giving, failed)
        });
        if let Some((lane, true)) = giving {
            self.record_failover(lane, STALLED_REASON);
        }
        let giving = giving.map(|(giving, _)| giving);
        let Some((slot, epoch)) = self.lanes.add(key, lane, giving) else {
            // Of paths the path manager dials no more than there are slots; those that are to be
            // closed have theirs for a while.
            self.actions.push(Action::Close(key));
            return self.lost(
                origin,
                Failure::Failed,
                "all slots are in use".to_owned(),
                now,
            );
        };
        self.key = Some(dialed.key);
        let lane = key;
        self.actions.push(Action::Open { lane, slot, epoch });
        match origin {
            LaneOrigin::Path(subflow) => self.paths.connected(subflow, Some(dialed.rtt), now),
            LaneOrigin::PlainIp(to) => self.plain_ip.iter_mut().for_each(|one| one.connected(to)),
        }
        self.warn_of_shared();
    }

    /// A dial has failed.
    pub(crate) fn on_not_connected(&mut self, origin: LaneOrigin, error: DialError, now: Instant) {
        if !self.take_dial(origin) {
            return;
        }
        match error {
            DialError::Path(error) => {
                self.facts.last_error = Some(error.clone());
                self.lost(origin, Failure::Failed, error, now);
            }
            // Others have shown that key: the watch over the trust in it decides, which looks twice. The
            // file of keys may just be written.
            DialError::Peer(SessionError::Key(error))
                if self.key.is_some() && error.key().is_none_or(|key| self.key == Some(key)) =>
            {
                self.facts.last_error = Some(error.to_string());
                self.lost(origin, Failure::Failed, error.to_string(), now);
            }
            DialError::Peer(error) => self.end(Some(error)),
        }
    }

    /// A message has arrived over the connection of a lane. Those with packets are not for the session.
    pub(crate) fn on_message(&mut self, key: LaneKey, message: Message, now: Instant) {
        let peer = self.peer;
        let is_only = self.lanes.len() == 1;
        let Some(lane) = self.lanes.get_mut(key).filter(|_| self.tick.is_some()) else {
            return;
        };
        match message {
            Message::Accept { port, carriers } if !lane.is_accepted => {
                lane.is_accepted = true;
                self.carriers = self.carriers.intersection(carriers);
                self.actions.push(Action::OpenPath { lane: key, port });
            }
            Message::Down { slot, epoch } => {
                if let Some(suspect) = self.lanes.under(slot, epoch) {
                    self.on_failed(suspect, REPORTED_DOWN.to_owned(), now);
                }
            }
            Message::Refuse { code, text } => {
                // What answers at a guessed address need not be the peer.
                let is_peer = is_only || lane.is_over_path();
                match is_peer && !code.may_pass() {
                    true => self.end(Some(SessionError::Refused { peer, code, text })),
                    false => self.on_failed(key, text, now),
                }
            }
            Message::Announce { address } => {
                let is_host = !address.ip().is_unspecified() && !address.ip().is_multicast();
                if let Some(plain_ip) = self.plain_ip.as_mut().filter(|_| is_host) {
                    plain_ip.announce(address);
                }
            }
            Message::Segment { .. } | Message::Packet { .. } => {}
            Message::Accept { .. } | Message::Open(_) | Message::Bye => {
                self.end(Some(SessionError::Protocol { peer }));
            }
        }
    }

    /// The first datagram has arrived over a lane.
    pub(crate) fn on_up(&mut self, key: LaneKey) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.is_up = true;
        }
    }

    /// Nothing comes back over a lane, and no other one works.
    pub(crate) fn on_stalled(&mut self, key: LaneKey, now: Instant) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.is_stalled = true;
        if let LaneOrigin::Path(subflow) = lane.origin {
            self.paths.stalled(subflow, now);
        }
    }

    /// A stalled lane delivers again.
    pub(crate) fn on_recovered(&mut self, key: LaneKey) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.is_stalled = false;
        if let LaneOrigin::Path(subflow) = lane.origin {
            self.paths.recovered(subflow);
        }
    }

    /// The path or the connection of a lane has failed.
    pub(crate) fn on_failed(&mut self, key: LaneKey, error: String, now: Instant) {
        let Some(lane) = self.lanes.get(key).filter(|_| self.tick.is_some()) else {
            return;
        };
        let (origin, is_up) = (lane.origin, lane.is_up);
        if is_up {
            self.record_failover(key, &error);
        }
        self.remove(key);
        self.facts.last_error = Some(error.clone());
        self.lost(origin, Failure::Closed, error, now);
    }

    /// Whether what comes of a dial is still wanted.
    fn take_dial(&mut self, origin: LaneOrigin) -> bool {
        let is_dialed = match origin {
            LaneOrigin::Path(subflow) => self.dialing.remove(&subflow),
            LaneOrigin::PlainIp(_) => true,
        };
        is_dialed && !self.is_over()
    }

    /// Over one path there is another host than over others, or at a guessed address.
    fn on_other_key(&mut self, origin: LaneOrigin, key: PeerKey, now: Instant) {
        let peer = self.peer;
        match origin {
            LaneOrigin::Path(_) => self.end(Some(SessionError::OtherKey { peer, key })),
            // Other networks may have hosts with the same address.
            LaneOrigin::PlainIp(to) => {
                let error = format!("plain IP to {to}: another host answers, with the key {key}");
                self.facts.last_error = Some(error.clone());
                self.lost(origin, Failure::Failed, error, now);
            }
        }
    }

    /// Records that a lane has ended, or was not connected.
    fn lost(&mut self, origin: LaneOrigin, failure: Failure, error: String, now: Instant) {
        match origin {
            LaneOrigin::Path(subflow) => self.paths.lost(subflow, failure, error, now),
            LaneOrigin::PlainIp(_) => self.plain_ip.iter_mut().for_each(|one| one.lost(now)),
        }
    }

    fn record_failover(&mut self, lane: LaneKey, reason: &str) {
        if let Some(slot) = self.lanes.slot_of(lane) {
            let reason = reason.to_owned();
            self.actions.push(Action::Failover { lane, slot, reason });
        }
    }

    /// Removes a lane. The other side learns of it over the other lanes: its own path may be dead.
    pub(super) fn remove(&mut self, key: LaneKey) {
        let Some(placed) = self.lanes.remove(key) else {
            return;
        };
        self.actions.push(Action::Close(key));
        if let Some((slot, epoch)) = placed {
            self.report_down(slot, epoch);
        }
    }

    fn report_down(&mut self, slot: Slot, epoch: Epoch) {
        for lane in self.lanes.keys() {
            let message = Message::Down { slot, epoch };
            self.actions.push(Action::Send { lane, message });
        }
    }

    /// Warns of interfaces that paths share, once of each.
    fn warn_of_shared(&mut self) {
        let shared = shared::shared(self.lanes.used_paths());
        for (paths, interfaces) in self.facts.warn(shared) {
            self.actions
                .push(Action::WarnOfShared { paths, interfaces });
        }
    }
}
