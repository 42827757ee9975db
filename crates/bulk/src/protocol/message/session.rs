//! Messages of the session, which any of its connections carries.

use bytes::Bytes;

use super::super::wire::{DecodeError, Reader, Writer};
use super::{ErrorCode, MAX_MESSAGE, SkipReason, cut, text};

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
    /// An entry of the manifest is skipped by this side: its file does not change at the sink.
    Skip {
        /// The index of the entry.
        entry: u64,
        /// Why.
        reason: SkipReason,
        /// Why, for people.
        text: String,
    },
    /// Ranges of zeros that are not sent: all their files are skipped.
    Zeros {
        /// The first range.
        first: u64,
        /// The number of ranges, at least one.
        count: u64,
    },
    /// Files that do not have all attributes that were sent.
    Stripped(u64),
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

    /// Names an entry that is skipped. Text beyond 4096 bytes is cut off.
    pub fn skip(entry: u64, reason: SkipReason, text: &str) -> Self {
        Self::Skip {
            entry,
            reason,
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
                Self::Fail { text, .. } | Self::Skip { text, .. } => text.len(),
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
            Self::Skip {
                entry,
                reason,
                text,
            } => {
                writer.u8(26);
                writer.varint(*entry);
                writer.varint(reason.to_u64());
                writer.bytes(text.as_bytes());
            }
            Self::Zeros { first, count } => {
                writer.u8(27);
                writer.varint(*first);
                writer.varint(*count);
            }
            Self::Stripped(count) => {
                writer.u8(28);
                writer.varint(*count);
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
                let (first, count) = ranges(&mut reader)?;
                Self::Confirm { first, count }
            }
            22 => Self::Again(reader.varint()?),
            25 => Self::Rate(reader.varint()?),
            26 => Self::Skip {
                entry: reader.varint()?,
                reason: SkipReason::from_u64(reader.varint()?)
                    .ok_or(DecodeError::Invalid("reason"))?,
                text: text(&mut reader)?,
            },
            27 => {
                let (first, count) = ranges(&mut reader)?;
                Self::Zeros { first, count }
            }
            28 => Self::Stripped(reader.varint()?),
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

/// The first of a run of ranges, and their number.
fn ranges(reader: &mut Reader<'_>) -> Result<(u64, u64), DecodeError> {
    let (first, count) = (reader.varint()?, reader.varint()?);
    match count {
        0 => Err(DecodeError::Invalid("number of ranges")),
        _ => Ok((first, count)),
    }
}
