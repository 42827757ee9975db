//! The sessions that other hosts open with this one.
//!
//! # The life of one
//!
//! 1. It is made when a host whose key is allowed [opens](ServerSessions::on_open) the first lane. More
//!    lanes join it; those of the same host with another tag are of another session.
//! 2. The side that dials says which lane is under which slot, by what it sends over them. The threads
//!    that carry packets follow it at once, and the driver [reports](ServerSessions::on_bindings) it.
//! 3. Without a lane it is kept for [`SESSION_TIMEOUT`]: its peer may find another path, or be started again.
//! 4. It ends when the other host says so, when that time is over, or when the key of the other host is
//!    no longer allowed. [`ServerAction::End`] is the last action of it.
//!
//! One task drives them all (`carrier::server`): it reports events, calls
//! [`advance`](ServerSessions::advance) after each of them and at
//! [`next_due`](ServerSessions::next_due), and carries out the actions in their order. Nothing in here is
//! locked.

mod action;
mod id;
#[cfg(test)]
mod operations;
mod revocation;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_endhost::{ScionAddr, on_plain_ip};
use hawser_keys::{PeerKey, Revocations};
use hawser_seal::Cipher;

pub(crate) use self::action::{Refusal, ServerAction};
pub(crate) use self::id::SessionId;
use crate::address::Slot;
use crate::choice::CarrierSet;
use crate::protocol::{Epoch, Message, Open, RefusalCode};
use crate::session::lane_key::LaneKey;
use crate::session::published::Published;

/// Most sessions at once.
const MAX_SESSIONS: usize = 1024;
/// How long a session without a lane is kept: its peer may find another path, or be started again.
const SESSION_TIMEOUT: Duration = Duration::from_secs(600);

const REPORTED_DOWN: &str = "the other side receives nothing over it";
const VIOLATION: &str = "it breaks the protocol";

/// What all sessions begin with.
#[derive(Debug, Clone)]
pub(crate) struct ServerSettings {
    /// The carriers that this host has.
    pub carriers: CarrierSet,
    /// How this host seals its own datagrams.
    pub cipher: Cipher,
    /// Where other hosts may connect to over plain IP.
    pub announced: Option<SocketAddr>,
}

/// A connection that opens a lane, of a host whose key is allowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    /// The lane, if it is accepted.
    pub lane: LaneKey,
    /// The other host, and the key that it has shown.
    pub peer: ScionAddr,
    pub key: PeerKey,
    pub open: Open,
    /// The UDP port of this side's datagrams.
    pub port: u16,
}

/// The lane under each slot of a session.
pub(crate) type Bindings = BTreeMap<Slot, (LaneKey, Epoch)>;

/// A session that another host has opened.
#[derive(Debug)]
pub(crate) struct ServerSession {
    peer: ScionAddr,
    /// What the peer has its connections carried by.
    carriers: CarrierSet,
    lanes: BTreeSet<LaneKey>,
    /// As the threads that carry packets have learned them, when they were looked at last.
    bindings: Bindings,
    published: Published,
    /// When it is removed, if it has no lane.
    expires: Option<Instant>,
}

impl ServerSession {
    /// The other host: its SCION address, once it has connected from there.
    pub(crate) fn peer(&self) -> ScionAddr {
        self.peer
    }

    /// What the peer has its connections carried by.
    pub(crate) fn carriers(&self) -> CarrierSet {
        self.carriers
    }
}

/// All sessions that other hosts open.
pub(crate) struct ServerSessions {
    settings: ServerSettings,
    all: HashMap<SessionId, ServerSession>,
    /// The lanes of all sessions.
    lanes: HashMap<LaneKey, SessionId>,
    /// Those without a lane, by when they are removed.
    expiring: BTreeSet<(Instant, SessionId)>,
    revocations: Revocations<PeerKey>,
    actions: Vec<ServerAction>,
}

impl ServerSessions {
    /// No session.
    pub(crate) fn new(settings: ServerSettings) -> Self {
        Self {
            settings,
            all: HashMap::new(),
            lanes: HashMap::new(),
            expiring: BTreeSet::new(),
            revocations: Revocations::default(),
            actions: Vec::new(),
        }
    }

    /// When [`advance`](Self::advance) must be called even if nothing happens.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.expiring.first().map(|(at, _)| *at)
    }

    /// Decides what is to be done now. Must be called after each event, and again after its actions were
    /// carried out, until there are none.
    pub(crate) fn advance(&mut self, now: Instant) -> Vec<ServerAction> {
        while let Some((at, id)) = self.expiring.first().copied()
            && at <= now
        {
            self.end(id, "the other host has gone", None);
        }
        std::mem::take(&mut self.actions)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&ServerSession> {
        self.all.get(&id)
    }

    /// The session of a lane.
    pub(crate) fn session_of(&self, lane: LaneKey) -> Option<SessionId> {
        self.lanes.get(&lane).copied()
    }

    /// A host whose key is allowed opens a lane. It is accepted, or refused.
    pub(crate) fn on_open(&mut self, opening: Opening) {
        let Opening { lane, open, .. } = opening;
        let id = SessionId {
            key: opening.key,
            tag: open.tag,
        };
        let cipher = match self.judge(id, &open) {
            Ok(cipher) => cipher,
            Err(refusal) => return self.actions.push(ServerAction::Refuse { lane, refusal }),
        };
        let carriers = self.settings.carriers;
        let session = self.all.entry(id).or_insert_with(|| ServerSession {
            peer: opening.peer,
            carriers,
            lanes: BTreeSet::new(),
            bindings: Bindings::new(),
            published: Published::default(),
            expires: None,
        });
        // It may have been started again with another one.
        session.carriers = open.carriers.intersection(carriers);
        if on_plain_ip(session.peer).is_some() {
            session.peer = opening.peer;
        }
        if let Some(at) = session.expires.take() {
            self.expiring.remove(&(at, id));
        }
        session.lanes.insert(lane);
        self.lanes.insert(lane, id);
        let port = opening.port;
        self.actions.push(ServerAction::Accept {
            lane,
            session: id,
            cipher,
            answer: Message::Accept { port, carriers },
        });
        if let Some(address) = self.settings.announced {
            let message = Message::Announce { address };
            self.actions.push(ServerAction::Send { lane, message });
        }
    }

    /// The cipher of a lane that is opened, or why it is refused.
    fn judge(&self, id: SessionId, open: &Open) -> Result<Cipher, Refusal> {
        if open
            .carriers
            .intersection(self.settings.carriers)
            .is_empty()
        {
            return Err(Refusal::new(
                RefusalCode::CARRIER,
                "its shim carries no connections by MPTCP: use --carrier quic",
            ));
        }
        // Unsealed datagrams only if this host does not seal its own.
        let cipher = Cipher::from_u8(open.cipher)
            .filter(|cipher| *cipher != Cipher::Null || self.settings.cipher == Cipher::Null)
            .ok_or_else(|| {
                Refusal::new(RefusalCode::PROTOCOL, "the cipher is not accepted here")
            })?;
        if !self.all.contains_key(&id) && self.all.len() >= MAX_SESSIONS {
            return Err(Refusal::new(
                RefusalCode::TOO_MANY,
                "there are too many sessions",
            ));
        }
        Ok(cipher)
    }

    /// These lanes are under the slots of a session now. Must be reported before messages and after each
    /// change: when a lane was accepted, bound, or closed.
    pub(crate) fn on_bindings(&mut self, id: SessionId, bindings: Bindings) {
        let Some(session) = self.all.get_mut(&id) else {
            return;
        };
        session.bindings = bindings;
        let live = session.bindings.keys().copied().collect();
        if let Some(live) = session.published.update(live) {
            let (session, peer) = (id, session.peer);
            self.actions.push(ServerAction::Publish {
                session,
                peer,
                live,
            });
        }
    }

    /// A lane that was closed had these slots: the other host puts others under them.
    pub(crate) fn on_unbound(&mut self, id: SessionId, slots: Vec<(Slot, Epoch)>) {
        let Some(session) = self.all.get(&id) else {
            return;
        };
        for (slot, epoch) in slots {
            for lane in &session.lanes {
                self.actions.push(ServerAction::Send {
                    lane: *lane,
                    message: Message::Down { slot, epoch },
                });
            }
        }
    }

    /// A message has arrived over the connection of a lane. Those with packets are not for the session.
    pub(crate) fn on_message(&mut self, lane: LaneKey, message: Message, now: Instant) {
        let Some(id) = self.session_of(lane) else {
            return;
        };
        match message {
            Message::Down { slot, epoch } => {
                let session = self.all.get(&id);
                let binding = session.and_then(|session| session.bindings.get(&slot));
                // Its latest lane: an earlier one has given the slot up.
                if let Some((suspect, _)) = binding.filter(|(_, latest)| *latest == epoch) {
                    self.on_failed(*suspect, REPORTED_DOWN.to_owned(), now);
                }
            }
            Message::Bye => self.end(id, "the other host has ended it", None),
            Message::Segment { .. } | Message::Packet { .. } => {}
            Message::Open(_)
            | Message::Accept { .. }
            | Message::Refuse { .. }
            | Message::Announce { .. } => self.on_failed(lane, VIOLATION.to_owned(), now),
        }
    }

    /// Nothing comes back over a lane, and no other one works. The side that dials finds other paths.
    pub(crate) fn on_stalled(&mut self, lane: LaneKey) {
        if self.lanes.contains_key(&lane) {
            self.actions.push(ServerAction::SuspendPath(lane));
        }
    }

    /// A stalled lane delivers again.
    pub(crate) fn on_recovered(&mut self, lane: LaneKey) {
        if self.lanes.contains_key(&lane) {
            self.actions.push(ServerAction::ResumePath(lane));
        }
    }

    /// The path or the connection of a lane has failed.
    pub(crate) fn on_failed(&mut self, lane: LaneKey, reason: String, now: Instant) {
        let Some(id) = self.lanes.remove(&lane) else {
            return;
        };
        self.actions.push(ServerAction::Close {
            lane,
            session: id,
            reason,
        });
        if let Some(session) = self.all.get_mut(&id) {
            session.lanes.remove(&lane);
            if session.lanes.is_empty() {
                session.expires = Some(now + SESSION_TIMEOUT);
                self.expiring.insert((now + SESSION_TIMEOUT, id));
            }
        }
    }

    /// Ends a session; with a `refusal`, which the other host gets, at once.
    fn end(&mut self, id: SessionId, reason: &str, refusal: Option<Refusal>) {
        let Some(session) = self.all.remove(&id) else {
            return;
        };
        if let Some(at) = session.expires {
            self.expiring.remove(&(at, id));
        }
        for lane in &session.lanes {
            self.lanes.remove(lane);
        }
        self.actions.push(ServerAction::End {
            session: id,
            peer: session.peer,
            reason: reason.to_owned(),
            refusal,
        });
    }
}
