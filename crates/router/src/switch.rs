//! The data plane: packets received at one port, processed, and sent by others.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hawser_packet::ScmpError;
use hawser_packet::number::unreachable;

use crate::bfd::Neighbours;
use crate::forwarder::Forwarder;
use crate::io::Inbox;
use crate::port::{Port, position};
use crate::reason::{Drops, Reason};
use crate::transmit::NoRoute;
use crate::verdict::{Answer, Origin, Verdict};

/// The internal port's place among the ports.
const INTERNAL: usize = 0;

/// The time in Unix seconds.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// Ports, and what passes packets between them.
pub(crate) struct Switch {
    pub forwarder: Forwarder,
    /// The internal one first, then the external ones by interface.
    pub ports: Vec<Port>,
    pub neighbours: Neighbours,
    pub drops: Drops,
    inbox: Inbox,
    /// Where a packet of the router's own is written before it is sent.
    pub scratch: Vec<u8>,
}

/// An SCMP message to the source of a packet.
enum Message {
    Error(ScmpError),
    Reply(Answer),
}

/// A packet in the inbox.
struct Arrived {
    /// The port it came in by.
    port: usize,
    origin: Origin,
    /// The slot of the inbox that has its underlay source.
    slot: Option<usize>,
    range: Range<usize>,
}

impl Switch {
    /// The router that forwards as `forwarder` says between `ports`: the internal one, then the
    /// external ones by interface. Its `neighbours` are down until BFD finds them up.
    pub fn new(forwarder: Forwarder, ports: Vec<Port>, neighbours: Neighbours) -> Self {
        let mut switch = Self {
            forwarder,
            ports,
            neighbours,
            drops: Drops::default(),
            inbox: Inbox::new(),
            scratch: Vec::with_capacity(2048),
        };
        for origin in switch.neighbours.origins() {
            switch.forwarder.set_bfd_up(origin, false);
        }
        for port in 1..switch.ports.len() {
            switch.measure_mtu(port);
        }
        switch
    }

    /// Sets the MTU of an external port to what its link takes now.
    pub fn measure_mtu(&mut self, port: usize) {
        let port = &mut self.ports[port];
        self.forwarder.set_mtu(port.id, port.mtu());
    }

    /// Takes note that BFD finds the router at `origin` up or down.
    pub fn set_bfd_up(&mut self, origin: Origin, up: bool) {
        self.forwarder.set_bfd_up(origin, up);
        // A link that was down may have another MTU now.
        if up
            && let Origin::Interface(id) = origin
            && let Some(port) = position(&self.ports, id)
        {
            self.measure_mtu(port);
        }
    }

    /// Receives once at port `port`, and sends what follows from it. Returns the number of packets,
    /// without BFD packets, and whether there may be more.
    pub fn turn(&mut self, port: usize, now: Instant) -> (usize, bool) {
        let Port {
            id, socket, fill, ..
        } = &mut self.ports[port];
        let id = *id;
        let (count, more) = match self.inbox.receive(socket, fill) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (0, false),
            Err(error) => {
                // An ICMP message for a packet sent before: reported once.
                tracing::debug!(%error, interface = id, "cannot receive");
                return (0, true);
            }
        };
        let time = unix_time();
        let mut packets = 0;
        for slot in 0..count {
            let origin = match port {
                INTERNAL => self.forwarder.internal_origin(self.inbox.from(slot)),
                _ => Origin::Interface(id),
            };
            for range in self.inbox.datagrams(slot) {
                let packet = Arrived {
                    port,
                    origin,
                    slot: Some(slot),
                    range,
                };
                packets += usize::from(self.process(packet, time, now));
            }
        }
        // A BFD packet counts only if its session accepts it.
        if packets > 0 {
            self.ports[port].last_arrival = Some(now);
        }
        for to in 0..self.ports.len() {
            self.flush(to, port, now);
        }
        (packets, more)
    }

    /// Processes one packet; returns whether it is counted, as all but BFD packets are.
    #[inline]
    fn process(&mut self, packet: Arrived, time: u64, now: Instant) -> bool {
        let Arrived { origin, range, .. } = &packet;
        let port = &mut self.ports[packet.port];
        port.counters.rx_packets += 1;
        port.counters.rx_bytes += range.len() as u64;
        if !port.up {
            self.drops.add(Reason::InterfaceDown, 1);
            return true;
        }
        let bytes = &mut self.inbox.data[range.clone()];
        match self.forwarder.process(time, *origin, bytes) {
            Verdict::Forward { egress } => match position(&self.ports, egress) {
                Some(to) => self.enqueue(to, None, packet, now),
                None => self.drops.add(Reason::UnknownEgress, 1),
            },
            Verdict::Deliver { to } | Verdict::Transit { to } => {
                self.enqueue(INTERNAL, Some(to), packet, now);
            }
            Verdict::Bfd { at } => {
                port.counters.rx_packets -= 1;
                port.counters.rx_bytes -= range.len() as u64;
                match self.neighbours.receive(*origin, &bytes[at..], now) {
                    Ok(Some(up)) => self.set_bfd_up(*origin, up),
                    Ok(None) => {}
                    Err(reason) => self.drops.add(reason, 1),
                }
                return false;
            }
            Verdict::Drop(reason) => self.drops.add(reason, 1),
            Verdict::Refuse { reason, error } => {
                self.drops.add(reason, 1);
                self.send_back(packet, Message::Error(error), now);
            }
            Verdict::Answer(answer) => self.send_back(packet, Message::Reply(answer), now),
        }
        true
    }

    /// Adds a packet to those that port `to` sends next.
    #[inline]
    fn enqueue(&mut self, to: usize, address: Option<SocketAddr>, packet: Arrived, now: Instant) {
        let port = &mut self.ports[to];
        if port.emulator.loses() {
            self.drops.add(Reason::EmulatedLoss, 1);
        } else if !port.run.add(address, packet.range.clone(), port.cap) {
            self.flush(to, packet.port, now);
            // An empty run takes any packet.
            let port = &mut self.ports[to];
            port.run.add(address, packet.range, port.cap);
        }
    }

    /// Sends what port `to` has gathered, all of which came in by port `from`.
    #[inline]
    fn flush(&mut self, to: usize, from: usize, now: Instant) {
        let port = &mut self.ports[to];
        if port.run.is_empty() {
            return;
        }
        if let Err(NoRoute) = port.send_run(&self.inbox.data, now, &mut self.drops) {
            self.report_unreachable(to, from, now);
        }
        self.ports[to].run.clear();
    }

    /// Reports to the sources that the host of the delivered packets cannot be reached. For other
    /// routers, BFD finds that out.
    #[cold]
    fn report_unreachable(&mut self, to: usize, port: usize, now: Instant) {
        let ranges: Vec<_> = self.ports[to].run.packets().collect();
        self.drops.add(Reason::Unreachable, ranges.len() as u64);
        let host = self.ports[to].run.to;
        if to != INTERNAL || self.forwarder.internal_origin(host) != Origin::Host {
            return;
        }
        let origin = Origin::from(self.ports[port].id);
        for range in ranges {
            let packet = &mut self.inbox.data[range.clone()];
            self.forwarder.undo_delivery(origin.interface(), packet);
            let error = ScmpError::DestinationUnreachable {
                code: unreachable::ADDRESS,
            };
            let packet = Arrived {
                port,
                origin,
                slot: None,
                range,
            };
            self.send_back(packet, Message::Error(error), now);
        }
    }

    /// Sends a message back to where `packet` came from.
    #[cold]
    fn send_back(&mut self, packet: Arrived, message: Message, now: Instant) {
        let (port, origin) = (&mut self.ports[packet.port], packet.origin);
        let bytes = &self.inbox.data[packet.range];
        let allowed = match message {
            Message::Error(_) => port.errors.take(now),
            Message::Reply(_) => port.replies.take(now),
        };
        if !allowed {
            return self.drops.add(Reason::ScmpRateLimited, 1);
        }
        let (forwarder, out) = (&self.forwarder, &mut self.scratch);
        let written = match message {
            Message::Error(error) => forwarder.write_error(origin, bytes, error, out),
            Message::Reply(answer) => forwarder.write_answer(origin, bytes, answer, out),
        };
        // External ports are connected to their neighbour; the internal one is not.
        let slot = packet.slot.filter(|_| packet.port == INTERNAL);
        let to = slot.and_then(|slot| self.inbox.from(slot));
        match written {
            Some(()) => port.send_one(&self.scratch, to, now, &mut self.drops),
            None => self.drops.add(Reason::ScmpNotAnswered, 1),
        }
    }
}
