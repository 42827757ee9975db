//! A checked `.torrent` file.

use std::path::{Path, PathBuf};

use super::info_hash::InfoHash;
use crate::pieces::Pieces;

/// One file of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path relative to the download folder. It begins with the torrent's name and has only
    /// plain components: no `..`, no root, nothing that leaves the folder.
    pub path: PathBuf,
    /// The path in the torrent, without the torrent's name, if it differs from `path`: no file can
    /// have it, or another file has it.
    pub original: Option<String>,
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
pub struct Metainfo {
    pub(super) info_hash: InfoHash,
    pub(super) info_hash_v2: Option<[u8; 32]>,
    pub(super) name: String,
    pub(super) pieces: Pieces,
    /// The SHA-1 of every piece, one after another.
    pub(super) piece_hashes: Vec<u8>,
    pub(super) files: Vec<File>,
    pub(super) links: Vec<Link>,
    pub(super) multi_file: bool,
    pub(super) comment: Option<String>,
    pub(super) created_by: Option<String>,
    pub(super) creation_date: Option<i64>,
    pub(super) trackers: Vec<Vec<String>>,
    pub(super) web_seeds: Vec<String>,
    pub(super) private: bool,
    pub(super) source: Option<String>,
}

impl Metainfo {
    /// SHA-1 over the bytes of the info dictionary as they are in the file (BEP 3).
    pub fn info_hash(&self) -> InfoHash {
        self.info_hash
    }

    /// SHA-256 over the same bytes, if the torrent is a hybrid, of version 1 and 2 (BEP 52).
    pub fn info_hash_v2(&self) -> Option<[u8; 32]> {
        self.info_hash_v2
    }

    /// The name of the file, or of the folder of several files, made safe.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes per piece; the last piece may be shorter.
    pub fn piece_length(&self) -> u32 {
        self.pieces.length()
    }

    /// How many pieces there are, at least one.
    pub fn piece_count(&self) -> u32 {
        self.pieces.count()
    }

    /// Bytes of all files together, padding included, at least one.
    pub fn total_length(&self) -> u64 {
        self.pieces.total()
    }

    /// The files, in the order in which their bytes make up the pieces.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The symbolic links among them.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Whether the content is a folder (also with one file in it) rather than a single file.
    pub fn is_multi_file(&self) -> bool {
        self.multi_file
    }

    /// A free text.
    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// The program that made it.
    pub fn created_by(&self) -> Option<&str> {
        self.created_by.as_deref()
    }

    /// When it was made, in Unix seconds.
    pub fn creation_date(&self) -> Option<i64> {
        self.creation_date
    }

    /// The URLs of trackers in tiers (BEP 12), each tier to be tried after those before it.
    pub fn trackers(&self) -> &[Vec<String>] {
        &self.trackers
    }

    /// The URLs of web servers that have the content (BEP 19).
    pub fn web_seeds(&self) -> &[String] {
        &self.web_seeds
    }

    /// Whether peers may come from the trackers alone (BEP 27).
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// The text by which a tracker's torrent differs from others of the same content.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The SHA-1 of a piece; `None` past the last piece.
    pub fn piece_hash(&self, piece: u32) -> Option<[u8; 20]> {
        let start = piece as usize * 20;
        self.piece_hashes.get(start..start + 20)?.try_into().ok()
    }

    /// The length of a piece in bytes; 0 past the last piece.
    pub fn piece_size(&self, piece: u32) -> u32 {
        self.pieces.size(piece)
    }

    /// How its bytes are cut into pieces.
    pub(crate) fn pieces(&self) -> Pieces {
        self.pieces
    }

    /// The path of the content in a download folder: the file or the folder of this name.
    pub fn content_path(&self, dir: &Path) -> PathBuf {
        dir.join(&self.name)
    }
}
