//! Messages in a run of bytes. No I/O.

use std::fmt;
use std::marker::PhantomData;

use bytes::{Buf, Bytes, BytesMut};

use super::ControlError;

/// A message of a control stream. On the wire its length stands before it, in the manner of its protocol.
pub trait ControlMessage: Sized {
    /// Why bytes are not a message.
    type Error: fmt::Display;

    /// Most bytes of a message after its length.
    const MAX_LENGTH: usize;

    /// Appends what follows the length to `out`: at most [`MAX_LENGTH`](Self::MAX_LENGTH) bytes.
    fn encode_body(&self, out: &mut Vec<u8>);

    /// Decodes what follows the length.
    ///
    /// # Errors
    /// When the bytes are not a message of the protocol.
    fn decode_body(body: Bytes) -> Result<Self, Self::Error>;

    /// Appends a length of at most [`MAX_LENGTH`](Self::MAX_LENGTH).
    fn encode_length(length: usize, out: &mut Vec<u8>);

    /// The length at the beginning of `bytes`, and how many bytes it takes itself; `None` until all of
    /// them are there.
    fn decode_length(bytes: &[u8]) -> Option<(u64, usize)>;

    /// A number for each state that messages report, if a message reports one: only the last report of a
    /// state counts, and takes the place of one before that waits to be sent.
    fn reported_state(&self) -> Option<u8> {
        None
    }

    /// Appends the message with its length to `out`.
    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode_body(out);
        let length = out.len() - start;
        debug_assert!(length <= Self::MAX_LENGTH, "{length} bytes");
        Self::encode_length(length, out);
        // The length is written behind the message, and moved before it.
        out[start..].rotate_left(length);
    }
}

/// Takes the messages out of the bytes of a control stream.
pub struct Framing<M> {
    buffer: BytesMut,
    messages: PhantomData<fn() -> M>,
}

impl<M> Default for Framing<M> {
    fn default() -> Self {
        Self {
            buffer: BytesMut::new(),
            messages: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Framing<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framing")
            .field("bytes", &self.buffer.len())
            .finish()
    }
}

impl<M> Framing<M> {
    /// Adds bytes that arrived. [Pop](Self::pop) all messages before adding more: the buffer then stays
    /// below one message and what is pushed at once.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether the bytes end between two messages, as they must when the stream ends.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

impl<M: ControlMessage> Framing<M> {
    /// The next message; `None` until all of it has arrived.
    ///
    /// # Errors
    /// [`ControlError::TooLong`] or [`ControlError::Invalid`]. The stream is of no use then.
    pub fn pop(&mut self) -> Result<Option<M>, ControlError<M::Error>> {
        let Some((length, prefix)) = M::decode_length(&self.buffer) else {
            return Ok(None);
        };
        let max = M::MAX_LENGTH;
        let body = usize::try_from(length).ok().filter(|body| *body <= max);
        let body = body.ok_or(ControlError::TooLong { length, max })?;
        if self.buffer.len() - prefix < body {
            return Ok(None);
        }
        self.buffer.advance(prefix);
        let message = M::decode_body(self.buffer.split_to(body).freeze());
        message.map(Some).map_err(ControlError::Invalid)
    }
}
