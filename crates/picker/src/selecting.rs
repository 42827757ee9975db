//! Which pieces are wanted, and what becomes of requests when that changes.

use super::{ConnId, Picker, Placed};
use crate::wanted::Wanted;
use hawser_wire::BLOCK;

impl Picker {
    /// Whether every wanted piece is verified.
    pub fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// The pieces that are wanted.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Wants other pieces from now on. Returns the requests for pieces that are no longer wanted, to be
    /// cancelled: what was received of those is dropped, except of pieces whose hash is due.
    pub fn select(&mut self, wanted: Wanted) -> Vec<Placed> {
        for piece in 0..self.pieces.count() {
            if self.rarity.contains(piece) {
                self.rarity.remove(piece, &self.wanted);
            }
        }
        self.wanted = wanted;
        let mut cancel = Vec::new();
        let unwanted = self.begun.unwanted(&self.wanted);
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in conns {
            let released = self.release_where(conn, |_, it| unwanted.contains(&it.block.0));
            cancel.extend(released.into_iter().map(|request| (conn, request)));
        }
        unwanted.iter().for_each(|piece| self.begun.remove(*piece));
        (self.missing, self.untouched) = (0, 0);
        (0..self.pieces.count()).for_each(|piece| self.want(piece));
        for conn in self.conns.values_mut() {
            let has = conn.has.iter();
            let lacking = has.filter(|it| self.wanted.has(*it) && !self.verified.has(*it));
            conn.wanted = lacking.count() as u32;
            conn.exhausted = false;
        }
        cancel
    }

    /// Counts a piece as missing if it is wanted and not verified, and lets it be begun if it is not.
    pub(super) fn want(&mut self, piece: u32) {
        if self.verified.has(piece) || !self.wanted.has(piece) {
            return;
        }
        self.missing += 1;
        if !self.begun.contains(piece) {
            self.rarity.insert(piece, &self.wanted);
            let blocks = self.pieces.size(piece).div_ceil(BLOCK);
            let padding = self.padding.blocks(self.pieces, piece);
            self.untouched += u64::from(blocks) - padding.len() as u64;
        }
    }
}
