//! A driver of the sessions of other hosts on virtual time, which checks that each action makes sense.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::*;
use crate::choice::CarrierKind;

pub(super) const MS: Duration = Duration::from_millis(1);

/// The key of the host with this number.
pub(super) fn key(host: u8) -> PeerKey {
    PeerKey([host; 32])
}

/// The session of the host with this number that has this tag.
pub(super) fn session(host: u8, tag: u64) -> SessionId {
    let key = key(host);
    SessionId { key, tag }
}

/// What a lane is opened with, that is to be accepted.
pub(super) fn open(tag: u64, slot: Slot, epoch: u8) -> Open {
    Open {
        cipher: Cipher::Aes128Gcm.to_u8(),
        port: 31801,
        tag,
        slot,
        epoch: Epoch(epoch),
        carriers: CarrierSet::of(CarrierKind::Mptcp),
    }
}

/// A lane, as the driver has it.
#[derive(Debug)]
pub(super) struct Driven {
    pub session: SessionId,
    pub cipher: Cipher,
    pub sent: Vec<Message>,
    pub is_suspended: bool,
}

/// A driver.
pub(super) struct World {
    pub sessions: ServerSessions,
    pub now: Instant,
    next_lane: u64,
    /// The slot with which the connection that is being handled opens its lane.
    opening: Option<(LaneKey, Slot, Epoch)>,
    pub lanes: BTreeMap<LaneKey, Driven>,
    /// The lane under each slot, as packets have shown it.
    pub tables: BTreeMap<SessionId, Bindings>,
    pub published: BTreeMap<SessionId, Vec<Slot>>,
    pub refused: Vec<Refusal>,
    pub closed: Vec<(LaneKey, String)>,
    pub ended: Vec<(SessionId, String, Option<Refusal>)>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(ServerSettings {
            carriers: CarrierSet::of(CarrierKind::Quic).with(CarrierKind::Mptcp),
            cipher: Cipher::Aes128Gcm,
            announced: None,
        })
    }

    pub(super) fn with(settings: ServerSettings) -> Self {
        Self {
            sessions: ServerSessions::new(settings),
            now: Instant::now(),
            next_lane: 1,
            opening: None,
            lanes: BTreeMap::new(),
            tables: BTreeMap::new(),
            published: BTreeMap::new(),
            refused: Vec::new(),
            closed: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn new_lane(&mut self, slot: Slot, epoch: Epoch) -> LaneKey {
        let lane = LaneKey(self.next_lane);
        self.next_lane += 1;
        assert_eq!(self.opening.replace((lane, slot, epoch)), None);
        lane
    }

    /// A host that is allowed opens a lane.
    pub(super) fn open(&mut self, host: u8, open: Open) -> LaneKey {
        let peer = format!("1-ff00:0:{host},192.0.2.{host}:4000");
        self.open_from(&peer, host, open)
    }

    pub(super) fn open_from(&mut self, peer: &str, host: u8, open: Open) -> LaneKey {
        let lane = self.new_lane(open.slot, open.epoch);
        self.sessions.on_open(Opening {
            lane,
            peer: peer.parse().unwrap(),
            key: key(host),
            open,
            port: 31900,
        });
        self.settle();
        assert_eq!(self.opening, None, "neither accepted nor refused");
        lane
    }

    /// A host connects that is not allowed.
    pub(super) fn stranger(&mut self, host: u8) {
        let lane = self.new_lane(1, Epoch(1));
        self.sessions.on_not_allowed(lane, key(host));
        self.settle();
        assert_eq!(self.opening, None, "neither accepted nor refused");
    }

    /// A packet has arrived over a lane, which is under this slot. Other slots of the session may have
    /// been learned meanwhile.
    pub(super) fn packet(&mut self, lane: LaneKey, slot: Slot, epoch: Epoch) {
        let session = self.lanes[&lane].session;
        self.learn(session, lane, slot, epoch);
        self.report(session);
        self.settle();
    }

    /// As threads that carry packets do.
    fn learn(&mut self, session: SessionId, lane: LaneKey, slot: Slot, epoch: Epoch) {
        let table = self.tables.entry(session).or_default();
        let known = table.get(&slot);
        if known.is_none_or(|(_, known)| epoch.is_after(*known)) {
            table.insert(slot, (lane, epoch));
        }
    }

    fn report(&mut self, session: SessionId) {
        let table = self.tables.get(&session).cloned().unwrap_or_default();
        self.sessions.on_bindings(session, table);
    }

    pub(super) fn message(&mut self, lane: LaneKey, message: Message) {
        if let Some(session) = self.sessions.session_of(lane) {
            self.report(session);
        }
        self.sessions.on_message(lane, message, self.now);
        self.settle();
    }

    pub(super) fn fail(&mut self, lane: LaneKey) {
        let reason = "it failed".to_owned();
        self.sessions.on_failed(lane, reason, self.now);
        self.settle();
    }

    /// Only the hosts with these numbers are allowed, as a look shows.
    pub(super) fn look(&mut self, allowed: &[u8]) {
        self.sessions
            .on_allowed_keys(|one| allowed.iter().any(|host| key(*host) == *one));
        self.settle();
    }

    /// Lets time pass: the driver is called when something is due.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.sessions.next_due().filter(|due| *due <= end) {
            self.now = due;
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// Carries out all actions.
    pub(super) fn settle(&mut self) {
        loop {
            let actions = self.sessions.advance(self.now);
            if actions.is_empty() {
                break;
            }
            actions.into_iter().for_each(|action| self.obey(action));
        }
        self.check();
    }

    fn obey(&mut self, action: ServerAction) {
        match action {
            ServerAction::Accept {
                lane,
                session,
                cipher,
                answer,
            } => {
                let (opening, slot, epoch) = self.opening.take().expect("nobody opens one");
                assert_eq!(opening, lane);
                assert!(matches!(answer, Message::Accept { .. }));
                let driven = Driven {
                    session,
                    cipher,
                    sent: vec![answer],
                    is_suspended: false,
                };
                assert!(self.lanes.insert(lane, driven).is_none());
                self.learn(session, lane, slot, epoch);
                self.report(session);
            }
            ServerAction::Refuse { lane, refusal } => {
                assert_eq!(self.opening.take().map(|(lane, ..)| lane), Some(lane));
                self.refused.push(refusal);
            }
            ServerAction::Send { lane, message } => {
                let driven = self.lanes.get_mut(&lane).expect("sent after its end");
                driven.sent.push(message);
            }
            ServerAction::Close {
                lane,
                session,
                reason,
            } => {
                let driven = self.lanes.remove(&lane).expect("closed twice");
                assert_eq!(driven.session, session);
                self.closed.push((lane, reason));
                let table = self.tables.get_mut(&session).expect("it has ended");
                let mut unbound = Vec::new();
                table.retain(|slot, (under, epoch)| {
                    let stays = *under != lane;
                    unbound.extend((!stays).then_some((*slot, *epoch)));
                    stays
                });
                self.sessions.on_unbound(session, unbound);
                self.report(session);
            }
            ServerAction::SuspendPath(lane) => {
                self.lanes.get_mut(&lane).unwrap().is_suspended = true;
            }
            ServerAction::ResumePath(lane) => {
                self.lanes.get_mut(&lane).unwrap().is_suspended = false;
            }
            ServerAction::Publish { session, live, .. } => {
                assert!(self.tables.contains_key(&session), "it has ended");
                let before = self.published.insert(session, live.clone());
                assert_ne!(before.unwrap_or_default(), live, "published twice");
            }
            ServerAction::End {
                session,
                reason,
                refusal,
                ..
            } => {
                assert!(!reason.is_empty());
                self.tables.remove(&session).expect("it has ended");
                self.published.remove(&session);
                self.lanes.retain(|_, driven| driven.session != session);
                self.ended.push((session, reason, refusal));
            }
        }
    }

    /// What always holds.
    fn check(&self) {
        let sessions = &self.sessions;
        assert!(sessions.all.len() <= MAX_SESSIONS);
        let due = sessions.next_due();
        assert!(due.is_none_or(|due| due > self.now), "due in the past");
        // Both sides have the same sessions and lanes.
        let ids: BTreeSet<SessionId> = sessions.all.keys().copied().collect();
        assert!(ids.iter().eq(self.tables.keys()));
        let of_lane = |(lane, driven): (&LaneKey, &Driven)| (*lane, driven.session);
        let lanes: HashMap<LaneKey, SessionId> = self.lanes.iter().map(of_lane).collect();
        assert_eq!(sessions.lanes, lanes);
        let mut of_sessions: HashMap<SessionId, BTreeSet<LaneKey>> = HashMap::new();
        for (lane, session) in lanes {
            of_sessions.entry(session).or_default().insert(lane);
        }
        let mut expiring = BTreeSet::new();
        for (id, session) in &sessions.all {
            let of_session = of_sessions.remove(id).unwrap_or_default();
            assert_eq!(session.lanes, of_session);
            // A session without a lane ends, and no other one.
            assert_eq!(session.expires.is_some(), of_session.is_empty());
            expiring.extend(session.expires.map(|at| (at, *id)));
            // The holder follows what packets have shown, and lanes under slots are there.
            let table = &self.tables[id];
            assert_eq!(session.bindings, *table);
            assert!(table.values().all(|(lane, _)| of_session.contains(lane)));
            let published = self.published.get(id).into_iter().flatten();
            assert!(published.eq(table.keys()));
        }
        assert_eq!(sessions.expiring, expiring);
    }
}
