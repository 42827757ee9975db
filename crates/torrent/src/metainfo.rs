//! `.torrent` files (BEP 3, BEP 52): the files of a torrent, their order, the hash of every piece.
//!
//! They are read as tolerantly as libtorrent reads them: keys in any order, bytes after the end,
//! names that no file can have, several files of one name. The info-hash is always that of the
//! bytes in the file, unchanged.

mod bounds;
mod create;
mod error;
mod hybrid;
mod layers;
mod listed;
mod name;
mod parse;
mod places;
#[cfg(test)]
mod tests;
mod torrent;
mod tree;

pub use hawser_bencode::BencodeError;

pub use self::bounds::{MAX_CREATED_BYTES, MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH};
pub use self::create::{CreateError, CreateOptions, create};
pub use self::error::MetainfoError;
pub(crate) use self::layers::LayerShape;
pub use self::torrent::{File, InfoHash, Link, MAX_NODES, Metainfo, Provenance, Sources, Version};
