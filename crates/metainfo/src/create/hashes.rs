//! The hashes of the pieces of content, of both versions in one pass.

use digest::consts::U52;
use digest::{FixedOutput, HashMarker, Output, OutputSizeUser, Update};
use hawser_store::{Files, Layout, StoreError, hash_ranges};
use sha1::{Digest, Sha1};

use super::Listed;
use crate::Version;
use crate::pieces::Pieces;
use hawser_merkle::{self as merkle, Hash, MerkleHasher, Tree};

/// Where the files of content are among its pieces.
#[derive(Debug)]
pub(super) struct Plan {
    version: Version,
    pub pieces: Pieces,
    pub layout: Layout,
    /// For each file or link, the bytes of padding before it: in version 2 each file begins with a piece.
    pub gaps: Vec<u64>,
    /// The first piece and the length of each file that has bytes. In version 1 only the first one's piece
    /// is of use.
    files: Vec<(u32, u64)>,
}

/// The hashes of content.
#[derive(Debug, Default)]
pub(super) struct PieceHashes {
    /// The SHA-1 of each piece, one after another; empty in version 2.
    pub one: Vec<u8>,
    /// The root of each file that has bytes, and the nodes over its pieces if there are several; empty in
    /// version 1.
    pub two: Vec<(Hash, Vec<Hash>)>,
}

impl Plan {
    /// For `files` in order, in pieces of `piece_length` bytes.
    pub fn new(files: &[Listed], version: Version, piece_length: u32) -> Self {
        let length = u64::from(piece_length);
        let (mut at, mut gaps, mut entries, mut planned) =
            (0u64, Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let gap = match version {
                Version::Two | Version::Hybrid if file.length > 0 => {
                    at.next_multiple_of(length) - at
                }
                _ => 0,
            };
            gaps.push(gap);
            if gap > 0 {
                entries.push((Default::default(), gap, true));
            }
            at += gap;
            if file.length > 0 {
                planned.push(((at / length) as u32, file.length));
            }
            if file.target.is_none() {
                entries.push((file.path.clone(), file.length, false));
            }
            at += file.length;
        }
        Self {
            version,
            pieces: Pieces {
                length: piece_length,
                total: at,
            },
            layout: Layout::new(entries),
            gaps,
            files: planned,
        }
    }

    /// Bytes of all hashes that the torrent will have, nearly.
    pub fn hash_bytes(&self) -> usize {
        let each = match self.version {
            Version::One => 20,
            Version::Two => 32,
            Version::Hybrid => 52,
        };
        let pieces = self.pieces.total.div_ceil(self.pieces.length.into());
        usize::try_from(pieces)
            .unwrap_or(usize::MAX)
            .saturating_mul(each)
    }

    /// Hashes all pieces. `progress` is called with the bytes hashed.
    pub fn hash(
        &self,
        files: &Files,
        mut progress: impl FnMut(u64),
    ) -> Result<PieceHashes, StoreError> {
        let count = self.pieces.count() as usize;
        let mut one = vec![
            0;
            if self.version == Version::Two {
                0
            } else {
                count * 20
            }
        ];
        let mut two = vec![
            [0; 32];
            if self.version == Version::One {
                0
            } else {
                count
            }
        ];
        let mut done = 0;
        let range = |piece| (self.pieces.range(piece), self.hasher(piece));
        hash_ranges::<BothHasher>(files, self.pieces.count(), range, |piece, hash| {
            let (first, second) = hash.split_at(20);
            let index = piece as usize;
            if let Some(hash) = one.get_mut(index * 20..index * 20 + 20) {
                hash.copy_from_slice(first);
            }
            if let Some(hash) = two.get_mut(index) {
                hash.copy_from_slice(second);
            }
            done += u64::from(self.pieces.size(piece));
            progress(done);
            true
        })?;
        let two = match self.version {
            Version::One => Vec::new(),
            Version::Two | Version::Hybrid => {
                self.files.iter().map(|it| self.tree(*it, &two)).collect()
            }
        };
        Ok(PieceHashes { one, two })
    }

    fn hasher(&self, piece: u32) -> BothHasher {
        let after = self.files.partition_point(|(first, _)| *first <= piece);
        let file = after.checked_sub(1).and_then(|index| self.files.get(index));
        let two = file
            .filter(|_| self.version != Version::One)
            .map(|(first, length)| {
                let piece_length = u64::from(self.pieces.length);
                let left = length.saturating_sub(u64::from(piece - first) * piece_length);
                // A file that is no longer than a piece has a tree no higher than it needs.
                let height = merkle::height((*length).min(piece_length));
                MerkleHasher::new(left.min(piece_length), height)
            });
        BothHasher {
            one: (self.version != Version::Two).then(Sha1::new),
            two,
        }
    }

    /// The root of a file, and the nodes over its pieces if there are several, of those over all pieces.
    fn tree(&self, (first, length): (u32, u64), nodes: &[Hash]) -> (Hash, Vec<Hash>) {
        let count = length.div_ceil(self.pieces.length.into()) as usize;
        let nodes = nodes[first as usize..first as usize + count].to_vec();
        let tree = Tree::new(merkle::height(length.min(self.pieces.length.into())), nodes);
        let root = tree.root();
        (
            root,
            if count > 1 {
                tree.lowest().to_vec()
            } else {
                Vec::new()
            },
        )
    }
}

/// Computes the SHA-1 of a piece, the node of a merkle tree over it, or both, one after the other.
#[derive(Debug, Clone, Default)]
struct BothHasher {
    one: Option<Sha1>,
    two: Option<MerkleHasher>,
}

impl HashMarker for BothHasher {}

impl OutputSizeUser for BothHasher {
    type OutputSize = U52;
}

impl Update for BothHasher {
    fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.one {
            Digest::update(hasher, bytes);
        }
        if let Some(hasher) = &mut self.two {
            hasher.update(bytes);
        }
    }
}

impl FixedOutput for BothHasher {
    fn finalize_into(self, out: &mut Output<Self>) {
        let (one, two) = out.split_at_mut(20);
        if let Some(hasher) = self.one {
            one.copy_from_slice(&hasher.finalize());
        }
        if let Some(hasher) = self.two {
            two.copy_from_slice(&hasher.finalize());
        }
    }
}
