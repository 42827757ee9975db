//! One interface of the router: a socket, and what is about to leave by it.

use std::io::{ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::time::Instant;

use hawser_topology::{LinkState, Shape};

use crate::budget::Budget;
use crate::counters::{Drops, InterfaceCounters};
use crate::emulate::Emulator;
use crate::io;
use crate::reason::Reason;
use crate::run::{MAX_BYTES, Run};

/// SCMP errors to one interface: enough to tell every sender within milliseconds, too few to be of
/// use to a flood.
const ERRORS_PER_SECOND: u32 = 1000;
const ERRORS_AT_ONCE: u32 = 100;
/// SCMP replies to one interface.
const REPLIES_PER_SECOND: u32 = 10_000;
const REPLIES_AT_ONCE: u32 = 1000;

/// Most parts of one send; a run has no more packets.
const MAX_PARTS: usize = 64;

/// An interface.
pub(crate) struct Port {
    /// 0: inside.
    pub id: u16,
    pub socket: UdpSocket,
    /// Whom the socket has yet to be connected to: the link was down when the router started.
    pending: Option<SocketAddr>,
    pub appetite: io::Appetite,
    pub up: bool,
    /// Packets that leave next.
    pub run: Run,
    pub counters: InterfaceCounters,
    pub emulator: Emulator,
    pub errors: Budget,
    pub replies: Budget,
    /// When a packet other than BFD last came in.
    pub heard: Option<Instant>,
    /// Most bytes of one send.
    cap: usize,
}

/// Packets that the system knows no way for.
pub(crate) struct NoWay;

impl Port {
    pub fn new(id: u16, socket: UdpSocket, seed: u64, now: Instant) -> Self {
        Self {
            id,
            socket,
            pending: None,
            appetite: io::Appetite::default(),
            up: true,
            run: Run::default(),
            counters: InterfaceCounters::default(),
            emulator: Emulator::new(Shape::default(), seed),
            errors: Budget::new(ERRORS_PER_SECOND, ERRORS_AT_ONCE, now),
            replies: Budget::new(REPLIES_PER_SECOND, REPLIES_AT_ONCE, now),
            heard: None,
            cap: MAX_BYTES,
        }
    }

    /// With a socket that has yet to be connected, if `remote` is given.
    pub fn with_pending(mut self, remote: Option<SocketAddr>) -> Self {
        self.pending = remote;
        self
    }

    /// Whether the socket leads to the neighbour; tries to make it.
    #[inline]
    pub fn is_connected(&mut self) -> bool {
        self.pending.is_none_or(|remote| self.connect(remote))
    }

    #[cold]
    fn connect(&mut self, remote: SocketAddr) -> bool {
        let connected = self.socket.connect(remote).is_ok();
        if connected {
            tracing::info!(interface = self.id, %remote, "there is a way to the neighbour now");
            self.pending = None;
        }
        connected
    }

    /// Makes the link behave as `state` says, from now on. What is on its way over a link that goes
    /// down is lost.
    pub fn set_link(&mut self, state: &LinkState, drops: &mut Drops) {
        self.up = state.up;
        self.emulator.set_shape(state.shape);
        self.cap = cap(state.shape.rate);
        if !state.up {
            drops.add(Reason::InterfaceDown, self.emulator.clear());
        }
    }

    /// Adds the packet at `place` of the inbox to what leaves next, if it fits.
    #[inline]
    pub fn add(&mut self, to: Option<SocketAddr>, place: Range<usize>) -> bool {
        self.run.add(to, place, self.cap)
    }

    /// Sends, or holds for the link's delay, what [`add`](Self::add) gathered; the run stays for
    /// the caller to clear.
    pub fn send_run(&mut self, data: &[u8], now: Instant, drops: &mut Drops) -> Result<(), NoWay> {
        if !self.is_connected() {
            return Err(NoWay);
        }
        if self.emulator.delays() {
            let mut copy = Vec::with_capacity(self.run.bytes());
            for part in self.run.parts() {
                copy.extend_from_slice(&data[part.clone()]);
            }
            hold(&mut self.emulator, now, self.run.segment(), copy, drops);
            return Ok(());
        }
        let mut parts = [IoSlice::new(&[]); MAX_PARTS];
        let count = self.run.parts().len();
        for (slice, part) in parts.iter_mut().zip(self.run.parts()) {
            *slice = IoSlice::new(&data[part.clone()]);
        }
        let batch = Batch {
            parts: &parts[..count],
            segment: self.run.segment(),
            bytes: self.run.bytes(),
            to: self.run.to(),
        };
        transmit(&self.socket, &batch, &mut self.counters, drops)
    }

    /// Sends, or holds for the link's delay, one packet.
    pub fn send_one(
        &mut self,
        packet: &[u8],
        to: Option<SocketAddr>,
        now: Instant,
        drops: &mut Drops,
    ) {
        if self.emulator.loses() {
            drops.add(Reason::EmulatedLoss, 1);
        } else if self.emulator.delays() {
            hold(
                &mut self.emulator,
                now,
                packet.len(),
                packet.to_vec(),
                drops,
            );
        } else {
            self.send_now(packet, packet.len(), to, drops);
        }
    }

    /// Sends, or holds for the link's delay, a BFD packet. A link that loses packets on purpose
    /// does not lose these: it is to be a bad link, not one that comes and goes. If it cannot be
    /// sent, that is what BFD is for.
    pub fn send_bfd(&mut self, packet: &[u8], to: Option<SocketAddr>, now: Instant) {
        if !self.up || !self.is_connected() {
            return;
        }
        if self.emulator.delays() {
            // A full delay queue drops it, like any other.
            let _ = self.emulator.hold(now, packet.len(), packet.to_vec(), true);
        } else {
            send_quietly(&self.socket, packet, to);
        }
    }

    /// Sends what is due at `now`.
    pub fn send_due(&mut self, now: Instant, drops: &mut Drops) {
        while let Some(held) = self.emulator.take_due(now) {
            if held.quiet {
                send_quietly(&self.socket, &held.data, None);
            } else {
                self.send_now(&held.data, held.segment, None, drops);
            }
        }
    }

    fn send_now(&mut self, data: &[u8], segment: usize, to: Option<SocketAddr>, drops: &mut Drops) {
        let batch = Batch {
            parts: &[IoSlice::new(data)],
            segment,
            bytes: data.len(),
            to,
        };
        if !self.is_connected() {
            drops.add(Reason::Unreachable, batch.packets());
            return;
        }
        if let Err(NoWay) = transmit(&self.socket, &batch, &mut self.counters, drops) {
            drops.add(Reason::Unreachable, batch.packets());
        }
    }
}

/// A limiter of a link counts one send as one packet, so on a link with a rate one send is about a
/// millisecond of it, but at least a packet.
fn cap(rate: Option<u64>) -> usize {
    rate.map_or(MAX_BYTES, |rate| {
        usize::try_from(rate / 8 / 1000).map_or(MAX_BYTES, |bytes| bytes.min(MAX_BYTES))
    })
}

fn hold(emulator: &mut Emulator, now: Instant, segment: usize, data: Vec<u8>, drops: &mut Drops) {
    if let Err(data) = emulator.hold(now, segment, data, false) {
        drops.add(
            Reason::DelayQueueFull,
            data.len().div_ceil(segment.max(1)) as u64,
        );
    }
}

/// Packets of `segment` bytes, the last perhaps shorter.
struct Batch<'a> {
    parts: &'a [IoSlice<'a>],
    segment: usize,
    bytes: usize,
    to: Option<SocketAddr>,
}

impl Batch<'_> {
    fn packets(&self) -> u64 {
        self.bytes.div_ceil(self.segment.max(1)) as u64
    }
}

/// Sends a batch, or drops it: a full buffer or a refusal holds up nobody.
#[inline]
fn transmit(
    socket: &UdpSocket,
    batch: &Batch<'_>,
    counters: &mut InterfaceCounters,
    drops: &mut Drops,
) -> Result<(), NoWay> {
    let packets = batch.packets();
    let segment = (packets > 1).then_some(batch.segment as u16);
    let sent = match io::send(socket, batch.parts, segment, batch.to) {
        // An ICMP message that came for an earlier packet is reported once, by the next call, which
        // then sends nothing.
        Err(error) if is_news(&error) => io::send(socket, batch.parts, segment, batch.to),
        sent => sent,
    };
    match sent {
        Ok(()) => {
            counters.tx_packets += packets;
            counters.tx_bytes += batch.bytes as u64;
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            drops.add(Reason::SendBufferFull, packets);
        }
        Err(error) if io::has_no_way(&error) => return Err(NoWay),
        Err(_) if segment.is_some() => one_by_one(socket, batch, counters, drops),
        Err(error) => {
            tracing::debug!(%error, to = ?batch.to, "cannot send");
            drops.add(Reason::SendFailed, packets);
        }
    }
    Ok(())
}

/// Sends one packet and counts nothing. News of an earlier packet come before what becomes of this
/// one.
fn send_quietly(socket: &UdpSocket, packet: &[u8], to: Option<SocketAddr>) {
    let parts = [IoSlice::new(packet)];
    let sent = match io::send(socket, &parts, None, to) {
        Err(error) if is_news(&error) => io::send(socket, &parts, None, to),
        sent => sent,
    };
    if let Err(error) = sent {
        tracing::trace!(%error, ?to, "cannot send a BFD packet");
    }
}

fn is_news(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
    )
}

/// For devices that cannot cut a send into packets, or refuse this size.
#[cold]
fn one_by_one(
    socket: &UdpSocket,
    batch: &Batch<'_>,
    counters: &mut InterfaceCounters,
    drops: &mut Drops,
) {
    for part in batch.parts {
        for packet in part.chunks(batch.segment) {
            match io::send(socket, &[IoSlice::new(packet)], None, batch.to) {
                Ok(()) => {
                    counters.tx_packets += 1;
                    counters.tx_bytes += packet.len() as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    drops.add(Reason::SendBufferFull, 1);
                }
                Err(error) => {
                    tracing::debug!(%error, to = ?batch.to, "cannot send");
                    drops.add(Reason::SendFailed, 1);
                }
            }
        }
    }
}
