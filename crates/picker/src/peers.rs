//! Which connections belong to one peer, whose pieces count once.

use std::collections::BTreeMap;

use hawser_wire::Bitfield;

use super::piece::GroupId;
use super::{ConnId, Picker};

/// The peers of all connections.
#[derive(Debug, Default)]
pub(super) struct Peers {
    of: BTreeMap<ConnId, GroupId>,
    conns: BTreeMap<GroupId, Vec<ConnId>>,
}

impl Peers {
    /// The peer of a connection, new or known, is `peer`.
    pub fn set(&mut self, conn: ConnId, peer: GroupId) {
        self.remove(conn);
        self.of.insert(conn, peer);
        self.conns.entry(peer).or_default().push(conn);
    }

    /// A connection has ended.
    pub fn remove(&mut self, conn: ConnId) {
        let Some(peer) = self.of.remove(&conn) else {
            return;
        };
        if let Some(conns) = self.conns.get_mut(&peer) {
            conns.retain(|other| *other != conn);
            if conns.is_empty() {
                self.conns.remove(&peer);
            }
        }
    }

    /// The peer of a connection.
    #[cfg(test)]
    pub fn of(&self, conn: ConnId) -> Option<GroupId> {
        self.of.get(&conn).copied()
    }

    /// The other connections of the peer of `conn`.
    fn others(&self, conn: ConnId) -> impl Iterator<Item = ConnId> {
        let conns = self.of.get(&conn).and_then(|peer| self.conns.get(peer));
        let conns = conns.into_iter().flatten().copied();
        conns.filter(move |other| *other != conn)
    }
}

impl Picker {
    /// Counts the peer of a connection that has just been added as `peer`: that of its group, where this is not
    /// called, or of a connection of another group. Its pieces are counted once, over however many connections
    /// they are announced.
    pub fn belongs_to(&mut self, conn: ConnId, peer: GroupId) {
        if self.conns.contains_key(&conn) {
            self.peers.set(conn, peer);
        }
    }

    /// The sets of pieces that are counted for the peer of `conn` over its other connections.
    pub(super) fn counted_elsewhere(&self, conn: ConnId) -> impl Iterator<Item = &Bitfield> {
        let others = self.peers.others(conn);
        let others = others.filter_map(|other| self.conns.get(&other));
        others.filter(|other| other.counted).map(|other| &other.has)
    }

    /// All of [`Self::counted_elsewhere`].
    pub(super) fn all_counted_elsewhere(&self, conn: ConnId) -> Bitfield {
        let mut all = Bitfield::empty(self.pieces.count());
        for has in self.counted_elsewhere(conn) {
            has.iter().for_each(|piece| {
                all.set(piece);
            });
        }
        all
    }
}
