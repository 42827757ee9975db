//! The hashes of version 2 (BEP 52): of each file the root of its merkle tree, and the nodes over its
//! pieces (`piece layers`).

use std::collections::HashMap;

use hawser_bencode::Dict;

use super::error::MetainfoError;
use super::name;
use super::tree::Leaf;
use hawser_merkle::{self as merkle, Hash, HashRange, HashRequest, MAX_HASHES, MerkleHasher, Tree};

/// The nodes over the pieces of a file that a metainfo needs beside the info dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerShape {
    /// The root of the file's tree, which names it.
    pub root: Hash,
    /// The height of the nodes.
    pub base: u32,
    /// The height of the root.
    pub height: u32,
    /// Number of nodes, at least two.
    pub count: u32,
}

/// The files of a torrent with their hashes. Each begins with a piece.
#[derive(Debug, PartialEq, Eq)]
pub struct Layers {
    /// Bytes of a piece.
    piece_length: u32,
    /// Those that have bytes, in order.
    files: Vec<LayeredFile>,
    /// Which of `files` has this root. Files of one root have the same bytes.
    by_root: HashMap<Hash, usize>,
}

#[derive(Debug, PartialEq, Eq)]
struct LayeredFile {
    root: Hash,
    length: u64,
    /// Its first piece.
    first: u32,
    /// The nodes over its pieces and above; `None` if it is no longer than a piece.
    tree: Option<Tree>,
}

impl Layers {
    /// Reads the nodes over the pieces of `leaves` from `found`, which has them by the root of their file.
    ///
    /// # Errors
    /// If those of a file are missing, or are not those of its root.
    pub(super) fn read(
        leaves: &[Leaf<'_>],
        piece_length: u32,
        found: &Dict<'_>,
    ) -> Result<Self, MetainfoError> {
        let found: HashMap<&[u8], &[u8]> = found
            .entries
            .iter()
            .filter_map(|(root, nodes)| Some((*root, nodes.as_bytes()?)))
            .collect();
        let mut layers = Self {
            piece_length,
            files: Vec::new(),
            by_root: HashMap::new(),
        };
        let mut first: u64 = 0;
        for leaf in leaves.iter().filter(|leaf| leaf.length > 0) {
            let tree = shape(leaf, piece_length).map(|shape| {
                let path = || name::printable(&leaf.elements.join(&b'/'));
                let nodes = found.get(&leaf.root[..]);
                let nodes = nodes.ok_or_else(|| MetainfoError::NoLayer(path()))?;
                let (nodes, rest) = nodes.as_chunks();
                if !rest.is_empty() || nodes.len() != shape.count as usize {
                    return Err(MetainfoError::WrongLayer(path()));
                }
                let tree = Tree::new(shape.base, nodes.to_vec());
                match tree.root() == leaf.root {
                    true => Ok(tree),
                    false => Err(MetainfoError::WrongLayer(path())),
                }
            });
            let tree = tree.transpose()?;
            layers.by_root.insert(leaf.root, layers.files.len());
            layers.files.push(LayeredFile {
                root: leaf.root,
                length: leaf.length,
                // More pieces than fit are refused before.
                first: u32::try_from(first).unwrap_or(u32::MAX),
                tree,
            });
            first += leaf.length.div_ceil(piece_length.into());
        }
        Ok(layers)
    }

    /// The hash of a piece: the node over it; `None` past the last piece.
    pub fn piece_hash(&self, piece: u32) -> Option<Hash> {
        let (file, index) = self.of_piece(piece)?;
        match &file.tree {
            Some(tree) => tree.lowest().get(index as usize).copied(),
            None => (index == 0).then_some(file.root),
        }
    }

    /// Computes the hash of a piece.
    pub fn hasher(&self, piece: u32) -> MerkleHasher {
        let Some((file, _)) = self.of_piece(piece) else {
            return MerkleHasher::new(0, 0);
        };
        MerkleHasher::new(self.content_bytes(piece), self.height_of(file))
    }

    /// The hashes that a peer requests; `None` if they are not known here, or there are none.
    pub fn hashes(&self, wanted: &HashRequest) -> Option<Vec<Hash>> {
        let file = &self.files[*self.by_root.get(&wanted.root)?];
        file.tree.as_ref()?.hashes(&wanted.range)
    }

    /// The requests for the hashes of all blocks of a piece, in order, and the node that each answer must lead
    /// to: the hash of the piece. Each is for as many blocks as may be requested at once; none is for padding
    /// alone. `None` if the piece is a single block.
    pub fn block_requests(&self, piece: u32) -> Option<(Vec<HashRequest>, Hash)> {
        let (file, index) = self.of_piece(piece)?;
        let height = self.height_of(file);
        let proof = height.checked_sub(1)?;
        let blocks = 1u32.checked_shl(height)?;
        let start = index.checked_mul(blocks)?;
        let length = blocks.min(MAX_HASHES);
        let bytes = u64::from(length) * merkle::BLOCK;
        let count = u32::try_from(self.content_bytes(piece).div_ceil(bytes)).ok()?;
        let requests = (0..count).map(|part| HashRequest {
            root: file.root,
            range: HashRange {
                base: 0,
                index: start + part * length,
                length,
                proof,
            },
        });
        Some((requests.collect(), self.piece_hash(piece)?))
    }

    /// Bytes of a piece: the last one of a file may have less.
    pub fn piece_length(&self) -> u32 {
        self.piece_length
    }

    /// The piece that has all blocks below the nodes that are requested; `None` if these are nodes over whole
    /// pieces, or of several pieces, or not in a tree of this torrent.
    pub fn piece_of(&self, wanted: &HashRequest) -> Option<u32> {
        let file = &self.files[*self.by_root.get(&wanted.root)?];
        let (range, height) = (wanted.range, self.height_of(file));
        if range.base >= height || !range.fits(merkle::height(file.length)) || range.top() > height
        {
            return None;
        }
        let index = range.index >> (height - range.base);
        let count = file.length.div_ceil(self.piece_length.into());
        (u64::from(index) < count).then_some(file.first + index)
    }

    /// The hashes that a peer requests of a piece, of which `blocks` are the hashes of all blocks; `None` if these
    /// do not lead to the hash of the piece.
    pub fn block_hashes(&self, wanted: &HashRequest, mut blocks: Vec<Hash>) -> Option<Vec<Hash>> {
        let piece = self.piece_of(wanted)?;
        let (file, index) = self.of_piece(piece)?;
        let (range, height) = (wanted.range, self.height_of(file));
        blocks.resize(1 << height, [0; 32]);
        let within = Tree::new(0, blocks);
        if Some(within.root()) != self.piece_hash(piece) {
            return None;
        }
        // The nodes up to that over the piece, and those above it.
        let lower = HashRange {
            index: range.index - (index << (height - range.base)),
            proof: range.proof.min(height - range.base - 1),
            ..range
        };
        let mut hashes = within.hashes(&lower)?;
        if range.base + range.proof >= height {
            let upper = HashRange {
                base: height,
                index: index & !1,
                length: 2,
                proof: range.base + range.proof - height,
            };
            // Of the pair, that beside the piece belongs to the proof.
            let pair_and_proof = file.tree.as_ref()?.hashes(&upper)?;
            let (pair, proof) = pair_and_proof.split_at(2);
            hashes.push(pair[(index % 2 == 0) as usize]);
            hashes.extend(proof);
        }
        Some(hashes)
    }

    /// Bytes of a piece without the padding behind the file.
    pub fn content_bytes(&self, piece: u32) -> u64 {
        let Some((file, index)) = self.of_piece(piece) else {
            return 0;
        };
        let length = u64::from(self.piece_length);
        let left = file.length.saturating_sub(u64::from(index) * length);
        left.min(length)
    }

    /// The height of the hash of a piece of a file.
    fn height_of(&self, file: &LayeredFile) -> u32 {
        match &file.tree {
            Some(tree) => tree.base(),
            None => merkle::height(file.length),
        }
    }

    /// Number of bytes of the nodes over the pieces of all files.
    pub fn bytes(&self) -> usize {
        let trees = self.files.iter().filter_map(|file| file.tree.as_ref());
        trees.map(|tree| tree.lowest().as_flattened().len()).sum()
    }

    /// Number of answers that have the nodes over all pieces.
    pub fn answers(&self) -> u32 {
        let trees = self.files.iter().filter_map(|file| file.tree.as_ref());
        let answers = trees.map(|tree| tree.lowest().len().div_ceil(MAX_HASHES as usize));
        u32::try_from(answers.sum::<usize>()).unwrap_or(u32::MAX)
    }

    /// The nodes over the pieces of each file that has several, by its root, in the order of the roots.
    pub fn by_root(&self) -> Vec<(Hash, &[Hash])> {
        let files = self.by_root.values().map(|index| &self.files[*index]);
        let with_tree = files.filter_map(|file| Some((file.root, file.tree.as_ref()?.lowest())));
        let mut all: Vec<_> = with_tree.collect();
        all.sort_unstable_by_key(|(root, _)| *root);
        all
    }

    /// The file that has a piece, and which of its pieces that is.
    fn of_piece(&self, piece: u32) -> Option<(&LayeredFile, u32)> {
        let after = self.files.partition_point(|file| file.first <= piece);
        let file = &self.files[after.checked_sub(1)?];
        Some((file, piece - file.first))
    }
}

/// The nodes that the info dictionary does not have of a file; `None` if it is no longer than a piece,
/// so that its root is the hash of its only piece.
pub(super) fn shape(leaf: &Leaf<'_>, piece_length: u32) -> Option<LayerShape> {
    let count = leaf.length.div_ceil(piece_length.into());
    (count > 1).then(|| LayerShape {
        root: leaf.root,
        base: merkle::height(piece_length.into()),
        height: merkle::height(leaf.length),
        count: u32::try_from(count).unwrap_or(u32::MAX),
    })
}
