//! Peers that are found while a torrent runs, by others or from peers: dialed as there is room, and given
//! up when they are of no use.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use hawser_address::PeerAddr;
use tokio::sync::mpsc;

use super::conn::Conn;
use super::event::Event;
use super::remotes::{Remote, RemoteId};
use super::state::Swarm;
use super::subflow::{Dialed, Peer};
use crate::close::CloseCode;
use crate::picker::ConnId;
use crate::source::{Found, PeerSource};
use crate::transport::Transport;
use crate::wire::{AddrKind, Exchange, Message};

/// Most found peers that are dialed or connected at once, as many as libtorrent's default for a torrent
/// allows to be connected.
const MAX_FOUND: usize = 60;

/// A found peer whose first dial failed is given up at this age: over a SCION path that works, and from a
/// peer that answers at all, the handshake takes less.
const MIN_TRIED: Duration = Duration::from_secs(2);

/// The age at which one is given up that did not answer and is to be dialed in another way: the time of a
/// handshake that does not come, and of some dials.
const MIN_TRIED_OTHERWISE: Duration = Duration::from_secs(30);

/// Most addresses that are taken from one connection, so that no peer alone decides which are known.
const MAX_TAKEN: usize = 400;

/// The text of a close of a second connection to the same peer.
const DUPLICATE: &str = "connected already";

impl<T: Transport> Swarm<T> {
    /// Dials peers that `found` gives while it runs.
    pub fn find_peers(&mut self, mut found: mpsc::Receiver<Found>) {
        self.ending.finds_peers = true;
        let events = self.net.events.clone();
        self.net.tasks.spawn(async move {
            while let Some((peers, source)) = found.recv().await {
                if events.send(Event::Found(peers, source)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Takes note of peers that were found.
    pub(super) fn found(&mut self, peers: Vec<PeerAddr>, source: PeerSource, now: Instant) {
        let own = self.net.transport.local().map(PeerAddr::Scion);
        for addr in peers {
            let remotes = &self.dialing.remotes;
            let is_listed = remotes.values().any(|remote| remote.addr == addr);
            let transport = &self.net.transport;
            if !is_listed && own != Some(addr) && transport.reaches(addr) {
                self.dialing.found.add(addr, source, now);
            }
        }
    }

    /// Dials found peers as far as there is room; once nothing is missing, only IP peers, as this side may be
    /// behind a router that lets none of them connect. SCION peers, which choose their paths themselves,
    /// connect then. Gives up those that cannot be reached.
    pub(super) fn recruit(&mut self, now: Instant) {
        if !self.ending.finds_peers {
            return;
        }
        self.dismiss_unreachable(now);
        let is_complete = self.is_complete();
        let remotes = self.dialing.remotes.values();
        let found = remotes.filter(|remote| remote.is_found()).count();
        let conns = self.conns.open.values();
        let connected: HashSet<RemoteId> =
            conns.filter_map(|conn| Some(conn.remote()?.0)).collect();
        let remotes = self.dialing.remotes.iter();
        let dialing = remotes.filter(|(id, it)| it.is_found() && !connected.contains(*id));
        let free = self.conns.free_places(dialing.count());
        for _ in 0..MAX_FOUND.saturating_sub(found).min(free) {
            let conns = &self.conns.open;
            let skip = |addr: PeerAddr| {
                let connects_itself = is_complete && addr.scion().is_some();
                connects_itself || conns.values().any(|conn| conn.listens_at() == Some(addr))
            };
            let Some(addr) = self.dialing.found.take(now, skip) else {
                return;
            };
            self.dial_found(addr, now);
        }
    }

    /// Begins to dial a found peer.
    fn dial_found(&mut self, addr: PeerAddr, now: Instant) {
        let id = self.dialing.add(addr, Some(now));
        let watch = self.net.watch(Peer::Remote(id), addr);
        let is_complete = self.is_complete();
        if let Some(remote) = self.dialing.remotes.get_mut(&id) {
            remote.watch = Some(watch);
            if is_complete {
                remote.set_complete(false);
            }
        }
        tracing::debug!(peer = %addr, known = self.dialing.found.len(), "found peer is dialed");
    }

    /// Gives up found peers that have no connection and whose last dial failed.
    fn dismiss_unreachable(&mut self, now: Instant) {
        let remotes = self.dialing.remotes.iter();
        let given_up = remotes.filter(|(_, remote)| {
            let age = match self.net.transport.has_other_way(remote.addr) {
                true => MIN_TRIED_OTHERWISE,
                false => MIN_TRIED,
            };
            remote.is_given_up(age, now)
        });
        let given_up: Vec<RemoteId> = given_up.map(|(id, _)| *id).collect();
        for id in given_up {
            self.dismiss(id, now);
        }
    }

    /// Forgets a found peer. It may be dialed again after a backoff, unless it is banned.
    pub(super) fn dismiss(&mut self, id: RemoteId, now: Instant) {
        let Some(remote) = self.dialing.remotes.remove(&id) else {
            return;
        };
        self.dialing.leave(Peer::Remote(id));
        if let Some(watch) = &remote.watch {
            watch.abort();
        }
        let found = &mut self.dialing.found;
        match &remote.banned {
            Some(_) => found.ban(remote.addr),
            None => found.release(remote.addr, remote.carried() > 0, now),
        }
        tracing::debug!(peer = %remote.addr, why = remote.trouble(), "found peer is given up");
        remote.summaries().for_each(|path| self.tally.carried(path));
    }

    /// Whether a new session is a second connection to a peer that is connected already, and is to be
    /// closed. A peer is known by the id in its handshake together with its host, as others can send the
    /// same id. Listed peers are dialed as long as the torrent runs, whatever they open themselves.
    pub(super) fn is_duplicate(&self, new: &crate::peer::Session, dialed: Option<Dialed>) -> bool {
        let Some(host) = new.connection.peer().ip().map(|addr| addr.ip()) else {
            return false;
        };
        let is_listed = matches!(dialed, Some(Dialed { to: Peer::Remote(id), .. })
            if self.dialing.remotes.get(&id).is_some_and(|remote| !remote.is_found()));
        if !self.ending.finds_peers || is_listed {
            return false;
        }
        let ours_is_larger = self.shared.ours.peer_id.0 > new.peer_id.0;
        self.conns.open.values().any(|old| {
            let from = old.connection.peer().ip().map(|addr| addr.ip());
            let is_same = old.theirs.id == new.peer_id && from == Some(host);
            is_same && is_surplus(dialed.is_some(), old.dialed.is_some(), ours_is_larger)
        })
    }

    /// Closes a session that is a duplicate. A found peer is not dialed again soon.
    pub(super) fn refuse_duplicate(&mut self, new: &crate::peer::Session, dialed: Option<Dialed>) {
        new.connection.close(CloseCode::Plain, DUPLICATE);
        if let Some(Dialed {
            to: Peer::Remote(id),
            ..
        }) = dialed
        {
            self.dismiss(id, Instant::now());
        }
    }
}

/// Whether a new connection is closed for an older one to the same peer, each dialed by this side or not. Of
/// two that the sides opened, neither closes the one opened by the side with the larger id.
fn is_surplus(dialed: bool, old_dialed: bool, ours_is_larger: bool) -> bool {
    dialed == old_dialed || dialed != ours_is_larger
}

impl<T: Transport> Swarm<T> {
    /// Handles the id under which a peer takes the addresses of others; `None` if it takes none.
    pub(super) fn exchange_with(&mut self, conn: ConnId, id: Option<u8>, now: Instant) {
        let Some(known) = self.conns.open.get(&conn) else {
            return;
        };
        let kind = AddrKind::of(known.connection.peer());
        match id {
            Some(id) if self.exchanges_peers() => self.conns.exchanges.join(conn, kind, id, now),
            _ => self.conns.exchanges.leave(conn),
        }
    }

    /// Tells peers of each other from now on, and dials those that they name.
    pub fn exchange_peers(&mut self) {
        self.ending.finds_peers = true;
        self.ending.exchanges_peers = true;
    }

    /// Whether peers are told of each other. Those of a private torrent are not (BEP 27).
    pub(super) fn exchanges_peers(&self) -> bool {
        self.ending.exchanges_peers
            && !self.metainfo.private
            && self.net.transport.exchanges_peers()
    }

    /// Tells a peer the port of the node of the DHT that it can ask (BEP 5).
    pub(super) fn name_node(&self, conn: &Conn) {
        let dht = self.net.transport.dht();
        let port = dht.and_then(|dht| dht.port(conn.connection.peer()));
        conn.send(port.map(Message::Port));
    }

    /// A peer has named the port of its node of the DHT.
    pub(super) fn on_dht_port(&mut self, conn: ConnId, port: u16) {
        if let Some(known) = self.conns.open.get_mut(&conn)
            && !std::mem::replace(&mut known.theirs.has_named_node, true)
            && let Some(dht) = self.net.transport.dht()
        {
            dht.name(known.connection.peer(), port);
        }
    }

    /// Sends the messages that are due.
    pub(super) fn exchange(&mut self, now: Instant) {
        if !self.exchanges_peers() {
            // It was switched off.
            self.conns.exchanges.clear();
            return;
        }
        let open = &self.conns.open;
        let peers = || {
            let peers = open.iter();
            let peers = peers.filter_map(|(id, conn)| Some((*id, conn.listens_at()?)));
            peers.collect()
        };
        for (id, message) in self.conns.exchanges.due(peers, now) {
            if let Some(conn) = self.conns.open.get(&id) {
                conn.send([message]);
            }
        }
    }

    /// Takes the addresses that a peer sent.
    pub(super) fn on_exchange(&mut self, conn: ConnId, exchange: Exchange, now: Instant) {
        let exchanges = self.exchanges_peers();
        let Some(known) = self.conns.open.get_mut(&conn).filter(|_| exchanges) else {
            return;
        };
        let room = MAX_TAKEN - known.theirs.peers_taken;
        let mut added = exchange.added;
        added.truncate(room);
        known.theirs.peers_taken += added.len();
        self.found(added, PeerSource::Exchange, now);
    }
}

impl Conn {
    /// The address at which the peer accepts connections, if it is known: the one that was dialed, or that
    /// of its host with the port in its extended handshake.
    pub(super) fn listens_at(&self) -> Option<PeerAddr> {
        let mut addr = self.connection.peer();
        if self.dialed.is_none() {
            let port = self.theirs.port?;
            match &mut addr {
                PeerAddr::Scion(addr) => addr.host.set_port(port),
                PeerAddr::Ip(addr) => addr.set_port(port),
            }
        }
        addr.is_reachable().then_some(addr)
    }
}

impl<P: AsRef<hawser_path::Path> + Clone> Remote<P> {
    /// Whether it was found while the torrent ran, so that it may be given up.
    pub fn is_found(&self) -> bool {
        self.found_at.is_some()
    }

    /// Whether it was found, is of this age, and neither connected nor being dialed after a failure.
    fn is_given_up(&self, age: Duration, now: Instant) -> bool {
        let Some(found_at) = self.found_at else {
            return false;
        };
        let mut paths = self.paths.paths();
        let is_active = paths.any(|path| path.open.is_some() || path.dialing.is_some());
        let failed = self.banned.is_some()
            || self.no_path.is_some()
            || self.paths.last_error().is_some()
            || self.paths.trouble().is_some();
        !is_active && failed && now.saturating_duration_since(found_at) >= age
    }

    /// Bytes of blocks received from it over the connections that were dialed.
    fn carried(&self) -> u64 {
        self.paths.paths().map(|path| path.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_close_the_same_one_of_two_connections() {
        for ours_is_larger in [true, false] {
            let (ours, theirs) = (
                is_surplus(true, false, ours_is_larger),
                is_surplus(false, true, ours_is_larger),
            );
            // The one that this side opened is accepted there, and the other way round.
            assert_eq!(ours, is_surplus(false, true, !ours_is_larger));
            assert_eq!(theirs, is_surplus(true, false, !ours_is_larger));
            assert_ne!(ours, theirs);
            // Of two that one side opened, the older one stays.
            assert!(is_surplus(true, true, ours_is_larger));
            assert!(is_surplus(false, false, ours_is_larger));
        }
    }
}
