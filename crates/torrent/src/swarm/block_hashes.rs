//! Hashes of single blocks of version 2 (BEP 52): asked of peers when a piece has the wrong hash, and
//! sent to peers that ask. The disk computes them.

use std::time::Instant;

use super::blame::Evidence;
use super::digests::Purpose;
use super::held::Step;
use super::state::Swarm;
use crate::merkle::Hash;
use crate::picker::{ConnId, GroupId};
use crate::transport::Transport;
use crate::wire::{BLOCK, HashRequest, Message};

impl<T: Transport> Swarm<T> {
    /// Has the disk compute the hashes of the blocks of a piece. Padding behind a file of version 2 does not
    /// count.
    pub(super) fn digest(&mut self, piece: u32, purpose: Purpose) {
        let layers = self.metainfo.layers();
        let bytes = match layers {
            Some(layers) => layers.content_bytes(piece),
            None => self.metainfo.pieces.size(piece).into(),
        };
        self.fetching.digests.expect(piece, purpose);
        self.fetching.disk.digest(piece, BLOCK.into(), bytes);
    }

    /// Handles the hashes of the blocks of a piece, as it is on disk.
    pub(super) fn on_digests(&mut self, piece: u32, digests: Vec<Hash>, now: Instant) {
        match self.fetching.digests.arrived(piece) {
            Some(Purpose::Answer(asked)) => {
                let mut are_right = false;
                for (conn, wanted) in asked {
                    are_right |= self.send_block_hashes(conn, &wanted, &digests);
                }
                if are_right {
                    self.fetching.digests.keep(piece, digests);
                }
            }
            Some(Purpose::Blame) => match self.fetching.held.on_digests(piece, &digests) {
                true => self.resolve_held(now),
                false => self.compare(piece, digests),
            },
            None => {}
        }
    }

    /// The piece whose blocks are read to answer a request for hashes below its own; `None` if it is not here.
    pub(super) fn answerable(&self, wanted: &HashRequest) -> Option<u32> {
        let piece = self.metainfo.layers()?.piece_of(wanted)?;
        self.fetching.picker.verified().has(piece).then_some(piece)
    }

    /// Answers a request for hashes in a piece, of which `blocks` are the hashes of all blocks. Returns whether
    /// these lead to the hash of the piece, as far as that was computed.
    pub(super) fn send_block_hashes(
        &self,
        conn: ConnId,
        wanted: &HashRequest,
        blocks: &[Hash],
    ) -> bool {
        let layers = self.metainfo.layers();
        let Some((layers, known)) = layers.zip(self.conns.open.get(&conn)) else {
            return false;
        };
        let hashes = layers.block_hashes(wanted, blocks.to_vec());
        let are_right = hashes.is_some();
        known.send([match hashes {
            Some(hashes) => Message::Hashes(*wanted, hashes),
            None => Message::HashReject(*wanted),
        }]);
        are_right
    }

    /// Asks peers for the hashes of the blocks of a piece that has the wrong hash, which stays as it is meanwhile.
    /// Returns the evidence if they cannot be asked for.
    pub(super) fn hold(
        &mut self,
        piece: u32,
        evidence: Evidence,
        now: Instant,
    ) -> Option<Evidence> {
        let layers = self.metainfo.layers();
        let requests = layers.and_then(|layers| layers.block_requests(piece));
        let Some(requests) = requests.filter(|_| self.fetching.held.has_room()) else {
            return Some(evidence);
        };
        self.fetching.held.hold(piece, evidence, requests, now);
        self.resolve_held(now);
        None
    }

    /// The connections of peers that have a piece and understand requests for hashes.
    fn can_answer(&self, piece: u32) -> Vec<ConnId> {
        let conns = self.conns.open.iter();
        let able = conns
            .filter(|(id, conn)| conn.theirs.version_two && self.fetching.picker.has(**id, piece));
        able.map(|(id, _)| *id).collect()
    }

    /// Does what is due about the pieces that are held.
    pub(super) fn resolve_held(&mut self, now: Instant) {
        if self.fetching.held.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut self.fetching.held);
        let steps = held.advance(now, |piece| self.can_answer(piece));
        self.fetching.held = held;
        for step in steps {
            match step {
                Step::Ask(conn, request) => {
                    if let Some(known) = self.conns.open.get(&conn) {
                        known.send([Message::HashRequest(request)]);
                    }
                }
                Step::Ban(conn) => {
                    if let Some(group) = self.conns.open.get(&conn).map(|conn| conn.group) {
                        self.ban(group, "dropped: it sent false hashes");
                    }
                }
                Step::Refetch {
                    piece,
                    blocks,
                    senders,
                } => self.refetch_blocks(piece, &blocks, &senders),
                Step::GiveUp(piece, evidence) => self.refetch_whole(piece, evidence),
            }
        }
    }

    /// Handles hashes that a peer sent.
    pub(super) fn on_block_hashes(
        &mut self,
        conn: ConnId,
        named: &HashRequest,
        hashes: &[Hash],
        now: Instant,
    ) {
        self.fetching.held.on_hashes(conn, named, hashes);
        self.resolve_held(now);
    }

    /// Fetches the wrong blocks of a piece again, and drops their senders.
    fn refetch_blocks(&mut self, piece: u32, blocks: &[u32], senders: &[GroupId]) {
        tracing::warn!(piece, ?blocks, "blocks are wrong and are fetched again");
        self.fetching.picker.fail_blocks(piece, blocks);
        let size = self.metainfo.pieces.size(piece);
        let wasted = blocks.iter().map(|block| {
            let left = size.saturating_sub(block.saturating_mul(BLOCK));
            u64::from(left.min(BLOCK))
        });
        self.tally.wasted_bytes += wasted.sum::<u64>();
        self.conns.touch_all();
        for group in senders {
            let reason = format!("dropped: it sent wrong data in piece {piece}");
            self.ban_liar(*group, &reason);
        }
    }
}
