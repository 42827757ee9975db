//! Choosing the paths over which others download from us (001, section VI).
//!
//! Who downloads opens one connection and offers its address. We look up the paths to it, give it
//! some that overlap as little as possible with those given to others, connect back over them, and
//! choke the connections over all others: they stay open and wait.

mod back;
mod downloader;
mod rates;
mod terms;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_manager::SelectBy;
use hawser_path::{Decision, Fingerprint, Reason, SenseOptions, SensingAssignment, Verdict};
use tokio::task::AbortHandle;

use self::back::Back;
use self::downloader::Downloader;
use self::rates::Slot;
pub(super) use self::terms::{Terms, Told};
use super::conn::Origin;
use super::policy::denied;
use super::remotes::Offered;
use super::{Event, Swarm};
use crate::address::PeerAddr;
use crate::close::Closed;
use crate::picker::{ConnId, GroupId};
use crate::transport::{Connection, Transport};
use crate::wire::{Message, Multipath};

/// How often waiting paths are given out anew, as time slots of downloads are long (000, 3.3).
const TURN: Duration = Duration::from_secs(10);

/// A peer that understands extended messages has so long to say whether it leaves the choice to us;
/// after that it is served over whatever it opens.
const UNDECIDED: Duration = Duration::from_secs(1);

/// An uploader has so long to say that it chooses; after that we do.
const NO_ANSWER: Duration = Duration::from_secs(2);

/// Connections over what was given to a peer have so long to come up before it is served over what
/// it opened itself. What was sent there by then still crosses links that others were given.
const BRIDGE: Duration = Duration::from_secs(1);

/// Most connections we open to peers that download from us.
const MOST_BACK: usize = 500;

/// Who downloads from us over paths that we choose.
pub(super) struct Uploads<P> {
    assignment: SensingAssignment<Who>,
    peers: BTreeMap<GroupId, (Downloader<P>, AbortHandle)>,
    /// Dials under way.
    backs: HashMap<u64, Back>,
    turn_at: Instant,
    slot: Slot,
}

/// A peer, printed as its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Who {
    group: GroupId,
    addr: ScionAddr,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.addr, f)
    }
}

/// A connection as far as giving out paths is concerned.
struct Line {
    id: ConnId,
    fingerprint: Fingerprint,
    origin: Origin,
}

impl<P: AsRef<hawser_path::Path> + Clone> Uploads<P> {
    /// Nobody yet; `sensing` tells whether paths that share interfaces with those given out are
    /// tried.
    pub fn new(sensing: bool, now: Instant) -> Self {
        Self {
            assignment: SensingAssignment::new(sensing.then(SenseOptions::default)),
            peers: BTreeMap::new(),
            backs: HashMap::new(),
            turn_at: now + TURN,
            slot: Slot::new(now),
        }
    }

    /// Why a path is given to a peer, or not.
    pub fn decision(&self, group: GroupId, fingerprint: Fingerprint) -> Option<Decision> {
        let mut decisions = self.assignment.decisions(self.who(group)?).into_iter();
        let of = decisions.find(|(path, _)| *path == fingerprint);
        of.map(|(_, decision)| decision)
    }

    /// The paths to a peer over which it gets nothing, and why.
    pub fn left(&self) -> Vec<(GroupId, ScionAddr, Fingerprint, Decision)> {
        let of = |(group, (peer, _)): (&GroupId, &(Downloader<P>, AbortHandle))| {
            let (group, addr) = (*group, peer.addr);
            let decisions = self.assignment.decisions(Who { group, addr });
            let left = decisions.into_iter();
            let left = left.filter(|(_, decision)| decision.verdict != Verdict::Taken);
            let all: Vec<_> = left.chain(peer.unavailable()).collect();
            all.into_iter()
                .map(move |(path, decision)| (group, addr, path, decision))
        };
        self.peers.iter().flat_map(of).collect()
    }

    fn who(&self, group: GroupId) -> Option<Who> {
        let (peer, _) = self.peers.get(&group)?;
        Some(Who {
            group,
            addr: peer.addr,
        })
    }

    fn abort(&mut self, attempt: u64) {
        if let Some(back) = self.backs.remove(&attempt) {
            back.task.abort();
        }
    }

    /// A peer has left.
    fn remove(&mut self, group: GroupId) {
        let who = self.who(group);
        if let Some((_, watch)) = self.peers.remove(&group) {
            watch.abort();
        }
        let gone: Vec<u64> = self
            .backs
            .iter()
            .filter(|(_, back)| back.group == group)
            .map(|(attempt, _)| *attempt)
            .collect();
        gone.into_iter().for_each(|attempt| self.abort(attempt));
        if let Some(who) = who {
            self.assignment.remove_peer(who);
        }
    }
}

impl<T: Transport> Swarm<T> {
    /// Whether we let uploaders choose, and choose where we upload, at a peer. The way to an IP
    /// peer nobody chooses.
    pub(super) fn is_multipath(&self, peer: PeerAddr) -> bool {
        self.goal.select_by == SelectBy::Uploader && peer.scion().is_some()
    }

    fn is_multipath_over(&self, id: ConnId) -> bool {
        let conn = self.conns.get(&id);
        conn.is_some_and(|conn| self.is_multipath(conn.connection.peer()))
    }

    /// A new connection: whether the peer may ask for blocks at once.
    pub(super) fn greet(&mut self, id: ConnId, now: Instant) {
        let multipath = self.is_multipath_over(id);
        if let Some(conn) = self.conns.get_mut(&id)
            && !(multipath && conn.terms.extended)
        {
            conn.unchoke();
        }
        self.settle(now);
    }

    /// A peer said in its extended handshake under which id it takes `scion_multipath`.
    pub(super) fn introduced(&mut self, id: ConnId, multipath: Option<u8>, now: Instant) {
        let ours = self.is_multipath_over(id);
        let wants = !self.is_complete();
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        conn.terms.heard = true;
        conn.terms.multipath = multipath.filter(|_| ours);
        let group = conn.group;
        let mut siblings = self.conns.values().filter(|conn| conn.group == group);
        let first = !siblings.any(|conn| conn.terms.offered);
        let (addr, paths) = (self.transport.local(), self.goal.paths);
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let addr = addr.filter(|_| first && wants);
        match (conn.terms.multipath, addr) {
            (Some(multipath), Some(addr)) => {
                conn.terms.offered = true;
                let offer = Multipath::Offer { addr, paths };
                conn.send([Message::Extended {
                    id: multipath,
                    payload: offer.encode().into(),
                }]);
            }
            (Some(_), None) => {}
            (None, _) => {
                if !self.uploads.peers.contains_key(&group) {
                    conn.unchoke();
                }
            }
        }
        self.settle(now);
    }

    /// A peer said something of paths.
    pub(super) fn heard_multipath(&mut self, id: ConnId, message: Multipath, now: Instant) {
        let ours = self.is_multipath_over(id);
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        match message {
            Multipath::Told { interfaces, reason } => {
                conn.terms.told = Some(Told { interfaces, reason });
            }
            Multipath::Offer { addr, paths } if ours => {
                let from = conn.connection.peer();
                // Anything else would let a peer send our packets to others.
                if PeerAddr::Scion(addr) != from {
                    tracing::warn!(peer = %from, offered = %addr,
                        "a peer offers an address that it does not speak from: refused");
                    conn.unchoke();
                    return;
                }
                let group = conn.group;
                self.offered_back(group, addr, paths);
                self.settle(now);
            }
            Multipath::Offer { .. } => {}
        }
    }

    fn offered_back(&mut self, group: GroupId, addr: ScionAddr, most: usize) {
        if let Some((known, _)) = self.uploads.peers.get_mut(&group) {
            if known.addr == addr && known.most != most {
                known.most = most;
                known.changed = true;
            }
            return;
        }
        let (transport, events) = (self.transport.clone(), self.events.clone());
        let watch = self.tasks.spawn(async move {
            let mut offers = transport.offers(addr.into());
            loop {
                let paths = Arc::clone(&offers.borrow_and_update());
                if paths.is_empty()
                    && let Err(why) = transport.lookup(addr.into()).await
                {
                    tracing::info!(peer = %addr, why, "not connected back to");
                }
                let event = Event::Ways { group, addr, paths };
                if events.send(event).await.is_err() || offers.changed().await.is_err() {
                    return;
                }
            }
        });
        let downloader = Downloader::new(addr, most, &self.goal.select);
        self.uploads.peers.insert(group, (downloader, watch));
    }

    /// The set of paths to who downloads changed.
    pub(super) fn ways(
        &mut self,
        group: GroupId,
        addr: ScionAddr,
        paths: &Offered<T::Path>,
        now: Instant,
    ) {
        let Some((known, _)) = self.uploads.peers.get_mut(&group) else {
            return;
        };
        // It left, and came back from elsewhere.
        if known.addr != addr {
            return;
        }
        let transport = &self.transport;
        let denied = denied(self.goal.policy.as_ref(), paths);
        let gone = known.offer(paths, |path| {
            match denied.get(&path.as_ref().fingerprint()) {
                Some(reason) => Err(reason.clone()),
                None => {
                    let fits = transport.fits(addr.into(), path);
                    fits.map_err(|why| Reason::Unfit { why })
                }
            }
        });
        gone.into_iter().for_each(|id| self.uploads.abort(id));
        self.settle(now);
    }

    /// Brings everything in line with what is now: who is there, which paths are given to whom,
    /// which connections that needs, and which may be asked for blocks.
    pub(super) fn settle(&mut self, now: Instant) {
        self.decide_where_nobody_does(now);
        let mut lines: HashMap<GroupId, Vec<Line>> = HashMap::new();
        for (id, conn) in &mut self.conns {
            lines.entry(conn.group).or_default().push(Line {
                id: *id,
                fingerprint: conn.connection.fingerprint(),
                origin: conn.origin,
            });
            let waited = now.saturating_duration_since(conn.terms.since) >= UNDECIDED;
            if waited && !self.uploads.peers.contains_key(&conn.group) {
                conn.unchoke();
            }
        }
        let groups: Vec<GroupId> = self.uploads.peers.keys().copied().collect();
        for group in groups {
            match lines.get(&group) {
                Some(lines) => self.follow(group, lines, now),
                None => self.uploads.remove(group),
            }
        }
        if now >= self.uploads.turn_at {
            self.uploads.turn_at = now + TURN;
            self.uploads.assignment.turn();
        }
        self.end_slot_of_uploads(now);
        let groups: Vec<GroupId> = self.uploads.peers.keys().copied().collect();
        for group in groups {
            self.serve(group, lines.get(&group).map_or(&[], Vec::as_slice), now);
        }
    }

    /// Looks at the connections to a peer and gives out its paths anew if that changes anything.
    fn follow(&mut self, group: GroupId, lines: &[Line], now: Instant) {
        let Some((peer, _)) = self.uploads.peers.get_mut(&group) else {
            return;
        };
        let lost: Vec<Fingerprint> = peer
            .ways
            .iter()
            .filter(|(path, way)| way.up && lines.iter().all(|line| line.fingerprint != **path))
            .map(|(path, _)| *path)
            .collect();
        lost.into_iter()
            .for_each(|path| peer.failed(path, &Closed::plain("its connection ended"), now));
        peer.come_back(now);
        if std::mem::take(&mut peer.changed) {
            let (paths, most) = (peer.available(), peer.most);
            let addr = peer.addr;
            let who = Who { group, addr };
            self.uploads.assignment.set_peer(who, paths, most);
        }
    }

    /// Dials what was given to a peer, and chokes and unchokes its connections.
    fn serve(&mut self, group: GroupId, lines: &[Line], now: Instant) {
        let Some(who) = self.uploads.who(group) else {
            return;
        };
        let assigned = self.uploads.assignment.assigned(who);
        let is_up = |path: &Fingerprint| lines.iter().any(|line| line.fingerprint == *path);
        let Some((peer, _)) = self.uploads.peers.get_mut(&group) else {
            return;
        };
        let none = !peer.has_available();
        peer.apart_since = match assigned.is_empty() || assigned.iter().any(is_up) {
            true => None,
            false => peer.apart_since.or(Some(now)),
        };
        let apart = peer.apart_since;
        let idle = assigned.iter().filter(|path| !is_up(path));
        let due: Vec<Fingerprint> = idle
            .filter(|path| peer.ways.get(path).is_some_and(|way| way.attempt.is_none()))
            .copied()
            .collect();
        let taken_back: Vec<(Fingerprint, u64)> = peer
            .ways
            .iter()
            .filter(|(path, _)| !assigned.contains(path))
            .filter_map(|(path, way)| Some((*path, way.attempt?)))
            .collect();
        for (path, attempt) in taken_back {
            self.uploads.abort(attempt);
            self.clear_attempt(group, path);
        }
        due.into_iter().for_each(|path| self.dial_back(group, path));
        let bridge = none || apart.is_some_and(|since| now - since >= BRIDGE);
        let decisions = self.uploads.assignment.decisions(who);
        for line in lines {
            let back = matches!(line.origin, Origin::Back(_));
            let open = assigned.contains(&line.fingerprint) || (bridge && (none || !back));
            let Some(conn) = self.conns.get_mut(&line.id) else {
                continue;
            };
            let mut of = decisions.iter();
            if let Some((_, decision)) = of.find(|(path, _)| *path == line.fingerprint)
                && let Some((peer, _)) = self.uploads.peers.get(&group)
                && let Some(way) = peer.ways.get(&line.fingerprint)
            {
                conn.tell(&way.path.as_ref().interfaces, decision);
            }
            match open {
                true => conn.unchoke(),
                false => conn.choke(),
            }
        }
    }

    /// Uploaders that do not choose leave it to us.
    fn decide_where_nobody_does(&mut self, now: Instant) {
        for conn in self.conns.values() {
            let Origin::Dialed(dialed) = conn.origin else {
                continue;
            };
            let terms = &conn.terms;
            let late = now.saturating_duration_since(terms.since) >= NO_ANSWER;
            let silent = terms.multipath.is_none() && (terms.heard || late || !terms.extended);
            let remote = self.remotes.get_mut(dialed.remote).filter(|_| silent);
            if remote.is_some_and(|remote| remote.paths.choose_here()) {
                tracing::info!(peer = %conn.connection.peer(),
                    "the peer does not choose paths for its uploads: chosen here");
            }
        }
    }
}
