//! Messages of the control streams.

mod session;
mod wants;

use std::fmt;

use bytes::Bytes;
use hawser_keys::ELEMENT;
use hawser_seal::Cipher;
use hawser_session::ControlMessage;

pub use self::session::SessionMessage;
pub use self::wants::{Choices, SkipReason, Wants};
use super::wire::{DecodeError, Reader, VERSION, Writer};

/// Most bytes of a message after its length.
pub const MAX_MESSAGE: usize = 1 << 16;

/// Most bytes of a name or of the text of a failure.
const MAX_TEXT: usize = 4096;

/// Bytes of a session's id.
pub const SESSION_ID: usize = 16;

/// The id of a session: random, chosen by the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; SESSION_ID]);

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What the client is in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It has the content.
    Source,
    /// It wants the content.
    Sink,
}

/// Why a session is refused or failed (`docs/bulk-protocol.md`, *Codes*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// The version is not spoken.
    pub const VERSION: Self = Self(1);
    /// The key is not allowed.
    pub const KEY: Self = Self(2);
    /// No such session.
    pub const NO_SESSION: Self = Self(3);
    /// No such content.
    pub const NO_CONTENT: Self = Self(4);
    /// The request is not allowed: nothing may be written, or read, here.
    pub const NOT_ALLOWED: Self = Self(5);
    /// Too many sessions.
    pub const TOO_MANY: Self = Self(6);
    /// The manifest is invalid.
    pub const MANIFEST: Self = Self(7);
    /// The disk is full.
    pub const DISK_FULL: Self = Self(8);
    /// Another failure of the storage; the text has it.
    pub const STORAGE: Self = Self(9);
    /// The content does not match at the end.
    pub const MISMATCH: Self = Self(10);
    /// Cancelled.
    pub const CANCELLED: Self = Self(11);
    /// A message or packet breaks the protocol.
    pub const PROTOCOL: Self = Self(12);
}

/// Takes the messages out of the bytes of a control stream.
pub type Framing = hawser_session::Framing<Message>;

/// A message of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// Begins a session of version [`VERSION`].
    Open(Open),
    /// Adds a subflow to a session.
    Join {
        /// The session.
        session: SessionId,
        /// The cipher of the subflow.
        cipher: Cipher,
        /// The client's port for datagrams.
        port: u16,
    },
    /// Answers `Open` and `Join`.
    Accept {
        /// The session.
        session: SessionId,
        /// The server's port for datagrams.
        port: u16,
        /// The first credit, if the server is the sink; otherwise 0.
        credit: u64,
    },
    /// Answers `Open` and `Join`.
    Refuse {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
    /// The interval of acknowledgements for datagrams of this subflow, in microseconds.
    AckInterval(u64),
    /// A message of the session.
    Ordered {
        /// Its sequence number.
        number: u64,
        /// The message.
        message: SessionMessage,
    },
    /// All messages of the session below this sequence number arrived.
    Seen(u64),
    /// The SPAKE2 element of one side, where a short code takes the place of keys.
    Code([u8; ELEMENT]),
    /// The confirmation that follows it.
    CodeConfirm([u8; 32]),
}

/// The message that begins a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// The cipher of the subflow.
    pub cipher: Cipher,
    /// The client's port for datagrams.
    pub port: u16,
    /// A random number of the client's process: another one of the same key has taken its place.
    pub instance: u64,
    /// What the client is.
    pub role: Role,
    /// The first credit, if the client is the sink; otherwise 0.
    pub credit: u64,
    /// Where the content goes, or what is wanted.
    pub name: String,
    /// What else the client wants.
    pub wants: Wants,
}

impl Message {
    /// A refusal. Text beyond 4096 bytes is cut off.
    pub fn refuse(code: ErrorCode, text: &str) -> Self {
        Self::Refuse {
            code,
            text: cut(text).to_owned(),
        }
    }
}

impl ControlMessage for Message {
    type Error = DecodeError;

    const MAX_LENGTH: usize = MAX_MESSAGE;

    fn encode_body(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        match self {
            Self::Open(open) => {
                writer.u8(1);
                writer.varint(VERSION);
                writer.u8(open.cipher.to_u8());
                writer.u16(open.port);
                writer.u64(open.instance);
                writer.u8(match open.role {
                    Role::Source => 1,
                    Role::Sink => 2,
                });
                writer.varint(open.credit);
                writer.bytes(open.name.as_bytes());
                open.wants.encode(&mut writer);
            }
            Self::Join {
                session,
                cipher,
                port,
            } => {
                writer.u8(2);
                writer.raw(&session.0);
                writer.u8(cipher.to_u8());
                writer.u16(*port);
            }
            Self::Accept {
                session,
                port,
                credit,
            } => {
                writer.u8(3);
                writer.raw(&session.0);
                writer.u16(*port);
                writer.varint(*credit);
            }
            Self::Refuse { code, text } => {
                writer.u8(4);
                writer.varint(code.0);
                writer.bytes(text.as_bytes());
            }
            Self::AckInterval(microseconds) => {
                writer.u8(5);
                writer.varint(*microseconds);
            }
            Self::Ordered { number, message } => {
                writer.u8(6);
                writer.varint(*number);
                message.encode(&mut writer);
            }
            Self::Seen(number) => {
                writer.u8(7);
                writer.varint(*number);
            }
            Self::Code(element) => {
                writer.u8(8);
                writer.raw(element);
            }
            Self::CodeConfirm(confirmation) => {
                writer.u8(9);
                writer.raw(confirmation);
            }
        }
    }

    fn encode_length(length: usize, out: &mut Vec<u8>) {
        Writer::new(out).varint(length as u64);
    }

    fn decode_length(bytes: &[u8]) -> Option<(u64, usize)> {
        let mut reader = Reader::new(bytes);
        let length = reader.varint().ok()?;
        Some((length, bytes.len() - reader.rest().len()))
    }

    fn reported_state(&self) -> Option<u8> {
        match self {
            Self::Seen(_) => Some(0),
            Self::AckInterval(_) => Some(1),
            _ => None,
        }
    }

    fn decode_body(body: Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(&body);
        let message = match reader.u8()? {
            1 => {
                let version = reader.varint()?;
                if version != VERSION {
                    // What follows is that version's.
                    return Err(DecodeError::UnknownVersion(version));
                }
                Self::Open(Open {
                    cipher: cipher(&mut reader)?,
                    port: reader.u16()?,
                    instance: reader.u64()?,
                    role: match reader.u8()? {
                        1 => Role::Source,
                        2 => Role::Sink,
                        _ => return Err(DecodeError::Invalid("role")),
                    },
                    credit: reader.varint()?,
                    name: text(&mut reader)?,
                    wants: Wants::decode(&mut reader)?,
                })
            }
            2 => Self::Join {
                session: SessionId(reader.array()?),
                cipher: cipher(&mut reader)?,
                port: reader.u16()?,
            },
            3 => Self::Accept {
                session: SessionId(reader.array()?),
                port: reader.u16()?,
                credit: reader.varint()?,
            },
            4 => Self::Refuse {
                code: ErrorCode(reader.varint()?),
                text: text(&mut reader)?,
            },
            5 => Self::AckInterval(reader.varint()?),
            6 => Self::Ordered {
                number: reader.varint()?,
                message: SessionMessage::decode(&body.slice_ref(reader.take_rest()))?,
            },
            7 => Self::Seen(reader.varint()?),
            8 => Self::Code(reader.array()?),
            9 => Self::CodeConfirm(reader.array()?),
            unknown => return Err(DecodeError::UnknownType(unknown)),
        };
        reader.finish()?;
        Ok(message)
    }
}

/// A cipher that seals.
fn cipher(reader: &mut Reader<'_>) -> Result<Cipher, DecodeError> {
    match Cipher::from_u8(reader.u8()?) {
        Some(Cipher::Null) | None => Err(DecodeError::Invalid("cipher")),
        Some(cipher) => Ok(cipher),
    }
}

/// A name or text, bounded.
fn text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let text = reader.text()?;
    if text.len() > MAX_TEXT {
        return Err(DecodeError::Invalid("text"));
    }
    Ok(text.to_owned())
}

/// The beginning of `text`, as far as a message takes it.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
pub(super) mod tests;
