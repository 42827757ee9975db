//! How a peer breaks the protocol.

use hawser_magnet::MetadataMessageError;
use thiserror::Error;

use super::request::Request;
use crate::metainfo::{BencodeError, InfoHash};

/// How a peer broke the protocol, so that it is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum WireError {
    #[error("it does not speak BitTorrent")]
    NotBitTorrent,
    #[error("it is in another torrent (info-hash {0})")]
    WrongInfoHash(InfoHash),
    #[error("it is in another torrent")]
    NotThisTorrent,
    #[error("it sent a message of {length} bytes where at most {limit} are allowed")]
    Oversize { length: u32, limit: u32 },
    #[error("it sent message {id} with {length} bytes, a length that this message cannot have")]
    WrongLength { id: u8, length: u32 },
    #[error("it sent a message of unknown kind {0}")]
    UnknownMessage(u8),
    #[error("it sent a bitfield that does not fit {pieces} pieces")]
    BadBitfield { pieces: u32 },
    #[error("it took back more pieces than it can have had")]
    TakesBack,
    #[error("it named piece {piece} of {pieces}")]
    NoSuchPiece { piece: u32, pieces: u32 },
    #[error(
        "it asked for {} bytes at {} of piece {}, which is too many or past its end",
        .0.length, .0.begin, .0.piece
    )]
    BadRequest(Request),
    #[error("it asked for piece {0}, which was never offered")]
    RequestedMissing(u32),
    #[error("it has more than {0} requests waiting")]
    TooManyRequests(usize),
    #[error(
        "it sent {} bytes at {} of piece {}, which is past the end of the piece or the torrent",
        .0.length, .0.begin, .0.piece
    )]
    OutOfRange(Request),
    #[error("it flooded this host with blocks that were not asked for ({0} bytes in all)")]
    Flood(u64),
    #[error("it sent {0} messages beside blocks within seconds")]
    TooManyMessages(u32),
    #[error("its extended handshake is malformed: {0}")]
    BadExtended(BencodeError),
    #[error("its extended handshake is not a dictionary")]
    ExtendedNoDict,
    #[error("its message with addresses of peers is malformed: {0}")]
    BadExchange(BencodeError),
    #[error("its message with addresses of peers is not a dictionary")]
    ExchangeNoDict,
    #[error("it sent {0}")]
    BadMetadata(MetadataMessageError),
    #[error("its scion_multipath message is malformed: {0}")]
    BadMultipath(BencodeError),
    #[error("its scion_multipath message is not a dictionary")]
    MultipathNoDict,
    #[error("its scion_multipath message has no SCION address of 14 or 26 bytes")]
    MultipathAddress,
    #[error("its scion_multipath message names interfaces that are not a path")]
    MultipathInterfaces,
}
