//! The messages of `ut_metadata` (BEP 9).

use hawser_bencode::{BencodeError, Value, parse_tolerant};
use thiserror::Error;

use super::METADATA_PIECE;

/// Longest dictionary of a message that is read, in bytes. Those in use have about 50.
const MAX_DICT: usize = 1024;

/// The numbers of the messages (`msg_type`).
const REQUEST: i64 = 0;
const DATA: i64 = 1;
const REJECT: i64 = 2;

/// A message: the payload of an extended message (BEP 10) after its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataMessage<'a> {
    /// Asks for a piece.
    Request {
        /// Its number, from 0.
        piece: u32,
    },
    /// A piece.
    Data {
        /// Its number, from 0.
        piece: u32,
        /// Length of the whole info dictionary, in bytes (`total_size`); `None` if it is missing.
        total: Option<u64>,
        /// At most [`METADATA_PIECE`] bytes.
        bytes: &'a [u8],
    },
    /// The peer does not send a piece.
    Reject {
        /// Its number, from 0.
        piece: u32,
    },
}

/// Why bytes are not a message of `ut_metadata`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataMessageError {
    /// It does not begin with a bencoded value.
    #[error("a ut_metadata message that is not bencoded: {0}")]
    Bencode(#[from] BencodeError),
    /// It begins with another value than a dictionary, or the dictionary has no such number.
    #[error("a ut_metadata message without {0}")]
    Missing(&'static str),
    /// The number of the piece is not one.
    #[error("a ut_metadata message for piece {0}")]
    Piece(i64),
    /// More data than a piece has.
    #[error("a ut_metadata message with {0} bytes of data: a piece has {METADATA_PIECE}")]
    TooLong(usize),
}

impl<'a> MetadataMessage<'a> {
    /// Reads a message; `None` for a kind that is not known, which is to be ignored (BEP 9).
    ///
    /// # Errors
    /// If the peer broke the protocol.
    pub fn parse(payload: &'a [u8]) -> Result<Option<Self>, MetadataMessageError> {
        use MetadataMessageError::{Missing, Piece, TooLong};

        let document = parse_tolerant(&payload[..payload.len().min(MAX_DICT)])?;
        let dict = document.as_dict().ok_or(Missing("a dictionary"))?;
        let kind = dict.int("msg_type").ok_or(Missing("msg_type"))?;
        if !(REQUEST..=REJECT).contains(&kind) {
            return Ok(None);
        }
        let piece = dict.int("piece").ok_or(Missing("piece"))?;
        let piece = u32::try_from(piece).map_err(|_| Piece(piece))?;
        Ok(Some(match kind {
            REQUEST => Self::Request { piece },
            REJECT => Self::Reject { piece },
            _ => {
                let bytes = &payload[dict.raw.len()..];
                if bytes.len() > METADATA_PIECE {
                    return Err(TooLong(bytes.len()));
                }
                let total = dict.int("total_size");
                // A negative length equals none that a peer can announce.
                let total = total.map(|total| u64::try_from(total).unwrap_or(0));
                Self::Data {
                    piece,
                    total,
                    bytes,
                }
            }
        }))
    }

    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, piece, total, bytes) = match *self {
            Self::Request { piece } => (REQUEST, piece, None, &[][..]),
            Self::Data {
                piece,
                total,
                bytes,
            } => (DATA, piece, total, bytes),
            Self::Reject { piece } => (REJECT, piece, None, &[][..]),
        };
        let total = total.map(|total| Value::Int(i64::try_from(total).unwrap_or(i64::MAX)));
        let dict = Value::dict([
            ("msg_type", Some(Value::Int(kind))),
            ("piece", Some(Value::Int(piece.into()))),
            ("total_size", total),
        ]);
        let mut out = dict.encode();
        out.extend_from_slice(bytes);
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_have_the_form_of_bep_9() {
        let data = MetadataMessage::Data {
            piece: 0,
            total: Some(34256),
            bytes: b"xxxxxxxx",
        };
        for (message, bytes) in [
            (
                MetadataMessage::Request { piece: 0 },
                "d8:msg_typei0e5:piecei0ee",
            ),
            (
                data,
                "d8:msg_typei1e5:piecei0e10:total_sizei34256eexxxxxxxx",
            ),
            (
                MetadataMessage::Reject { piece: 0 },
                "d8:msg_typei2e5:piecei0ee",
            ),
        ] {
            assert_eq!(message.encode(), bytes.as_bytes());
            assert_eq!(MetadataMessage::parse(bytes.as_bytes()), Ok(Some(message)));
        }
    }

    #[test]
    fn wrong_messages_are_named_and_unknown_ones_ignored() {
        let long = [&b"d8:msg_typei1e5:piecei0ee"[..], &[0; METADATA_PIECE + 1]].concat();
        for (bytes, hint) in [
            (&b""[..], "not bencoded"),
            (b"i1e", "without a dictionary"),
            (b"de", "without msg_type"),
            (b"d8:msg_typei0ee", "without piece"),
            (b"d8:msg_typei0e5:piecei-1ee", "piece -1"),
            (&long, "16385 bytes"),
            (&[b'l'; 4096], "not bencoded"),
        ] {
            let error = MetadataMessage::parse(bytes).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
        for unknown in [&b"d8:msg_typei3ee"[..], b"d8:msg_typei-1e5:piecei0ee"] {
            assert_eq!(MetadataMessage::parse(unknown), Ok(None));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            piece: u32,
            total in prop::option::of(0..=i64::MAX as u64),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let bytes = &bytes[..];
            for message in [
                MetadataMessage::Request { piece },
                MetadataMessage::Data { piece, total, bytes },
                MetadataMessage::Reject { piece },
            ] {
                let written = message.encode();
                prop_assert_eq!(MetadataMessage::parse(&written), Ok(Some(message)));
            }
        }
    }
}
