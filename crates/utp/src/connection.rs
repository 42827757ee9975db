//! One connection: its states, and what it does with packets and with the user's calls.
//!
//! ```text
//! connect -> SynSent -----> Established -> Closed
//! SYN ----> SynReceived --> Established
//! ```
//!
//! Each direction ends by a FIN of its own, behind all bytes. A connection that its user has closed lingers
//! until the peer has everything and has ended its direction too, for a bounded time; then it is gone.
//! A connection is driven by the [`Endpoint`](crate::Endpoint) that owns it, and has no lock.

mod timers;
mod transmit;

use std::time::{Duration, Instant};

use thiserror::Error;

use self::timers::Timers;
pub(crate) use self::transmit::reset_for;
use crate::config::Config;
use crate::ledbat::Ledbat;
use crate::packet::{Header, Packet, PacketKind};
use crate::receive::{Arrival, MAX_AHEAD, Receiver};
use crate::rtt::RttEstimator;
use crate::send::Sender;
use crate::sequence::{FIRST_EPOCH, expand};

/// Why a connection is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer does not accept it.
    #[error("the peer refused the connection")]
    Refused,
    /// The peer has ended it at once.
    #[error("the peer reset the connection")]
    Reset,
    /// The peer did not answer in time.
    #[error("the peer does not answer")]
    TimedOut,
    /// This side has closed it.
    #[error("the connection was closed")]
    Closed,
}

/// What there is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// This number of bytes was read.
    Bytes(usize),
    /// Nothing yet.
    Blocked,
    /// The peer has ended its direction, and all was read.
    End,
}

/// The numbers of a connection, as packets have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ids {
    /// In packets from the peer.
    pub receive: u16,
    /// In packets to the peer.
    pub send: u16,
    /// The sequence number of the peer's SYN; `None` if this side has opened it.
    pub syn: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The SYN was sent `attempts` times; `is_due` says that it is to be sent now.
    SynSent {
        attempts: u32,
        is_due: bool,
    },
    /// A SYN has come, and nothing yet that shows that it was from the peer's address.
    SynReceived,
    Established,
    /// `is_told` says that the peer knows, or need not know.
    Closed {
        reason: CloseReason,
        is_told: bool,
    },
}

/// What has changed for the user since it was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    pub readable: bool,
    pub writable: bool,
}

/// When the next acknowledgement is sent.
#[derive(Debug, Clone, Copy, Default)]
struct AckSchedule {
    is_due: bool,
    /// A packet has arrived that was not acknowledged.
    is_pending: bool,
    /// The byte up to which the last packet sent announced room.
    announced: u64,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub ids: Ids,
    state: State,
    sender: Sender,
    receiver: Receiver,
    control: Ledbat,
    rtt: RttEstimator,
    /// Room that the peer has announced behind what it acknowledges, in bytes.
    peer_window: usize,
    acks: AckSchedule,
    timers: Timers,
    /// When timestamps are zero.
    epoch: Instant,
    /// How long the last packet took, in microseconds by the clocks of both.
    difference: u32,
    /// Bytes of a full segment.
    payload: usize,
    signals: Signals,
    /// Its user has closed it.
    is_dropped: bool,
}

/// What a new connection is made of.
pub(crate) struct Opening<'a> {
    pub ids: Ids,
    pub config: &'a Config,
    /// The number of the own first packet.
    pub sequence: u16,
    /// Bytes of a full segment.
    pub payload: usize,
    pub epoch: Instant,
}

impl Connection {
    /// Opens a connection: the SYN is to be sent.
    pub fn connect(opening: &Opening<'_>, now: Instant) -> Self {
        let state = State::SynSent {
            attempts: 0,
            is_due: true,
        };
        // The SYN has a number of its own; the peer's first number is known with its answer.
        let first = FIRST_EPOCH + u64::from(opening.sequence);
        Self::new(opening, state, first + 1, FIRST_EPOCH, now)
    }

    /// Takes a connection that the peer opens by this SYN.
    pub fn accept(opening: &Opening<'_>, syn: &Header, now: Instant) -> Self {
        let first = FIRST_EPOCH + u64::from(opening.sequence);
        let next = FIRST_EPOCH + u64::from(syn.sequence) + 1;
        let mut accepted = Self::new(opening, State::SynReceived, first, next, now);
        accepted.acks.is_due = true;
        accepted.peer_window = syn.window as usize;
        accepted.difference = accepted.timestamp(now).wrapping_sub(syn.timestamp);
        accepted
    }

    fn new(opening: &Opening<'_>, state: State, first: u64, next: u64, now: Instant) -> Self {
        let config = opening.config;
        Self {
            ids: opening.ids,
            state,
            sender: Sender::new(first, config.send_buffer),
            receiver: Receiver::new(next, config.receive_buffer),
            control: Ledbat::new(opening.payload),
            rtt: RttEstimator::default(),
            peer_window: 0,
            acks: AckSchedule::default(),
            timers: Timers::new(now, config.idle_timeout),
            epoch: opening.epoch,
            difference: 0,
            payload: opening.payload,
            signals: Signals::default(),
            is_dropped: false,
        }
    }

    /// Whether the peer has answered the SYN, or opened the connection.
    pub fn is_connected(&self) -> bool {
        matches!(self.state, State::SynReceived | State::Established)
    }

    /// Why it is closed; `None` while it is open.
    pub fn closed(&self) -> Option<CloseReason> {
        match self.state {
            State::Closed { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Whether nothing of it is needed any more.
    pub fn is_gone(&self) -> bool {
        let is_told = matches!(self.state, State::Closed { is_told: true, .. });
        is_told && self.is_dropped
    }

    /// Whether the SYN with this number opened the connection: it may be repeated at any time.
    pub fn is_opened_by(&self, syn: u16) -> bool {
        self.ids.syn == Some(syn)
    }

    /// Takes what has changed for the user.
    pub fn take_signals(&mut self) -> Signals {
        std::mem::take(&mut self.signals)
    }

    /// The smoothed round-trip time, if it was measured.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Takes a packet of the peer.
    pub fn receive(&mut self, packet: &Packet<'_>, now: Instant) {
        let header = &packet.header;
        if self.closed().is_some() {
            return;
        }
        let acknowledged = expand(self.sender.next(), header.acknowledged);
        // What acknowledges packets that were not sent, or only what was acknowledged long ago, is not from
        // this peer.
        let known = self.sender.acknowledged();
        let is_plausible =
            acknowledged < self.sender.next() && acknowledged + 2 * MAX_AHEAD > known;
        if header.kind == PacketKind::Reset {
            // The answer to a packet without a number names the next one. A peer that gives up before it was
            // answered knows no number of this side.
            let is_withdrawn =
                self.state == State::SynReceived && header.sequence == self.receiver.next() as u16;
            if is_plausible || acknowledged == self.sender.next() || is_withdrawn {
                let is_asked = matches!(self.state, State::SynSent { .. });
                self.close_for(match is_asked {
                    true => CloseReason::Refused,
                    false => CloseReason::Reset,
                });
            }
            return;
        }
        if header.kind == PacketKind::Syn {
            // The answer to it was lost, or it was repeated on the way.
            self.acks.is_due |= self.is_connected();
            return;
        }
        if !is_plausible {
            return;
        }
        match self.state {
            State::SynSent { .. } => {
                // Only what answers this SYN says where the peer begins.
                if header.kind != PacketKind::State || acknowledged != known {
                    return;
                }
                self.establish(header.sequence, now);
            }
            State::SynReceived => self.state = State::Established,
            _ => {}
        }
        self.timers.on_heard(now);
        self.difference = self.timestamp(now).wrapping_sub(header.timestamp);
        let (ours, theirs) = (header.timestamp_difference, self.difference);
        self.control.on_delay(ours, theirs, now);
        self.take_acknowledgement(packet, acknowledged, now);
        if matches!(header.kind, PacketKind::Data | PacketKind::Fin) {
            self.take_content(packet, now);
        }
        self.settle(now);
    }

    fn establish(&mut self, sequence: u16, now: Instant) {
        self.state = State::Established;
        // What answers a SYN names the number of the first packet to come.
        let next = FIRST_EPOCH + u64::from(sequence);
        self.receiver.start_at(next);
        self.rtt.on_progress();
        self.timers.retransmit = None;
        self.timers.begin_confirmations(now);
        self.acks.is_due = true;
        self.signals.writable = true;
    }

    fn take_acknowledgement(&mut self, packet: &Packet<'_>, acknowledged: u64, now: Instant) {
        let known = self.sender.acknowledged();
        let window = packet.header.window as usize;
        let before = self.peer_window;
        if acknowledged > known {
            self.peer_window = window;
        } else if acknowledged == known {
            // Room never shrinks: a smaller one is of a packet that was overtaken.
            self.peer_window = before.max(window);
        }
        let is_bare = packet.header.kind == PacketKind::State && self.peer_window == before;
        let had_room = self.sender.room() > 0;
        let selective = &packet.selective;
        let acked = self
            .sender
            .acknowledge(acknowledged, selective, is_bare, now);
        if acked.segments > 0 {
            if let Some(rtt) = acked.rtt {
                self.rtt.sample(rtt);
            }
            self.rtt.on_progress();
            self.timers.on_progress();
            self.control
                .on_acked(acked.bytes, acked.in_flight, acked.rtt);
        }
        if acked.is_congestion {
            self.control.on_lost();
        }
        if acked.segments > 0 {
            self.arm_tail_probe(now);
        }
        self.signals.writable |= !had_room && self.sender.room() > 0;
    }

    fn take_content(&mut self, packet: &Packet<'_>, now: Instant) {
        let sequence = expand(self.receiver.next(), packet.header.sequence);
        let is_end = packet.header.kind == PacketKind::Fin;
        let arrival = self.receiver.receive(sequence, packet.payload, is_end);
        self.timers.confirmation = None;
        match arrival {
            Arrival::InOrder if !self.receiver.has_ended() && !self.acks.is_pending => {
                self.acks.is_pending = true;
                self.timers.delay_ack(now);
            }
            // What is missing, and that it has come, is told at once.
            _ => self.acks.is_due = true,
        }
        if matches!(arrival, Arrival::InOrder | Arrival::FilledGap) {
            self.signals.readable = true;
            if self.is_dropped && self.sender.is_done() && !packet.payload.is_empty() {
                // The peer sends what nobody reads.
                self.close_with_reset(CloseReason::Closed);
            }
        }
    }

    /// Reads bytes in order.
    ///
    /// # Errors
    /// If the connection was closed before the peer has ended its direction, and all that arrived is read.
    pub fn read(&mut self, out: &mut [u8]) -> Result<Read, CloseReason> {
        if self.receiver.readable() > 0 {
            let length = self.receiver.read(out);
            // Room is announced when half of it is new: less would be a packet for each read.
            let new = self.receiver.room_end() - self.acks.announced;
            if self.is_connected() && new >= self.receiver.capacity() as u64 / 2 {
                self.acks.is_due = true;
            }
            return Ok(Read::Bytes(length));
        }
        match self.closed() {
            _ if self.receiver.has_ended() => Ok(Read::End),
            Some(reason) => Err(reason),
            None => Ok(Read::Blocked),
        }
    }

    /// Takes bytes to send. Returns how many; 0 if there is no room now.
    ///
    /// # Errors
    /// If the connection is closed, or its own direction was ended.
    pub fn write(&mut self, bytes: &[u8], now: Instant) -> Result<usize, CloseReason> {
        match self.closed() {
            Some(reason) => Err(reason),
            None if self.sender.is_finished() => Err(CloseReason::Closed),
            None => {
                let length = self.sender.write(bytes);
                self.arm_retransmission(now);
                Ok(length)
            }
        }
    }

    /// Ends the own direction behind what was written.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// The user needs the connection no more: what was written is still sent, what arrives is dropped.
    pub fn close(&mut self, now: Instant) {
        self.is_dropped = true;
        self.receiver.discard();
        self.sender.finish();
        self.timers.linger(now);
        // The peer has no user that waits for bytes yet, or there is no proof that it is there.
        if matches!(self.state, State::SynSent { .. } | State::SynReceived) {
            self.close_with_reset(CloseReason::Closed);
        }
        self.settle(now);
    }

    /// Ends the connection at once; the peer is told.
    pub fn abort(&mut self) {
        self.close_with_reset(CloseReason::Closed);
    }

    /// A packet to the peer is larger than a device takes, and was not sent: segments are smaller from now on.
    /// If it is one of this connection, what it and those behind it have is cut again, unless an earlier one
    /// with it has left.
    pub fn on_too_large(&mut self, refused: &Packet<'_>, now: Instant) {
        let mut smaller = Config::SMALLER_PAYLOADS.into_iter();
        let smaller = smaller.find(|it| *it < refused.payload.len());
        // Of packets that were sent at once, all but the first one say nothing new.
        self.payload = smaller.map_or(self.payload, |it| it.min(self.payload));
        self.control.set_packet(self.payload);
        let header = &refused.header;
        let is_content = matches!(header.kind, PacketKind::Data | PacketKind::Fin);
        if is_content && header.connection_id == self.ids.send {
            let sequence = expand(self.sender.next(), header.sequence);
            self.sender.on_refused(sequence, self.payload);
            self.settle(now);
        }
    }

    fn close_for(&mut self, reason: CloseReason) {
        self.close_as(reason, true);
    }

    fn close_with_reset(&mut self, reason: CloseReason) {
        self.close_as(reason, false);
    }

    fn close_as(&mut self, reason: CloseReason, is_told: bool) {
        if self.closed().is_none() {
            self.state = State::Closed { reason, is_told };
            self.signals = Signals {
                readable: true,
                writable: true,
            };
        }
    }

    /// Sets the timers that follow from what has happened.
    fn settle(&mut self, now: Instant) {
        self.arm_retransmission(now);
        if self.is_dropped && self.sender.is_done() && self.receiver.has_ended() {
            self.timers.wait_for_repeats(now);
        }
    }

    fn timestamp(&self, now: Instant) -> u32 {
        now.saturating_duration_since(self.epoch).as_micros() as u32
    }

    /// Bytes that are kept, of both directions.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.sender.kept() + self.receiver.kept()
    }
}
