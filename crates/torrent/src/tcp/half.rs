//! A stream to an IP peer as the engine reads and writes it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hawser_kernel::socket::tcp_rtt;
use hawser_mse::{Sniffed, sniff};
use hawser_utp::UtpStream;
use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::attempts::Attempt;
use crate::transport::Output;

/// The text of the error when a peer answers a plain handshake with something else.
const NOT_PLAIN: &str = "the peer did not answer with a plain handshake";

/// A stream over TCP or uTP. Each direction is used by one task. Another task can close it meanwhile.
#[derive(Debug, Clone)]
pub(super) enum Half {
    Tcp(Arc<TcpStream>),
    Utp(Arc<UtpStream>),
}

impl Half {
    pub fn tcp(stream: TcpStream) -> Self {
        Self::Tcp(Arc::new(stream))
    }

    pub fn utp(stream: UtpStream) -> Self {
        Self::Utp(Arc::new(stream))
    }

    /// The round-trip time, as far as it is known.
    pub fn rtt(&self) -> Duration {
        match self {
            // An error once the connection is closed.
            Self::Tcp(stream) => tcp_rtt(&**stream).unwrap_or_default(),
            Self::Utp(stream) => stream.rtt().unwrap_or_default(),
        }
    }

    /// Closes both directions at once.
    pub fn close(&self) {
        match self {
            Self::Tcp(stream) => {
                // Fails if the peer has closed it before.
                let _ = shutdown(&**stream, Shutdown::Both);
            }
            Self::Utp(stream) => stream.close(),
        }
    }
}

impl AsyncRead for Half {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = match &*self {
            Self::Tcp(stream) => stream,
            Self::Utp(stream) => return stream.poll_read(cx, buffer),
        };
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read_buf(buffer) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Half {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = match &*self {
            Self::Tcp(stream) => stream,
            Self::Utp(stream) => return stream.poll_write(cx, bytes),
        };
        loop {
            ready!(stream.poll_write_ready(cx))?;
            match stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What is written is sent without it.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &*self {
            Self::Tcp(stream) => {
                let shut = shutdown(&**stream, Shutdown::Write);
                Poll::Ready(shut.map_err(io::Error::from))
            }
            Self::Utp(stream) => {
                stream.finish();
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl Output for Half {}

/// The direction in which the peer sends, with what was read of it before.
pub(super) struct Resumed<R> {
    inner: R,
    /// What was read before.
    early: Vec<u8>,
    /// How many bytes of it were passed on.
    passed: usize,
}

impl<R> Resumed<R> {
    pub fn new(early: Vec<u8>, inner: R) -> Self {
        Self {
            inner,
            early,
            passed: 0,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Resumed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buffer);
        }
        let rest = &self.early[self.passed..];
        let some = &rest[..rest.len().min(buffer.remaining())];
        buffer.put_slice(some);
        self.passed += some.len();
        if self.passed == self.early.len() {
            (self.early, self.passed) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

/// The direction in which the peer sends, of a connection that was dialed plainly and might have been
/// encrypted. The dial has an answer once the peer has sent the beginning of a plain handshake. A peer that
/// insists on encryption may send the key of its own handshake instead: the connection fails then, so that
/// the peer is dialed in the other way, and nothing is held against it.
pub(super) struct Awaited {
    half: Half,
    attempt: Option<Attempt>,
    /// What the peer has sent of the beginning.
    first: Vec<u8>,
}

impl Awaited {
    pub fn new(half: Half, attempt: Attempt) -> Self {
        Self {
            half,
            attempt: Some(attempt),
            first: Vec::new(),
        }
    }
}

impl AsyncRead for Awaited {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.half).poll_read(cx, buffer))?;
        if self.attempt.is_none() {
            return Poll::Ready(Ok(()));
        }
        let new = &buffer.filled()[before..];
        let missing = Sniffed::BYTES - self.first.len();
        self.first.extend_from_slice(&new[..new.len().min(missing)]);
        match sniff(&self.first) {
            Sniffed::NeedMore => {}
            Sniffed::Plain => {
                if let Some(attempt) = self.attempt.take() {
                    attempt.answered();
                }
            }
            Sniffed::Encrypted => {
                return Poll::Ready(Err(io::Error::other(NOT_PLAIN)));
            }
        }
        Poll::Ready(Ok(()))
    }
}
