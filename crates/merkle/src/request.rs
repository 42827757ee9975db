//! Requests for hashes of a file's merkle tree, and answers to them (BEP 52).

use super::range::{HashRange, MAX_HASHES};
use super::{Hash, MAX_HEIGHT};

/// Length of what names hashes, in bytes: of a request, of its rejection, and before the hashes of an
/// answer.
pub const HASH_REQUEST_BYTES: u32 = 48;

/// Greatest length of an answer, in bytes: the hashes of a range and of its proof.
pub const MAX_HASHES_BYTES: u32 = HASH_REQUEST_BYTES + (MAX_HASHES + MAX_HEIGHT) * 32;

/// What names hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashRequest {
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

    /// Decodes it.
    pub fn decode(bytes: &[u8; HASH_REQUEST_BYTES as usize]) -> Self {
        let (root, numbers) = bytes.split_at(32);
        let mut hash = [0; 32];
        hash.copy_from_slice(root);
        let (numbers, _) = numbers.as_chunks();
        let number = |at: usize| u32::from_be_bytes(numbers[at]);
        Self {
            root: hash,
            range: HashRange {
                base: number(0),
                index: number(1),
                length: number(2),
                proof: number(3),
            },
        }
    }
}
