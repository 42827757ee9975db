//! A TCP stream as the engine reads and writes it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::attempts::Attempt;
use crate::transport::Output;

/// One direction of a stream, used by one task. Another task can close it meanwhile.
#[derive(Debug, Clone)]
pub(super) struct Half(pub Arc<TcpStream>);

impl AsyncRead for Half {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buffer) {
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
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = shutdown(&*self.0, Shutdown::Write);
        Poll::Ready(shut.map_err(io::Error::from))
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

/// The direction in which the peer sends, until it has sent something: then the dial has an answer.
pub(super) struct Awaited {
    pub half: Half,
    pub attempt: Option<Attempt>,
}

impl AsyncRead for Awaited {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.half).poll_read(cx, buffer))?;
        if buffer.filled().len() > before
            && let Some(attempt) = self.attempt.take()
        {
            attempt.answered();
        }
        Poll::Ready(Ok(()))
    }
}

/// The text of a system error without its number.
pub(super) fn why(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text.to_owned(),
    }
}
