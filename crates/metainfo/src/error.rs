//! Why a `.torrent` file is refused.

use hawser_bencode::BencodeError;
use thiserror::Error;

use super::bounds::{MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH};
use super::name::{MAX_PATH_BYTES, MAX_PATH_DEPTH};

/// Why a `.torrent` file is refused, in one line each.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetainfoError {
    /// Not bencode, or cut short.
    #[error("not a torrent file: {0}")]
    Bencode(#[from] BencodeError),
    /// Larger than [`MAX_METAINFO_BYTES`].
    #[error(
        "not a torrent file: {0} bytes are more than the {MAX_METAINFO_BYTES} a torrent file may have"
    )]
    TooLarge(usize),
    /// Bencode, but not a dictionary.
    #[error("not a torrent file: it is not a dictionary")]
    NoDictionary,
    /// A key that must be there is not, or holds another kind of value.
    #[error("the torrent's `{key}` is missing or is not {expected}")]
    Field {
        /// The key, with its parents: `info.piece length`.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A version that is yet to come.
    #[error("this is a torrent of version {0}: versions 1 and 2 are known")]
    Version(i64),
    /// What describes the files of version 2 is malformed; where.
    #[error("the version 2 part of this torrent (BEP 52) is malformed: {0}")]
    VersionTwo(String),
    /// The hashes of the pieces of a file of version 2 are not there.
    #[error(
        "the torrent lacks the piece hashes (`piece layers`) of {0}: make it anew, or get it by its magnet link"
    )]
    NoLayer(String),
    /// The hashes of the pieces of a file of version 2 are not those of its root.
    #[error("the piece hashes (`piece layers`) of {0} do not lead to its `pieces root`")]
    WrongLayer(String),
    /// More pieces than peers can number.
    #[error("the torrent has {0} pieces, more than 2^32 - 1")]
    TooManyPieces(u64),
    /// The version 2 part of a hybrid is not that of its version 1 part; where.
    #[error(
        "the parts for version 1 and version 2 of this hybrid torrent contradict each other: {0}"
    )]
    Hybrid(String),
    /// A piece length of zero, negative, or beyond reason.
    #[error("the piece length {0} is outside {MIN_PIECE_LENGTH} to {MAX_PIECE_LENGTH} bytes")]
    PieceLength(i64),
    /// `pieces` is not a whole number of SHA-1 values.
    #[error("the piece hashes are cut short: {0} bytes are no multiple of 20")]
    PiecesCut(usize),
    /// The number of hashes does not fit the length.
    #[error(
        "the torrent has {found} piece hashes, but its files of {total_length} bytes make {expected} pieces"
    )]
    PieceCount {
        /// Hashes in the file.
        found: u64,
        /// Pieces that the lengths make.
        expected: u64,
        /// Bytes of all files.
        total_length: u64,
    },
    /// A negative file length, or lengths whose sum is beyond 2^63; the file's name as given.
    #[error("the length of file {0} is negative or beyond what a file can have")]
    FileLength(String),
    /// No bytes at all.
    #[error("the torrent has no content: all its files are empty")]
    Empty,
    /// Neither `length` nor `files`.
    #[error("the torrent has neither `length` (one file) nor `files` (several)")]
    NoFiles,
    /// A path that no file can have, printable and cut short.
    #[error(
        "the path of {0} is longer than {MAX_PATH_BYTES} bytes or more than {MAX_PATH_DEPTH} folders deep"
    )]
    PathTooLong(String),
}

impl MetainfoError {
    /// A key that must be there, with its parents, and what it should be.
    pub(super) const fn field(key: &'static str, expected: &'static str) -> Self {
        Self::Field { key, expected }
    }
}
