//! The upper part of a file's tree.

use super::range::HashRange;
use super::{Hash, MAX_HEIGHT, padding, pair};

/// A tree from one height up to its root. Nodes over nothing but padding are not kept, so it has at
/// most twice as many nodes as the lowest height, and one per height.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The height of the lowest nodes.
    base: u32,
    /// The nodes of each height, from the lowest one up to the root.
    layers: Vec<Vec<Hash>>,
}

impl Tree {
    /// The tree over `nodes`, at least one and at most 2^49, which have height `base`.
    pub fn new(base: u32, nodes: Vec<Hash>) -> Self {
        let mut layers = vec![nodes];
        while let Some(below) = layers.last().filter(|below| below.len() > 1) {
            let padding = padding(base + layers.len() as u32 - 1);
            let above = below.chunks(2);
            let above = above.map(|it| pair(&it[0], it.get(1).unwrap_or(&padding)));
            let above = above.collect();
            layers.push(above);
        }
        Self { base, layers }
    }

    /// The height of the root.
    pub fn height(&self) -> u32 {
        self.base + self.layers.len() as u32 - 1
    }

    /// The height of the lowest nodes.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The root.
    pub fn root(&self) -> Hash {
        let root = self.layers.last().and_then(|layer| layer.first());
        root.copied().unwrap_or_else(|| padding(MAX_HEIGHT))
    }

    /// The lowest nodes, without padding.
    pub fn lowest(&self) -> &[Hash] {
        &self.layers[0]
    }

    /// The nodes of a range and of its proof; `None` if the tree does not have them.
    pub fn hashes(&self, range: &HashRange) -> Option<Vec<Hash>> {
        if range.base < self.base || !range.fits(self.height()) {
            return None;
        }
        let nodes = (0..range.length).map(|it| self.node(range.base, range.index + it));
        let place = range.index / range.length;
        let proof = range.proof_heights().map(|height| {
            // The ancestor of the range at this height, and the node beside it.
            self.node(height, (place >> (height - range.top())) ^ 1)
        });
        nodes.chain(proof).collect()
    }

    fn node(&self, height: u32, index: u32) -> Option<Hash> {
        let layer = self.layers.get(height.checked_sub(self.base)? as usize)?;
        let node = layer.get(index as usize).copied();
        Some(node.unwrap_or_else(|| padding(height)))
    }
}
