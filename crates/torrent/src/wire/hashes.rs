//! Requests for hashes of a file's merkle tree, and answers to them (BEP 52).

use bytes::{Buf, Bytes};

use crate::merkle::{Hash, HashRange, MAX_HASHES, MAX_HEIGHT};

/// Length of what names hashes, in bytes: of a request, of its rejection, and before the hashes of an
/// answer.
pub(crate) const HASH_REQUEST_BYTES: u32 = 48;

/// Greatest length of an answer, in bytes: the hashes of a range and of its proof.
pub(crate) const MAX_HASHES_BYTES: u32 = HASH_REQUEST_BYTES + (MAX_HASHES + MAX_HEIGHT) * 32;

/// What names hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct HashRequest {
    /// The root of the file's tree (`pieces root`).
    pub root: Hash,
    /// Which of its nodes.
    pub range: HashRange,
}

impl HashRequest {
    /// Encodes it.
    pub fn encode(&self) -> [u8; HASH_REQUEST_BYTES as usize] {
        let mut out = [0; HASH_REQUEST_BYTES as usize];
        let (root, numbers) = out.split_at_mut(32);
        root.copy_from_slice(&self.root);
        let HashRange {
            base,
            index,
            length,
            proof,
        } = self.range;
        for (out, number) in numbers.chunks_mut(4).zip([base, index, length, proof]) {
            out.copy_from_slice(&number.to_be_bytes());
        }
        out
    }

    /// Takes it from the front of `body`, which has at least [`HASH_REQUEST_BYTES`].
    pub fn decode(body: &mut Bytes) -> Self {
        let mut root = [0; 32];
        body.copy_to_slice(&mut root);
        Self {
            root,
            range: HashRange {
                base: body.get_u32(),
                index: body.get_u32(),
                length: body.get_u32(),
                proof: body.get_u32(),
            },
        }
    }
}
