//! Messages taken out of a stream of bytes.

use bytes::{Buf, BytesMut};

use super::super::wire::{DecodeError, Reader};
use super::{MAX_MESSAGE, Message};

/// Takes the messages out of the bytes of a control stream.
#[derive(Debug, Default)]
pub struct Framing {
    buffer: BytesMut,
}

impl Framing {
    /// Adds bytes that arrived. [Pop](Self::pop) all messages before adding more: the buffer then
    /// stays below one message and what is pushed at once.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message; `None` until all of it has arrived.
    ///
    /// # Errors
    /// When the message is too long or not one of this protocol. The stream is of no use then.
    pub fn pop(&mut self) -> Result<Option<Message>, DecodeError> {
        let mut reader = Reader::new(&self.buffer);
        let Ok(length) = reader.varint() else {
            return Ok(None);
        };
        if length > MAX_MESSAGE as u64 {
            return Err(DecodeError::TooLong(length));
        }
        let (length, rest) = (length as usize, reader.rest().len());
        if rest < length {
            return Ok(None);
        }
        self.buffer.advance(self.buffer.len() - rest);
        Message::decode(&self.buffer.split_to(length).freeze()).map(Some)
    }

    /// Whether the bytes end between two messages, as they must when the stream ends.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}
