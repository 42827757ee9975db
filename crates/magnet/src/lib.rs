//! Magnet links (BEP 9), and the info dictionary that peers send to those with a link alone.
//!
//! - [`Magnet`]: a link, read and written.
//! - [`MetadataMessage`]: the messages of the extension `ut_metadata`.
//! - [`Fetch`]: assembles the info dictionary from the answers of many peers, some of which may be
//!   slow, leave or lie. Events in, outputs out; no I/O, no clock.
//! - [`Serve`]: answers the requests of one peer.

#[cfg(test)]
mod fuzz;
mod hashes;
mod link;
mod metadata;

pub use self::hashes::{InfoHash, InfoHashes};
pub use self::link::{Files, MAX_LINK_BYTES, Magnet, MagnetError, MagnetPeer};
pub use self::metadata::{
    ConnectionId, Fetch, MAX_METADATA_BYTES, METADATA_PIECE, MetadataMessage, MetadataMessageError,
    Output, Serve,
};
