//! What users do with a session: read, write, close, exchange messages.

use std::io;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hawser_quic::DatagramError;
use hawser_streams::Read;

use super::{End, MAX_MESSAGES, STREAM, Session, SessionState};
use crate::error::{CloseError, SendError};
use crate::wire::{OPENING, code};

/// Most bytes read at once.
const MAX_READ: usize = 256 << 10;

/// Has the task of `cx` woken with the others.
fn wait<T>(wakers: &mut Vec<Waker>, cx: &Context<'_>) -> Poll<T> {
    if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
        wakers.push(cx.waker().clone());
    }
    Poll::Pending
}

impl Session {
    /// The next bytes, at most `max`; none at the end.
    pub(crate) fn poll_read(&self, cx: &Context<'_>, max: usize) -> Poll<io::Result<Bytes>> {
        let max = max.clamp(1, MAX_READ);
        let read = self.with(|state| state.read(cx, max));
        match read {
            Poll::Ready(Ok(Some(bytes))) => Poll::Ready(Ok(bytes)),
            Poll::Ready(Ok(None)) => match self.end_reason() {
                Some(end) => Poll::Ready(Err(end.to_io())),
                // It was reset; the session ends with the reason.
                None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            },
            Poll::Ready(Err(offence)) => {
                let end = End::Offence(offence);
                let error = end.to_io();
                self.end(end);
                Poll::Ready(Err(error))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Writes as many of `bytes` as there is room for, at least one.
    pub(crate) fn poll_write(&self, cx: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(end) = self.end_reason() {
            return Poll::Ready(Err(end.to_io()));
        }
        self.with(|state| {
            if state.is_finished {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            match state.streams.write(STREAM, bytes) {
                Some(0) if !bytes.is_empty() => wait(&mut state.writers, cx),
                Some(written) => Poll::Ready(Ok(written)),
                // The server writes before the client's stream has arrived only after it was accepted.
                None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        })
    }

    /// Ends this side's direction behind what was written.
    pub(crate) fn finish(&self) {
        self.with(|state| {
            if !std::mem::replace(&mut state.is_finished, true) {
                state.streams.finish(STREAM);
            }
        });
    }

    /// Waits until the peer has received everything up to this side's end, which was written, and ends the
    /// session.
    pub(crate) fn poll_close(&self, cx: &Context<'_>) -> Poll<Result<(), CloseError>> {
        let ended = |end: &End| match end {
            End::Closed(_) | End::Peer { complete: true } => Ok(()),
            End::Peer { complete: false } | End::PeerDropped => Err(CloseError::Peer),
            end => Err(CloseError::Lost(end.to_string())),
        };
        if let Some(end) = self.end_reason() {
            return Poll::Ready(ended(end));
        }
        let delivered = self.with(|state| {
            if !state.is_delivered() {
                return wait(&mut state.closers, cx);
            }
            Poll::Ready(match state.streams.has_arrived(STREAM) {
                Some(false) => code::CLOSED,
                // It is gone once both directions have arrived.
                Some(true) | None => code::COMPLETE,
            })
        });
        let Poll::Ready(code) = delivered else {
            // It may have ended since.
            return match self.end_reason() {
                Some(end) => Poll::Ready(ended(end)),
                None => Poll::Pending,
            };
        };
        self.end(End::Closed(code));
        Poll::Ready(match self.end_reason() {
            Some(end) => ended(end),
            None => Ok(()),
        })
    }

    /// Waits until the peer was informed of the end over all paths.
    pub(crate) fn poll_drained(&self, cx: &Context<'_>) -> Poll<()> {
        self.with(|state| match state.paths.is_empty() {
            true => Poll::Ready(()),
            false => wait(&mut state.closers, cx),
        })
    }

    /// Sends a message over the path that is fastest now.
    pub(crate) fn send_message(&self, message: Bytes) -> Result<(), SendError> {
        if self.end_reason().is_some() {
            return Err(SendError::Ended);
        }
        let mut paths: Vec<_> = self.with(|state| {
            let used = state.paths.values().filter(|path| path.is_used());
            used.map(|path| path.quic.clone()).collect()
        });
        paths.sort_by_key(|quic| quic.stats().rtt);
        for quic in paths {
            match quic.send_datagram(message.clone()) {
                Ok(()) => return Ok(()),
                // The path ends; another one may take it.
                Err(DatagramError::Closed) => {}
                Err(error) => tracing::debug!(%error, "a message is not sent over a path"),
            }
        }
        Err(SendError::NoPath)
    }

    /// Takes in a message of the peer. The oldest one is dropped for it if too many wait.
    pub(super) fn push_message(&self, message: Bytes) {
        let woken = self.with(|state| {
            if state.messages.len() >= MAX_MESSAGES {
                state.messages.pop_front();
            }
            state.messages.push_back(message);
            std::mem::take(&mut state.receivers)
        });
        woken.into_iter().for_each(Waker::wake);
    }

    /// The next message; `None` once the session has ended.
    pub(crate) fn poll_message(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let ended = || self.end_reason().is_some();
        self.with(|state| match state.messages.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None if ended() => Poll::Ready(None),
            None => wait(&mut state.receivers, cx),
        })
    }
}

impl SessionState {
    /// The next bytes, at most `max`, none at the end; `None` if there will be no more. The error is an
    /// offence of the peer.
    fn read(&mut self, cx: &Context<'_>, max: usize) -> Poll<Result<Option<Bytes>, String>> {
        if self.at_end {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        if !self.is_begun
            && let Read::Data(first) = self.streams.read(STREAM, 1)
        {
            if first[..] != [OPENING] {
                return Poll::Ready(Err(format!("its stream begins with {first:?}")));
            }
            self.streams.consume(STREAM, 1);
            self.is_begun = true;
        }
        match self.streams.read(STREAM, max) {
            Read::Data(bytes) => {
                self.streams.consume(STREAM, bytes.len());
                Poll::Ready(Ok(Some(bytes.freeze())))
            }
            Read::End => {
                self.at_end = true;
                Poll::Ready(Ok(Some(Bytes::new())))
            }
            Read::Blocked => wait(&mut self.readers, cx),
            Read::Gone => Poll::Ready(Ok(None)),
        }
    }
}
