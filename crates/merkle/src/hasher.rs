//! Computing a node from the bytes below it, as they come.

use sha2::{Digest, Sha256};

use super::{BLOCK, Hash, padding, pair};

/// Computes the node of a given height over the first bytes that it is given; what follows them, the
/// padding behind a file (BEP 47), does not count. Keeps one node per height.
#[derive(Debug, Clone)]
pub struct MerkleHasher {
    /// Of the block that is not complete yet.
    block: Sha256,
    /// Bytes in it.
    filled: u64,
    /// Bytes that still count.
    left: u64,
    /// Nodes over what is complete, with their heights, which fall.
    nodes: Vec<(u32, Hash)>,
    /// The height of the node to be computed.
    height: u32,
}

impl MerkleHasher {
    /// For the node of `height` over `bytes`, which are at most those of 2^`height` blocks.
    pub fn new(bytes: u64, height: u32) -> Self {
        Self {
            block: Sha256::new(),
            filled: 0,
            left: bytes,
            nodes: Vec::new(),
            height,
        }
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let counted = self.left.min(bytes.len() as u64);
        self.left -= counted;
        let mut bytes = &bytes[..counted as usize];
        while !bytes.is_empty() {
            let taken = (BLOCK - self.filled).min(bytes.len() as u64);
            let (block, rest) = bytes.split_at(taken as usize);
            self.block.update(block);
            self.filled += taken;
            bytes = rest;
            if self.filled == BLOCK {
                self.end_block();
            }
        }
    }

    /// The node, over the bytes given so far.
    pub fn finalize(mut self) -> Hash {
        if self.filled > 0 {
            self.end_block();
        }
        let Some((mut height, mut node)) = self.nodes.pop() else {
            return padding(self.height);
        };
        while height < self.height || !self.nodes.is_empty() {
            node = match self.nodes.pop_if(|(other, _)| *other == height) {
                Some((_, left)) => pair(&left, &node),
                None => pair(&node, &padding(height)),
            };
            height += 1;
        }
        node
    }

    /// The node over as many zeros, for a hasher that was given no bytes yet. Equal nodes are computed once.
    pub fn zeros(mut self) -> Hash {
        let whole = self.left / BLOCK;
        let leaf: Hash = Sha256::digest([0; BLOCK as usize]).into();
        let nodes = std::iter::successors(Some(leaf), |node| Some(pair(node, node)));
        let nodes: Vec<Hash> = nodes.take(self.height as usize + 1).collect();
        // The nodes over whole blocks, the highest first.
        for height in (0..=self.height).rev().filter(|it| whole >> it & 1 == 1) {
            self.nodes.push((height, nodes[height as usize]));
        }
        let rest = (self.left % BLOCK) as usize;
        self.update(&[0; BLOCK as usize][..rest]);
        self.finalize()
    }

    fn end_block(&mut self) {
        self.filled = 0;
        let leaf = self.block.finalize_reset();
        self.push(0, leaf.into());
    }

    /// Adds a node at the right, and joins those of equal height.
    fn push(&mut self, mut height: u32, mut node: Hash) {
        while let Some((_, left)) = self.nodes.pop_if(|(other, _)| *other == height) {
            node = pair(&left, &node);
            height += 1;
        }
        self.nodes.push((height, node));
    }
}
