//! The streams of a session, shared by the tasks that use them.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, SetOnce, mpsc};
use tokio::time::MissedTickBehavior;

use crate::protocol::Status;
use hawser_streams::{
    Decoder, Estimate, Event, FrameError, PathKey, Read, Side, StreamId, Streams, Violation,
};

/// How long a little that has arrived waits to be acknowledged: it costs the sender memory only.
const ACK_DELAY: Duration = Duration::from_millis(25);
/// Interval at which frames are sent again that may be lost.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);

/// Why frames cannot be taken in.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error("the other side sends an invalid frame: {0}")]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error("the other side has lost the streams")]
    Unknown,
}

/// The streams of a session. Cloning shares them.
#[derive(Clone)]
pub(crate) struct SharedStreams(Arc<Inner>);

struct Inner {
    state: Mutex<StreamsState>,
    /// Notified when something has arrived that is not acknowledged.
    lacking: Arc<Notify>,
}

struct StreamsState {
    streams: Streams,
    /// The beginning of the times of `streams`.
    began: Instant,
    /// What wakes the futures that send over the paths.
    paths: HashMap<PathKey, Arc<Notify>>,
    /// The users of streams.
    users: HashMap<StreamId, Arc<User>>,
    /// Where streams go that the peer opens.
    opened: mpsc::UnboundedSender<Stream>,
}

/// The user of a stream.
pub(super) struct User {
    readable: Notify,
    writable: Notify,
    /// The code with which the peer has reset the stream.
    reset: SetOnce<u8>,
    /// Bytes that were written and read.
    pub(super) written: AtomicU64,
    pub(super) read: AtomicU64,
    /// Whether the end was read.
    is_at_end: AtomicBool,
}

/// The stream was reset, by the peer with this code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reset(pub Status);

impl SharedStreams {
    /// Streams on one side. Those that the peer opens go to `opened`. Must be called inside a tokio
    /// runtime.
    pub(crate) fn new(side: Side, opened: mpsc::UnboundedSender<Stream>) -> Self {
        let lacking = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            state: Mutex::new(StreamsState {
                streams: Streams::new(side),
                began: Instant::now(),
                paths: HashMap::new(),
                users: HashMap::new(),
                opened,
            }),
            lacking: Arc::clone(&lacking),
        });
        tokio::spawn(run_ack_timers(Arc::downgrade(&inner), lacking));
        Self(inner)
    }

    /// Works on the streams, and wakes those for whom that changes something.
    fn with<T>(&self, work: impl FnOnce(&mut StreamsState) -> T) -> T {
        let mut guard = (self.0.state.lock()).unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        state.streams.advance(state.began.elapsed());
        let result = work(state);
        let mut woken = Vec::new();
        while let Some(event) = state.streams.poll_event() {
            match event {
                Event::Opened(id) => {
                    let stream = Stream::new(self.clone(), id, state);
                    // Without a receiver the session has ended.
                    if let Err(unsent) = state.opened.send(stream) {
                        unsent.0.forget(state);
                    }
                }
                Event::Readable(id) => woken.extend(state.user(id).map(Woken::Readable)),
                Event::Writable(id) => woken.extend(state.user(id).map(Woken::Writable)),
                Event::Reset(id, code) => woken.extend(state.user(id).map(|user| {
                    // It is reset once. Set before anything finds the stream gone, which asks for the
                    // reason; only tasks of the runtime wait for it, which are not polled here.
                    let _ = user.reset.set(code);
                    Woken::Both(user)
                })),
            }
        }
        let path = (state.streams.next_path()).and_then(|path| state.paths.get(&path).cloned());
        let lacks = state.streams.lacks_acknowledgement();
        // Those that are woken may be polled at once, and work on the streams.
        drop(guard);
        woken.into_iter().for_each(Woken::notify);
        if let Some(path) = path {
            path.notify_one();
        }
        if lacks {
            self.0.lacking.notify_one();
        }
        result
    }

    /// Opens a stream.
    pub(crate) fn open(&self) -> Stream {
        self.with(|state| {
            let id = state.streams.open();
            Stream::new(self.clone(), id, state)
        })
    }

    /// Uses a path from now on.
    pub(crate) fn add_path(&self, path: PathKey) {
        let sender = self.with(|state| {
            state.streams.add_path(path);
            Arc::clone(state.paths.entry(path).or_default())
        });
        // It asks for something to send.
        sender.notify_one();
    }

    /// Sends nothing more over a path that does not deliver; what it has not delivered goes over the
    /// others.
    pub(crate) fn suspend_path(&self, path: PathKey) {
        self.with(|state| state.streams.suspend_path(path));
    }

    /// Uses a suspended path again; without effect on one that was removed.
    pub(crate) fn resume_path(&self, path: PathKey) {
        let sender = self.with(|state| {
            let sender = state.paths.get(&path).cloned();
            if sender.is_some() {
                state.streams.resume_path(path);
            }
            sender
        });
        if let Some(sender) = sender {
            sender.notify_one();
        }
    }

    /// Sets what the other side calls a path.
    pub(super) fn set_name(&self, path: PathKey, name: u64) {
        self.with(|state| state.streams.set_name(path, name));
    }

    pub(super) fn remove_path(&self, path: PathKey) {
        self.with(|state| {
            state.paths.remove(&path);
            state.streams.remove_path(path);
        });
    }

    pub(super) fn set_estimate(&self, path: PathKey, estimate: Estimate) {
        self.with(|state| state.streams.set_estimate(path, estimate));
    }

    /// Whether something is under way that may be late by and by.
    pub(super) fn are_under_way(&self) -> bool {
        self.with(|state| state.streams.are_under_way())
    }

    /// The next bytes to be sent over a path.
    pub(super) async fn transmit(&self, path: PathKey) -> Bytes {
        loop {
            let (bytes, task) = self.with(|state| {
                let task = state.paths.get(&path).map(Arc::clone);
                (state.streams.transmit(path), task)
            });
            match (bytes, task) {
                (Some(bytes), _) => return bytes,
                (None, Some(task)) => task.notified().await,
                // The path was removed; its task ends.
                (None, None) => std::future::pending().await,
            }
        }
    }

    /// Takes in what `decoder` has, which arrived over `path`.
    pub(super) fn receive(&self, path: PathKey, decoder: &mut Decoder) -> Result<(), ReceiveError> {
        self.with(|state| {
            while let Some(frame) = decoder.pop()? {
                state.streams.receive(path, frame)?;
            }
            Ok(())
        })
    }

    /// Ends all streams at once.
    pub(crate) fn end(&self, status: Status) {
        self.with(|state| state.streams.end_all(status.to_u8()));
    }

    /// The other side has gone: ends all streams but for those that have arrived as a whole, which are
    /// read to their end.
    pub(crate) fn leave(&self) {
        let code = Status::Unreachable.to_u8();
        self.with(|state| state.streams.leave(code));
    }

    /// Whether a stream that has no user any more is not acknowledged as a whole.
    pub(crate) fn are_undelivered(&self) -> bool {
        self.with(|state| {
            let mut ids = state.streams.ids();
            ids.any(|id| !state.users.contains_key(&id))
        })
    }

    /// Bytes that were sent again over another path, because they were late.
    pub(crate) fn repeated(&self) -> u64 {
        self.with(|state| state.streams.repeated())
    }

    /// Bytes sent over a path, with those that were sent again.
    pub(crate) fn sent_over(&self, path: PathKey) -> u64 {
        self.with(|state| {
            let mut all = state.streams.sent();
            all.find(|(key, _)| *key == path)
                .map_or(0, |(_, bytes)| bytes)
        })
    }
}

impl StreamsState {
    fn user(&self, id: StreamId) -> Option<Arc<User>> {
        self.users.get(&id).cloned()
    }
}

/// What the user of a stream learns once the state is unlocked.
enum Woken {
    Readable(Arc<User>),
    Writable(Arc<User>),
    Both(Arc<User>),
}

impl Woken {
    fn notify(self) {
        match self {
            Self::Readable(user) => user.readable.notify_one(),
            Self::Writable(user) => user.writable.notify_one(),
            Self::Both(user) => {
                user.readable.notify_one();
                user.writable.notify_one();
            }
        }
    }
}

/// Acknowledges and sends again what is due, as long as the streams exist.
async fn run_ack_timers(streams: Weak<Inner>, lacking: Arc<Notify>) {
    let mut retry = tokio::time::interval(RETRY_INTERVAL);
    retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = lacking.notified() => {
                tokio::time::sleep(ACK_DELAY).await;
                let Some(inner) = streams.upgrade() else { return };
                SharedStreams(inner).with(|state| state.streams.acknowledge());
            }
            _ = retry.tick() => {
                let Some(inner) = streams.upgrade() else { return };
                SharedStreams(inner).with(|state| state.streams.retry());
            }
        }
    }
}

/// A stream. Dropping it resets it, unless both directions have ended.
pub(crate) struct Stream {
    handle: StreamHandle,
    /// Whether nothing is left to be reset.
    is_over: bool,
}

/// Reads and writes a stream, as long as that is there. Cloning shares it.
#[derive(Clone)]
pub(crate) struct StreamHandle {
    streams: SharedStreams,
    id: StreamId,
    pub(super) user: Arc<User>,
}

impl Deref for Stream {
    type Target = StreamHandle;

    fn deref(&self) -> &StreamHandle {
        &self.handle
    }
}

impl Stream {
    fn new(streams: SharedStreams, id: StreamId, state: &mut StreamsState) -> Self {
        let user = Arc::new(User {
            readable: Notify::new(),
            writable: Notify::new(),
            reset: SetOnce::new(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            is_at_end: AtomicBool::new(false),
        });
        state.users.insert(id, Arc::clone(&user));
        Self {
            handle: StreamHandle { streams, id, user },
            is_over: false,
        }
    }

    /// Resets the stream while the state is in use.
    fn forget(mut self, state: &mut StreamsState) {
        self.is_over = true;
        state.users.remove(&self.handle.id);
        (state.streams).reset(self.handle.id, Status::Unreachable.to_u8());
    }

    /// Ends both directions; the peer receives `status`.
    pub(crate) fn reset(mut self, status: Status) {
        self.end(Some(status));
    }

    /// Both directions have ended; what is left to be acknowledged needs no user.
    pub(crate) fn complete(mut self) {
        self.end(None);
    }

    fn end(&mut self, status: Option<Status>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let id = self.handle.id;
        self.handle.streams.with(|state| {
            state.users.remove(&id);
            if let Some(status) = status {
                state.streams.reset(id, status.to_u8());
            }
        });
    }
}

impl StreamHandle {
    /// The next bytes, at most `max`; `None` at the end.
    pub(crate) async fn read(&self, max: usize) -> Result<Option<BytesMut>, Reset> {
        loop {
            match self.streams.with(|state| state.streams.read(self.id, max)) {
                Read::Data(bytes) => return Ok(Some(bytes)),
                Read::End => {
                    self.user.is_at_end.store(true, Ordering::Relaxed);
                    return Ok(None);
                }
                Read::Gone => return Err(self.reason()),
                Read::Blocked => self.user.readable.notified().await,
            }
        }
    }

    /// Whether everything up to the end was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.user.is_at_end.load(Ordering::Relaxed)
    }

    /// Makes room for as many more bytes.
    pub(crate) fn consume(&self, bytes: usize) {
        self.user.read.fetch_add(bytes as u64, Ordering::Relaxed);
        self.streams
            .with(|state| state.streams.consume(self.id, bytes));
    }

    /// Waits until there is room to write.
    pub(crate) async fn writable(&self) -> Result<(), Reset> {
        loop {
            match self.streams.with(|state| state.streams.has_room(self.id)) {
                Some(true) => return Ok(()),
                Some(false) => self.user.writable.notified().await,
                None => return Err(self.reason()),
            }
        }
    }

    /// Writes all of `bytes`, waiting for room.
    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> Result<(), Reset> {
        loop {
            bytes = &bytes[self.try_write(bytes)?..];
            if bytes.is_empty() {
                return Ok(());
            }
            self.writable().await?;
        }
    }

    /// Writes as many of `bytes` as there is room for, and returns how many.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> Result<usize, Reset> {
        let written = self
            .streams
            .with(|state| state.streams.write(self.id, bytes));
        let written = written.ok_or_else(|| self.reason())?;
        (self.user.written).fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    /// Ends this side's direction.
    pub(crate) fn finish(&self) {
        self.streams.with(|state| state.streams.finish(self.id));
    }

    /// Waits until the peer resets the stream.
    pub(crate) async fn was_reset(&self) -> Reset {
        Reset(Status::from_u8(*self.user.reset.wait().await))
    }

    fn reason(&self) -> Reset {
        // Without a code it was reset here.
        let code = self.user.reset.get();
        Reset(code.map_or(Status::Connected, |code| Status::from_u8(*code)))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end(Some(Status::Connected));
    }
}
