//! One connection: its protocol state behind a lock, and the tasks that use it.
//!
//! It begins with [`Driver::connect`] or [`Driver::accept`], and is *connected* once the handshake
//! is done. It *ends* when its `error` is set: closed here, by the peer or by the last [`Lease`],
//! timed out, or refused because its data arrives in too many pieces. Then all waits end, what has
//! arrived can still be read, and the protocol *drains*: only when that is over does the driver
//! forget it. A connection that gives way to others is *displaced*: closed, forgotten at once, and
//! what is unread is dropped. After a panic in it, or with its driver, it is *abandoned*: nothing
//! is sent and no timer expires any more.
//!
//! Whoever has something for it drives it under its lock, in [`Connection::update`]: the receiving
//! thread or a worker with packets, the receiving thread with its deadline or once the socket has
//! room, a task with what the application wants. Everything that follows is done before the lock is
//! released, but for waking tasks and closing connections that give way.
//!
//! Unread data is bounded by the receive window: 64 KiB, and up to 256 MiB from a budget of the
//! endpoint once the application expects data (`window`); what it takes in memory, by a multiple of
//! that. Data to be sent is bounded by three congestion windows, or a sum that the endpoint is
//! configured with. Peers that are not known yet share a fixed sum (`unknown`).

mod conversation;
mod datagrams;
mod inbound;
mod outbound;
mod schedule;
mod state;
mod streams;
mod tasks;
mod writers;

use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use std::{fmt, mem};

use bytes::Bytes;
use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::FlowId;
use noq_proto::{
    ConnectionError, ConnectionHandle, PathId, PathStats, TransportError, TransportErrorCode,
};

use self::state::{After, Cause, ConnectionState};
pub(crate) use self::streams::StreamFault;
use super::{Driver, Received, lock};
use crate::close::{DISPLACED, DISPLACED_REASON, NO_CODE};

/// A connection. Whichever task holds the lock works the protocol: the endpoint's thread, or a task
/// that reads or writes.
pub(crate) struct Connection {
    driver: Arc<Driver>,
    handle: ConnectionHandle,
    state: Mutex<ConnectionState>,
}

impl Connection {
    pub(super) fn new(
        driver: Arc<Driver>,
        handle: ConnectionHandle,
        quic: noq_proto::Connection,
        flow: FlowId,
    ) -> Arc<Self> {
        let state = Mutex::new(ConnectionState::new(&driver, quic, flow));
        Arc::new(Self {
            driver,
            handle,
            state,
        })
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        lock(&self.state)
    }

    /// Does `work`, then everything that follows from it: packets out, events, timers.
    fn update<T>(
        &self,
        now: Instant,
        cause: Cause,
        work: impl FnOnce(&mut ConnectionState) -> T,
    ) -> T {
        let panicked = Panicked(self);
        let mut state = self.lock();
        let result = work(&mut state);
        let after = match state.abandoned {
            true => After::default(),
            false => state.advance(&self.driver, self.handle, now, cause),
        };
        let displaced = state.inbound.account(&self.driver);
        drop(state);
        if after.blocked {
            self.driver.on_blocked(self.handle);
        } else if after.sooner {
            self.driver.wake();
        }
        after.woken.into_iter().for_each(Waker::wake);
        mem::forget(panicked);
        give_way(displaced);
        result
    }

    /// Its number among those of the endpoint, until it is drained.
    pub(super) fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    /// Counts the connection among those whose peers are unknown, until [`set_known`](Self::set_known).
    pub(super) fn count_as_unknown(self: &Arc<Self>, peer: ScionAddr, now: Instant) {
        let mut state = self.lock();
        let unknown = &self.driver.unknown;
        let (number, mut displaced) = unknown.insert(peer.network(), Arc::downgrade(self), now);
        state.inbound.count_as_unknown(number);
        displaced.extend(state.inbound.account(&self.driver));
        drop(state);
        give_way(displaced);
    }

    /// The application knows the peer: the connection does not give way any more.
    pub(crate) fn set_known(&self) {
        if let Some(number) = self.lock().inbound.set_known() {
            self.driver.unknown.remove(number);
        }
    }

    /// Closes the connection, and keeps nothing of it.
    fn displace(&self) {
        self.close(DISPLACED, DISPLACED_REASON);
        let mut state = self.lock();
        state.abandoned = true;
        state.inbound.discard();
        self.driver.forget(self);
    }

    /// Does `work` on a thread that works for other connections too, which go on if it panics.
    fn contain(&self, work: impl FnOnce()) {
        // The panic was reported where it happened, and has ended this connection.
        let _ = panic::catch_unwind(AssertUnwindSafe(work));
    }

    /// Takes packets in, and answers them together.
    pub(super) fn receive(&self, packets: impl Iterator<Item = Received>, now: Instant) {
        self.contain(|| {
            self.update(now, Cause::Packets, |state| {
                packets.for_each(|packet| state.receive(&self.driver, packet, now));
            });
        });
    }

    /// Acts upon the deadline `deadline`, which the timers have dropped, or sends what the socket had
    /// no room for.
    pub(super) fn fire(&self, deadline: Option<Instant>, now: Instant) {
        self.contain(|| {
            self.update(now, Cause::Time, |state| {
                // Another task may have set a new one since.
                if deadline.is_some() && state.deadline == deadline {
                    state.deadline = None;
                }
            });
        });
    }

    /// Sends what there is to send.
    pub(super) fn drive(&self, now: Instant) {
        self.update(now, Cause::Application, |_| ());
    }

    /// Waits until the connection is set up.
    pub(crate) fn poll_connected(&self, cx: &Context<'_>) -> Poll<Result<(), ConnectionError>> {
        let mut state = self.lock();
        match &state.error {
            Some(error) => Poll::Ready(Err(error.clone())),
            None if state.connected => Poll::Ready(Ok(())),
            None => state.tasks.wait(cx),
        }
    }

    /// Why the connection is closed, if it is.
    pub(crate) fn error(&self) -> Option<ConnectionError> {
        self.lock().error.clone()
    }

    /// Waits for the end.
    pub(crate) fn poll_closed(&self, cx: &Context<'_>) -> Poll<ConnectionError> {
        let mut state = self.lock();
        match &state.error {
            Some(error) => Poll::Ready(error.clone()),
            None => state.tasks.wait(cx),
        }
    }

    /// Closes the connection at once.
    pub(crate) fn close(&self, code: u32, reason: &str) {
        let now = Instant::now();
        self.update(now, Cause::Application, |state| {
            if state.error.is_none() {
                let reason = Bytes::copy_from_slice(reason.as_bytes());
                state.quic.close(now, code.into(), reason);
                state.end(ConnectionError::LocallyClosed);
            }
        });
    }

    /// Ends the connection without informing the peer.
    pub(super) fn abandon(&self, reason: &str) {
        let mut state = self.lock();
        if state.error.is_none() {
            let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason.into());
            state.end(error.into());
        }
        state.abandoned = true;
        let woken = mem::take(&mut state.tasks.woken);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The peer's certificates.
    pub(crate) fn peer_identity(&self) -> Option<Box<dyn std::any::Any>> {
        self.lock().quic.crypto_session().peer_identity()
    }

    /// A secret of the TLS session; `None` when it has failed.
    pub(crate) fn export_secret(&self, label: &[u8], context: &[u8]) -> Option<[u8; 64]> {
        let mut secret = [0; 64];
        let state = self.lock();
        let session = state.quic.crypto_session();
        session
            .export_keying_material(&mut secret, label, context)
            .ok()?;
        Some(secret)
    }

    /// Reads the protocol's counters and estimates.
    pub(crate) fn stats(&self) -> (noq_proto::ConnectionStats, PathStats) {
        let mut state = self.lock();
        let path = state.quic.path_stats(PathId::ZERO).unwrap_or_default();
        (state.quic.stats(), path)
    }

    /// What unread data takes, and the most that it has taken, in bytes of memory.
    pub(crate) fn held(&self) -> (usize, usize) {
        self.lock().inbound.held()
    }

    /// Lets the receive window grow.
    pub(crate) fn expect_data(&self) {
        self.set_known();
        self.update(Instant::now(), Cause::Application, |state| {
            state.inbound.expect_data(&self.driver);
        });
    }

    /// Asks the peer for an acknowledgement.
    pub(crate) fn ping(&self) {
        self.update(Instant::now(), Cause::Application, |state| {
            state.quic.ping()
        });
    }
}

/// Closes connections that give way to others.
fn give_way(displaced: Vec<Weak<Connection>>) {
    for connection in displaced.iter().filter_map(Weak::upgrade) {
        connection.displace();
    }
}

/// Abandons a connection when it is dropped: a panic may have left its protocol half way.
struct Panicked<'a>(&'a Connection);

impl Drop for Panicked<'_> {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.abandon("the protocol panicked; this is a defect of this program");
        connection.driver.forget(connection);
    }
}

/// Keeps a connection open. It closes when this goes.
pub(crate) struct Lease(pub(super) Arc<Connection>);

impl Lease {
    /// The connection, without keeping it open.
    pub(crate) fn weak(&self) -> Weak<Connection> {
        Arc::downgrade(&self.0)
    }
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({})", self.handle.0)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.close(NO_CODE, "");
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.inbound.release(&self.driver);
    }
}
