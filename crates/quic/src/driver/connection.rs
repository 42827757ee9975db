//! One connection: its protocol state, and who waits for it.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{fmt, io, mem};

use bytes::Bytes;
use hawser_endhost::lanes::{Flow, FlowId, LaneSender};
use noq_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, Dir, Event, FinishError, PathId, PathStats,
    ReadError, StreamEvent, StreamId, VarInt, WriteError,
};
use tokio::io::ReadBuf;

use super::Driver;
use super::buffer::{End, StreamBuffer};
use crate::close::NO_CODE;
use crate::transport::RECEIVE_WINDOW;

/// The kernel cuts one buffer into at most this many packets.
const SEGMENTS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
/// Least that may be sent and not yet acknowledged, in bytes.
const LEAST_SEND_WINDOW: u64 = 1 << 20;
/// Bytes of streams that may wait for acknowledgements, in congestion windows: what is being
/// repaired, what is under way and what is to go next.
const SEND_WINDOWS: u64 = 3;

/// The part of a round trip for which packets that arrive may wait for an answer.
const PAUSE: u32 = 8;
/// Longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// A connection. Its task is whoever holds the lock: the endpoint's task, or one that reads or
/// writes.
pub(crate) struct Connection {
    driver: Arc<Driver>,
    handle: ConnectionHandle,
    state: Mutex<State>,
}

struct State {
    quic: noq_proto::Connection,
    sender: LaneSender,
    /// `None` once it is forgotten, because no lane uses it.
    flow: Option<Arc<Flow>>,
    /// Packets, and how far the socket has taken them.
    packets: Vec<u8>,
    pending: Option<Pending>,
    /// When packets were sent last.
    sent: Instant,
    /// The deadline that the driver's timers know.
    deadline: Option<Instant>,
    connected: bool,
    error: Option<ConnectionError>,
    streams: HashMap<StreamId, StreamBuffer>,
    /// Streams that the peer opened and that were not accepted.
    opened: VecDeque<StreamId>,
    /// Bytes in all of `streams`.
    unread: u64,
    /// The receive window that the peer may fill, less what is unread.
    window: u64,
    send_window: u64,
    writers: HashMap<StreamId, Waker>,
    finishing: HashMap<StreamId, Waker>,
    /// Wait for everything else: set up, opened streams, room for streams, the end.
    waiting: Vec<Waker>,
    /// Woken when the lock is released.
    woken: Vec<Waker>,
}

/// Why a connection is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Packets arrived.
    Packets,
    /// A deadline has come, or the socket has room again.
    Time,
    /// The application wants something.
    Application,
}

/// Packets that the socket has not taken.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at: usize,
    segment: usize,
    ecn: u8,
}

impl Connection {
    pub(super) fn new(
        driver: Arc<Driver>,
        handle: ConnectionHandle,
        quic: noq_proto::Connection,
        flow: FlowId,
    ) -> Arc<Self> {
        let state = State {
            quic,
            sender: driver.lanes.sender(),
            flow: driver.lanes.flow(flow),
            packets: Vec::new(),
            pending: None,
            sent: Instant::now(),
            deadline: None,
            connected: false,
            error: None,
            streams: HashMap::new(),
            opened: VecDeque::new(),
            unread: 0,
            window: RECEIVE_WINDOW,
            send_window: 0,
            writers: HashMap::new(),
            finishing: HashMap::new(),
            waiting: Vec::new(),
            woken: Vec::new(),
        };
        let state = Mutex::new(state);
        Arc::new(Self {
            driver,
            handle,
            state,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work`, then everything that follows from it: packets out, events, timers.
    fn update<T>(&self, now: Instant, cause: Cause, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = work(&mut state);
        let (blocked, pause) = state.advance(self, now, cause);
        let timeout = state.quic.poll_timeout();
        let (before, after) = (state.deadline, timeout.into_iter().chain(pause).min());
        let mut wake = false;
        if before != after {
            state.deadline = after;
            wake = self.driver.timers.set(self.handle, before, after);
        }
        let woken = mem::take(&mut state.woken);
        drop(state);
        if blocked {
            self.driver.on_blocked(self.handle);
        } else if wake && cause == Cause::Application {
            self.driver.wake();
        }
        woken.into_iter().for_each(Waker::wake);
        result
    }

    /// Takes packets in.
    pub(super) fn receive(&self, events: Vec<ConnectionEvent>, now: Instant) {
        self.update(now, Cause::Packets, |state| {
            for event in events {
                state.quic.handle_event(event);
            }
        });
    }

    /// Acts upon the deadline `deadline`, which the timers have dropped, or sends what the socket had
    /// no room for.
    pub(super) fn fire(&self, deadline: Option<Instant>, now: Instant) {
        self.update(now, Cause::Time, |state| {
            // Another task may have set a new one since.
            if deadline.is_some() && state.deadline == deadline {
                state.deadline = None;
            }
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
            None => state.wait(cx),
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
            None => state.wait(cx),
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

    /// The peer's certificates.
    pub(crate) fn peer_identity(&self) -> Option<Box<dyn std::any::Any>> {
        self.lock().quic.crypto_session().peer_identity()
    }

    /// Reads the protocol's counters and estimates.
    pub(crate) fn stats(&self) -> (noq_proto::ConnectionStats, PathStats) {
        let mut state = self.lock();
        let path = state.quic.path_stats(PathId::ZERO).unwrap_or_default();
        (state.quic.stats(), path)
    }

    /// Asks the peer for an acknowledgement.
    pub(crate) fn ping(&self) {
        self.update(Instant::now(), Cause::Application, |state| {
            state.quic.ping()
        });
    }

    /// Opens a stream in both directions, when the peer allows one more.
    pub(crate) fn poll_open(&self, cx: &Context<'_>) -> Poll<Result<StreamId, ConnectionError>> {
        self.update(Instant::now(), Cause::Application, |state| {
            if let Some(error) = &state.error {
                return Poll::Ready(Err(error.clone()));
            }
            match state.quic.streams().open(Dir::Bi) {
                Some(id) => {
                    state.streams.insert(id, StreamBuffer::default());
                    Poll::Ready(Ok(id))
                }
                None => state.wait(cx),
            }
        })
    }

    /// The next stream that the peer opened.
    pub(crate) fn poll_accept(&self, cx: &Context<'_>) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.lock();
        match (state.opened.pop_front(), &state.error) {
            (Some(id), _) => Poll::Ready(Ok(id)),
            (None, Some(error)) => Poll::Ready(Err(error.clone())),
            (None, None) => state.wait(cx),
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
        let State { streams, error, .. } = &mut *state;
        let Some(stream) = streams.get_mut(&id) else {
            return Poll::Ready(Err(StreamFault::Finished));
        };
        if let Some((read, taken)) = take(stream) {
            state.unread -= read as u64;
            let due = state.window_is_due();
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
            if let Some(stream) = state.streams.remove(&id) {
                state.unread -= stream.len() as u64;
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
                    state.writers.insert(id, cx.waker().clone());
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
            (Ok(None), None) => {
                state.finishing.insert(id, cx.waker().clone());
                Poll::Pending
            }
        }
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

impl State {
    fn wait<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Brings everything up to `now`. Returns whether the socket has no room for what is to be sent,
    /// and until when sending pauses.
    fn advance(
        &mut self,
        connection: &Connection,
        now: Instant,
        cause: Cause,
    ) -> (bool, Option<Instant>) {
        loop {
            while let Some(event) = self.quic.poll_endpoint_events() {
                if let Some(answer) = connection.driver.on_event(connection.handle, event) {
                    self.quic.handle_event(answer);
                }
            }
            while let Some(event) = self.quic.poll() {
                self.on_event(event);
            }
            self.set_windows();
            let pause = (cause == Cause::Packets)
                .then(|| self.sent + self.pause())
                .filter(|until| *until > now);
            let blocked = pause.is_none() && self.send(now).is_err();
            match self.quic.poll_timeout() {
                Some(deadline) if deadline <= now => self.quic.handle_timeout(now),
                _ => return (blocked, pause),
            }
        }
    }

    /// How long after packets were sent those that arrive are not answered: what is answered
    /// together costs one wake-up of everything on the way.
    fn pause(&self) -> Duration {
        match self.connected {
            true => (self.rtt() / PAUSE).min(LONGEST_PAUSE),
            false => Duration::ZERO,
        }
    }

    fn rtt(&self) -> Duration {
        self.quic.rtt(PathId::ZERO).unwrap_or_default()
    }

    /// Sends what there is to send. Fails when the socket has no room.
    fn send(&mut self, now: Instant) -> io::Result<()> {
        loop {
            if let Some(pending) = &mut self.pending {
                let Some(flow) = &self.flow else {
                    // No lane uses it: the packets go nowhere.
                    self.pending = None;
                    continue;
                };
                while pending.at < self.packets.len() {
                    let rest = &self.packets[pending.at..];
                    match self
                        .sender
                        .try_send(flow, rest, pending.segment, pending.ecn)
                    {
                        Ok(sent) => pending.at += sent,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            return Err(error);
                        }
                        // What the system does not take is lost, as packets are. Connections over
                        // the flow end with the reason.
                        Err(_) => break,
                    }
                }
                self.pending = None;
            }
            self.packets.clear();
            let Some(transmit) = self.quic.poll_transmit(now, SEGMENTS, &mut self.packets) else {
                return Ok(());
            };
            self.sent = now;
            self.pending = Some(Pending {
                at: 0,
                segment: transmit.segment_size.unwrap_or(transmit.size),
                ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
            });
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connected => {
                self.connected = true;
                self.woken.append(&mut self.waiting);
            }
            Event::ConnectionLost { reason } => self.end(reason),
            Event::Stream(event) => self.on_stream(event),
            // Nothing here waits for these.
            _ => {}
        }
    }

    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.quic.streams().accept(dir) {
                    self.streams.insert(id, StreamBuffer::default());
                    self.opened.push_back(id);
                    self.read(id);
                }
                self.woken.append(&mut self.waiting);
            }
            StreamEvent::Readable { id } => self.read(id),
            StreamEvent::Writable { id } => self.woken.extend(self.writers.remove(&id)),
            StreamEvent::Finished { id } => self.woken.extend(self.finishing.remove(&id)),
            StreamEvent::Stopped { id, .. } => {
                self.woken.extend(self.writers.remove(&id));
                self.woken.extend(self.finishing.remove(&id));
            }
            StreamEvent::Available { .. } => self.woken.append(&mut self.waiting),
        }
    }

    /// Takes what arrived on a stream out of the protocol.
    fn read(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let before = stream.len();
        let mut credit = self.unread;
        if let Ok(mut chunks) = self.quic.recv_stream(id).read(false) {
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => stream.insert(chunk.offset, chunk.bytes),
                    Ok(None) => break stream.end(End::Finished),
                    Err(ReadError::Reset(code)) => break stream.end(End::Reset(code)),
                    Err(ReadError::Blocked) => break,
                }
            }
            // Reading gives the peer as much more to send; what nobody has read yet takes it back.
            credit += (stream.len() - before) as u64;
            let _ = chunks.finalize();
        }
        self.unread = credit;
        if stream.is_readable() {
            self.woken.extend(stream.reader.take());
        }
    }

    /// How much more than now the peer may send, at most.
    fn wanted_window(&self) -> u64 {
        RECEIVE_WINDOW.saturating_sub(self.unread)
    }

    /// Whether the peer may send so much more that it should be informed.
    fn window_is_due(&self) -> bool {
        self.wanted_window() >= self.window + RECEIVE_WINDOW / 8
    }

    /// Sets how much may be under way, both ways.
    fn set_windows(&mut self) {
        let wanted = self.wanted_window();
        if wanted < self.window || self.window_is_due() {
            self.window = wanted;
            let window = VarInt::try_from(wanted).unwrap_or(VarInt::MAX);
            self.quic.set_receive_window(window);
        }
        let congestion = self.quic.congestion_state(PathId::ZERO);
        let congestion = congestion.map_or(0, |controller| controller.window());
        let wanted = (congestion * SEND_WINDOWS).max(LEAST_SEND_WINDOW);
        if wanted > self.send_window || wanted < self.send_window / 2 {
            self.send_window = wanted;
            self.quic.set_send_window(wanted);
        }
    }

    /// Lets everyone know that the connection is closed.
    fn end(&mut self, error: ConnectionError) {
        self.error = Some(error);
        self.woken.append(&mut self.waiting);
        self.woken
            .extend(self.writers.drain().map(|(_, waker)| waker));
        self.woken
            .extend(self.finishing.drain().map(|(_, waker)| waker));
        let readers = self
            .streams
            .values_mut()
            .filter_map(|stream| stream.reader.take());
        self.woken.extend(readers);
    }
}
