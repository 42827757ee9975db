//! Fetching blocks again that are known to be wrong.

use super::Begun;
use crate::Picker;
use crate::piece::Block;

impl Begun {
    /// Frees blocks that were received. Other blocks stay as they are.
    fn free_received(&mut self, number: u32, blocks: &[u32]) {
        self.change(number, |piece| {
            for block in blocks {
                if let Some(state @ Block::Received(_)) = piece.blocks.get_mut(*block as usize) {
                    *state = Block::Free;
                    piece.received -= 1;
                    piece.free += 1;
                }
            }
            piece.rewind();
        });
    }
}

impl Picker {
    /// These blocks of a piece are wrong, and the others right: they are fetched again, from any peers,
    /// if the piece is still wanted.
    pub fn fail_blocks(&mut self, piece: u32, blocks: &[u32]) {
        match self.wanted.has(piece) {
            true => self.begun.free_received(piece, blocks),
            false => self.begun.remove(piece),
        }
    }
}
