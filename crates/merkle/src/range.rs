//! Adjacent nodes of a tree, and their proof.

use super::{Hash, MAX_HEIGHT, pair};

/// Most nodes of a range that is requested or sent (BEP 52 recommends 512 as the most).
pub const MAX_HASHES: u32 = 512;

/// Adjacent nodes of one height, and how far up their proof reaches: the nodes beside the path to the
/// root, from the bottom up, without those that follow from the range itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashRange {
    /// The height of the nodes (`base layer`).
    pub base: u32,
    /// The first node; a multiple of `length`.
    pub index: u32,
    /// Number of nodes; a power of two, at least two.
    pub length: u32,
    /// Number of heights above `base` for which the node beside the path is there (`proof layers`), of
    /// which the first ones follow from the range.
    pub proof: u32,
}

impl HashRange {
    /// The range with these nodes, and a proof up to the root, which has height `height`.
    pub fn proven(base: u32, index: u32, length: u32, height: u32) -> Self {
        Self {
            base,
            index,
            length,
            proof: height.saturating_sub(base + 1),
        }
    }

    /// Whether it is within a tree of height `height`, and has not more nodes than [`MAX_HASHES`].
    pub fn fits(&self, height: u32) -> bool {
        let is_formed = self.length.is_power_of_two()
            && (2..=MAX_HASHES).contains(&self.length)
            && self.index.is_multiple_of(self.length);
        let end = u64::from(self.index) + u64::from(self.length);
        is_formed
            && self.base < height
            && height <= MAX_HEIGHT
            && end <= 1 << (height - self.base)
            && self.proof < height - self.base
    }

    /// The height of the node over the whole range.
    pub fn top(&self) -> u32 {
        self.base + self.length.ilog2()
    }

    /// The heights of the nodes of its proof.
    pub fn proof_heights(&self) -> std::ops::RangeInclusive<u32> {
        self.top()..=self.base + self.proof
    }

    /// Number of nodes that it and its proof have.
    pub fn count(&self) -> u32 {
        let proof = (self.base + self.proof + 1).saturating_sub(self.top());
        self.length + proof
    }

    /// The root that `hashes`, the nodes of the range and of a proof up to the root, lead to; `None` if
    /// they are not as many as they should be.
    pub fn root(&self, hashes: &[Hash]) -> Option<Hash> {
        if hashes.len() != self.count() as usize {
            return None;
        }
        let (nodes, proof) = hashes.split_at(self.length as usize);
        let mut layer = nodes.to_vec();
        while layer.len() > 1 {
            layer = layer.chunks(2).map(|it| pair(&it[0], &it[1])).collect();
        }
        let mut node = *layer.first()?;
        let mut at = self.index / self.length;
        for beside in proof {
            node = match at % 2 {
                0 => pair(&node, beside),
                _ => pair(beside, &node),
            };
            at /= 2;
        }
        Some(node)
    }
}
