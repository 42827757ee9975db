//! Streams: bytes in order, one direction each.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use noq_proto::StreamId;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::close::CloseReason;
use crate::connection::inner::Inner;
use crate::driver::StreamFault;

/// The sending half of a stream.
///
/// Dropping it before [`SendStream::finish`] resets the stream: the peer reads
/// [`StreamError::Reset`] in place of an end, so that what a cancelled task has written is never
/// taken for all of it. (quinn and noq finish a dropped stream.)
#[derive(Debug)]
pub struct SendStream {
    id: StreamId,
    connection: Arc<Inner>,
    is_finished: bool,
}

/// The receiving half of a stream. Dropping it before the end tells the peer to stop.
#[derive(Debug)]
pub struct RecvStream {
    id: StreamId,
    connection: Arc<Inner>,
}

/// Why a stream cannot be opened, written or read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer stopped reading the stream.
    #[error("the peer reads no more of this stream")]
    Stopped,
    /// The peer reset the stream.
    #[error("the peer reset the stream")]
    Reset,
    /// This side finished the stream before.
    #[error("the stream was finished here before")]
    Finished,
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match error {
            StreamError::Stopped | StreamError::Reset => io::ErrorKind::ConnectionReset,
            StreamError::Finished | StreamError::Closed(_) => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

impl SendStream {
    pub(crate) fn new(id: StreamId, connection: Arc<Inner>) -> Self {
        Self {
            id,
            connection,
            is_finished: false,
        }
    }

    /// Sends all of `bytes`, waiting for room.
    ///
    /// # Errors
    /// [`StreamError`] when the peer reads no more, or the connection is closed.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), StreamError> {
        let (quic, id) = (&self.connection.quic, self.id);
        while !bytes.is_empty() {
            let written = poll_fn(|cx| quic.poll_write_copy(id, cx, bytes)).await;
            bytes = &bytes[written.map_err(|fault| error(&self.connection, fault))?..];
        }
        Ok(())
    }

    /// Sends all of `bytes` without copying them, waiting for room.
    ///
    /// # Errors
    /// [`StreamError`] when the peer reads no more, or the connection is closed.
    pub async fn write_chunk(&mut self, mut bytes: Bytes) -> Result<(), StreamError> {
        let (quic, id) = (&self.connection.quic, self.id);
        while !bytes.is_empty() {
            let written = poll_fn(|cx| quic.poll_write(id, cx, &mut bytes)).await;
            written.map_err(|fault| error(&self.connection, fault))?;
        }
        Ok(())
    }

    /// Sends some of `bytes`, at least one, without copying them, and takes them off its front;
    /// waits for room.
    ///
    /// # Errors
    /// [`StreamError`] when the peer reads no more, or the connection is closed.
    pub fn poll_write_chunk(
        &mut self,
        cx: &Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<Result<(), StreamError>> {
        let written = self.connection.quic.poll_write(self.id, cx, bytes);
        written.map(|written| match written {
            Ok(_) => Ok(()),
            Err(fault) => Err(error(&self.connection, fault)),
        })
    }

    /// Ends the stream; bytes written before are still delivered.
    ///
    /// # Errors
    /// [`StreamError::Finished`] when it was finished before.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        let finished = self.connection.quic.finish(self.id);
        self.is_finished |= finished.is_ok();
        finished.map_err(|_| StreamError::Finished)
    }

    /// Waits until the peer has received everything up to the end, or stops reading.
    ///
    /// # Errors
    /// [`StreamError::Stopped`] when the peer stops reading, [`StreamError::Closed`] when the
    /// connection closes before.
    pub async fn delivered(&self) -> Result<(), StreamError> {
        let quic = &self.connection.quic;
        let delivered = poll_fn(|cx| quic.poll_delivered(self.id, cx)).await;
        delivered.map_err(|fault| error(&self.connection, fault))
    }
}

impl RecvStream {
    pub(crate) fn new(id: StreamId, connection: Arc<Inner>) -> Self {
        Self { id, connection }
    }

    /// The next bytes in order, at most `max`, without copying them; `None` at the end.
    ///
    /// # Errors
    /// [`StreamError`] when the peer reset the stream, or the connection is closed.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, StreamError> {
        let quic = &self.connection.quic;
        let read = poll_fn(|cx| quic.poll_read(self.id, cx, max)).await;
        read.map_err(|fault| error(&self.connection, fault))
    }
}

/// What a fault of a stream of `connection` means.
fn error(connection: &Inner, fault: StreamFault) -> StreamError {
    match fault {
        StreamFault::Stopped => StreamError::Stopped,
        StreamFault::Reset => StreamError::Reset,
        StreamFault::Finished => StreamError::Finished,
        StreamFault::Lost(error) => StreamError::Closed(connection.reason(&error)),
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.is_finished {
            self.connection.quic.reset(self.id);
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.connection.quic.stop(self.id);
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.connection.quic.poll_write_copy(self.id, cx, buf);
        written.map_err(|fault| error(&self.connection, fault).into())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Bytes are sent as soon as congestion control allows.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.finish().map_err(io::Error::other))
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.connection.quic.poll_fill(self.id, cx, buf);
        read.map_err(|fault| error(&self.connection, fault).into())
    }
}
