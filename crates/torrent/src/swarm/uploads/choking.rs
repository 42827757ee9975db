//! Which peers are served at a time: orders of the choker carried out over all paths to a peer.

use std::time::Instant;

use hawser_choker::{Action, Counters, slots_for};

use super::Known;
use crate::picker::{ConnId, GroupId};
use crate::swarm::conn::Conn;
use crate::swarm::state::Swarm;
use crate::transport::Transport;

impl<T: Transport> Swarm<T> {
    /// Sets how many peers are served at a time; `None` for as many as fit the limit of the rate.
    pub fn set_slots(&mut self, slots: Option<usize>) {
        self.uploads.slots = slots;
    }

    /// Adds the peer of a new connection to those that may be served.
    pub(in crate::swarm) fn begin_choking(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.open.get_mut(&id) {
            self.uploads.choker.join(conn.peer);
            conn.set_slot(self.uploads.choker.is_unchoked(conn.peer));
        }
    }

    /// Takes note of the end of a connection.
    pub(in crate::swarm) fn end_choking(&mut self, conn: &Conn, now: Instant) {
        let peer = conn.peer;
        let mut others = self.conns.open.values();
        match others.any(|other| other.peer == peer) {
            true => {
                self.uploads.choker.ended(peer, conn.counters());
                self.weigh_interest(peer, now);
            }
            false => {
                self.end_revealing(peer);
                self.uploads.choker.leave(peer);
                self.rechoke(now);
            }
        }
    }

    /// Takes note that a peer may want blocks now, or want none any more. It wants them if it says
    /// so over any path.
    pub(in crate::swarm) fn weigh_interest(&mut self, peer: GroupId, now: Instant) {
        let conns = self.conns.open.values();
        let is_wanted = conns
            .filter(|conn| conn.peer == peer)
            .any(|conn| conn.serving.is_wanted());
        self.uploads.choker.set_interested(peer, is_wanted);
        self.rechoke(now);
    }

    /// Chokes and unchokes peers, as is due now.
    pub(in crate::swarm) fn rechoke(&mut self, now: Instant) {
        // At its end, peers get what is under way, and nobody is unchoked any more.
        if self.is_over() {
            return;
        }
        let fitting = || slots_for(self.shared.rates.up.rate());
        let slots = self.uploads.slots.unwrap_or_else(fitting);
        if self.uploads.choker.slots() != slots {
            self.uploads.choker.set_slots(slots);
        }
        let conns = &self.conns.open;
        let report = || {
            let conns = conns.values();
            conns.map(|conn| (conn.peer, conn.counters()))
        };
        let orders = self.uploads.choker.tick(report, now);
        if orders.is_empty() {
            return;
        }
        for order in orders {
            let has_slot = order.action == Action::Unchoke;
            tracing::debug!(peer = order.peer, has_slot, "slot");
            let conns = self.conns.open.values_mut();
            for conn in conns.filter(|conn| conn.peer == order.peer) {
                conn.set_slot(has_slot);
                if let Some(Known { downloader, .. }) = self.uploads.known.get(&conn.group) {
                    self.uploads.sharing.set_choked(*downloader, !has_slot);
                }
            }
        }
        self.settle(now);
    }
}

impl Conn {
    /// Blocks exchanged over it.
    pub(in crate::swarm) fn counters(&self) -> Counters {
        Counters {
            received: self.bytes,
            sent: self.uploaded(),
        }
    }
}
