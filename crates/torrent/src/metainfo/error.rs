//! Why a `.torrent` file is refused.

use thiserror::Error;

use super::bencode::BencodeError;
use super::{MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH};

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
    /// A key that must be there is not, or holds another kind of value.
    #[error("the torrent's `{key}` is missing or is not {expected}")]
    Field {
        /// The key, with its parents: `info.piece length`.
        key: &'static str,
        /// What should stand there.
        expected: &'static str,
    },
    /// A BEP 52 torrent without version 1 pieces.
    #[error(
        "this is a version 2 torrent (BEP 52) without version 1 piece hashes: make it as hybrid or version 1"
    )]
    VersionTwoOnly,
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
    /// A negative file length, or lengths whose sum is beyond 2^63.
    #[error("the length of file {file} is negative or beyond what a file can have")]
    FileLength {
        /// The file's name as given.
        file: String,
    },
    /// No bytes at all.
    #[error("the torrent has no content: all its files are empty")]
    Empty,
    /// Both `length` and `files`, or neither.
    #[error(
        "the torrent must have either `length` (one file) or `files` (several), not both or neither"
    )]
    OneOrSeveral,
    /// A name that cannot be a file name.
    #[error(
        "the torrent names {shown}, which would leave the download folder or is no file name: {why}"
    )]
    UnsafePath {
        /// The path as given, printable.
        shown: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Two files at one place, or a file where another needs a folder.
    #[error("the torrent names {shown} twice, or both as a file and as a folder")]
    Duplicate {
        /// The path, printable.
        shown: String,
    },
    /// A symbolic link entry (BEP 47).
    #[error("the torrent holds a symbolic link ({shown}): links are not supported")]
    Symlink {
        /// The path, printable.
        shown: String,
    },
}
