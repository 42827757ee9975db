//! Super-seeding (BEP 16): revealing pieces to peers, one at a time.

use std::sync::atomic::Ordering;

use crate::bitfield::Bitfield;
use crate::picker::{ConnId, GroupId};
use crate::super_seeding::SuperSeeding;
use crate::swarm::state::Swarm;
use crate::transport::Transport;
use crate::wire::Message;

impl<T: Transport> Swarm<T> {
    /// Reveals pieces one at a time to each peer, from now on. To be called before any peer
    /// connects.
    pub fn reveal_one_by_one(&mut self) {
        self.shared.is_super.store(true, Ordering::Relaxed);
        let seeding = SuperSeeding::new(self.metainfo.pieces, fastrand::u64(..));
        self.uploads.super_seeding = Some(seeding);
    }

    /// The pieces that the peer of a new connection may know of. Without super-seeding these are
    /// all that are offered.
    pub(in crate::swarm) fn begin_revealing(&mut self, peer: GroupId) -> Bitfield {
        let offered = self.shared.offered();
        let Some(seeding) = &mut self.uploads.super_seeding else {
            return offered;
        };
        seeding.join(peer);
        let mut known = Bitfield::empty(self.metainfo.pieces.count());
        for piece in seeding.told(peer).filter(|piece| offered.has(*piece)) {
            known.set(piece);
        }
        known
    }

    /// Takes note that a peer has pieces.
    pub(in crate::swarm) fn sees(&mut self, id: ConnId, pieces: impl IntoIterator<Item = u32>) {
        if let Some(seeding) = &mut self.uploads.super_seeding
            && let Some(conn) = self.conns.open.get(&id)
        {
            let pieces = pieces.into_iter();
            pieces.for_each(|piece| seeding.has(conn.peer, piece));
        }
    }

    /// Takes note that a peer has left.
    pub(in crate::swarm) fn end_revealing(&mut self, peer: GroupId) {
        if let Some(seeding) = &mut self.uploads.super_seeding {
            seeding.leave(peer);
        }
    }

    /// Tells peers of the pieces that are revealed to them now, over all paths and networks.
    pub(in crate::swarm) fn reveal(&mut self) {
        let Some(seeding) = &mut self.uploads.super_seeding else {
            return;
        };
        for conn in self.conns.open.values_mut() {
            let sent = conn.uploaded();
            let before = std::mem::replace(&mut conn.serving.revealed, sent);
            seeding.sent(conn.peer, sent - before);
        }
        for (peer, piece) in seeding.reveal(&self.shared.offered()) {
            let conns = self.conns.open.values();
            for conn in conns.filter(|conn| conn.peer == peer) {
                conn.send([Message::Have(piece)]);
            }
        }
    }
}
