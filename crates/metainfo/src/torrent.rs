//! A checked `.torrent` file.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use hawser_bencode::Value;
use hawser_magnet::{InfoHash, InfoHashes};

use super::layers::Layers;
use super::pieces::Pieces;

/// Most nodes of the DHT read from a `.torrent`.
pub const MAX_NODES: usize = 64;

/// The version of a torrent: how its content is hashed (BEP 52).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    /// Each piece has a SHA-1, and runs from one file into the next (BEP 3).
    #[default]
    One,
    /// Each file begins with a piece and has a merkle tree of SHA-256.
    Two,
    /// Both: every program can fetch it. Padding (BEP 47) lets each file begin with a piece.
    Hybrid,
}

/// One file of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path relative to the download folder. It begins with the torrent's name and has only
    /// plain components: no `..`, no root, nothing that leaves the folder.
    pub path: PathBuf,
    /// The path in the torrent, without the torrent's name and for people to read, if it differs
    /// from `path`: no file can or should have it, or another file has it.
    pub original: Option<String>,
    /// The same path byte by byte, if a file on this system can have it: content is seeded under
    /// these names, too, but a download never creates them.
    pub literal: Option<PathBuf>,
    /// Length in bytes.
    pub length: u64,
    /// A padding file (BEP 47): zeros that align the next file, never written to disk.
    pub padding: bool,
}

/// A symbolic link of a torrent (BEP 47).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its path, as of a [`File`].
    pub path: PathBuf,
    /// Its target, a file or folder of the torrent, relative to the folder that the link is in.
    /// `None` if its target is not in the torrent: such a link is not made.
    pub target: Option<PathBuf>,
}

/// Where a `.torrent` file says that peers and content are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The URLs of trackers in tiers (BEP 12), each tier to be tried after those before it.
    pub trackers: Vec<Vec<String>>,
    /// Nodes of the DHT to begin with, each a host, by name or address, and a UDP port (BEP 5); at most
    /// [`MAX_NODES`].
    pub nodes: Vec<(String, u16)>,
    /// The URLs of web servers that have the content (BEP 19).
    pub web_seeds: Vec<String>,
}

/// What a `.torrent` file says of its own making.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// A free text.
    pub comment: Option<String>,
    /// The program that made it.
    pub created_by: Option<String>,
    /// When it was made, in Unix seconds.
    pub creation_date: Option<i64>,
    /// A text that trackers add, so that their torrent of some content has an info-hash of its own.
    pub source: Option<String>,
}

/// A checked `.torrent` file.
///
/// Only [`Metainfo::parse`] makes one: it has a valid piece length, the right number of piece
/// hashes, and files that stay inside the download folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metainfo {
    /// SHA-1 over the bytes of the info dictionary as they are in the file (BEP 3); of a torrent of version
    /// 2 alone, the first 20 bytes of [`Self::info_hash_v2`].
    pub info_hash: InfoHash,
    /// SHA-256 over the same bytes, if the torrent is of version 2 or of both (BEP 52).
    pub info_hash_v2: Option<[u8; 32]>,
    /// The name of the file, or of the folder of several files, made safe.
    pub name: String,
    /// The same name byte by byte, if it differs and a file on this system can have it.
    pub literal_name: Option<OsString>,
    /// How the bytes of all files, padding included, are cut into pieces; at least one.
    pub pieces: Pieces,
    /// The bytes of the info dictionary, which peers may ask for (BEP 9).
    pub(super) info: Arc<[u8]>,
    /// The part of `info` that is the SHA-1 of every piece, one after another; `None` in version 2 alone.
    pub(super) piece_hashes: Option<Range<usize>>,
    /// The hashes of version 2. `None` in version 1, and in a hybrid whose piece layers are not known,
    /// for which those of version 1 do.
    pub(super) layers: Option<Arc<Layers>>,
    /// The files, in the order in which their bytes make up the pieces. In version 2 alone, padding stands
    /// between them where a file does not end with a piece.
    pub files: Vec<File>,
    /// The symbolic links among them.
    pub links: Vec<Link>,
    /// Whether the content is a folder (also with one file in it) rather than a single file.
    pub multi_file: bool,
    /// Whether peers may come from the trackers alone (BEP 27).
    pub private: bool,
    /// Where peers and content are found.
    pub sources: Sources,
    /// What it says of its own making.
    pub provenance: Provenance,
}

impl Metainfo {
    /// The bytes of the info dictionary, of which [`Self::info_hash`] is the hash.
    pub fn info(&self) -> &Arc<[u8]> {
        &self.info
    }

    /// Number of bytes of the info dictionary, and of the hashes beside it.
    pub fn bytes(&self) -> usize {
        self.info.len() + self.layers.as_ref().map_or(0, |layers| layers.bytes())
    }

    /// The version of the torrent.
    pub fn version(&self) -> Version {
        match (&self.piece_hashes, self.info_hash_v2) {
            (Some(_), None) => Version::One,
            (Some(_), Some(_)) => Version::Hybrid,
            (None, _) => Version::Two,
        }
    }

    /// The info-hashes, as magnet links have them.
    pub fn info_hashes(&self) -> InfoHashes {
        InfoHashes {
            v1: self.piece_hashes.as_ref().map(|_| self.info_hash.0),
            v2: self.info_hash_v2,
        }
    }

    /// The value of `piece layers` in its `.torrent` file, in bencode: the hashes of version 2, which are
    /// not in the info dictionary; `None` if there are none.
    pub fn piece_layers(&self) -> Option<Vec<u8>> {
        let layers = self.layers.as_ref()?.by_root();
        let layers = layers
            .iter()
            .map(|(root, nodes)| (root, Some(Value::Bytes(nodes.as_flattened()))));
        Some(Value::dict(layers).encode())
    }

    /// The info-hashes that peers may name the torrent with in handshakes: that of version 1, and of a hybrid
    /// also the first 20 bytes of that of version 2 (BEP 52), which in version 2 alone is the only one.
    pub fn wire_hashes(&self) -> Arc<[InfoHash]> {
        let v2 = self.info_hash_v2.as_ref();
        let v2 = v2.and_then(|hash| hash.first_chunk::<20>());
        let v2 = v2.copied().map(InfoHash);
        let v2 = v2.filter(|hash| *hash != self.info_hash);
        [self.info_hash].into_iter().chain(v2).collect()
    }

    /// The SHA-1 of a piece; `None` past the last piece, and in version 2 alone.
    pub fn piece_hash(&self, piece: u32) -> Option<[u8; 20]> {
        let start = piece as usize * 20;
        let hashes = self.info.get(self.piece_hashes.clone()?)?;
        hashes.get(start..start + 20)?.try_into().ok()
    }

    /// The hashes of version 2, if they are known.
    pub fn layers(&self) -> Option<&Layers> {
        self.layers.as_deref()
    }
}
