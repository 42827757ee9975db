//! The peer wire protocol (BEP 3), its extended handshake and extension messages (BEP 10), without
//! I/O.

mod extended;
mod handshake;
mod message;
mod multipath;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub(crate) use self::extended::{EXTENDED_HANDSHAKE, ExtendedHandshake};
pub(crate) use self::handshake::{HANDSHAKE_BYTES, Handshake, PeerId};
pub(crate) use self::message::{Decoder, Message, Request, encode, encode_piece_header};
pub(crate) use self::multipath::{MULTIPATH, MULTIPATH_NAME, Multipath};

/// Bytes of a block as everybody asks for them (BEP 3: 2^14); only a piece's last block is shorter.
pub(crate) const BLOCK: u32 = 16 << 10;

/// Most bytes of a block that a peer may ask of us: what common clients allow at most.
pub(crate) const MAX_REQUEST: u32 = 128 << 10;

/// Largest extended message read, in bytes: a handshake has a few hundred.
pub(crate) const MAX_EXTENDED: u32 = 64 << 10;

/// Bytes before a block's data: length, id, piece, begin.
pub(crate) const PIECE_HEADER: usize = 13;

/// How a peer broke the protocol, so that it is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum WireError {
    #[error("it does not speak BitTorrent")]
    NotBitTorrent,
    #[error("it is in another torrent (info-hash {0})")]
    WrongInfoHash(crate::metainfo::InfoHash),
    #[error("it is in another torrent")]
    NotThisTorrent,
    #[error("it sent a message of {length} bytes where at most {limit} are allowed")]
    Oversize { length: u32, limit: u32 },
    #[error("it sent message {id} with {length} bytes, which is not how long that is")]
    WrongLength { id: u8, length: u32 },
    #[error("it sent a message of unknown kind {0}")]
    UnknownMessage(u8),
    #[error("it sent a bitfield that does not fit {pieces} pieces")]
    BadBitfield { pieces: u32 },
    #[error("it took back more pieces than it can ever have had")]
    TakesBack,
    #[error("it named piece {piece} of {pieces}")]
    NoSuchPiece { piece: u32, pieces: u32 },
    #[error(
        "it asked for {length} bytes at {begin} of piece {piece}, which are not there or too many"
    )]
    BadRequest { piece: u32, begin: u32, length: u32 },
    #[error("it asked for piece {0}, which was never offered")]
    RequestedMissing(u32),
    #[error("it has more than {0} requests waiting")]
    TooManyRequests(usize),
    #[error(
        "it sent a block that was not asked for (piece {piece}, begin {begin}, {length} bytes)"
    )]
    Unrequested { piece: u32, begin: u32, length: u32 },
    #[error("its extended handshake is malformed: {0}")]
    BadExtended(crate::metainfo::BencodeError),
    #[error("its extended handshake is no dictionary")]
    ExtendedNoDict,
    #[error("its scion_multipath message is malformed: {0}")]
    BadMultipath(crate::metainfo::BencodeError),
    #[error("its scion_multipath message is no dictionary")]
    MultipathNoDict,
    #[error("its scion_multipath message has no SCION address of 14 or 26 bytes")]
    MultipathAddress,
    #[error("its scion_multipath message names interfaces that are no path")]
    MultipathInterfaces,
}
