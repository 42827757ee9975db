//! The peer wire protocol (BEP 3), its extended handshake and extension messages (BEP 10), without
//! I/O.

pub mod bitfield;
mod error;
mod exchange;
#[cfg(test)]
mod fuzz;
mod handshake;
mod message;
mod multipath;
mod request;
#[cfg(test)]
mod tests;

pub use hawser_merkle::HashRequest;

pub use self::bitfield::Bitfield;
pub use self::error::WireError;
pub use self::exchange::{AddrKind, Exchange, MAX_EXCHANGED, SCION_PEX, UT_PEX};
pub use self::handshake::new_peer_id;
pub use self::handshake::{
    EXTENDED_HANDSHAKE, ExtendedHandshake, HANDSHAKE_BYTES, Handshake, PeerId, UT_METADATA,
};
pub use self::message::{Decoder, Message, PIECE_HEADER, encode, encode_piece_header};
pub use self::multipath::{MULTIPATH, Multipath};
pub use self::request::{BLOCK, Request};
