//! Tasks that wait for something of a connection.

use std::collections::HashMap;
use std::task::{Context, Poll, Waker};

use noq_proto::StreamId;

use super::writers::Writers;

/// All tasks that wait, but for those that read a stream, and those to be woken.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) writers: Writers,
    finishing: HashMap<StreamId, Waker>,
    /// Wait for everything else: set up, opened streams, room for streams, the end.
    others: Vec<Waker>,
    /// Woken when the lock is released.
    pub(super) woken: Vec<Waker>,
}

impl Tasks {
    /// Lets the task of `cx` look again when something changes that no stream brings.
    pub(super) fn wait<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        if !self.others.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.others.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Lets the task of `cx` wait until all of a stream that was finished is acknowledged.
    pub(super) fn wait_for_delivery<T>(&mut self, id: StreamId, cx: &Context<'_>) -> Poll<T> {
        self.finishing.insert(id, cx.waker().clone());
        Poll::Pending
    }

    /// Wakes those that wait for what no stream brings.
    pub(super) fn wake_others(&mut self) {
        self.woken.append(&mut self.others);
    }

    /// All of a stream that was finished is acknowledged.
    pub(super) fn on_delivered(&mut self, id: StreamId) {
        self.woken.extend(self.finishing.remove(&id));
    }

    /// The peer reads no more of a stream.
    pub(super) fn on_stopped(&mut self, id: StreamId) {
        self.woken.extend(self.writers.remove(id));
        self.on_delivered(id);
    }

    /// Wakes all, and the `readers` of streams: the connection is closed.
    pub(super) fn wake_all(&mut self, readers: impl Iterator<Item = Waker>) {
        self.wake_others();
        self.woken.extend(self.writers.drain());
        let finishing = self.finishing.drain().map(|(_, waker)| waker);
        self.woken.extend(finishing);
        self.woken.extend(readers);
    }
}
