//! `.torrent` files (BEP 3): the files of a torrent, their order, the hash of every piece.
//!
//! They are read as tolerantly as libtorrent reads them: keys in any order, bytes after the end,
//! names that no file can have, several files of one name. The info-hash is always that of the
//! bytes in the file, unchanged.

pub(crate) mod bencode;
mod bounds;
mod create;
mod error;
mod fields;
mod hybrid;
mod info_hash;
mod listed;
mod name;
mod parse;
mod places;
#[cfg(test)]
mod tests;
mod torrent;

pub use self::bencode::BencodeError;
pub use self::bounds::{MAX_CREATED_BYTES, MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH};
pub use self::create::{CreateError, CreateOptions, create};
pub use self::error::MetainfoError;
pub use self::info_hash::InfoHash;
pub use self::torrent::{File, Link, Metainfo};
