//! How many peers may be connected at a time, and which of them give way when there are more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use hawser_manager::Failure;
use tokio::sync::watch;

use super::conn::Conn;
use super::connections::Connections;
use super::event::Event;
use super::state::Swarm;
use crate::close::CloseCode;
use crate::picker::{ConnId, GroupId};
use crate::transport::{Connection, Transport};

/// Why a connection is closed, or not opened.
pub(super) const TOO_MANY_PEERS: &str = "as many peers are connected as may be";

/// How useful a peer is, over all its connections. The least one is closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    /// Bytes of blocks per second, in both directions.
    rate: u64,
    /// Bytes of blocks so far, in both directions.
    bytes: u64,
    /// Whether a side wants something of the other one.
    is_wanted: bool,
    /// Since when it is connected: of peers that are alike, the one that came last goes.
    since: Reverse<Instant>,
}

impl Worth {
    fn of(conn: &Conn, is_interesting: bool) -> Self {
        Self {
            rate: (conn.shown.down.rate + conn.shown.up.rate) as u64,
            bytes: conn.bytes + conn.uploaded(),
            is_wanted: is_interesting || conn.serving.is_wanted(),
            since: Reverse(conn.since),
        }
    }

    /// That of two connections to one peer.
    fn with(self, other: Self) -> Self {
        Self {
            rate: self.rate + other.rate,
            bytes: self.bytes + other.bytes,
            is_wanted: self.is_wanted || other.is_wanted,
            since: self.since.max(other.since),
        }
    }
}

impl Connections {
    /// How many peers are connected, each over any number of connections.
    fn peers(&self) -> usize {
        let peers: BTreeSet<GroupId> = self.open.values().map(|conn| conn.peer).collect();
        peers.len()
    }

    /// Whether no further peer may be connected.
    pub fn is_full(&self) -> bool {
        // A peer has a connection at least.
        self.open.len() >= self.max_peers && self.peers() >= self.max_peers
    }

    /// Whether the peer that opens this connection may be connected: it is, or there is room for it. One at the
    /// host of a peer over the other network may be that peer, which its handshake shows.
    pub fn may_have_room_for(&self, new: &dyn Connection) -> bool {
        let (key, from) = (new.key(), new.peer());
        let mut open = self.open.values();
        !self.is_full() || open.any(|it| it.connection.key() == key || it.is_from_host(from))
    }

    /// Whether this peer may be connected: it is, or there is room for it.
    pub fn has_room_for(&self, peer: GroupId) -> bool {
        !self.is_full() || self.open.values().any(|conn| conn.peer == peer)
    }

    /// How many further peers may be dialed while that many are being dialed.
    pub fn free_places(&self, dialing: usize) -> usize {
        let taken = match self.max_peers {
            usize::MAX => return usize::MAX,
            _ => self.peers() + dialing,
        };
        self.max_peers.saturating_sub(taken)
    }
}

impl<T: Transport> Swarm<T> {
    /// Has as many peers connected as this says, at most.
    pub fn follow_max_peers(&mut self, mut max: watch::Receiver<usize>) {
        self.conns.max_peers = *max.borrow_and_update();
        let events = self.net.events.clone();
        self.net.tasks.spawn(async move {
            while max.changed().await.is_ok() {
                let max = *max.borrow_and_update();
                if events.send(Event::MaxPeers(max)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Sets how many peers may be connected. Where more are, the least useful ones are closed.
    pub(super) fn set_max_peers(&mut self, max: usize, now: Instant) {
        self.conns.max_peers = max;
        let mut peers: BTreeMap<GroupId, Worth> = BTreeMap::new();
        for (id, conn) in &self.conns.open {
            let worth = Worth::of(conn, self.fetching.picker.is_interesting(*id));
            let known = peers.entry(conn.peer);
            known
                .and_modify(|known| *known = known.with(worth))
                .or_insert(worth);
        }
        let surplus = peers.len().saturating_sub(max);
        let mut peers: Vec<(Worth, GroupId)> = peers
            .into_iter()
            .map(|(peer, worth)| (worth, peer))
            .collect();
        peers.sort_unstable();
        for (_, peer) in peers.into_iter().take(surplus) {
            self.part_from(peer, now);
        }
    }

    /// Closes the connections to a peer. One that this side dialed is dialed again after a backoff at the
    /// earliest.
    fn part_from(&mut self, peer: GroupId, now: Instant) {
        let open = self.conns.open.iter();
        let theirs = open.filter(|(_, conn)| conn.peer == peer);
        let theirs: Vec<ConnId> = theirs.map(|(id, _)| *id).collect();
        for id in theirs {
            if let Some((known, dialed)) = self.remote_of(id) {
                let (subflow, why) = (dialed.subflow, TOO_MANY_PEERS.to_owned());
                known.paths.lost(subflow, Failure::Rejected, why, now);
            }
            self.drop_conn(id, CloseCode::TooMany, TOO_MANY_PEERS);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn peers_that_transfer_least_and_came_last_are_the_least_useful() {
        let now = Instant::now();
        let peer = |rate: u64, bytes: u64, is_wanted: bool, age: u64| Worth {
            rate,
            bytes,
            is_wanted,
            since: Reverse(now + Duration::from_secs(100 - age)),
        };
        let by_worth = [
            peer(0, 0, false, 1),
            peer(0, 0, false, 2),
            peer(0, 0, true, 1),
            peer(0, 5, false, 1),
            peer(1, 2, false, 1),
            peer(2, 1, false, 1),
        ];
        assert!(by_worth.is_sorted());
        let both = peer(1, 2, false, 1).with(peer(3, 4, true, 9));
        assert_eq!(both, peer(4, 6, true, 9));
    }
}
