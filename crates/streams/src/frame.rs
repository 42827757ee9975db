//! Frames on the QUIC stream of a path: a type, its fields in network byte order, and data.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use super::StreamId;

/// Most bytes of data in one frame.
pub const MAX_DATA: usize = 64 << 10;
/// Bytes of the longest frame without its data.
const MAX_HEADER_LENGTH: usize = 25;

const HELLO: u8 = 0;
const DATA: u8 = 1;
const END: u8 = 2;
const ACK: u8 = 3;
const RESET: u8 = 4;
const GONE: u8 = 5;
const ARRIVED: u8 = 6;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The first one of each side on each path.
    Hello {
        /// Tells the streams of the process that opens them from those of an earlier one.
        instance: u64,
        /// From the side that opens streams: whether the other side answered before. From the other
        /// side: whether it has these streams.
        known: bool,
        /// What the side that sends this calls the path, in [`Frame::Arrived`].
        path: u64,
    },
    /// Bytes of a stream. One frame may be read as several, as its bytes arrive.
    Data {
        /// The stream.
        id: StreamId,
        /// How many bytes of the stream are before these.
        offset: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The end of one direction of a stream.
    End {
        /// The stream.
        id: StreamId,
        /// How many bytes it has.
        offset: u64,
    },
    /// What the other side need not keep, and what it may send.
    Ack {
        /// The stream.
        id: StreamId,
        /// How many bytes arrived without a gap; one more with the end.
        received: u64,
        /// The offset up to which bytes may be sent.
        limit: u64,
    },
    /// Both directions of a stream end before their ends.
    Reset {
        /// The stream.
        id: StreamId,
        /// Why: a code of the user's.
        code: u8,
    },
    /// The stream is no longer known: it was reset, or has arrived as a whole.
    Gone {
        /// The stream.
        id: StreamId,
    },
    /// How much of streams has arrived over a path.
    Arrived {
        /// What the other side calls the path.
        path: u64,
        /// [Units](Self::units) that have arrived over it in all.
        units: u64,
    },
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// It is of an unknown type.
    #[error("a frame has the unknown type {0}")]
    Type(u8),
    /// Its data is too long, or empty.
    #[error("a frame has {0} bytes of data")]
    Length(u32),
    /// Its data goes past the largest offset.
    #[error("a frame has the offset {0}")]
    Offset(u64),
}

impl Frame {
    /// For how much it counts in [`Frame::Arrived`]: for the bytes of its data, and for one if it is
    /// the end of a stream.
    pub fn units(&self) -> u64 {
        match self {
            Self::Data { bytes, .. } => bytes.len() as u64,
            Self::End { .. } => 1,
            _ => 0,
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(MAX_HEADER_LENGTH);
        self.encode_to(&mut out);
        out.freeze()
    }

    /// Appends its bytes to `out`.
    pub fn encode_to(&self, out: &mut BytesMut) {
        match self {
            Self::Hello {
                instance,
                known,
                path,
            } => {
                out.put_u8(HELLO);
                out.put_u64(*instance);
                out.put_u8((*known).into());
                out.put_u64(*path);
            }
            Self::Data { id, offset, bytes } => out.unsplit(data(*id, *offset, bytes)),
            Self::End { id, offset } => {
                out.put_u8(END);
                out.put_u64(*id);
                out.put_u64(*offset);
            }
            Self::Ack {
                id,
                received,
                limit,
            } => {
                out.put_u8(ACK);
                out.put_u64(*id);
                out.put_u64(*received);
                out.put_u64(*limit);
            }
            Self::Reset { id, code } => {
                out.put_u8(RESET);
                out.put_u64(*id);
                out.put_u8(*code);
            }
            Self::Gone { id } => {
                out.put_u8(GONE);
                out.put_u64(*id);
            }
            Self::Arrived { path, units } => {
                out.put_u8(ARRIVED);
                out.put_u64(*path);
                out.put_u64(*units);
            }
        }
    }
}

/// The frame of [`Frame::Data`], with a copy of `bytes`, of which there are at most [`MAX_DATA`].
pub(super) fn data(id: StreamId, offset: u64, bytes: &[u8]) -> BytesMut {
    let mut out = BytesMut::with_capacity(MAX_HEADER_LENGTH + bytes.len());
    out.put_u8(DATA);
    out.put_u64(id);
    out.put_u64(offset);
    out.put_u32(bytes.len() as u32);
    out.extend_from_slice(bytes);
    out
}

/// Reads frames from what a QUIC stream gives.
#[derive(Debug, Default)]
pub struct Decoder {
    chunk: Bytes,
    /// The beginning of a frame that is not complete.
    header: Vec<u8>,
    /// The stream and offset of the data that follows, and how much of it is missing.
    data: Option<(StreamId, u64, usize)>,
}

impl Decoder {
    /// Adds what was read; everything before must have been taken by [`pop`](Self::pop).
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty());
        self.chunk = chunk;
    }

    /// The next frame, or piece of one; `None` until more is read.
    ///
    /// # Errors
    /// [`FrameError`]; the QUIC stream is of no use then.
    pub fn pop(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if self.chunk.is_empty() {
                return Ok(None);
            }
            if let Some((id, offset, missing)) = self.data.take() {
                let bytes = self.chunk.split_to(missing.min(self.chunk.len()));
                let missing = missing - bytes.len();
                self.data = (missing > 0).then_some((id, offset + bytes.len() as u64, missing));
                return Ok(Some(Frame::Data { id, offset, bytes }));
            }
            let kind = *self.header.first().unwrap_or(&self.chunk[0]);
            let length = match kind {
                HELLO => 18,
                RESET => 10,
                DATA => 21,
                END | ARRIVED => 17,
                ACK => 25,
                GONE => 9,
                other => return Err(FrameError::Type(other)),
            };
            let missing = (length - self.header.len()).min(self.chunk.len());
            self.header.extend_from_slice(&self.chunk.split_to(missing));
            if self.header.len() < length {
                return Ok(None);
            }
            let mut fields = &self.header[1..];
            let first = fields.get_u64();
            let frame = match kind {
                HELLO => Some(Frame::Hello {
                    instance: first,
                    known: fields.get_u8() != 0,
                    path: fields.get_u64(),
                }),
                DATA => {
                    let (offset, length) = (fields.get_u64(), fields.get_u32());
                    if length == 0 || length as usize > MAX_DATA {
                        return Err(FrameError::Length(length));
                    }
                    if offset.checked_add(length.into()).is_none() {
                        return Err(FrameError::Offset(offset));
                    }
                    self.data = Some((first, offset, length as usize));
                    None
                }
                END => Some(Frame::End {
                    id: first,
                    offset: fields.get_u64(),
                }),
                ACK => Some(Frame::Ack {
                    id: first,
                    received: fields.get_u64(),
                    limit: fields.get_u64(),
                }),
                RESET => Some(Frame::Reset {
                    id: first,
                    code: fields.get_u8(),
                }),
                ARRIVED => Some(Frame::Arrived {
                    path: first,
                    units: fields.get_u64(),
                }),
                _ => Some(Frame::Gone { id: first }),
            };
            self.header.clear();
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn frames() -> impl Strategy<Value = Frame> {
        prop_oneof![
            any::<(u64, bool, u64)>().prop_map(|(instance, known, path)| Frame::Hello {
                instance,
                known,
                path,
            }),
            (
                any::<(u64, u32)>(),
                prop::collection::vec(any::<u8>(), 1..50)
            )
                .prop_map(|((id, offset), bytes)| Frame::Data {
                    id,
                    offset: offset.into(),
                    bytes: bytes.into(),
                }),
            any::<(u64, u64)>().prop_map(|(id, offset)| Frame::End { id, offset }),
            any::<(u64, u64, u64)>().prop_map(|(id, received, limit)| Frame::Ack {
                id,
                received,
                limit,
            }),
            any::<(u64, u8)>().prop_map(|(id, code)| Frame::Reset { id, code }),
            any::<u64>().prop_map(|id| Frame::Gone { id }),
            any::<(u64, u64)>().prop_map(|(path, units)| Frame::Arrived { path, units }),
        ]
    }

    /// Reads frames from chunks of `size` bytes, with the pieces of each frame put together.
    fn read(bytes: &[u8], size: usize) -> Result<Vec<Frame>, FrameError> {
        let (mut decoder, mut read) = (Decoder::default(), Vec::new());
        for chunk in bytes.chunks(size) {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = decoder.pop()? {
                read.push(frame);
            }
        }
        Ok(read)
    }

    /// The frames with the data of each byte apart.
    fn apart(frames: &[Frame]) -> Vec<Frame> {
        let mut all = Vec::new();
        for frame in frames {
            match frame {
                Frame::Data { id, offset, bytes } => {
                    let pieces = (0..bytes.len()).map(|at| Frame::Data {
                        id: *id,
                        offset: offset + at as u64,
                        bytes: bytes.slice(at..=at),
                    });
                    all.extend(pieces);
                }
                other => all.push(other.clone()),
            }
        }
        all
    }

    proptest! {
        #[test]
        fn frames_are_read_again_however_the_stream_is_cut(
            sent in prop::collection::vec(frames(), 0..8), size in 1..80usize,
        ) {
            let mut bytes = BytesMut::new();
            sent.iter().for_each(|frame| frame.encode_to(&mut bytes));
            prop_assert_eq!(apart(&read(&bytes, size).unwrap()), apart(&sent));
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes: Vec<u8>, size in 1..50usize) {
            let whole = read(&bytes, bytes.len().max(1));
            let cut = read(&bytes, size);
            match (whole, cut) {
                (Ok(whole), Ok(cut)) => prop_assert_eq!(apart(&whole), apart(&cut)),
                (whole, cut) => prop_assert_eq!(whole.err(), cut.err()),
            }
        }
    }

    #[test]
    fn data_of_impossible_length_is_refused() {
        for length in [0, MAX_DATA as u32 + 1, u32::MAX] {
            let mut bytes = data(1, 2, b"").to_vec();
            bytes[17..21].copy_from_slice(&length.to_be_bytes());
            assert_eq!(read(&bytes, 7), Err(FrameError::Length(length)));
        }
        let bytes = data(1, u64::MAX, b"x");
        assert_eq!(read(&bytes, 7), Err(FrameError::Offset(u64::MAX)));
    }
}
