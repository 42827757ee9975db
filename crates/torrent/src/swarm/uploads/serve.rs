//! Finding out which side of a connection chooses the paths, and serving downloaders over the paths
//! that the path manager assigns them.

use std::time::{Duration, Instant};

use hawser_address::PeerAddr;
use hawser_manager::{Carried, Failure, SelectBy};

use super::{Announcement, Downloader, Known};
use crate::picker::{ConnId, GroupId};
use crate::swarm::conn::Conn;
use crate::swarm::state::Swarm;
use crate::swarm::subflow::{Dialed, Peer};
use crate::transport::Transport;
use crate::wire::Multipath;

/// Longest time that a peer which understands extended messages may take to offer itself as a
/// downloader; after that it is served over any connection it opens.
const OFFER_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest time that an uploader may take to announce that it chooses; then paths are chosen here.
const NO_ANSWER: Duration = Duration::from_secs(2);

impl Conn {
    /// When the next time is over that the peer has to say which side chooses paths; `None` after the last.
    pub(in crate::swarm) fn decision_due(&self, now: Instant) -> Option<Instant> {
        let ends = [OFFER_TIMEOUT, NO_ANSWER].map(|time| self.since + time);
        ends.into_iter().find(|end| *end > now)
    }
}

impl<T: Transport> Swarm<T> {
    /// Whether the uploader chooses the paths to a peer. To an IP peer there is only one path.
    pub(in crate::swarm) fn is_multipath(&self, peer: PeerAddr) -> bool {
        self.dialing.select_by == SelectBy::Uploader && peer.scion().is_some()
    }

    /// Handles a new connection: decides whether the peer may request blocks at once.
    pub(in crate::swarm) fn greet(&mut self, id: ConnId, now: Instant) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        if let Some(Dialed { to, subflow, .. }) = conn.dialed {
            self.dialing.subflows.insert(to, subflow, id);
        }
        match conn.dialed {
            Some(Dialed {
                to: Peer::Downloader(_),
                subflow,
                ..
            }) => {
                conn.serving.subflow = Some(subflow);
                self.uploads.sharing.connected(subflow);
                conn.unchoke();
            }
            _ => {
                if !(conn.serving.ours && conn.serving.extended) {
                    conn.unchoke();
                }
                self.serve_over(id);
            }
        }
        self.settle(now);
    }

    /// Handles the extended handshake of a peer; `multipath` is its id for `scion_multipath`.
    pub(in crate::swarm) fn introduced(&mut self, id: ConnId, multipath: Option<u8>, now: Instant) {
        let wants = !self.is_complete();
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        conn.serving.introduced = true;
        conn.serving.multipath = multipath.filter(|_| conn.serving.ours);
        let group = conn.group;
        match conn.serving.multipath {
            Some(_) => {
                let path = conn.connection.fingerprint();
                if let Some(Known { downloader, .. }) = self.uploads.known.get(&group)
                    && let Some(offered) = self.uploads.sharing.path(*downloader, path)
                    && let Some(decision) = self.uploads.sharing.decision(*downloader, path)
                {
                    conn.announce(&offered.as_ref().interfaces, &decision.reason);
                }
                if wants {
                    self.offer_over(id, group);
                }
            }
            None if !self.uploads.has(group) => conn.unchoke(),
            None => {}
        }
        self.settle(now);
    }

    /// Offers this side as a downloader, over one connection to each peer.
    fn offer_over(&mut self, id: ConnId, group: GroupId) {
        let mut siblings = self.conns.open.values().filter(|conn| conn.group == group);
        if siblings.any(|conn| conn.serving.offered) {
            return;
        }
        let (addr, paths) = (self.net.transport.local(), self.dialing.options.subflows);
        if let Some(addr) = addr
            && let Some(conn) = self.conns.open.get_mut(&id)
        {
            conn.serving.offered = true;
            conn.send_multipath(&Multipath::Offer { addr, paths });
        }
    }

    /// Handles a `scion_multipath` message.
    pub(in crate::swarm) fn on_multipath(&mut self, id: ConnId, message: Multipath, now: Instant) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        match message {
            Multipath::Report { interfaces, reason } => {
                conn.serving.announced = Some(Announcement { interfaces, reason });
            }
            Multipath::Offer { addr, paths } if conn.serving.ours => {
                let from = conn.connection.peer();
                // Any other address would let a peer direct our packets at others.
                if PeerAddr::Scion(addr) != from {
                    tracing::warn!(peer = %from, offered = %addr,
                        "a peer offers an address that it does not speak from: refused");
                    conn.unchoke();
                    return;
                }
                let (group, peer) = (conn.group, conn.peer);
                let has_slot = self.uploads.choker.is_unchoked(peer);
                self.add_downloader(Downloader { group, addr }, paths, has_slot, now);
                self.settle(now);
            }
            Multipath::Offer { .. } => {}
        }
    }

    /// Unchokes peers that do not offer themselves as downloaders in time, and chooses paths to
    /// uploaders that do not choose.
    fn decide_for_silent_peers(&mut self, now: Instant) {
        for conn in self.conns.open.values_mut() {
            let age = now.saturating_duration_since(conn.since);
            if age >= OFFER_TIMEOUT && !self.uploads.has(conn.group) {
                conn.unchoke();
            }
            let Some((remote, _)) = conn.remote() else {
                continue;
            };
            let serving = &conn.serving;
            let answered = serving.introduced || age >= NO_ANSWER || !serving.extended;
            let chooses = serving.multipath.is_some() || !answered;
            let remote = self.dialing.remotes.get_mut(&remote);
            if remote.is_some_and(|remote| !chooses && remote.paths.choose_here()) {
                tracing::info!(peer = %conn.connection.peer(),
                    "the peer does not choose paths for its uploads: chosen here");
            }
        }
    }

    /// Adds a downloader that takes at most `max` paths. A known one may change `max`, but not its
    /// address. `has_slot` says whether it may be served now.
    fn add_downloader(&mut self, downloader: Downloader, max: usize, has_slot: bool, now: Instant) {
        let known = self.uploads.known.get(&downloader.group);
        if known.is_none_or(|known| known.downloader == downloader) {
            self.uploads.sharing.join(downloader, max, now);
            self.uploads.sharing.set_choked(downloader, !has_slot);
        }
        if known.is_some() {
            return;
        }
        let addr = downloader.addr.into();
        let watch = self.net.watch(Peer::Downloader(downloader), addr);
        let known = Known { downloader, watch };
        self.uploads.known.insert(downloader.group, known);
        let conns = self.conns.open.iter();
        let conns = conns.filter(|(_, conn)| conn.group == downloader.group);
        let conns: Vec<ConnId> = conns.map(|(id, _)| *id).collect();
        conns.into_iter().for_each(|id| self.serve_over(id));
    }

    /// Makes a connection that was not dialed for a downloader one of its subflows, if it leads to
    /// one.
    fn serve_over(&mut self, id: ConnId) {
        let Some(conn) = self.conns.open.get_mut(&id) else {
            return;
        };
        let path = conn.connection.fingerprint();
        if let Some(Known { downloader, .. }) = self.uploads.known.get(&conn.group)
            && let Some(subflow) = self.uploads.sharing.accepted(*downloader, path)
        {
            conn.serving.subflow = Some(subflow);
            let peer = Peer::Downloader(*downloader);
            self.dialing.subflows.insert(peer, subflow, id);
        }
    }

    /// Handles the end of a connection. A downloader without connections has left.
    pub(in crate::swarm) fn unserve(&mut self, conn: &Conn, now: Instant) {
        let Some(known) = self.uploads.known.get(&conn.group) else {
            return;
        };
        let peer = Peer::Downloader(known.downloader);
        if let Some(subflow) = conn.serving.subflow {
            self.dialing.subflows.remove(peer, subflow);
            let why = "its connection ended";
            self.uploads
                .sharing
                .lost(subflow, Failure::Closed, why, now);
        }
        let mut others = self.conns.open.values();
        if others.all(|other| other.group != conn.group) {
            known.watch.abort();
            self.dialing.leave(peer);
            self.uploads.sharing.leave(known.downloader);
            self.uploads.known.remove(&conn.group);
        }
    }

    /// Makes the connections of downloaders match the present assignment of paths.
    pub(in crate::swarm) fn settle(&mut self, now: Instant) {
        self.decide_for_silent_peers(now);
        let (conns, subflows) = (&self.conns.open, &self.dialing.subflows);
        let carried = |downloader, subflow| {
            let conn = subflows.conn(Peer::Downloader(downloader), subflow);
            let conn = conn.and_then(|id| conns.get(&id));
            Carried {
                bytes: conn.map_or(0, Conn::uploaded),
                usable: conn.is_some(),
            }
        };
        for (downloader, order) in self.uploads.sharing.tick(carried, now) {
            tracing::debug!(peer = %downloader, path = %order.path, action = ?order.action,
                cause = %order.cause, "ordered");
            self.carry_out(Peer::Downloader(downloader), &order, now);
        }
        for (downloader, path, decision) in self.uploads.sharing.changes() {
            tracing::debug!(peer = %downloader, %path, %decision, "path weighed");
            let Some(offered) = self.uploads.sharing.path(downloader, path) else {
                continue;
            };
            for conn in self.conns.open.values_mut() {
                if conn.group == downloader.group && conn.connection.fingerprint() == path {
                    conn.announce(&offered.as_ref().interfaces, &decision.reason);
                }
            }
        }
    }
}
