//! One interface of the router: its socket and the packets that it sends next.

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use hawser_topology::{LinkState, Shape};

use crate::budget::TokenBucket;
use crate::emulate::{Emulator, packets_in};
use crate::io::{SLOTS, largest_payload};
use crate::live::InterfaceCounters;
use crate::reason::{Drops, Reason};
use crate::run::{MAX_BYTES, MAX_PACKETS, Run};
use crate::transmit::{NoRoute, transmit, transmit_bfd};

/// Rate and burst of SCMP errors to one interface: enough to inform every sender within
/// milliseconds, too few to amplify a flood.
const ERRORS_PER_SECOND: u32 = 1000;
const ERRORS_AT_ONCE: u32 = 100;
/// Rate and burst of SCMP replies to one interface.
const REPLIES_PER_SECOND: u32 = 10_000;
const REPLIES_AT_ONCE: u32 = 1000;

/// An interface.
pub(crate) struct Port {
    /// Number of the interface; 0 is the internal one.
    pub id: u16,
    pub socket: UdpSocket,
    /// The neighbour, while the socket is not connected to it: there was no route to it when the
    /// router started.
    pending: Option<SocketAddr>,
    /// How many slots of the inbox the next receive fills.
    pub fill: usize,
    pub up: bool,
    /// Packets that are sent next.
    pub run: Run,
    pub counters: InterfaceCounters,
    pub emulator: Emulator,
    pub errors: TokenBucket,
    pub replies: TokenBucket,
    /// When the last packet other than BFD arrived.
    pub last_arrival: Option<Instant>,
    /// Maximum number of bytes of one send.
    pub cap: usize,
    /// The MTU that `topology.json` announces for the link, in bytes.
    announced: u16,
}

/// Index of the interface `id` in `ports`, which are sorted by interface.
#[inline]
pub(crate) fn position(ports: &[Port], id: u16) -> Option<usize> {
    ports.binary_search_by_key(&id, |port| port.id).ok()
}

impl Port {
    /// Interface `id` at `socket`, which must be connected to `pending` once there is a route.
    pub fn new(
        id: u16,
        (socket, pending): (UdpSocket, Option<SocketAddr>),
        announced: u16,
        seed: u64,
        now: Instant,
    ) -> Self {
        Self {
            id,
            socket,
            pending,
            fill: SLOTS,
            up: true,
            run: Run::default(),
            counters: InterfaceCounters::default(),
            emulator: Emulator::new(Shape::default(), seed),
            errors: TokenBucket::new(ERRORS_PER_SECOND, ERRORS_AT_ONCE, now),
            replies: TokenBucket::new(REPLIES_PER_SECOND, REPLIES_AT_ONCE, now),
            last_arrival: None,
            cap: MAX_BYTES,
            announced,
        }
    }

    /// The largest packet that the link carries, in bytes, and at least the announced MTU, which
    /// hosts rely on. Packets above the announced MTU are accepted, because scionproto's services
    /// send slightly larger ones (and the system fragments packets above the link's MTU).
    pub fn mtu(&mut self) -> u16 {
        // Without a route there is nothing to measure.
        let possible = match self.is_connected() {
            true => largest_payload(&self.socket).unwrap_or(0),
            false => 0,
        };
        let possible = u16::try_from(possible).unwrap_or(u16::MAX);
        possible.max(self.announced)
    }

    /// Whether the socket is connected, or can be now.
    #[inline]
    pub fn is_connected(&mut self) -> bool {
        self.pending.is_none_or(|remote| self.connect(remote))
    }

    #[cold]
    fn connect(&mut self, remote: SocketAddr) -> bool {
        let connected = self.socket.connect(remote).is_ok();
        if connected {
            tracing::info!(interface = self.id, %remote, "there is a route to the neighbour now");
            self.pending = None;
        }
        connected
    }

    /// Sets the state of the link. Packets in flight over a link that goes down are lost.
    pub fn set_link(&mut self, state: &LinkState, drops: &mut Drops) {
        self.up = state.up;
        self.emulator.set_shape(state.shape);
        self.cap = cap(state.shape.rate);
        if !state.up {
            drops.add(Reason::InterfaceDown, self.emulator.clear());
        }
    }

    /// Sends the packets of the run, or holds them for the link's delay. The caller must clear the
    /// run.
    pub fn send_run(
        &mut self,
        data: &[u8],
        now: Instant,
        drops: &mut Drops,
    ) -> Result<(), NoRoute> {
        if !self.is_connected() {
            return Err(NoRoute);
        }
        if self.emulator.delays() {
            let mut copy = Vec::with_capacity(self.run.bytes);
            for part in &self.run.parts {
                copy.extend_from_slice(&data[part.clone()]);
            }
            self.hold(now, self.run.segment, copy, drops);
            return Ok(());
        }
        let mut parts = [IoSlice::new(&[]); MAX_PACKETS];
        let count = self.run.parts.len();
        for (slice, part) in parts.iter_mut().zip(&self.run.parts) {
            *slice = IoSlice::new(&data[part.clone()]);
        }
        let (parts, run) = (&parts[..count], &self.run);
        let counters = &mut self.counters;
        transmit(&self.socket, parts, run.segment, run.to, counters, drops)
    }

    /// Sends one packet, or holds it for the link's delay.
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
            self.hold(now, packet.len(), packet.to_vec(), drops);
        } else {
            self.send_now(packet, packet.len(), to, drops);
        }
    }

    fn hold(&mut self, now: Instant, segment: usize, data: Vec<u8>, drops: &mut Drops) {
        if let Err(packets) = self.emulator.hold(now, segment, data, false) {
            drops.add(Reason::DelayQueueFull, packets);
        }
    }

    /// Sends a BFD packet, or holds it for the link's delay. Emulated loss does not apply: a lossy
    /// link must not look like a flapping one. A packet that cannot be sent is not reported: BFD
    /// detects that.
    pub fn send_bfd(&mut self, packet: &[u8], to: Option<SocketAddr>, now: Instant) {
        if !self.up || !self.is_connected() {
            return;
        }
        if self.emulator.delays() {
            // A full delay queue drops a BFD packet, like any other.
            let _ = self.emulator.hold(now, packet.len(), packet.to_vec(), true);
        } else {
            transmit_bfd(&self.socket, packet, to);
        }
    }

    /// Sends the held packets that are due at `now`.
    pub fn send_due(&mut self, now: Instant, drops: &mut Drops) {
        while let Some(held) = self.emulator.take_due(now) {
            if held.is_bfd {
                transmit_bfd(&self.socket, &held.data, None);
            } else {
                self.send_now(&held.data, held.segment, None, drops);
            }
        }
    }

    fn send_now(&mut self, data: &[u8], segment: usize, to: Option<SocketAddr>, drops: &mut Drops) {
        let (parts, connected) = ([IoSlice::new(data)], self.is_connected());
        let counters = &mut self.counters;
        if !connected || transmit(&self.socket, &parts, segment, to, counters, drops).is_err() {
            drops.add(Reason::Unreachable, packets_in(data.len(), segment));
        }
    }
}

/// Maximum number of bytes of one send. The kernel's rate limit counts one send as one packet, so
/// on a link with a rate (in bit/s) a send is limited to what that rate carries in 1 ms, but to no
/// less than one packet.
fn cap(rate: Option<u64>) -> usize {
    rate.map_or(MAX_BYTES, |rate| {
        usize::try_from(rate / 8 / 1000).map_or(MAX_BYTES, |bytes| bytes.min(MAX_BYTES))
    })
}
