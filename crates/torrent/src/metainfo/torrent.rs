//! A checked `.torrent` file.

use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::pieces::Pieces;

/// Largest `.torrent` read, in bytes.
pub const MAX_METAINFO_BYTES: usize = 16 << 20;
/// Largest `.torrent` made, in bytes.
pub const MAX_CREATED_BYTES: usize = 10 << 20;
/// Smallest piece length accepted, in bytes.
pub const MIN_PIECE_LENGTH: u32 = 1 << 10;
/// Largest piece length accepted, in bytes.
pub const MAX_PIECE_LENGTH: u32 = 128 << 20;

/// Most nodes of the DHT read from a `.torrent`.
pub const MAX_NODES: usize = 64;

/// The SHA-1 of the info dictionary, which identifies a torrent on the wire. Displayed as hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InfoHash(pub [u8; 20]);

impl fmt::Display for InfoHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
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

/// A checked `.torrent` file.
///
/// Only [`Metainfo::parse`] makes one: it has a valid piece length, the right number of piece
/// hashes, and files that stay inside the download folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metainfo {
    /// SHA-1 over the bytes of the info dictionary as they are in the file (BEP 3).
    pub info_hash: InfoHash,
    /// SHA-256 over the same bytes, if the torrent is a hybrid, of version 1 and 2 (BEP 52).
    pub info_hash_v2: Option<[u8; 32]>,
    /// The name of the file, or of the folder of several files, made safe.
    pub name: String,
    /// The same name byte by byte, if it differs and a file on this system can have it.
    pub literal_name: Option<OsString>,
    /// How the bytes of all files, padding included, are cut into pieces; at least one.
    pub pieces: Pieces,
    /// The bytes of the info dictionary, which peers may ask for (BEP 9).
    pub(super) info: Arc<[u8]>,
    /// The part of `info` that is the SHA-1 of every piece, one after another.
    pub(super) piece_hashes: Range<usize>,
    /// The files, in the order in which their bytes make up the pieces.
    pub files: Vec<File>,
    /// The symbolic links among them.
    pub links: Vec<Link>,
    /// Whether the content is a folder (also with one file in it) rather than a single file.
    pub multi_file: bool,
    /// A free text.
    pub comment: Option<String>,
    /// The program that made it.
    pub created_by: Option<String>,
    /// When it was made, in Unix seconds.
    pub creation_date: Option<i64>,
    /// The URLs of trackers in tiers (BEP 12), each tier to be tried after those before it.
    pub trackers: Vec<Vec<String>>,
    /// Nodes of the DHT to begin with, each a host, by name or address, and a UDP port (BEP 5); at most
    /// [`MAX_NODES`].
    pub nodes: Vec<(String, u16)>,
    /// The URLs of web servers that have the content (BEP 19).
    pub web_seeds: Vec<String>,
    /// Whether peers may come from the trackers alone (BEP 27).
    pub private: bool,
    /// The text by which a tracker's torrent differs from others of the same content.
    pub source: Option<String>,
}

impl Metainfo {
    /// The bytes of the info dictionary, of which [`Self::info_hash`] is the hash.
    pub fn info(&self) -> &Arc<[u8]> {
        &self.info
    }

    /// The info-hashes that peers may name the torrent with in handshakes: that of version 1, and of a hybrid
    /// also the first 20 bytes of that of version 2 (BEP 52).
    pub(crate) fn wire_hashes(&self) -> Arc<[InfoHash]> {
        let v2 = self.info_hash_v2.as_ref();
        let v2 = v2.and_then(|hash| hash.first_chunk::<20>());
        let v2 = v2.copied().map(InfoHash);
        [self.info_hash].into_iter().chain(v2).collect()
    }

    /// The SHA-1 of a piece; `None` past the last piece.
    pub fn piece_hash(&self, piece: u32) -> Option<[u8; 20]> {
        let start = piece as usize * 20;
        let hashes = self.info.get(self.piece_hashes.clone())?;
        hashes.get(start..start + 20)?.try_into().ok()
    }
}
