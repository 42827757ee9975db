//! What the task of a socket and its streams share.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use tokio::sync::Notify;

use crate::endpoint::{Endpoint, Event, Handle};

/// The state of a socket, and who is woken when it changes.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<SharedState>,
    /// Wakes the task: there is something to send, or an earlier time to wake at.
    pub changed: Notify,
    /// Wakes those that accept.
    pub incoming: Notify,
}

#[derive(Debug)]
pub(crate) struct SharedState {
    pub endpoint: Endpoint,
    /// The tasks that wait for a stream; entries end with their streams.
    wakers: HashMap<Handle, Wakers>,
    /// When the task wakes by itself.
    pub wakes_at: Option<Instant>,
    /// The socket was dropped, or has failed.
    pub has_ended: bool,
}

/// The tasks that wait for a stream.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    pub read: Option<Waker>,
    pub write: Option<Waker>,
}

/// The time, as tokio has it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Shared {
    pub fn new(endpoint: Endpoint) -> Self {
        let state = SharedState {
            endpoint,
            wakers: HashMap::new(),
            wakes_at: None,
            has_ended: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            incoming: Notify::new(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the users for whom something has changed, and the task if it has something to do. For the end of a
    /// use of the state.
    pub fn settle(&self, state: MutexGuard<'_, SharedState>) {
        let is_earlier = match (state.endpoint.next_due(), state.wakes_at) {
            (Some(due), Some(wakes_at)) => due < wakes_at,
            (due, None) => due.is_some(),
            (None, _) => false,
        };
        let has_work = is_earlier || state.endpoint.wants_to_transmit();
        self.wake_users(state);
        if has_work {
            self.changed.notify_one();
        }
    }

    /// Wakes the users for whom something has changed. The task itself has no use for [`Self::settle`]: while the
    /// kernel has no room, it would wake itself without an end.
    pub fn wake_users(&self, mut state: MutexGuard<'_, SharedState>) {
        let mut woken = Vec::new();
        let mut is_incoming = false;
        while let Some(event) = state.endpoint.poll() {
            let wakers = &mut state.wakers;
            let waker = match event {
                Event::Incoming => {
                    is_incoming = true;
                    None
                }
                Event::Readable(handle) => wakers.get_mut(&handle).and_then(|it| it.read.take()),
                Event::Writable(handle) => wakers.get_mut(&handle).and_then(|it| it.write.take()),
            };
            woken.extend(waker);
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        if is_incoming {
            self.incoming.notify_one();
        }
    }

    /// Ends all streams.
    pub fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.endpoint.abort(now());
        self.settle(state);
        self.changed.notify_one();
        self.incoming.notify_waiters();
    }
}

impl SharedState {
    /// The tasks that wait for a stream.
    pub fn wakers(&mut self, handle: Handle) -> &mut Wakers {
        self.wakers.entry(handle).or_default()
    }

    /// Closes a stream, and wakes those that wait for it.
    pub fn close(&mut self, handle: Handle) {
        self.endpoint.close(handle, now());
        let wakers = self.wakers.remove(&handle).unwrap_or_default();
        let waiting = wakers.read.into_iter().chain(wakers.write);
        waiting.for_each(Waker::wake);
    }
}
