//! A session: the streams of one peer over several paths, and what users wait for.
//!
//! Its life: a client begins it with the first path whose greeting is accepted, a listener with the first
//! greeting. Path tasks ([`path`]) move frames between `streams` and QUIC connections. It ends once, with
//! an [`End`]: closed here, by the peer, given up, or without a path for too long. Then the path tasks
//! close their QUIC connections and end, and users get what has arrived, then the reason.
//!
//! There is one lock, `state`, which nobody holds across an await. No other lock is taken under it.

pub(crate) mod client;
mod end;
mod health;
pub(crate) mod path;
mod stream;
mod user;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_endhost::ScionAddr;
use hawser_keys::PeerKey;
use hawser_manager::SubflowId;
use hawser_quic::Connection as Quic;
use hawser_streams::{Decoder, Estimate, Event, PathKey, Side, StreamId, Streams};
use tokio::sync::{Notify, SetOnce, broadcast, watch};
use tokio::time::MissedTickBehavior;

pub(crate) use self::end::{End, FrameFault};
use self::health::Outage;
pub(crate) use self::user::User;
use crate::event::{PathChange, PathEvent, PathReason};
use crate::policy::Policy;
use crate::stats::{PathState, PathStats};
use crate::wire::OPENING;
use crate::{MAX_OUTAGE, MAX_PATHS};

/// The one stream of a session.
const STREAM: StreamId = 0;
/// How long a little that has arrived waits to be acknowledged: it costs the sender memory only.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(25);
/// Interval at which frames are sent again that may be lost.
const RETRY: Duration = Duration::from_secs(3);
/// Interval at which it is looked whether any path works.
const OUTAGE_TICK: Duration = Duration::from_millis(250);
/// Most events that wait for one reader.
const MAX_EVENTS: usize = 256;
/// Most messages that wait to be received.
const MAX_MESSAGES: usize = 256;

/// A session. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Session(Arc<Inner>);

struct Inner {
    peer: ScionAddr,
    key: PeerKey,
    state: Mutex<SessionState>,
    events: broadcast::Sender<PathEvent>,
    /// The policy that users set; only a client follows it.
    policy: watch::Sender<Option<Policy>>,
    /// Set once the peer has begun the stream, on the side that accepts it.
    opened: SetOnce<()>,
    ended: SetOnce<End>,
    /// Notified when something has arrived that is not acknowledged.
    lacking: Arc<Notify>,
}

struct SessionState {
    streams: Streams,
    /// The beginning of the times of `streams`.
    began: Instant,
    paths: BTreeMap<PathKey, PathEntry>,
    /// Why the latest path was lost.
    last_loss: String,
    /// Whether the byte before those of the application was sent, or received.
    is_begun: bool,
    /// Whether the end was read, and whether this side's end was written.
    at_end: bool,
    is_finished: bool,
    readers: Vec<Waker>,
    writers: Vec<Waker>,
    closers: Vec<Waker>,
    messages: VecDeque<Bytes>,
    receivers: Vec<Waker>,
}

/// A path that is connected.
struct PathEntry {
    quic: Quic,
    subflow: Option<SubflowId>,
    /// The task that sends over it.
    task: Arc<Notify>,
    /// Why nothing is sent over it: it is silent, and the path manager holds it.
    is_silent: bool,
    is_held: bool,
}

impl PathEntry {
    fn is_used(&self) -> bool {
        !self.is_silent && !self.is_held
    }
}

impl Session {
    /// A session with `peer`, which has shown `key`, without a path. Must be called inside a tokio
    /// runtime.
    pub(crate) fn new(side: Side, peer: ScionAddr, key: PeerKey, policy: Option<Policy>) -> Self {
        let mut streams = Streams::new(side);
        if side == Side::Opens {
            streams.open();
            streams.write(STREAM, &[OPENING]);
        }
        let lacking = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            peer,
            key,
            state: Mutex::new(SessionState {
                streams,
                began: Instant::now(),
                paths: BTreeMap::new(),
                last_loss: "there was none".into(),
                is_begun: side == Side::Opens,
                at_end: false,
                is_finished: false,
                readers: Vec::new(),
                writers: Vec::new(),
                closers: Vec::new(),
                messages: VecDeque::new(),
                receivers: Vec::new(),
            }),
            events: broadcast::channel(MAX_EVENTS).0,
            policy: watch::channel(policy).0,
            opened: SetOnce::new(),
            ended: SetOnce::new(),
            lacking: Arc::clone(&lacking),
        });
        tokio::spawn(run_ack_timers(Arc::downgrade(&inner), lacking));
        Self(inner)
    }

    pub(crate) fn peer(&self) -> ScionAddr {
        self.0.peer
    }

    pub(crate) fn key(&self) -> PeerKey {
        self.0.key
    }

    pub(crate) fn policy(&self) -> &watch::Sender<Option<Policy>> {
        &self.0.policy
    }

    /// Works on the state, and wakes those for whom that changes something.
    fn with<T>(&self, work: impl FnOnce(&mut SessionState) -> T) -> T {
        let mut guard = (self.0.state.lock()).unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        state.streams.advance(state.began.elapsed());
        let result = work(state);
        let mut woken = Vec::new();
        let mut offence = None;
        while let Some(event) = state.streams.poll_event() {
            match event {
                Event::Opened(STREAM) => drop(self.0.opened.set(())),
                Event::Opened(id) => offence = Some(format!("it opens stream {id}")),
                Event::Readable(_) => woken.append(&mut state.readers),
                Event::Writable(_) => woken.append(&mut state.writers),
                Event::Reset(..) => {
                    woken.append(&mut state.readers);
                    woken.append(&mut state.writers);
                }
            }
        }
        if !state.closers.is_empty() && state.is_delivered() {
            woken.append(&mut state.closers);
        }
        if let Some(path) = state.streams.next_path()
            && let Some(path) = state.paths.get(&path)
        {
            path.task.notify_one();
        }
        let lacks = state.streams.lacks_acknowledgement();
        drop(guard);
        woken.into_iter().for_each(Waker::wake);
        if lacks {
            self.0.lacking.notify_one();
        }
        if let Some(offence) = offence {
            self.end(End::Offence(offence));
        }
        result
    }

    /// Why it has ended, if it has.
    fn end_reason(&self) -> Option<&End> {
        self.0.ended.get()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> End {
        self.0.ended.wait().await.clone()
    }

    /// Waits until the peer has begun the stream.
    pub(crate) async fn opened(&self) {
        self.0.opened.wait().await;
    }

    /// Ends the session; the first reason counts. What has arrived as a whole can be read, unless this
    /// side gave the session up.
    pub(crate) fn end(&self, end: End) {
        let is_local = end.is_local();
        if self.0.ended.set(end).is_err() {
            return;
        }
        let woken = self.with(|state| {
            match is_local {
                true => state.streams.end_all(0),
                false => state.streams.leave(0),
            }
            let mut woken = std::mem::take(&mut state.readers);
            woken.append(&mut state.writers);
            woken.append(&mut state.closers);
            woken.append(&mut state.receivers);
            woken
        });
        woken.into_iter().for_each(Waker::wake);
    }

    /// Uses a path from now on, unless there are too many, or the session has ended.
    fn add_path(&self, key: PathKey, quic: &Quic, subflow: Option<SubflowId>) -> bool {
        let reason = match subflow {
            Some(_) => PathReason::Chosen,
            None => PathReason::Peer,
        };
        self.with(|state| {
            if state.paths.len() >= MAX_PATHS || self.end_reason().is_some() {
                return false;
            }
            let task = Arc::new(Notify::new());
            // It asks for something to send.
            task.notify_one();
            let entry = PathEntry {
                quic: quic.clone(),
                subflow,
                task,
                is_silent: false,
                is_held: false,
            };
            state.paths.insert(key, entry);
            state.streams.add_path(key);
            let event = PathEvent::new(quic.fingerprint(), PathChange::Added, reason, "connected");
            // Without receivers nobody is interested.
            let _ = self.0.events.send(event);
            true
        })
    }

    fn remove_path(&self, key: PathKey, why: &str) {
        let woken = self.with(|state| {
            state.paths.remove(&key);
            state.streams.remove_path(key);
            state.last_loss = why.into();
            std::mem::take(&mut state.closers)
        });
        woken.into_iter().for_each(Waker::wake);
    }

    /// Sends nothing over a path, or sends again, as both reasons for that say.
    fn set_used(&self, key: PathKey, change: impl FnOnce(&mut PathEntry)) {
        self.with(|state| {
            let Some(path) = state.paths.get_mut(&key) else {
                return;
            };
            let before = path.is_used();
            change(path);
            match (before, path.is_used()) {
                (true, false) => state.streams.suspend_path(key),
                (false, true) => {
                    path.task.notify_one();
                    state.streams.resume_path(key);
                }
                _ => {}
            }
        });
    }

    fn set_silent(&self, key: PathKey, is_silent: bool) {
        self.set_used(key, |path| path.is_silent = is_silent);
    }

    /// Holds the path of a subflow for the path manager, or uses it again.
    fn set_held(&self, subflow: SubflowId, is_held: bool) {
        if let Some((key, _)) = self.find(subflow) {
            self.set_used(key, |path| path.is_held = is_held);
        }
    }

    fn find(&self, subflow: SubflowId) -> Option<(PathKey, Quic)> {
        self.with(|state| {
            let mut paths = state.paths.iter();
            let found = paths.find(|(_, path)| path.subflow == Some(subflow));
            found.map(|(key, path)| (*key, path.quic.clone()))
        })
    }

    pub(crate) fn report(&self, event: PathEvent) {
        // The lock keeps the order of events and snapshots.
        self.with(|_| drop(self.0.events.send(event)));
    }

    /// Which paths there are, and what happens to them from now on.
    pub(crate) fn subscribe(&self) -> (VecDeque<PathEvent>, broadcast::Receiver<PathEvent>) {
        self.with(|state| {
            let event = |path: &PathEntry| {
                let (reason, text) = match path.subflow {
                    Some(_) => (PathReason::Chosen, "in use"),
                    None => (PathReason::Peer, "in use"),
                };
                PathEvent::new(path.quic.fingerprint(), PathChange::Added, reason, text)
            };
            let first = match self.end_reason() {
                Some(_) => VecDeque::new(),
                None => state.paths.values().map(event).collect(),
            };
            (first, self.0.events.subscribe())
        })
    }

    pub(crate) fn stats(&self) -> Vec<PathStats> {
        self.with(|state| {
            let sent: BTreeMap<PathKey, u64> = state.streams.sent().collect();
            let one = |(key, path): (&PathKey, &PathEntry)| {
                let stats = path.quic.stats();
                PathStats {
                    path: path.quic.fingerprint(),
                    state: match path.is_used() {
                        true => PathState::Used,
                        false => PathState::Held,
                    },
                    rtt: stats.rtt,
                    bytes_sent: sent.get(key).copied().unwrap_or_default(),
                    bytes_received: stats.bytes_received,
                    congestion_window: stats.cwnd,
                    packets_sent: stats.packets_sent,
                    packets_lost: stats.lost,
                }
            };
            state.paths.iter().map(one).collect()
        })
    }

    fn set_name(&self, key: PathKey, name: u64) {
        self.with(|state| state.streams.set_name(key, name));
    }

    fn set_estimate(&self, key: PathKey, estimate: Estimate) {
        self.with(|state| state.streams.set_estimate(key, estimate));
    }

    fn are_under_way(&self) -> bool {
        self.with(|state| state.streams.are_under_way())
    }

    /// The next bytes to be sent over a path.
    async fn transmit(&self, key: PathKey) -> Bytes {
        loop {
            let (bytes, task) = self.with(|state| {
                let task = state.paths.get(&key).map(|path| Arc::clone(&path.task));
                (state.streams.transmit(key), task)
            });
            match (bytes, task) {
                (Some(bytes), _) => return bytes,
                (None, Some(task)) => task.notified().await,
                // The path was removed; its task ends.
                (None, None) => std::future::pending().await,
            }
        }
    }

    /// Takes in what `decoder` has, which arrived over a path.
    fn receive(&self, key: PathKey, decoder: &mut Decoder) -> Result<(), FrameFault> {
        self.with(|state| {
            while let Some(frame) = decoder.pop()? {
                state.streams.receive(key, frame)?;
            }
            Ok(())
        })
    }
}

impl SessionState {
    /// Whether the peer has received everything up to this side's end.
    fn is_delivered(&self) -> bool {
        self.is_finished && self.streams.is_delivered(STREAM) != Some(false)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("peer", &self.0.peer)
            .finish_non_exhaustive()
    }
}

/// Acknowledges and sends again what is due, and ends the session when no path works for too long. Its
/// users and its paths keep the session; this does so for an instant only.
async fn run_ack_timers(session: Weak<Inner>, lacking: Arc<Notify>) {
    let mut retry = tokio::time::interval(RETRY);
    let mut look = tokio::time::interval(OUTAGE_TICK);
    retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut outage = Outage::new();
    loop {
        let due = tokio::select! {
            () = lacking.notified() => {
                tokio::time::sleep(ACKNOWLEDGE_AFTER).await;
                Due::Acknowledgement
            }
            _ = retry.tick() => Due::Retry,
            _ = look.tick() => Due::Look,
        };
        let Some(session) = session.upgrade().map(Session) else {
            return;
        };
        if session.end_reason().is_some() {
            return;
        }
        match due {
            Due::Acknowledgement => session.with(|state| state.streams.acknowledge()),
            Due::Retry => session.with(|state| state.streams.retry()),
            Due::Look => {
                let (works, why) = session.with(|state| {
                    let works = state.paths.values().any(|path| !path.is_silent);
                    (works, state.last_loss.clone())
                });
                if outage.is_over(works, MAX_OUTAGE, Instant::now()) {
                    session.end(End::Outage(why));
                }
            }
        }
    }
}

/// What is due for a session.
enum Due {
    Acknowledgement,
    Retry,
    Look,
}
