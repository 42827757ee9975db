//! Messages after the handshake (BEP 3): four bytes of length, one of kind, the rest.

use bytes::{Buf, Bytes, BytesMut};

use super::error::WireError;
use super::request::{BLOCK, Request};
use crate::bitfield::Bitfield;
use hawser_merkle::Hash;
use hawser_merkle::{HASH_REQUEST_BYTES, HashRequest, MAX_HASHES_BYTES};

/// Maximum length of an extended message, in bytes: a handshake has a few hundred.
pub const MAX_EXTENDED: u32 = 64 << 10;

/// Maximum length of a bitfield, with its kind, while the number of pieces is not known.
const MAX_UNKNOWN_BITFIELD: u32 = 256 << 10;

/// Bytes before a block's data: length, id, piece, begin.
pub const PIECE_HEADER: usize = 13;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The connection is used.
    KeepAlive,
    /// Requests are not answered.
    Choke,
    /// Requests are answered.
    Unchoke,
    /// The sender wants pieces of the receiver.
    Interested,
    /// The sender wants no pieces of the receiver.
    NotInterested,
    /// The sender has got a piece.
    Have(u32),
    /// Which pieces the sender has.
    Bitfield(Bytes),
    /// A block is wanted.
    Request(Request),
    /// A block.
    Piece {
        /// Its piece.
        piece: u32,
        /// Its first byte within the piece.
        begin: u32,
        /// Its bytes.
        data: Bytes,
    },
    /// A block is not wanted any more.
    Cancel(Request),
    /// The port of the peer's DHT node (BEP 5). Some programs send it to everyone.
    Port(u16),
    /// Hashes of a file's merkle tree are wanted (BEP 52).
    HashRequest(HashRequest),
    /// Hashes that were requested (BEP 52).
    Hashes(HashRequest, Vec<Hash>),
    /// Hashes that were requested are not sent (BEP 52).
    HashReject(HashRequest),
    /// A message of an extension (BEP 10).
    Extended {
        /// The extension, as the receiver numbers it; 0 is the extended handshake.
        id: u8,
        /// What the extension defines.
        payload: Bytes,
    },
}

mod id {
    pub const CHOKE: u8 = 0;
    pub const UNCHOKE: u8 = 1;
    pub const INTERESTED: u8 = 2;
    pub const NOT_INTERESTED: u8 = 3;
    pub const HAVE: u8 = 4;
    pub const BITFIELD: u8 = 5;
    pub const REQUEST: u8 = 6;
    pub const PIECE: u8 = 7;
    pub const CANCEL: u8 = 8;
    pub const PORT: u8 = 9;
    pub const EXTENDED: u8 = 20;
    pub const HASH_REQUEST: u8 = 21;
    pub const HASHES: u8 = 22;
    pub const HASH_REJECT: u8 = 23;
}

/// Appends `message` to `out`.
pub fn encode(message: &Message, out: &mut Vec<u8>) {
    let mut put = |id: u8, parts: &[&[u8]]| {
        let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>() as u32;
        out.extend_from_slice(&length.to_be_bytes());
        out.push(id);
        parts.iter().for_each(|part| out.extend_from_slice(part));
    };
    match message {
        Message::KeepAlive => out.extend_from_slice(&[0; 4]),
        Message::Choke => put(id::CHOKE, &[]),
        Message::Unchoke => put(id::UNCHOKE, &[]),
        Message::Interested => put(id::INTERESTED, &[]),
        Message::NotInterested => put(id::NOT_INTERESTED, &[]),
        Message::Have(piece) => put(id::HAVE, &[&piece.to_be_bytes()]),
        Message::Bitfield(bits) => put(id::BITFIELD, &[bits]),
        Message::Request(request) => put(id::REQUEST, &[&request.encode()]),
        Message::Piece { piece, begin, data } => put(
            id::PIECE,
            &[&piece.to_be_bytes(), &begin.to_be_bytes(), data],
        ),
        Message::Cancel(request) => put(id::CANCEL, &[&request.encode()]),
        Message::Port(port) => put(id::PORT, &[&port.to_be_bytes()]),
        Message::HashRequest(wanted) => put(id::HASH_REQUEST, &[&wanted.encode()]),
        Message::Hashes(wanted, hashes) => {
            put(id::HASHES, &[&wanted.encode(), hashes.as_flattened()]);
        }
        Message::HashReject(wanted) => put(id::HASH_REJECT, &[&wanted.encode()]),
        Message::Extended { id, payload } => put(id::EXTENDED, &[&[*id], payload]),
    }
}

/// The header before the data of a block, so that the data can be read from disk right behind it.
pub fn encode_piece_header(request: Request) -> [u8; PIECE_HEADER] {
    let mut out = [0; PIECE_HEADER];
    out[..4].copy_from_slice(&(9 + request.length).to_be_bytes());
    out[4] = id::PIECE;
    out[5..9].copy_from_slice(&request.piece.to_be_bytes());
    out[9..].copy_from_slice(&request.begin.to_be_bytes());
    out
}

/// Takes what names hashes from the front of a body that has at least as many bytes.
fn named(body: &mut Bytes) -> HashRequest {
    let mut bytes = [0; HASH_REQUEST_BYTES as usize];
    body.copy_to_slice(&mut bytes);
    HashRequest::decode(&bytes)
}

/// Cuts a stream of bytes into messages. Its buffer never holds more than one message and the bytes
/// of one read.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// Number of pieces; `None` while the torrent is not known.
    pieces: Option<u32>,
}

impl Decoder {
    /// For a torrent of `pieces` pieces.
    pub fn new(pieces: u32) -> Self {
        Self {
            buffer: BytesMut::new(),
            pieces: Some(pieces),
        }
    }

    /// For a torrent of which nothing but the info-hash is known: a bitfield may have any length up to
    /// 256 KiB, which is that of two million pieces.
    pub fn of_unknown() -> Self {
        Self {
            buffer: BytesMut::new(),
            pieces: None,
        }
    }

    /// The buffer to read into, with space for about `room` bytes.
    pub fn buffer(&mut self, room: usize) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < room / 4 {
            self.buffer.reserve(room);
        }
        &mut self.buffer
    }

    /// Whether the last read filled the buffer, so that more was probably waiting.
    pub fn is_filled(&self) -> bool {
        self.buffer.len() == self.buffer.capacity()
    }

    /// The next complete message, if there is one. Lengths are checked before the rest is buffered.
    ///
    /// # Errors
    /// If the peer breaks the protocol; the stream is of no use after that.
    pub fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        let Some(head) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*head);
        if length == 0 {
            self.buffer.advance(4);
            return Ok(Some(Message::KeepAlive));
        }
        let most = self.most();
        if length > most {
            return Err(WireError::Oversize {
                length,
                limit: most,
            });
        }
        let Some(&id) = self.buffer.get(4) else {
            return Ok(None);
        };
        self.judge(id, length)?;
        if self.buffer.len() < 4 + length as usize {
            return Ok(None);
        }
        self.buffer.advance(5);
        let mut body = self.buffer.split_to(length as usize - 1).freeze();
        Ok(Some(match id {
            id::CHOKE => Message::Choke,
            id::UNCHOKE => Message::Unchoke,
            id::INTERESTED => Message::Interested,
            id::NOT_INTERESTED => Message::NotInterested,
            id::HAVE => Message::Have(body.get_u32()),
            id::BITFIELD => Message::Bitfield(body),
            id::REQUEST => Message::Request(Request::decode(body)),
            id::PIECE => Message::Piece {
                piece: body.get_u32(),
                begin: body.get_u32(),
                data: body,
            },
            id::CANCEL => Message::Cancel(Request::decode(body)),
            id::PORT => Message::Port(body.get_u16()),
            id::HASH_REQUEST => Message::HashRequest(named(&mut body)),
            id::HASHES => {
                let wanted = named(&mut body);
                let (hashes, _) = body.as_chunks();
                Message::Hashes(wanted, hashes.to_vec())
            }
            id::HASH_REJECT => Message::HashReject(named(&mut body)),
            id::EXTENDED => Message::Extended {
                id: body.get_u8(),
                payload: body,
            },
            _ => return Err(WireError::UnknownMessage(id)),
        }))
    }

    /// The shortest and the longest bitfield, with its kind.
    fn bitfield_lengths(&self) -> (u32, u32) {
        match self.pieces {
            Some(pieces) => {
                let length = 1 + Bitfield::byte_len(pieces) as u32;
                (length, length)
            }
            None => (1, MAX_UNKNOWN_BITFIELD),
        }
    }

    /// The longest message of any kind.
    fn most(&self) -> u32 {
        let (_, bitfield) = self.bitfield_lengths();
        (9 + BLOCK).max(MAX_EXTENDED).max(bitfield)
    }

    /// Whether a message of kind `id` may be `length` bytes long.
    fn judge(&self, id: u8, length: u32) -> Result<(), WireError> {
        let (least, most) = match id {
            id::CHOKE..=id::NOT_INTERESTED => (1, 1),
            id::HAVE => (5, 5),
            id::BITFIELD => self.bitfield_lengths(),
            id::REQUEST | id::CANCEL => (13, 13),
            id::PORT => (3, 3),
            id::PIECE => (10, 9 + BLOCK),
            id::EXTENDED => (2, MAX_EXTENDED),
            id::HASH_REQUEST | id::HASH_REJECT => (1 + HASH_REQUEST_BYTES, 1 + HASH_REQUEST_BYTES),
            id::HASHES
                if !length
                    .saturating_sub(1 + HASH_REQUEST_BYTES)
                    .is_multiple_of(32) =>
            {
                return Err(WireError::WrongLength { id, length });
            }
            id::HASHES => (1 + HASH_REQUEST_BYTES, 1 + MAX_HASHES_BYTES),
            _ => return Err(WireError::UnknownMessage(id)),
        };
        match length {
            _ if id == id::BITFIELD && !(least..=most).contains(&length) => {
                Err(WireError::BadBitfield {
                    pieces: self.pieces.unwrap_or_default(),
                })
            }
            _ if length > most && id != id::HAVE => Err(WireError::Oversize {
                length,
                limit: most,
            }),
            _ if length < least || length > most => Err(WireError::WrongLength { id, length }),
            _ => Ok(()),
        }
    }
}
