//! Streams.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::CloseReason;

/// The sending half of a stream.
pub struct SendStream(noq::SendStream);

/// The receiving half of a stream.
pub struct RecvStream(noq::RecvStream);

/// Why bytes could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer reads no more of this stream.
    #[error("the peer reads no more of this stream")]
    Stopped,
    /// The stream was finished or reset here.
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
    /// The peer broke the stream off.
    #[error("the peer broke the stream off")]
    Reset,
    /// The stream was stopped here.
    #[error("the stream was stopped here before")]
    Stopped,
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// Why a stream could not be finished: it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the stream was finished here before")]
pub struct FinishError;

impl SendStream {
    /// Sends all of `bytes`, waiting for room.
    ///
    /// # Errors
    /// When the peer reads no more, or the connection is closed.
    pub async fn write_all(&mut self, _bytes: &[u8]) -> Result<(), WriteError> {
        unimplemented!()
    }

    /// Sends all of `bytes` without copying them.
    ///
    /// # Errors
    /// When the peer reads no more, or the connection is closed.
    pub async fn write_chunk(&mut self, _bytes: Bytes) -> Result<(), WriteError> {
        unimplemented!()
    }

    /// Says that no more bytes follow; those written are still delivered.
    ///
    /// # Errors
    /// When that was said before.
    pub fn finish(&mut self) -> Result<(), FinishError> {
        unimplemented!()
    }
}

impl RecvStream {
    /// The next bytes in order, at most `max`, without copying them; `None` at the end.
    ///
    /// # Errors
    /// When the peer broke the stream off, or the connection is closed.
    pub async fn read_chunk(&mut self, _max: usize) -> Result<Option<Bytes>, ReadError> {
        unimplemented!()
    }

    /// The next bytes in order, as many as are there and fit; `None` at the end.
    ///
    /// # Errors
    /// When the peer broke the stream off, or the connection is closed.
    pub async fn read(&mut self, _buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        unimplemented!()
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.0), cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.0), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut self.0), cx)
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.0), cx, buf)
    }
}
