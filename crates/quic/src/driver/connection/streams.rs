//! The streams of a connection, as the application uses them.

use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use noq_proto::{ConnectionError, Dir, FinishError, StreamId, VarInt, WriteError};
use tokio::io::ReadBuf;

use super::Connection;
use super::state::{Cause, ConnectionState};
use crate::close::NO_CODE;
use crate::driver::buffer::{End, StreamBuffer};

/// Why a stream cannot be used.
pub(crate) enum StreamFault {
    /// The peer reads no more of it.
    Stopped,
    /// The peer gave it up.
    Reset,
    /// It was stopped or finished here.
    Finished,
    /// The connection is closed.
    Lost(ConnectionError),
}

impl Connection {
    /// Opens a stream in both directions, when the peer allows one more.
    pub(crate) fn poll_open(&self, cx: &Context<'_>) -> Poll<Result<StreamId, ConnectionError>> {
        self.update(Instant::now(), Cause::Application, |state| {
            if let Some(error) = &state.error {
                return Poll::Ready(Err(error.clone()));
            }
            match state.quic.streams().open(Dir::Bi) {
                Some(id) => {
                    state.inbound.open(id);
                    Poll::Ready(Ok(id))
                }
                None => state.tasks.wait(cx),
            }
        })
    }

    /// The next stream that the peer opened.
    pub(crate) fn poll_accept(&self, cx: &Context<'_>) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.lock();
        match (state.inbound.next_opened(), &state.error) {
            (Some(id), _) => Poll::Ready(Ok(id)),
            (None, Some(error)) => Poll::Ready(Err(error.clone())),
            (None, None) => state.tasks.wait(cx),
        }
    }

    /// Reads the next bytes of a stream in order, at most `max`; `None` at the end.
    pub(crate) fn poll_read(
        &self,
        id: StreamId,
        cx: &Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, StreamFault>> {
        self.read(id, cx, |stream| {
            let bytes = stream.take(max)?;
            Some((bytes.len(), bytes))
        })
    }

    /// Reads the next bytes of a stream in order, as many as are there and fit; none at the end.
    pub(crate) fn poll_fill(
        &self,
        id: StreamId,
        cx: &Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), StreamFault>> {
        let read = self.read(id, cx, |stream| {
            let before = buf.remaining();
            while buf.remaining() > 0
                && let Some(bytes) = stream.take(buf.remaining())
            {
                buf.put_slice(&bytes);
            }
            let read = before - buf.remaining();
            (read > 0).then_some((read, ()))
        });
        read.map_ok(|_| ())
    }

    /// Lets `take` take bytes of a stream; it returns how many, and what it makes of them. `None`
    /// at the end.
    fn read<T>(
        &self,
        id: StreamId,
        cx: &Context<'_>,
        take: impl FnOnce(&mut StreamBuffer) -> Option<(usize, T)>,
    ) -> Poll<Result<Option<T>, StreamFault>> {
        let mut state = self.lock();
        let ConnectionState { inbound, error, .. } = &mut *state;
        let Some(stream) = inbound.stream(id) else {
            return Poll::Ready(Err(StreamFault::Finished));
        };
        let held = stream.held();
        if let Some((read, taken)) = take(stream) {
            let freed = held - stream.held();
            let due = inbound.on_read(read, freed);
            // Less than before: nothing gives way.
            inbound.account(&self.driver);
            drop(state);
            if due {
                self.drive(Instant::now());
            }
            return Poll::Ready(Ok(Some(taken)));
        }
        match (stream.ended(), error) {
            (Some(End::Finished), _) => Poll::Ready(Ok(None)),
            (Some(End::Reset(_)), _) => Poll::Ready(Err(StreamFault::Reset)),
            (None, Some(error)) => Poll::Ready(Err(StreamFault::Lost(error.clone()))),
            (None, None) => {
                stream.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Reads no more of a stream.
    pub(crate) fn stop(&self, id: StreamId) {
        self.update(Instant::now(), Cause::Application, |state| {
            if state.inbound.stop(id) {
                // It fails only when all has arrived.
                let _ = state.quic.recv_stream(id).stop(VarInt::from_u32(0));
            }
        });
    }

    /// Writes to a stream as much as there is room for.
    pub(crate) fn poll_write(
        &self,
        id: StreamId,
        cx: &Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<Result<usize, StreamFault>> {
        self.write(id, cx, |stream| {
            stream.write_chunks(&mut &mut std::slice::from_mut(bytes)[..])
        })
    }

    /// As [`Connection::poll_write`], with a copy of the bytes.
    pub(crate) fn poll_write_copy(
        &self,
        id: StreamId,
        cx: &Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, StreamFault>> {
        self.write(id, cx, |stream| stream.write(bytes))
    }

    fn write(
        &self,
        id: StreamId,
        cx: &Context<'_>,
        write: impl FnOnce(&mut noq_proto::SendStream<'_>) -> Result<usize, WriteError>,
    ) -> Poll<Result<usize, StreamFault>> {
        self.update(Instant::now(), Cause::Application, |state| {
            if let Some(error) = &state.error {
                return Poll::Ready(Err(StreamFault::Lost(error.clone())));
            }
            match write(&mut state.quic.send_stream(id)) {
                Ok(written) => Poll::Ready(Ok(written)),
                Err(WriteError::Blocked) => {
                    state.tasks.writers.wait(id, cx.waker().clone());
                    Poll::Pending
                }
                Err(WriteError::Stopped(_)) => Poll::Ready(Err(StreamFault::Stopped)),
                Err(WriteError::ClosedStream) => Poll::Ready(Err(StreamFault::Finished)),
            }
        })
    }

    /// Ends a stream.
    pub(crate) fn finish(&self, id: StreamId) -> Result<(), FinishError> {
        self.update(Instant::now(), Cause::Application, |state| {
            state.quic.send_stream(id).finish()
        })
    }

    /// Gives a stream up: what the peer has not received is not sent any more.
    pub(crate) fn reset(&self, id: StreamId) {
        self.update(Instant::now(), Cause::Application, |state| {
            if state.error.is_none() {
                // It fails only when all was delivered.
                let _ = state.quic.send_stream(id).reset(VarInt::from_u32(NO_CODE));
            }
        });
    }

    /// Waits until everything written to a stream that was finished is acknowledged, or the peer
    /// reads no more of it.
    pub(crate) fn poll_delivered(
        &self,
        id: StreamId,
        cx: &Context<'_>,
    ) -> Poll<Result<(), StreamFault>> {
        let mut state = self.lock();
        match (state.quic.send_stream(id).stopped(), &state.error) {
            // It is forgotten once all is acknowledged.
            (Err(_), _) => Poll::Ready(Ok(())),
            (Ok(Some(_)), _) => Poll::Ready(Err(StreamFault::Stopped)),
            (Ok(None), Some(error)) => Poll::Ready(Err(StreamFault::Lost(error.clone()))),
            (Ok(None), None) => state.tasks.wait_for_delivery(id, cx),
        }
    }
}
