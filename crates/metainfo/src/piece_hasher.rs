//! The hash of a piece, of either version, as the store computes it.

use digest::consts::U32;
use digest::{FixedOutput, HashMarker, Output, OutputSizeUser, Update};
use sha1::{Digest, Sha1};
use sha2::Sha256;

use hawser_merkle::MerkleHasher;

/// Computes the hash of a piece, of 32 bytes; by default of a block.
#[derive(Debug, Clone, Default)]
pub struct PieceHasher(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// SHA-1 (BEP 3), with 12 zero bytes behind it.
    One(Sha1),
    /// The node of a merkle tree (BEP 52).
    Two(Box<MerkleHasher>),
    /// SHA-256: of a block, the leaf of a merkle tree.
    Block(Sha256),
}

impl PieceHasher {
    /// For a piece of version 1.
    pub fn one() -> Self {
        Self(Kind::One(Sha1::new()))
    }

    /// For a piece of version 2.
    pub fn two(hasher: MerkleHasher) -> Self {
        Self(Kind::Two(Box::new(hasher)))
    }
}

impl Default for Kind {
    fn default() -> Self {
        Self::Block(Sha256::new())
    }
}

impl HashMarker for PieceHasher {}

impl OutputSizeUser for PieceHasher {
    type OutputSize = U32;
}

impl Update for PieceHasher {
    fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Kind::One(hasher) => Digest::update(hasher, bytes),
            Kind::Two(hasher) => hasher.update(bytes),
            Kind::Block(hasher) => Digest::update(hasher, bytes),
        }
    }
}

impl FixedOutput for PieceHasher {
    fn finalize_into(self, out: &mut Output<Self>) {
        let hash: [u8; 32] = match self.0 {
            Kind::One(hasher) => widened(hasher.finalize().into()),
            Kind::Two(hasher) => hasher.finalize(),
            Kind::Block(hasher) => hasher.finalize().into(),
        };
        out.copy_from_slice(&hash);
    }
}

/// The hash of a piece of version 1, as long as those of version 2.
pub fn widened(hash: [u8; 20]) -> [u8; 32] {
    let mut wide = [0; 32];
    wide[..20].copy_from_slice(&hash);
    wide
}
