//! Streams: bytes in order, one direction each.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::close::CloseReason;
use crate::connection::inner::Inner;

/// The sending half of a stream. Dropping it finishes it.
pub struct SendStream {
    stream: noq::SendStream,
    connection: Arc<Inner>,
}

/// The receiving half of a stream. Dropping it before the end tells the peer to stop.
pub struct RecvStream {
    stream: noq::RecvStream,
    connection: Arc<Inner>,
}

/// Why bytes could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer reads no more of this stream.
    #[error("the peer reads no more of this stream")]
    Stopped,
    /// The stream was finished here.
    #[error("the stream was finished here before")]
    Finished,
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// Why bytes could not be received.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer reset the stream.
    #[error("the peer reset the stream")]
    Reset,
    /// The stream was stopped here.
    #[error("the stream was stopped here before")]
    Stopped,
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// A stream could not be finished because it was finished before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the stream was finished here before")]
pub struct FinishError;

impl SendStream {
    pub(crate) fn new(stream: noq::SendStream, connection: Arc<Inner>) -> Self {
        Self { stream, connection }
    }

    /// Sends all of `bytes`, waiting for room.
    ///
    /// # Errors
    /// [`WriteError`] when the peer reads no more, or the connection is closed.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let result = self.stream.write_all(bytes).await;
        result.map_err(|error| self.error(error))
    }

    /// Sends all of `bytes` without copying them, waiting for room.
    ///
    /// # Errors
    /// [`WriteError`] when the peer reads no more, or the connection is closed.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        let result = self.stream.write_chunk(bytes).await;
        result.map_err(|error| self.error(error))
    }

    /// Ends the stream; bytes written before are still delivered.
    ///
    /// # Errors
    /// [`FinishError`] when it was finished before.
    pub fn finish(&mut self) -> Result<(), FinishError> {
        self.stream.finish().map_err(|_| FinishError)
    }

    /// Waits until the peer has received everything up to the end, or reads no more.
    ///
    /// # Errors
    /// [`WriteError::Stopped`] when it reads no more, [`WriteError::Closed`] when the connection
    /// closes before.
    pub async fn delivered(&self) -> Result<(), WriteError> {
        match self.stream.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(WriteError::Stopped),
            Err(error) => Err(self.error(error.into())),
        }
    }

    fn error(&self, error: noq::WriteError) -> WriteError {
        match error {
            noq::WriteError::Stopped(_) => WriteError::Stopped,
            noq::WriteError::ClosedStream => WriteError::Finished,
            noq::WriteError::ConnectionLost(error) => {
                WriteError::Closed(self.connection.reason(&error))
            }
            // Early data is never sent.
            error @ noq::WriteError::ZeroRttRejected => {
                WriteError::Closed(CloseReason::Protocol(error.to_string()))
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
    /// [`ReadError`] when the peer reset the stream, or the connection is closed.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        let result = self.stream.read_chunk(max).await;
        result.map_err(|error| self.error(error))
    }

    /// The next bytes in order, as many as are there and fit; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`] when the peer reset the stream, or the connection is closed.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let result = self.stream.read(buf).await;
        result.map_err(|error| self.error(error))
    }

    fn error(&self, error: noq::ReadError) -> ReadError {
        match error {
            noq::ReadError::Reset(_) => ReadError::Reset,
            noq::ReadError::ClosedStream => ReadError::Stopped,
            noq::ReadError::ConnectionLost(error) => {
                ReadError::Closed(self.connection.reason(&error))
            }
            // Early data is never sent.
            error @ noq::ReadError::ZeroRttRejected => {
                ReadError::Closed(CloseReason::Protocol(error.to_string()))
            }
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
        result.map_err(|error| {
            let error = self.error(error);
            let kind = match error {
                WriteError::Stopped => io::ErrorKind::ConnectionReset,
                WriteError::Finished | WriteError::Closed(_) => io::ErrorKind::NotConnected,
            };
            io::Error::new(kind, error)
        })
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
            Ok(error) => {
                let error = self.error(error);
                let kind = match error {
                    ReadError::Reset => io::ErrorKind::ConnectionReset,
                    ReadError::Stopped | ReadError::Closed(_) => io::ErrorKind::NotConnected,
                };
                io::Error::new(kind, error)
            }
            Err(error) => error,
        })
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendStream({})", self.stream.id())
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecvStream({})", self.stream.id())
    }
}
