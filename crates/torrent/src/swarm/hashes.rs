//! Passing on hashes of version 2 (BEP 52): to peers that have a magnet link alone, and to those that look for
//! a wrong block.

use std::time::Instant;

use super::digests::Purpose;
use super::hash_answers::{HashAnswers, price};
use super::state::Swarm;
use crate::merkle::{BLOCK, MAX_HASHES};
use crate::picker::ConnId;
use crate::transport::Transport;
use crate::wire::{HashRequest, Message};

/// Fewest answers with hashes that a peer gets at once: each has up to 18 KB.
const MIN_ANSWERS: u32 = 16;

/// How many times a peer gets all hashes at once: requests may be repeated after a time-out.
const COPIES: u32 = 3;

impl<T: Transport> Swarm<T> {
    /// Handles a request for hashes. Those of blocks are computed from what is on disk: a piece is read once
    /// for requests that come together, or soon one after the other. What is not known is rejected, as are
    /// requests of a peer that asks too often.
    pub(super) fn on_hash_request(&mut self, conn: ConnId, wanted: &HashRequest, now: Instant) {
        let Some(known) = self.conns.open.get(&conn) else {
            return;
        };
        let answerable = self.answerable(wanted);
        let most = self.metainfo.layers().map_or(0, |layers| {
            // A piece is read for the first answer in it.
            let bytes = u64::from(layers.piece_length());
            let answers = bytes.div_ceil(BLOCK * u64::from(MAX_HASHES)) as u32;
            layers.answers().max(answers + price(bytes))
        });
        let most = most.saturating_mul(COPIES).max(MIN_ANSWERS);
        let answers = self.conns.hashes.entry(conn);
        let answers = answers.or_insert_with(|| HashAnswers::new(most, now));
        let layers = self
            .metainfo
            .layers()
            .filter(|_| answers.take(1, most, now));
        let Some(layers) = layers else {
            return known.send([Message::HashReject(*wanted)]);
        };
        if let Some(hashes) = layers.hashes(wanted) {
            return known.send([Message::Hashes(*wanted, hashes)]);
        }
        let Some(piece) = answerable else {
            return known.send([Message::HashReject(*wanted)]);
        };
        if let Some(blocks) = self.fetching.digests.kept(piece) {
            self.send_block_hashes(conn, wanted, blocks);
            return;
        }
        if self.fetching.digests.join(piece, conn, *wanted) {
            return;
        }
        let more = price(layers.content_bytes(piece)) - 1;
        match answers.take(more, most, now) {
            true => self.digest(piece, Purpose::Answer(vec![(conn, *wanted)])),
            false => known.send([Message::HashReject(*wanted)]),
        }
    }
}
