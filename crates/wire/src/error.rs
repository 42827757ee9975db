//! How a peer breaks the protocol.

use hawser_magnet::MetadataMessageError;
use thiserror::Error;

use super::request::Request;
use hawser_bencode::BencodeError;
use hawser_magnet::InfoHash;

/// How a peer broke the protocol, so that it is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WireError {
    /// Its first bytes are not a handshake.
    #[error("it does not speak BitTorrent")]
    NotBitTorrent,
    /// Its handshake is for another torrent.
    #[error("it is in another torrent (info-hash {0})")]
    WrongInfoHash(InfoHash),
    /// It does not have the torrent, and says so.
    #[error("it is in another torrent")]
    NotThisTorrent,
    /// A message is longer than it may be.
    #[error("it sent a message of {length} bytes where at most {limit} are allowed")]
    Oversize {
        /// Its length, with its kind.
        length: u32,
        /// The greatest length.
        limit: u32,
    },
    /// A message has a length that its kind cannot have.
    #[error("it sent message {id} with {length} bytes, a length that this message cannot have")]
    WrongLength {
        /// Its kind.
        id: u8,
        /// Its length, with its kind.
        length: u32,
    },
    /// A message is of an unknown kind.
    #[error("it sent a message of unknown kind {0}")]
    UnknownMessage(u8),
    /// A bitfield is not for as many pieces.
    #[error("it sent a bitfield that does not fit {pieces} pieces")]
    BadBitfield {
        /// Number of pieces of the torrent.
        pieces: u32,
    },
    /// It took back more pieces than it can have had.
    #[error("it took back more pieces than it can have had")]
    TakesBack,
    /// It named a piece past the last.
    #[error("it named piece {piece} of {pieces}")]
    NoSuchPiece {
        /// The piece.
        piece: u32,
        /// Number of pieces of the torrent.
        pieces: u32,
    },
    /// It requested bytes that are too many or past the end.
    #[error(
        "it asked for {} bytes at {} of piece {}, which is too many or past its end",
        .0.length, .0.begin, .0.piece
    )]
    BadRequest(Request),
    /// It requested a piece that was not offered.
    #[error("it asked for piece {0}, which was never offered")]
    RequestedMissing(u32),
    /// More requests of it wait than may.
    #[error("it has more than {0} requests waiting")]
    TooManyRequests(usize),
    /// It sent bytes past the end.
    #[error(
        "it sent {} bytes at {} of piece {}, which is past the end of the piece or the torrent",
        .0.length, .0.begin, .0.piece
    )]
    OutOfRange(Request),
    /// It sent blocks that were not requested, of so many bytes.
    #[error("it flooded this host with blocks that were not asked for ({0} bytes in all)")]
    Flood(u64),
    /// It sent too many messages beside blocks.
    #[error("it sent {0} messages beside blocks within seconds")]
    TooManyMessages(u32),
    /// Its extended handshake is not bencode.
    #[error("its extended handshake is malformed: {0}")]
    BadExtended(BencodeError),
    /// Its extended handshake is not a dictionary.
    #[error("its extended handshake is not a dictionary")]
    ExtendedNoDict,
    /// Its addresses of peers are not bencode.
    #[error("its message with addresses of peers is malformed: {0}")]
    BadExchange(BencodeError),
    /// Its message with addresses of peers is not a dictionary.
    #[error("its message with addresses of peers is not a dictionary")]
    ExchangeNoDict,
    /// A message of `ut_metadata` is malformed.
    #[error("it sent {0}")]
    BadMetadata(MetadataMessageError),
    /// A message of `scion_multipath` is not bencode.
    #[error("its scion_multipath message is malformed: {0}")]
    BadMultipath(BencodeError),
    /// A message of `scion_multipath` is not a dictionary.
    #[error("its scion_multipath message is not a dictionary")]
    MultipathNoDict,
    /// An offer in `scion_multipath` has no SCION address.
    #[error("its scion_multipath message has no SCION address of 14 or 26 bytes")]
    MultipathAddress,
    /// A report in `scion_multipath` does not have the interfaces of a path.
    #[error("its scion_multipath message names interfaces that are not a path")]
    MultipathInterfaces,
}
