//! A connection as a stream of bytes.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::{CloseReason, Read};
use crate::endpoint::Handle;
use crate::shared::{Shared, now};

/// A connection over uTP.
///
/// It can be used through a shared reference: by one task that reads, and one that writes; another one may
/// [close](Self::close) it meanwhile. When it is dropped, what was written is still sent, for 30 s at most.
pub struct UtpStream {
    shared: Arc<Shared>,
    handle: Handle,
    peer: SocketAddr,
    is_closed: AtomicBool,
}

impl fmt::Debug for UtpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UtpStream")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// Why a stream has failed.
pub(crate) fn error(reason: CloseReason) -> io::Error {
    let kind = match reason {
        CloseReason::Refused => io::ErrorKind::ConnectionRefused,
        CloseReason::Reset => io::ErrorKind::ConnectionReset,
        CloseReason::TimedOut => io::ErrorKind::TimedOut,
        CloseReason::Closed => io::ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, reason)
}

impl UtpStream {
    pub(crate) fn new(shared: &Arc<Shared>, handle: Handle, peer: SocketAddr) -> Self {
        Self {
            shared: Arc::clone(shared),
            handle,
            peer,
            is_closed: AtomicBool::new(false),
        }
    }

    /// The address of the peer.
    pub fn remote_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The smoothed round-trip time; `None` before it was measured.
    pub fn rtt(&self) -> Option<Duration> {
        self.shared.lock().endpoint.rtt(self.handle)
    }

    /// Closes both directions: reading ends, and writing fails. What was written is still sent.
    pub fn close(&self) {
        if !self.is_closed.swap(true, Ordering::Relaxed) {
            let mut state = self.shared.lock();
            state.close(self.handle);
            self.shared.settle(state);
        }
    }

    /// Reads as [`AsyncRead`] does.
    ///
    /// # Errors
    /// If the connection is lost before the peer has ended its direction.
    pub fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        // Under the lock, as the task that closes it wakes this one.
        if self.is_closed.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let room = buffer.initialize_unfilled();
        match state.endpoint.read(self.handle, room, now()) {
            Ok(Read::Bytes(length)) => {
                buffer.advance(length);
                self.shared.settle(state);
                Poll::Ready(Ok(()))
            }
            Ok(Read::End) => Poll::Ready(Ok(())),
            Ok(Read::Blocked) => {
                state.wakers(self.handle).read = Some(cx.waker().clone());
                Poll::Pending
            }
            Err(reason) => Poll::Ready(Err(error(reason))),
        }
    }

    /// Writes as [`AsyncWrite`] does.
    ///
    /// # Errors
    /// If the connection is lost or closed.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.lock();
        if self.is_closed.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        match state.endpoint.write(self.handle, bytes, now()) {
            Ok(0) if !bytes.is_empty() => {
                state.wakers(self.handle).write = Some(cx.waker().clone());
                Poll::Pending
            }
            Ok(length) => {
                self.shared.settle(state);
                Poll::Ready(Ok(length))
            }
            Err(CloseReason::Closed) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Err(reason) => Poll::Ready(Err(error(reason))),
        }
    }

    /// Ends the own direction behind what was written. The peer's can still be read.
    pub fn finish(&self) {
        let mut state = self.shared.lock();
        if !self.is_closed.load(Ordering::Relaxed) {
            state.endpoint.finish(self.handle, now());
            self.shared.settle(state);
        }
    }
}

impl AsyncRead for UtpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Self::poll_read(&self, cx, buffer)
    }
}

impl AsyncWrite for UtpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Self::poll_write(&self, cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What is written is sent without it, as over TCP.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for UtpStream {
    fn drop(&mut self) {
        self.close();
    }
}
