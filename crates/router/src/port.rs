//! One interface of the router: its socket and the packets that it sends next.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use hawser_emulation::{Emulator, max_batch};
use hawser_topology::{LinkState, Shape};

use crate::io::{MAX_MESSAGES, Message, SLOTS, probe, send_many, set_merging};
use crate::live::InterfaceCounters;
use crate::reason::{DropReason, Drops};
use crate::run::{MAX_BYTES, MAX_PACKETS, Runs};
use crate::shared::Shared;
use crate::transmit::{NoRoute, count_sent, offload, packets_in, transmit, transmit_bfd};

/// An interface, as one thread has it.
pub(crate) struct Port {
    /// Number of the interface; 0 is the internal one.
    pub id: u16,
    pub socket: UdpSocket,
    /// The underlay address of the neighbour; `None` for the internal interface.
    pub remote: Option<SocketAddr>,
    /// How many slots of the inbox the next receive fills.
    pub fill: usize,
    pub up: bool,
    /// Packets that are sent next.
    pub runs: Runs,
    pub counters: InterfaceCounters,
    pub emulator: Emulator<InFlight>,
    pub shared: Arc<Shared>,
    /// Whether the kernel merges arriving packets (GRO).
    pub merges: bool,
    /// Maximum number of bytes of one send.
    pub cap: usize,
}

/// Packets held for a link's delay, which are sent with one call when due.
pub(crate) struct InFlight {
    /// Length of each packet but the last.
    segment: usize,
    data: Vec<u8>,
    /// Whether it is a BFD packet, which is not counted.
    is_bfd: bool,
}

impl InFlight {
    fn packets(&self) -> u64 {
        packets_in(self.data.len(), self.segment)
    }
}

/// Index of the interface `id` in `ports`, which are sorted by interface.
#[inline]
pub(crate) fn position(ports: &[Port], id: u16) -> Option<usize> {
    ports.binary_search_by_key(&id, |port| port.id).ok()
}

impl Port {
    /// Interface `id` at `socket`, with the neighbour `remote`.
    pub fn new(
        id: u16,
        (socket, remote): (UdpSocket, Option<SocketAddr>),
        seed: u64,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            id,
            socket,
            remote,
            fill: SLOTS,
            up: true,
            runs: Runs::default(),
            counters: InterfaceCounters::default(),
            emulator: Emulator::new(Shape::default(), seed),
            shared,
            merges: true,
            cap: MAX_BYTES,
        }
    }

    /// The local IP address from which the system sends to the neighbour. The error says why it has
    /// no route.
    pub fn probe(&self) -> io::Result<IpAddr> {
        let remote = self.remote.ok_or(ErrorKind::NotConnected)?;
        probe(self.socket.local_addr()?.ip(), remote)
    }

    /// Receives every packet by itself from now on.
    #[cold]
    pub fn stop_merging(&mut self) {
        self.merges = false;
        self.fill = SLOTS;
        match set_merging(&self.socket, false) {
            Ok(()) => tracing::info!(
                interface = self.id,
                "several flows arrive merged: packets are received one by one"
            ),
            Err(error) => tracing::warn!(interface = self.id, %error, "cannot stop merging"),
        }
    }

    /// Whether packets from `from` are the neighbour's; at the internal interface any are accepted.
    #[inline]
    pub fn accepts(&self, from: Option<SocketAddr>) -> bool {
        let address = |at: SocketAddr| (at.ip(), at.port());
        self.remote.is_none() || self.remote.map(address) == from.map(address)
    }

    /// Sets the state of the link. Packets in flight over a link that goes down are lost.
    pub fn set_link(&mut self, state: &LinkState, drops: &mut Drops) {
        self.up = state.up;
        self.emulator.set_shape(state.shape);
        self.cap = max_batch(state.shape.rate).map_or(MAX_BYTES, |bytes| bytes.min(MAX_BYTES));
        if !state.up {
            let lost = self.emulator.clear().map(|lost| lost.packets()).sum();
            drops.add(DropReason::InterfaceDown, lost);
        }
    }

    /// Sends the packets of the runs from `first` on with as few calls as possible; where it `mixes` flows, runs
    /// that follow each other leave as one batch. Returns of how many runs, which the caller must clear; the
    /// next one is left to [`Self::send_run`], as all are where the link has a delay.
    pub fn send_runs(&mut self, first: usize, mixes: bool, data: &[u8]) -> usize {
        if self.emulator.delays() {
            return 0;
        }
        let runs = &self.runs.used_runs()[first..];
        let parts = runs.iter().flat_map(|run| &run.parts);
        let parts: Vec<_> = parts
            .map(|part| IoSlice::new(&data[part.clone()]))
            .collect();
        let (mut rest, mut after) = (&parts[..], runs);
        let mut messages = Vec::with_capacity(runs.len());
        let mut runs_of = Vec::with_capacity(runs.len());
        while let Some(leader) = after.first() {
            let Some(to) = leader.to.or(self.remote) else {
                break;
            };
            let together = if mixes {
                leader.followed_by(&after[1..], self.cap)
            } else {
                0
            };
            let (batch, others) = after.split_at(1 + together);
            let (parts, other_parts) = rest.split_at(batch.iter().map(|run| run.parts.len()).sum());
            (after, rest) = (others, other_parts);
            let bytes = batch.iter().map(|run| run.bytes).sum();
            messages.push(Message {
                parts,
                segment: offload(bytes, leader.segment),
                to,
            });
            runs_of.push(batch.len());
        }
        let mut sent = 0;
        for messages in messages.chunks(MAX_MESSAGES) {
            let count = send_many(&self.socket, messages).unwrap_or(0);
            sent += count;
            if count < messages.len() {
                break;
            }
        }
        let sent = runs_of[..sent].iter().sum();
        for run in &runs[..sent] {
            count_sent(run.bytes, run.segment, &mut self.counters);
        }
        sent
    }

    /// Sends the packets of run `index`, or holds them for the link's delay. The caller must clear
    /// the run.
    pub fn send_run(
        &mut self,
        index: usize,
        data: &[u8],
        now: Instant,
        drops: &mut Drops,
    ) -> Result<(), NoRoute> {
        let run = self.runs.at(index);
        if self.emulator.delays() {
            let mut copy = Vec::with_capacity(run.bytes);
            for part in &run.parts {
                copy.extend_from_slice(&data[part.clone()]);
            }
            let segment = run.segment;
            self.hold(now, segment, copy, drops);
            return Ok(());
        }
        let Some(to) = run.to.or(self.remote) else {
            return Err(NoRoute);
        };
        let mut parts = [IoSlice::new(&[]); MAX_PACKETS];
        let count = run.parts.len();
        for (slice, part) in parts.iter_mut().zip(&run.parts) {
            *slice = IoSlice::new(&data[part.clone()]);
        }
        let (parts, counters) = (&parts[..count], &mut self.counters);
        transmit(&self.socket, parts, run.segment, to, counters, drops)
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
            drops.add(DropReason::EmulatedLoss, 1);
        } else if self.emulator.delays() {
            self.hold(now, packet.len(), packet.to_vec(), drops);
        } else {
            self.send_now(packet, packet.len(), to, drops);
        }
    }

    fn hold(&mut self, now: Instant, segment: usize, data: Vec<u8>, drops: &mut Drops) {
        let bytes = data.len();
        let packets = InFlight {
            segment,
            data,
            is_bfd: false,
        };
        if let Err(refused) = self.emulator.hold(now, bytes, packets) {
            drops.add(DropReason::DelayQueueFull, refused.packets());
        }
    }

    /// Sends a BFD packet, or holds it for the link's delay. Emulated loss does not apply: a lossy
    /// link must not look like a flapping one. A packet that cannot be sent is not reported: BFD
    /// detects that.
    pub fn send_bfd(&mut self, packet: &[u8], to: Option<SocketAddr>, now: Instant) {
        let Some(to) = to.or(self.remote).filter(|_| self.up) else {
            return;
        };
        if self.emulator.delays() {
            let held = InFlight {
                segment: packet.len(),
                data: packet.to_vec(),
                is_bfd: true,
            };
            // A full delay queue drops a BFD packet, like any other.
            let _ = self.emulator.hold(now, packet.len(), held);
        } else {
            transmit_bfd(&self.socket, packet, to);
        }
    }

    /// Sends the held packets that are due at `now`.
    pub fn send_due(&mut self, now: Instant, drops: &mut Drops) {
        while let Some(held) = self.emulator.take_due(now) {
            match self.remote {
                Some(to) if held.is_bfd => transmit_bfd(&self.socket, &held.data, to),
                to => self.send_now(&held.data, held.segment, to, drops),
            }
        }
    }

    fn send_now(&mut self, data: &[u8], segment: usize, to: Option<SocketAddr>, drops: &mut Drops) {
        let (parts, counters) = ([IoSlice::new(data)], &mut self.counters);
        let sent = match to.or(self.remote) {
            Some(to) => transmit(&self.socket, &parts, segment, to, counters, drops),
            None => Err(NoRoute),
        };
        if let Err(NoRoute) = sent {
            drops.add(DropReason::Unreachable, packets_in(data.len(), segment));
        }
    }
}
