//! The peer wire protocol (BEP 3), its extended handshake and extension messages (BEP 10), without
//! I/O.

mod error;
mod exchange;
mod handshake;
mod hashes;
mod message;
mod multipath;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use self::error::WireError;
pub(crate) use self::exchange::{AddrKind, Exchange, MAX_EXCHANGED, SCION_PEX, UT_PEX};
pub use self::handshake::new_peer_id;
pub(crate) use self::handshake::{
    EXTENDED_HANDSHAKE, ExtendedHandshake, HANDSHAKE_BYTES, Handshake, PeerId, UT_METADATA,
};
pub(crate) use self::hashes::HashRequest;
pub(crate) use self::message::{
    BLOCK, Decoder, Message, PIECE_HEADER, encode, encode_piece_header,
};
pub(crate) use self::multipath::{MULTIPATH, Multipath};
pub(crate) use self::request::Request;
