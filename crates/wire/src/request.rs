//! Requests for blocks (BEP 3).

use bytes::{Buf, Bytes};

/// Length of the blocks that all clients request, in bytes (BEP 3: 2^14); only the last block of a
/// piece may be shorter.
pub const BLOCK: u32 = 16 << 10;

/// Maximum length of a block that a peer may request, in bytes, as in other clients.
pub const MAX_REQUEST: u32 = 128 << 10;

/// A range of bytes of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    /// The piece.
    pub piece: u32,
    /// First byte within the piece.
    pub begin: u32,
    /// Number of bytes.
    pub length: u32,
}

impl Request {
    /// Encodes it.
    pub fn encode(&self) -> [u8; 12] {
        let mut out = [0; 12];
        out[..4].copy_from_slice(&self.piece.to_be_bytes());
        out[4..8].copy_from_slice(&self.begin.to_be_bytes());
        out[8..].copy_from_slice(&self.length.to_be_bytes());
        out
    }

    /// Decodes it from a body of 12 bytes.
    pub fn decode(mut body: Bytes) -> Self {
        Self {
            piece: body.get_u32(),
            begin: body.get_u32(),
            length: body.get_u32(),
        }
    }

    /// The request for the whole block that begins where this one does, in a piece of `size` bytes.
    pub fn whole_block(&self, size: u32) -> Self {
        let length = size.saturating_sub(self.begin).min(BLOCK);
        Self { length, ..*self }
    }

    /// Whether these bytes are within a piece of `size` bytes, and not more than may be requested
    /// at once.
    pub fn fits(&self, size: u32) -> bool {
        let end = u64::from(self.begin) + u64::from(self.length);
        (1..=MAX_REQUEST).contains(&self.length) && end <= u64::from(size)
    }
}
