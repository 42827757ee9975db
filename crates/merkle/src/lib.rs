//! The merkle trees of files in torrents of version 2 (BEP 52), without I/O.
//!
//! A leaf is the SHA-256 of a block of 16 KiB, the last of which may be shorter; a node is the SHA-256
//! of its two children. Leaves past the end of a file are 32 zero bytes, up to a power of two. Height 0
//! is that of the leaves.

mod hasher;
mod range;
mod request;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

pub use self::hasher::MerkleHasher;
pub use self::range::{HashRange, MAX_HASHES};
pub use self::request::{HASH_REQUEST_BYTES, HashRequest, MAX_HASHES_BYTES};
pub use self::tree::Tree;

/// Bytes of a block, over which a leaf is computed (BEP 52).
pub const BLOCK: u64 = 16 << 10;

/// A node of a tree, or a leaf.
pub type Hash = [u8; 32];

/// Greatest height of a tree: a file has less than 2^63 bytes, so less than 2^49 blocks of 16 KiB.
pub const MAX_HEIGHT: u32 = 49;

/// The nodes of each height over which all leaves are past the end of the file.
static PADDING: LazyLock<Vec<Hash>> = LazyLock::new(|| {
    let above = |node: &Hash| Some(pair(node, node));
    let nodes = std::iter::successors(Some([0; 32]), above);
    nodes.take(MAX_HEIGHT as usize + 1).collect()
});

/// The node above two others.
pub fn pair(left: &Hash, right: &Hash) -> Hash {
    let hasher = Sha256::new().chain_update(left).chain_update(right);
    hasher.finalize().into()
}

/// The node of a height over which all leaves are past the end of the file; heights past
/// [`MAX_HEIGHT`] do not exist.
pub fn padding(height: u32) -> Hash {
    PADDING[height.min(MAX_HEIGHT) as usize]
}

/// The height of the tree over `bytes`, at least one.
pub fn height(bytes: u64) -> u32 {
    bytes.div_ceil(BLOCK).max(1).next_power_of_two().ilog2()
}
