//! Streams: bytes in order, one direction each.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::close::CloseReason;
use crate::connection::inner::Inner;

/// The sending half of a stream. Dropping it finishes it.
#[derive(Debug)]
pub struct SendStream {
    stream: noq::SendStream,
    connection: Arc<Inner>,
}

/// The receiving half of a stream. Dropping it before the end tells the peer to stop.
#[derive(Debug)]
pub struct RecvStream {
    stream: noq::RecvStream,
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
    pub(crate) fn new(stream: noq::SendStream, connection: Arc<Inner>) -> Self {
        Self { stream, connection }
    }

    /// Sends all of `bytes`, waiting for room.
    ///
    /// # Errors
    /// [`StreamError`] when the peer stops reading, or the connection is closed.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        let result = self.stream.write_all(bytes).await;
        result.map_err(|error| self.error(error))
    }

    /// Sends all of `bytes` without copying them, waiting for room.
    ///
    /// # Errors
    /// [`StreamError`] when the peer stops reading, or the connection is closed.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        let result = self.stream.write_chunk(bytes).await;
        result.map_err(|error| self.error(error))
    }

    /// Ends the stream; bytes written before are still delivered.
    ///
    /// # Errors
    /// [`StreamError::Finished`] when it was finished before.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.stream.finish().map_err(|_| StreamError::Finished)
    }

    /// Waits until the peer has received everything up to the end, or stops reading.
    ///
    /// # Errors
    /// [`StreamError::Stopped`] when the peer stops reading, [`StreamError::Closed`] when the
    /// connection closes before.
    pub async fn delivered(&self) -> Result<(), StreamError> {
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(StreamError::Stopped),
            Err(error) => Err(self.error(error.into())),
        }
    }

    fn error(&self, error: noq::WriteError) -> StreamError {
        match error {
            noq::WriteError::Stopped(_) => StreamError::Stopped,
            noq::WriteError::ConnectionLost(error) => {
                StreamError::Closed(self.connection.reason(&error))
            }
            // Early data is never sent.
            noq::WriteError::ClosedStream | noq::WriteError::ZeroRttRejected => {
                StreamError::Finished
            }
        }
    }
}

impl RecvStream {
    pub(crate) fn new(stream: noq::RecvStream, connection: Arc<Inner>) -> Self {
        Self { stream, connection }
    }

    /// The next bytes in order, at most `max`, without copying them; `None` at the end.
    ///
    /// # Errors
    /// [`StreamError`] when the peer reset the stream, or the connection is closed.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, StreamError> {
        let result = self.stream.read_chunk(max).await;
        result.map_err(|error| self.error(error))
    }

    fn error(&self, error: noq::ReadError) -> StreamError {
        match error {
            noq::ReadError::Reset(_) => StreamError::Reset,
            noq::ReadError::ConnectionLost(error) => {
                StreamError::Closed(self.connection.reason(&error))
            }
            // Early data is never sent.
            noq::ReadError::ClosedStream | noq::ReadError::ZeroRttRejected => StreamError::Finished,
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        result.map_err(|error| self.error(error).into())
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
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = AsyncRead::poll_read(Pin::new(&mut self.stream), cx, buf);
        result.map_err(|error| match error.downcast::<noq::ReadError>() {
            Ok(error) => self.error(error).into(),
            Err(error) => error,
        })
    }
}
