//! The data plane: packets received at one port, processed, and sent by others.

mod messages;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use self::messages::Message;
use crate::bfd::Neighbours;
use crate::flow::{flow, thread};
use crate::forwarder::Forwarder;
use crate::io::Inbox;
use crate::port::{Port, position};
use crate::reason::{DropReason, Drops};
use crate::repeat::Repeat;
use crate::transmit::{NoRoute, packets_in};
use crate::verdict::{Origin, PacketVerdict};

/// Index of the internal port.
const INTERNAL: usize = 0;

/// The time in Unix seconds.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// The number of a thread of the router.
#[derive(Clone, Copy)]
pub(crate) struct Thread {
    pub number: usize,
    /// How many the router has.
    pub count: usize,
}

/// The ports of one thread, and the state that forwarding between them needs.
pub(crate) struct Switch {
    pub forwarder: Forwarder,
    /// The internal one first, then the external ones by interface.
    pub ports: Vec<Port>,
    pub neighbours: Neighbours,
    /// How often the ports were replaced.
    pub version: u64,
    /// The version of the ports that the thread waits for.
    pub awaited: u64,
    pub drops: Drops,
    /// STUN requests answered.
    pub bindings: u64,
    /// Changes that BFD has found since [`take_bfd_changes`](Self::take_bfd_changes).
    bfd_changes: Vec<(Origin, bool)>,
    thread: Thread,
    pub inbox: Inbox,
    repeat: Repeat,
    /// Buffer for the packets that the router itself sends.
    pub scratch: Vec<u8>,
}

/// Received packets in the inbox, with the same verdict.
struct Arrived {
    /// Index of the port that received them.
    port: usize,
    origin: Origin,
    /// The slot of the inbox that has their underlay source.
    slot: Option<usize>,
    range: Range<usize>,
    /// Length of each.
    length: usize,
}

impl Arrived {
    #[inline]
    fn count(&self) -> u64 {
        packets_in(self.range.len(), self.length).max(1)
    }
}

impl Switch {
    /// A switch that forwards between `ports`, the internal one first, then the external ones by
    /// interface, by the rules of `forwarder`. The `neighbours` are those of the first thread.
    pub fn new(
        forwarder: Forwarder,
        ports: Vec<Port>,
        neighbours: Neighbours,
        thread: Thread,
    ) -> Self {
        Self {
            forwarder,
            ports,
            neighbours,
            version: 0,
            awaited: 0,
            drops: Drops::default(),
            bindings: 0,
            bfd_changes: Vec::new(),
            thread,
            inbox: Inbox::new(),
            repeat: Repeat::default(),
            scratch: Vec::with_capacity(2048),
        }
    }

    /// Goes over to other rules, ports and neighbours.
    pub fn replace(&mut self, forwarder: Forwarder, ports: Vec<Port>, neighbours: Neighbours) {
        (self.forwarder, self.ports, self.neighbours) = (forwarder, ports, neighbours);
        self.version += 1;
        self.bfd_changes.clear();
        self.repeat.clear();
    }

    /// What BFD has found since the last call, for the switches of the other threads.
    pub fn take_bfd_changes(&mut self) -> Vec<(Origin, bool)> {
        std::mem::take(&mut self.bfd_changes)
    }

    /// Sets whether the own BFD session finds the router at `origin` up.
    pub fn change_bfd(&mut self, origin: Origin, up: bool) {
        self.bfd_changes.push((origin, up));
        self.set_bfd_up(origin, up);
    }

    /// Sets whether BFD finds the router at `origin` up.
    pub fn set_bfd_up(&mut self, origin: Origin, up: bool) {
        self.forwarder.set_bfd_up(origin, up);
        self.repeat.clear();
    }

    /// Receives once at port `port`, processes the packets and sends the results. Returns the
    /// number of packets received, without BFD packets, and whether there may be more.
    pub fn turn(&mut self, port: usize, now: Instant) -> (usize, bool) {
        let Port {
            id, socket, fill, ..
        } = &self.ports[port];
        let id = *id;
        let received = match self.inbox.receive(socket, *fill) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (0, false),
            Err(error) => {
                tracing::debug!(%error, interface = id, "cannot receive");
                return (0, true);
            }
        };
        let time = unix_time();
        // The state may have changed since the last turn.
        self.repeat.clear();
        let (mut packets, mut batches) = (0, 0);
        for slot in 0..received.count {
            let from = self.inbox.from(slot);
            let origin = match port {
                INTERNAL => self.forwarder.internal_origin(from),
                _ => Origin::Interface(id),
            };
            let mut ranges = self.inbox.datagrams(slot).peekable();
            if !self.ports[port].accepts(from) {
                let count = ranges.count() as u64;
                self.drops.add(DropReason::UnknownNeighbour, count);
                continue;
            }
            let start = ranges.peek().map_or(0, |first| first.start);
            while let Some(mut range) = ranges.next() {
                let length = range.len();
                if range.start > start {
                    self.check_flow(port, range.clone());
                }
                let verdict = self.verdict(port, origin, range.clone(), time);
                let data = &mut self.inbox.data;
                while let Some(same) =
                    ranges.next_if(|next| self.repeat.apply(origin, &mut data[next.clone()]))
                {
                    range.end = same.end;
                }
                let arrived = Arrived {
                    port,
                    origin,
                    slot: Some(slot),
                    range,
                    length,
                };
                packets += self.carry_out(verdict, arrived, now);
                batches += 1;
            }
        }
        self.ports[port].fill = received.slots_to_fill(batches);
        // BFD packets are not counted here: only those that the session accepts show that the link
        // works.
        if packets > 0 {
            self.ports[port].shared.note_arrival(now);
        }
        for to in 0..self.ports.len() {
            self.flush(to, port, now);
        }
        (packets, received.more)
    }

    /// Checks that this thread processes the flow of a packet that the kernel has merged with a
    /// previous one: the kernel distributes merged packets by the first of them. If another thread
    /// does, the flow may lose its order, so that no more packets may be merged at this port.
    #[inline]
    fn check_flow(&mut self, port: usize, range: Range<usize>) {
        let Thread { number, count } = self.thread;
        let port = &mut self.ports[port];
        if count > 1 && port.merges && thread(&self.inbox.data[range], count) != number {
            port.stop_merging();
        }
    }

    /// The verdict on the packet at `range`, received by port `port`.
    #[inline]
    fn verdict(
        &mut self,
        port: usize,
        origin: Origin,
        range: Range<usize>,
        time: u64,
    ) -> PacketVerdict {
        if !self.ports[port].up {
            return PacketVerdict::Drop(DropReason::InterfaceDown);
        }
        let packet = &mut self.inbox.data[range];
        self.repeat.process(&self.forwarder, time, origin, packet)
    }

    /// Carries out the verdict on packets, of which there are several only if they are forwarded.
    /// Returns how many are counted: BFD packets are not.
    #[inline]
    fn carry_out(&mut self, verdict: PacketVerdict, packets: Arrived, now: Instant) -> usize {
        let count = packets.count();
        let (origin, range) = (packets.origin, packets.range.clone());
        let counters = &mut self.ports[packets.port].counters;
        if !matches!(verdict, PacketVerdict::Bfd { .. }) {
            counters.rx_packets += count;
            counters.rx_bytes += range.len() as u64;
        }
        match verdict {
            PacketVerdict::Forward { egress } => match position(&self.ports, egress) {
                Some(to) => self.enqueue(to, None, packets, now),
                None => self.drops.add(DropReason::UnknownEgress, count),
            },
            PacketVerdict::Deliver { to } | PacketVerdict::Transit { to } => {
                self.enqueue(INTERNAL, Some(to), packets, now);
            }
            PacketVerdict::Bfd { at } => {
                let packet = &self.inbox.data[range];
                match self.neighbours.receive(origin, &packet[at..], now) {
                    Ok(Some(up)) => self.change_bfd(origin, up),
                    Ok(None) => {}
                    Err(reason) => self.drops.add(reason, 1),
                }
                return 0;
            }
            PacketVerdict::Drop(reason) => self.drops.add(reason, count),
            PacketVerdict::Refuse { reason, error } => {
                self.drops.add(reason, count);
                self.send_back(packets, Message::Error(error), now);
            }
            PacketVerdict::Stun => self.answer_stun(packets, now),
            PacketVerdict::Answer(answer) => self.send_back(packets, Message::Reply(answer), now),
        }
        count as usize
    }

    /// Adds packets to those that port `to` sends next, except those that its link loses.
    #[inline]
    fn enqueue(&mut self, to: usize, address: Option<SocketAddr>, packets: Arrived, now: Instant) {
        let Arrived {
            port: from,
            range,
            length,
            ..
        } = packets;
        if !self.ports[to].emulator.is_lossy() {
            return self.append(to, address, range, length, from, now);
        }
        for start in range.clone().step_by(length) {
            match self.ports[to].emulator.loses() {
                true => self.drops.add(DropReason::EmulatedLoss, 1),
                false => self.append(to, address, start..start + length, length, from, now),
            }
        }
    }

    /// Adds the packets of `length` bytes at `range` to those that port `to` sends next.
    #[inline]
    fn append(
        &mut self,
        to: usize,
        address: Option<SocketAddr>,
        mut range: Range<usize>,
        length: usize,
        from: usize,
        now: Instant,
    ) {
        let flow = flow(&self.inbox.data[range.clone()]);
        let index = self.ports[to].runs.position(address, flow);
        let index = index.or_else(|| {
            self.flush(to, from, now);
            self.ports[to].runs.position(address, flow)
        });
        let Some(index) = index else { return };
        loop {
            let Port { runs, cap, .. } = &mut self.ports[to];
            range.start += runs.at(index).add(range.clone(), length, *cap);
            if range.is_empty() {
                return;
            }
            // An empty run accepts at least one packet.
            self.flush_run(to, index, from, now);
        }
    }

    /// Sends the packets that are queued at port `to`, all received by port `from`.
    #[inline]
    fn flush(&mut self, to: usize, from: usize, now: Instant) {
        let used = self.ports[to].runs.used();
        if used > 0 {
            self.ports[to].shared.note_departure(now);
        }
        // Where this router has one thread, those of the same operator mostly have, too; one that has several
        // finds flows of other threads in a batch and receives packets one by one from then on.
        let mixes = self.thread.count == 1;
        let mut next = 0;
        while next < used {
            if used - next > 1 {
                let port = &mut self.ports[to];
                let sent = port.send_runs(next, mixes, &self.inbox.data);
                for index in next..next + sent {
                    port.runs.at(index).clear();
                }
                next += sent;
            }
            // One alone, or one that cannot be sent.
            if next < used {
                self.flush_run(to, next, from, now);
                next += 1;
            }
        }
        self.ports[to].runs.clear();
    }

    /// Sends the packets of one run of port `to`, all received by port `from`.
    #[inline]
    fn flush_run(&mut self, to: usize, index: usize, from: usize, now: Instant) {
        let port = &mut self.ports[to];
        if let Err(NoRoute) = port.send_run(index, &self.inbox.data, now, &mut self.drops) {
            self.report_unreachable(to, index, from, now);
        }
        self.ports[to].runs.at(index).clear();
    }
}

#[cfg(test)]
mod tests;
