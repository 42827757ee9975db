//! The protocol state of a connection, and what waits for it.

use std::mem;
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_endhost::lanes::FlowId;
use noq_proto::{
    ConnectionError, ConnectionHandle, Event, PathId, StreamEvent, TransportError,
    TransportErrorCode,
};

use super::inbound::Inbound;
use super::outbound::Outbound;
use super::schedule::{Schedule, part_of};
use super::tasks::Tasks;
use crate::close::TOO_FRAGMENTED;
use crate::driver::{Driver, Received};

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
    outbound: Outbound,
    began: Instant,
    schedule: Schedule,
    /// The deadline that the driver's timers know.
    pub(super) deadline: Option<Instant>,
    pub(super) connected: bool,
    pub(super) error: Option<ConnectionError>,
    /// Nothing is received or sent any more, and no timer expires.
    pub(super) abandoned: bool,
    pub(super) inbound: Inbound,
    send_window: u64,
    pub(super) tasks: Tasks,
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
            outbound: Outbound::new(driver, flow),
            began: now,
            schedule: Schedule::new(now),
            deadline: None,
            connected: false,
            error: None,
            abandoned: false,
            inbound: Inbound::new(now),
            send_window: 0,
            tasks: Tasks::default(),
        }
    }

    /// Takes a packet in. If it opens, answers may take its path.
    pub(super) fn receive(&mut self, driver: &Driver, packet: Received, now: Instant) {
        self.schedule.on_received();
        self.handle(driver, packet);
        if self.quic.is_closed() && self.error.is_none() {
            // The protocol forgets the reason when a stateless reset follows before it is asked.
            self.take_events(now);
        }
    }

    fn handle(&mut self, driver: &Driver, packet: Received) {
        let Received { event, candidate } = packet;
        let flow = self.outbound.flow();
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
        let (round_trip, last_sent) = (self.round_trip(), self.schedule.last_sent());
        let (blocked, pause) = loop {
            while let Some(event) = self.quic.poll_endpoint_events() {
                if let Some(answer) = driver.on_event(handle, event) {
                    self.quic.handle_event(answer);
                }
            }
            self.take_events(now);
            if self.inbound.is_too_fragmented() && self.error.is_none() {
                self.refuse_fragments(now);
            }
            self.set_windows(driver, now);
            // What ends a connection is not held.
            let pause = (cause == Cause::Packets && self.error.is_none())
                .then(|| self.schedule.answer(round_trip, now))
                .filter(|until| *until > now);
            let blocked = pause.is_none()
                && (self.outbound)
                    .send(&mut self.quic, &mut self.schedule, now)
                    .is_err();
            match self.quic.poll_timeout() {
                Some(deadline) if deadline <= now => self.quic.handle_timeout(now),
                _ => break (blocked, pause),
            }
        };
        if cause == Cause::Application && self.schedule.last_sent() != last_sent {
            self.schedule.on_answered();
        }
        let round_trip = self.round_trip();
        let timeout = self.quic.poll_timeout();
        let timeout = timeout.map(|timeout| self.schedule.gather(timeout, round_trip, now));
        let gathering = part_of(round_trip, LONGEST_GATHERING);
        let Tasks { writers, woken, .. } = &mut self.tasks;
        let writable = writers.wake(now, gathering, woken);
        let deadline = timeout.into_iter().chain(pause).chain(writable).min();
        let before = mem::replace(&mut self.deadline, deadline);
        After {
            blocked,
            sooner: before != deadline && driver.timers.set(handle, before, deadline),
            woken: mem::take(&mut self.tasks.woken),
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
                self.tasks.wake_others();
            }
            Event::ConnectionLost { reason } => self.end(reason),
            Event::Stream(event) => self.on_stream(event, now),
            Event::DatagramReceived => {
                if self.inbound.is_unknown() {
                    // Nothing accounts for what an unknown peer sends in this manner.
                    while self.quic.datagrams().recv().is_some() {}
                }
                self.tasks.wake_others();
            }
            // Nothing here waits for these.
            _ => {}
        }
    }

    fn on_stream(&mut self, event: StreamEvent, now: Instant) {
        match event {
            StreamEvent::Opened { dir } => {
                self.inbound.accept(&mut self.quic, dir);
                self.tasks.wake_others();
            }
            StreamEvent::Readable { id } => {
                if let Some(reader) = self.inbound.receive(&mut self.quic, id) {
                    self.schedule.on_delivered(now);
                    self.tasks.woken.push(reader);
                }
            }
            StreamEvent::Writable { id } => self.tasks.writers.on_writable(id),
            StreamEvent::Finished { id } => self.tasks.on_delivered(id),
            StreamEvent::Stopped { id, .. } => self.tasks.on_stopped(id),
            StreamEvent::Available { .. } => self.tasks.wake_others(),
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
        self.inbound.discard();
    }

    /// Sets how much may be under way, in both directions.
    fn set_windows(&mut self, driver: &Driver, now: Instant) {
        let round_trip = self.rtt();
        if let Some(window) = self.inbound.update_window(driver, round_trip, now) {
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
        self.tasks.wake_all(self.inbound.readers());
    }
}
