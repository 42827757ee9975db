//! Which connections belong to one peer, whose pieces count once.

use hawser_wire::Bitfield;

use super::piece::GroupId;
use super::{ConnId, Picker};

impl Picker {
    /// Counts the peer of a connection that has just been added as `peer`: that of its group, where this is not
    /// called, or of a connection of another group. Its pieces are counted once, over however many connections
    /// they are announced.
    pub fn belongs_to(&mut self, conn: ConnId, peer: GroupId) {
        let Some(known) = self.conns.get_mut(&conn) else {
            return;
        };
        let before = std::mem::replace(&mut known.peer, peer);
        self.leave_peer(conn, before);
        self.peers.entry(peer).or_default().push(conn);
    }

    /// A connection is not one of `peer` any more.
    pub(super) fn leave_peer(&mut self, conn: ConnId, peer: GroupId) {
        if let Some(conns) = self.peers.get_mut(&peer) {
            conns.retain(|other| *other != conn);
            if conns.is_empty() {
                self.peers.remove(&peer);
            }
        }
    }

    /// The sets of pieces that are counted for the peer of `conn` over its other connections.
    pub(super) fn counted_elsewhere(&self, conn: ConnId) -> impl Iterator<Item = &Bitfield> {
        let peer = self.conns.get(&conn).map(|known| known.peer);
        let conns = peer.and_then(|peer| self.peers.get(&peer));
        let others = conns
            .into_iter()
            .flatten()
            .filter(move |other| **other != conn);
        let others = others.filter_map(|other| self.conns.get(other));
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
