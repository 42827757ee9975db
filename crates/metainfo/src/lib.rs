//! `.torrent` files (BEP 3, BEP 52): the files of a torrent, their order, the hash of every piece.
//!
//! They are read as tolerantly as libtorrent reads them: keys in any order, bytes after the end,
//! names that no file can have, several files of one name. The info-hash is always that of the
//! bytes in the file, unchanged.

mod bounds;
mod create;
mod error;
#[cfg(test)]
mod fuzz;
mod hybrid;
mod layers;
pub mod layout;
mod listed;
mod name;
mod parse;
mod piece_hasher;
pub mod pieces;
mod places;
#[cfg(test)]
mod tests;
mod torrent;
mod tree;

pub use hawser_bencode::BencodeError;
pub use hawser_magnet::InfoHash;

pub use self::bounds::{MAX_CREATED_BYTES, MAX_METAINFO_BYTES, MAX_PIECE_LENGTH, MIN_PIECE_LENGTH};
pub use self::create::{CreateError, CreateOptions, create};
pub use self::error::MetainfoError;
pub use self::layers::{LayerShape, Layers};
pub use self::name::is_file_name;
pub use self::piece_hasher::PieceHasher;
pub use self::pieces::Pieces;
pub use self::torrent::{File, Link, MAX_NODES, Metainfo, Provenance, Sources, Version};
