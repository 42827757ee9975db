//! Messages of the session, which any of its connections carries.

use bytes::Bytes;

use super::super::wire::{DecodeError, Reader, Writer};
use super::{ErrorCode, MAX_MESSAGE, cut, text};

/// Bytes of a BLAKE3 value.
const HASH: usize = 32;

/// Most values of one `Have`: what fits a message beside its other fields (18 bytes at most) and
/// those of `Ordered` (9 bytes).
const HAVE: usize = (MAX_MESSAGE - 32) / HASH;

/// A message of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMessage {
    /// One file, directory or symbolic link: the fields of *Manifest*, not decoded.
    Entry(Bytes),
    /// The manifest is complete.
    ManifestEnd {
        /// The number of entries.
        entries: u64,
        /// Bytes of content.
        content: u64,
        /// BLAKE3 of the fields of all `Entry` messages in order.
        hash: [u8; HASH],
    },
    /// Ranges that the sink has.
    Have {
        /// The first range.
        first: u64,
        /// The chaining values of it and of the ranges after it: at least one.
        values: Vec<[u8; HASH]>,
    },
    /// Everything that the sink has was named.
    Ready,
    /// The chaining value of a range.
    Hash {
        /// The range.
        range: u64,
        /// Its chaining value.
        value: [u8; HASH],
    },
    /// Ranges that are verified and written.
    Confirm {
        /// The first range.
        first: u64,
        /// The number of ranges, at least one.
        count: u64,
    },
    /// A range arrived and does not match.
    Again(u64),
    /// Limits the rate at which the source sends, in bits of content per second; 0 ends the limit.
    Rate(u64),
    /// Everything is verified and written. With BLAKE3 of the content.
    Done([u8; HASH]),
    /// The transfer failed.
    Fail {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
}

impl SessionMessage {
    /// The `Have` messages for the ranges from `first` on, each as large as a message may be.
    pub fn have(first: u64, values: &[[u8; HASH]]) -> impl Iterator<Item = Self> {
        let firsts = (first..).step_by(HAVE);
        firsts
            .zip(values.chunks(HAVE))
            .map(|(first, values)| Self::Have {
                first,
                values: values.to_vec(),
            })
    }

    /// A failure. Text beyond 4096 bytes is cut off.
    pub fn fail(code: ErrorCode, text: &str) -> Self {
        Self::Fail {
            code,
            text: cut(text).to_owned(),
        }
    }

    /// About how many bytes the message takes in memory and on a connection.
    pub(in super::super) fn size(&self) -> usize {
        const OTHERS: usize = 64;
        OTHERS
            + match self {
                Self::Entry(entry) => entry.len(),
                Self::Have { values, .. } => values.len() * HASH,
                Self::Fail { text, .. } => text.len(),
                _ => 0,
            }
    }

    /// The same, in memory of its own: a decoded entry is a part of what arrived with it, and keeps all
    /// of that.
    pub(in super::super) fn detached(self) -> Self {
        match self {
            Self::Entry(entry) => Self::Entry(Bytes::copy_from_slice(&entry)),
            message => message,
        }
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Entry(entry) => {
                writer.u8(16);
                writer.raw(entry);
            }
            Self::ManifestEnd {
                entries,
                content,
                hash,
            } => {
                writer.u8(17);
                writer.varint(*entries);
                writer.varint(*content);
                writer.raw(hash);
            }
            Self::Have { first, values } => {
                writer.u8(18);
                writer.varint(*first);
                writer.raw(values.as_flattened());
            }
            Self::Ready => writer.u8(19),
            Self::Hash { range, value } => {
                writer.u8(20);
                writer.varint(*range);
                writer.raw(value);
            }
            Self::Confirm { first, count } => {
                writer.u8(21);
                writer.varint(*first);
                writer.varint(*count);
            }
            Self::Again(range) => {
                writer.u8(22);
                writer.varint(*range);
            }
            Self::Rate(rate) => {
                writer.u8(25);
                writer.varint(*rate);
            }
            Self::Done(hash) => {
                writer.u8(23);
                writer.raw(hash);
            }
            Self::Fail { code, text } => {
                writer.u8(24);
                writer.varint(code.0);
                writer.bytes(text.as_bytes());
            }
        }
    }

    pub(super) fn decode(body: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let message = match reader.u8()? {
            16 => Self::Entry(body.slice_ref(reader.take_rest())),
            17 => Self::ManifestEnd {
                entries: reader.varint()?,
                content: reader.varint()?,
                hash: reader.array()?,
            },
            18 => {
                let first = reader.varint()?;
                let (values, rest) = reader.take_rest().as_chunks();
                if values.is_empty() || !rest.is_empty() {
                    return Err(DecodeError::Invalid("list of chaining values"));
                }
                let values = values.to_vec();
                Self::Have { first, values }
            }
            19 => Self::Ready,
            20 => Self::Hash {
                range: reader.varint()?,
                value: reader.array()?,
            },
            21 => {
                let (first, count) = (reader.varint()?, reader.varint()?);
                if count == 0 {
                    return Err(DecodeError::Invalid("number of ranges"));
                }
                Self::Confirm { first, count }
            }
            22 => Self::Again(reader.varint()?),
            25 => Self::Rate(reader.varint()?),
            23 => Self::Done(reader.array()?),
            24 => Self::Fail {
                code: ErrorCode(reader.varint()?),
                text: text(&mut reader)?,
            },
            unknown => return Err(DecodeError::UnknownType(unknown)),
        };
        reader.finish()?;
        Ok(message)
    }
}
