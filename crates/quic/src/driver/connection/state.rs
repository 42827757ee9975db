//! The protocol state of a connection, and what waits for it.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use std::{io, mem};

use bytes::Bytes;
use hawser_endhost::lanes::{Flow, FlowId, LaneSender};
use noq_proto::{
    ConnectionError, ConnectionHandle, Event, PathId, ReadError, StreamEvent, StreamId,
    TransportError, TransportErrorCode, VarInt,
};

use super::schedule::{Schedule, part_of};
use super::writers::Writers;
use crate::close::TOO_FRAGMENTED;
use crate::driver::buffer::{End, StreamBuffer};
use crate::driver::unknown::Number;
use crate::driver::window::ReceiveWindow;
use crate::driver::{Connection, Driver, Received};

/// Bytes of streams that may wait for acknowledgements, in congestion windows: what is being
/// repaired, what is under way and what is to go next.
const SEND_WINDOWS: u64 = 3;
/// Longest time for which room gathers before a task that waits for it is woken.
const LONGEST_GATHERING: Duration = Duration::from_millis(4);

/// Time after which the first packet of a connection is sent again, at least: three times the round-trip
/// time that is assumed at first (RFC 9002, 6.2.1).
const MIN_RETRANSMIT_TIME: Duration = Duration::from_millis(300);

/// What the lock of a connection protects.
pub(super) struct ConnectionState {
    pub(super) quic: noq_proto::Connection,
    sender: LaneSender,
    /// `None` once it is forgotten, because no lane uses it.
    flow: Option<Arc<Flow>>,
    /// Packets, and how far the socket has taken them.
    packets: Vec<u8>,
    pending: Option<Pending>,
    began: Instant,
    schedule: Schedule,
    /// The deadline that the driver's timers know.
    pub(super) deadline: Option<Instant>,
    pub(super) connected: bool,
    pub(super) error: Option<ConnectionError>,
    /// Nothing is received or sent any more, and no timer expires.
    pub(super) abandoned: bool,
    pub(super) streams: HashMap<StreamId, StreamBuffer>,
    /// Streams that the peer opened and that were not accepted.
    pub(super) opened: VecDeque<StreamId>,
    pub(super) window: ReceiveWindow,
    /// What unread data of all streams takes, in bytes of memory.
    pub(super) held: usize,
    /// The most that it was.
    pub(super) peak_held: usize,
    /// Its number among the connections whose peers are unknown, with what they know to be held.
    pub(super) unknown: Option<Number>,
    accounted: usize,
    send_window: u64,
    pub(super) writers: Writers,
    pub(super) finishing: HashMap<StreamId, Waker>,
    /// Wait for everything else: set up, opened streams, room for streams, the end.
    waiting: Vec<Waker>,
    /// Woken when the lock is released.
    pub(super) woken: Vec<Waker>,
}

/// Why a connection is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
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

/// What is to be done once the lock is released.
#[derive(Default)]
pub(super) struct After {
    /// The socket has no room for what is to be sent.
    pub(super) blocked: bool,
    /// The connection's deadline is before that for which the thread waits.
    pub(super) sooner: bool,
    pub(super) woken: Vec<Waker>,
}

impl ConnectionState {
    pub(super) fn new(driver: &Driver, quic: noq_proto::Connection, flow: FlowId) -> Self {
        let now = Instant::now();
        Self {
            quic,
            sender: driver.lanes.sender(),
            flow: driver.lanes.flow(flow),
            packets: Vec::new(),
            pending: None,
            began: now,
            schedule: Schedule::new(now),
            deadline: None,
            connected: false,
            error: None,
            abandoned: false,
            streams: HashMap::new(),
            opened: VecDeque::new(),
            window: ReceiveWindow::new(now),
            held: 0,
            peak_held: 0,
            unknown: None,
            accounted: 0,
            send_window: 0,
            writers: Writers::default(),
            finishing: HashMap::new(),
            waiting: Vec::new(),
            woken: Vec::new(),
        }
    }

    /// Lets the task of `cx` look again when something changes that no stream brings.
    pub(super) fn wait<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Takes a packet in. If it opens, answers may take its path.
    pub(super) fn receive(&mut self, driver: &Driver, packet: Received, now: Instant) {
        self.handle(driver, packet);
        if self.quic.is_closed() && self.error.is_none() {
            // The protocol forgets the reason when a stateless reset follows before it is asked.
            self.take_events(now);
        }
    }

    fn handle(&mut self, driver: &Driver, packet: Received) {
        let Received { event, candidate } = packet;
        let flow = self.flow.as_ref().map(|flow| flow.id);
        let Some(candidate) = candidate.filter(|one| self.connected && flow == Some(one.flow()))
        else {
            // Before the handshake ends, others can make packets that open.
            return self.quic.handle_event(event);
        };
        let before = self.quic.stats().frame_rx;
        self.quic.handle_event(event);
        // Frames are read only from packets that opened and were not received before.
        if self.quic.stats().frame_rx != before {
            driver.lanes.adopt(&candidate);
        }
    }

    /// Does everything that follows from a change: packets out, events, timers.
    pub(super) fn advance(
        &mut self,
        driver: &Driver,
        handle: ConnectionHandle,
        now: Instant,
        cause: Cause,
    ) -> After {
        let (blocked, pause) = loop {
            while let Some(event) = self.quic.poll_endpoint_events() {
                if let Some(answer) = driver.on_event(handle, event) {
                    self.quic.handle_event(answer);
                }
            }
            self.take_events(now);
            if self.held as u64 > self.window.memory() && self.error.is_none() {
                self.refuse_fragments(now);
            }
            self.set_windows(driver, now);
            // What ends a connection is not held.
            let pause = (cause == Cause::Packets && self.error.is_none())
                .then(|| self.schedule.answer(self.round_trip()))
                .filter(|until| *until > now);
            let blocked = pause.is_none() && self.send(now).is_err();
            match self.quic.poll_timeout() {
                Some(deadline) if deadline <= now => self.quic.handle_timeout(now),
                _ => break (blocked, pause),
            }
        };
        let round_trip = self.round_trip();
        let timeout = self.quic.poll_timeout();
        let timeout = timeout.map(|timeout| self.schedule.gather(timeout, round_trip, now));
        let gathering = part_of(round_trip, LONGEST_GATHERING);
        let writable = self.writers.wake(now, gathering, &mut self.woken);
        let deadline = timeout.into_iter().chain(pause).chain(writable).min();
        let before = mem::replace(&mut self.deadline, deadline);
        After {
            blocked,
            sooner: before != deadline && driver.timers.set(handle, before, deadline),
            woken: mem::take(&mut self.woken),
        }
    }

    /// The round trip, which says nothing before the connection is set up.
    fn round_trip(&self) -> Duration {
        match self.connected {
            true => self.rtt(),
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
            // What one call of the kernel takes: a rest would be a small batch for every router.
            let batch = self.flow.as_ref().map_or(NonZeroUsize::MIN, |flow| {
                let mtu = self.quic.current_mtu();
                self.sender.max_segments(flow, mtu.into())
            });
            let Some(transmit) = self.quic.poll_transmit(now, batch, &mut self.packets) else {
                return Ok(());
            };
            self.schedule.on_sent(now);
            self.pending = Some(Pending {
                at: 0,
                segment: transmit.segment_size.unwrap_or(transmit.size),
                ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
            });
        }
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.quic.poll() {
            self.on_event(event, now);
        }
    }

    fn on_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Connected => {
                // noq 1.4.0 keeps the backoff of the first packets (against RFC 9002, A.11): if the last
                // one of the handshake is lost, it would be sent again after tens of seconds. This sets
                // the backoff back to zero; besides, it only sends a PING and takes the next connection ID.
                let is_late = now.saturating_duration_since(self.began) >= MIN_RETRANSMIT_TIME;
                if is_late && self.quic.side().is_client() {
                    self.quic.handle_network_change(None, now);
                }
                self.connected = true;
                self.woken.append(&mut self.waiting);
            }
            Event::ConnectionLost { reason } => self.end(reason),
            Event::Stream(event) => self.on_stream(event),
            Event::DatagramReceived => {
                if self.unknown.is_some() {
                    // Nothing accounts for what an unknown peer sends in this manner.
                    while self.quic.datagrams().recv().is_some() {}
                }
                self.woken.append(&mut self.waiting);
            }
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
            StreamEvent::Writable { id } => self.writers.on_writable(id),
            StreamEvent::Finished { id } => self.woken.extend(self.finishing.remove(&id)),
            StreamEvent::Stopped { id, .. } => {
                self.woken.extend(self.writers.remove(id));
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
        let (before, held) = (stream.len(), stream.held());
        if let Ok(mut chunks) = self.quic.recv_stream(id).read(false) {
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => stream.insert(chunk.offset, &chunk.bytes),
                    Ok(None) => break stream.end(End::Finished),
                    Err(ReadError::Reset(code)) => break stream.end(End::Reset(code)),
                    Err(ReadError::Blocked) => break,
                }
            }
            // Reading gives the peer as much more to send; what nobody has read yet takes it back.
            self.window.on_received((stream.len() - before) as u64);
            let _ = chunks.finalize();
        }
        self.held = self.held + stream.held() - held;
        self.peak_held = self.peak_held.max(self.held);
        if stream.is_readable() {
            self.woken.extend(stream.reader.take());
        }
    }

    /// Ends the connection: what arrived takes more memory than its bytes can account for.
    fn refuse_fragments(&mut self, now: Instant) {
        let reason = "the peer's data arrives in too many pieces";
        (self.quic).close(
            now,
            TOO_FRAGMENTED.into(),
            Bytes::from_static(reason.as_bytes()),
        );
        let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason.into());
        self.end(error.into());
        self.discard();
    }

    /// Drops what was not read. The connection must have ended.
    pub(super) fn discard(&mut self) {
        for stream in self.streams.values_mut() {
            self.window.on_discarded(stream.len() as u64);
            *stream = StreamBuffer::default();
        }
        self.held = 0;
    }

    /// Accounts what is held, if the peer is unknown. Returns the connections that give way.
    pub(super) fn account(&mut self, driver: &Driver) -> Vec<Weak<Connection>> {
        match self.unknown {
            Some(number) if self.accounted != self.held => {
                self.accounted = self.held;
                driver.unknown.set_held(number, self.held)
            }
            _ => Vec::new(),
        }
    }

    /// Sets how much may be under way, in both directions.
    fn set_windows(&mut self, driver: &Driver, now: Instant) {
        let round_trip = self.rtt();
        if let Some(window) = self.window.update(now, round_trip, &driver.budget) {
            let window = VarInt::try_from(window).unwrap_or(VarInt::MAX);
            self.quic.set_receive_window(window);
        }
        if let Some(path) = self.quic.path_stats(PathId::ZERO) {
            let losses = path.lost_packets + path.congestion_events;
            self.schedule.note_losses(losses, now);
        }
        let congestion = self.quic.congestion_state(PathId::ZERO);
        let congestion = congestion.map_or(0, |controller| controller.window());
        let wanted = (congestion * SEND_WINDOWS).max(driver.least_send_window);
        if wanted > self.send_window || wanted < self.send_window / 2 {
            self.send_window = wanted;
            self.quic.set_send_window(wanted);
        }
    }

    /// Ends every wait: the connection is closed.
    pub(super) fn end(&mut self, error: ConnectionError) {
        self.error = Some(error);
        self.woken.append(&mut self.waiting);
        self.woken.extend(self.writers.drain());
        self.woken
            .extend(self.finishing.drain().map(|(_, waker)| waker));
        let readers = self
            .streams
            .values_mut()
            .filter_map(|stream| stream.reader.take());
        self.woken.extend(readers);
    }
}
