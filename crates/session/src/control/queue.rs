//! Messages on their way to a control stream.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, SetOnce};

use super::framing::ControlMessage;

/// Bytes of messages that are sent together; the last of them may go beyond it.
const TOGETHER: usize = 64 << 10;

/// Sends messages over a control stream, from anywhere and without waiting. Dropping it
/// [closes](Self::close) the queue.
///
/// A peer that reads nothing makes messages wait, as many bytes as [`waiting`](Self::waiting) says. What
/// a peer can cause any number of is sent with [`try_send`](Self::try_send); the protocol bounds all
/// others. Of messages that [report a state](ControlMessage::reported_state) one waits at most.
pub struct MessageSender<M> {
    state: Arc<QueueState>,
    messages: PhantomData<fn(M)>,
}

/// The messages of a [`MessageSender`], for [`Control::run`](super::Control::run).
pub struct MessageQueue<M> {
    state: Arc<QueueState>,
    messages: PhantomData<fn() -> M>,
}

/// A sender of messages, and the queue of those that it sends.
pub fn message_queue<M>() -> (MessageSender<M>, MessageQueue<M>) {
    let state = Arc::new(QueueState::default());
    let sender = MessageSender {
        state: Arc::clone(&state),
        messages: PhantomData,
    };
    let messages = PhantomData;
    (sender, MessageQueue { state, messages })
}

#[derive(Default)]
pub(super) struct QueueState {
    waiting: Mutex<Waiting>,
    changed: Notify,
    closed: SetOnce<()>,
    /// Set once nobody takes messages any more.
    ended: SetOnce<()>,
}

/// Messages that wait, encoded.
#[derive(Default)]
struct Waiting {
    /// Each has whole messages.
    runs: VecDeque<Vec<u8>>,
    /// The last report of each state.
    reports: BTreeMap<u8, Vec<u8>>,
    /// Bytes of both, and of what was taken and not written yet.
    bytes: usize,
    written: usize,
}

impl QueueState {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.initialized()
    }

    /// Waits until the queue is closed.
    pub(super) async fn closed(&self) {
        self.closed.wait().await;
    }

    /// Takes some messages; `Some(None)` if there are none any more.
    fn take(&self) -> Option<Option<Bytes>> {
        let mut waiting = self.lock();
        let taken = waiting.take();
        (taken.is_some() || self.is_closed()).then_some(taken)
    }

    /// Takes no more messages, but for what `last` pushes.
    fn close(&self, last: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.lock();
        // Closed once, under the lock: nothing is pushed behind the last message.
        if self.closed.set(()).is_ok() {
            last(&mut waiting);
        }
        drop(waiting);
        self.changed.notify_one();
    }
}

impl Waiting {
    fn push<M: ControlMessage>(&mut self, message: &M) {
        if let Some(state) = message.reported_state() {
            let report = self.reports.entry(state).or_default();
            self.bytes -= report.len();
            report.clear();
            message.encode(report);
            self.bytes += report.len();
            return;
        }
        if self.runs.back().is_none_or(|run| run.len() >= TOGETHER) {
            self.runs.push_back(Vec::new());
        }
        if let Some(run) = self.runs.back_mut() {
            let before = run.len();
            message.encode(run);
            self.bytes += run.len() - before;
        }
    }

    /// Takes the first messages, with all reports.
    fn take(&mut self) -> Option<Bytes> {
        self.bytes -= std::mem::take(&mut self.written);
        let mut run = self.runs.pop_front().unwrap_or_default();
        for report in std::mem::take(&mut self.reports).into_values() {
            run.extend_from_slice(&report);
        }
        self.written = run.len();
        (!run.is_empty()).then(|| run.into())
    }

    /// Drops what was not taken.
    fn clear(&mut self) {
        self.runs.clear();
        self.reports.clear();
        self.bytes = self.written;
    }
}

impl<M: ControlMessage> MessageSender<M> {
    /// Sends a message, unless the queue is closed. That the connection has ended shows where messages are
    /// received.
    pub fn send(&self, message: &M) {
        self.push(message, usize::MAX);
    }

    /// Sends a message if fewer than `max` bytes wait. Returns whether it is sent.
    pub fn try_send(&self, message: &M, max: usize) -> bool {
        self.push(message, max)
    }

    fn push(&self, message: &M, max: usize) -> bool {
        let mut waiting = self.state.lock();
        if self.state.is_closed() || waiting.bytes >= max {
            return false;
        }
        waiting.push(message);
        drop(waiting);
        self.state.changed.notify_one();
        true
    }

    /// Drops the messages that wait, sends a last one, and closes the queue.
    pub fn close_with(&self, last: &M) {
        self.state.close(|waiting| {
            waiting.clear();
            waiting.push(last);
        });
    }
}

impl<M> MessageSender<M> {
    /// Bytes of messages that wait, or that the connection has not taken yet.
    pub fn waiting(&self) -> usize {
        self.state.lock().bytes
    }

    /// Sends no more messages. Those that wait are still sent.
    pub fn close(&self) {
        self.state.close(|_| {});
    }

    /// Sends no more messages. The returned future waits until the stream has ended: the peer has
    /// received all, has ended its direction as well, or did not take them in time.
    pub fn finish(self) -> impl Future<Output = ()> + Send + 'static {
        self.close();
        let state = Arc::clone(&self.state);
        async move {
            state.ended.wait().await;
        }
    }
}

impl<M> MessageQueue<M> {
    pub(super) fn state(&self) -> Arc<QueueState> {
        Arc::clone(&self.state)
    }

    /// Waits for messages, and takes some; those that were taken before are written. `None` once the
    /// queue is closed and empty.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(taken) = self.state.take() {
                return taken;
            }
            self.state.changed.notified().await;
        }
    }
}

impl<M> Drop for MessageSender<M> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<M> Drop for MessageQueue<M> {
    fn drop(&mut self) {
        // Nobody takes messages any more.
        self.state.close(|_| {});
        self.state.lock().clear();
        // Dropped once.
        let _ = self.state.ended.set(());
    }
}

impl<M> fmt::Debug for MessageSender<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting();
        f.debug_struct("MessageSender")
            .field("waiting", &waiting)
            .finish()
    }
}

impl<M> fmt::Debug for MessageQueue<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageQueue").finish_non_exhaustive()
    }
}
