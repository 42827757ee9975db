//! How blocks are requested that end in padding (BEP 47).
//!
//! The padding is not needed, so a peer of version 2, in which a piece ends with its file (BEP 52), is asked for
//! what stands before it. anacrolix/torrent answers nothing else. Peers that know version 1 alone are asked for the
//! whole block, since rqbit answers nothing else. A peer that ends the connection instead of answering is asked the
//! other way in the next one.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::pieces::Pieces;
use crate::wire::Request;

/// The requests to one peer for blocks that end in padding.
#[derive(Debug)]
pub(super) struct PaddedBlocks {
    pieces: Pieces,
    /// Whether such blocks are requested whole.
    is_whole: bool,
    /// The bytes before the padding of each that was requested and has not arrived, by piece and first byte.
    /// Bounded by the number of padding files.
    unanswered: BTreeMap<(u32, u32), u32>,
}

impl PaddedBlocks {
    /// Blocks of these pieces, of which none is requested.
    pub fn new(pieces: Pieces, is_whole: bool) -> Self {
        Self {
            pieces,
            is_whole,
            unanswered: BTreeMap::new(),
        }
    }

    /// A request for a block without its padding, or its cancellation, as it is sent.
    pub fn adapt(&self, request: Request) -> Request {
        match self.is_whole {
            true => request.whole_block(self.pieces.size(request.piece)),
            false => request,
        }
    }

    /// Notes that a block was requested without its padding.
    pub fn requested(&mut self, request: Request) {
        if request != request.whole_block(self.pieces.size(request.piece)) {
            let place = (request.piece, request.begin);
            self.unanswered.insert(place, request.length);
        }
    }

    /// Notes that a block has arrived; takes its padding off.
    pub fn arrived(&mut self, request: &mut Request, data: &mut Bytes) {
        let place = (request.piece, request.begin);
        if let Some(length) = self.unanswered.remove(&place) {
            data.truncate(length as usize);
            request.length = data.len() as u32;
        }
    }

    /// The peer answers none of the requests (BEP 3).
    pub fn choked(&mut self) {
        self.unanswered.clear();
    }

    /// The connection has ended. Returns whether blocks are to be requested whole over the next one, if the end
    /// may be an answer to such requests.
    pub fn next_is_whole(&self) -> Option<bool> {
        (!self.unanswered.is_empty()).then_some(!self.is_whole)
    }
}
