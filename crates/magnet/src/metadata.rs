//! The extension `ut_metadata` (BEP 9): the info dictionary, in pieces of 16 KiB, from peers to
//! peers that have its hash alone.

mod fetch;
mod message;
mod serve;

pub use self::fetch::{ConnectionId, Fetch, Output};
pub use self::message::{MetadataMessage, MetadataMessageError};
pub use self::serve::Serve;

/// Length of a piece of an info dictionary, in bytes; the last piece may be shorter (BEP 9).
pub const METADATA_PIECE: usize = 16 << 10;

/// Longest info dictionary that is fetched, in bytes: longer ones are not read as metainfo either.
pub const MAX_METADATA_BYTES: usize = 16 << 20;

/// Number of pieces of an info dictionary of `bytes`.
fn piece_count(bytes: usize) -> usize {
    bytes.div_ceil(METADATA_PIECE)
}

/// Length of a piece of an info dictionary of `bytes`; 0 for a piece that it does not have.
fn piece_length(bytes: usize, piece: u32) -> usize {
    let start = (piece as usize).saturating_mul(METADATA_PIECE);
    bytes.saturating_sub(start).min(METADATA_PIECE)
}
