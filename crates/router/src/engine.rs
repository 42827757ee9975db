//! The forwarding step between the ports: receive, decide, send.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hawser_packet::ScmpError;
use hawser_packet::number::unreachable;
use hawser_topology::LinkState;

use crate::counters::{Counters, Drops};
use crate::forwarder::Forwarder;
use crate::io::{Inbox, dropped, give_back, largest_payload};
use crate::port::{NoWay, Port};
use crate::reason::Reason;
use crate::verdict::{Answer, Origin, Verdict};

/// The time in Unix seconds.
fn unix_time() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

mod watch;

use self::watch::Watch;
pub(crate) use self::watch::{Watched, WatchedPlace};

/// The inside's place among the ports.
const INSIDE: usize = 0;

/// A router without its waiting and its control.
pub(crate) struct Engine {
    forwarder: Forwarder,
    /// The inside first, then the interfaces by number.
    ports: Vec<Port>,
    /// The MTU of each interface as announced to the neighbour.
    announced: BTreeMap<u16, u16>,
    watch: Watch,
    inbox: Inbox,
    drops: Drops,
    /// Where an SCMP message is written before it leaves.
    scratch: Vec<u8>,
}

/// A message back to where a packet came from.
enum Message {
    Error(ScmpError),
    Reply(Answer),
}

impl Engine {
    /// The router that forwards as `forwarder` says between `ports`, and watches its neighbours.
    /// What it has not heard yet is down.
    pub fn new(mut forwarder: Forwarder, ports: Vec<Port>, watched: Vec<Watched>) -> Self {
        let announced = ports.iter().filter_map(|port| {
            let entry = forwarder.interface(port.id)?;
            Some((port.id, entry.external.mtu))
        });
        let announced = announced.collect();
        for watched in &watched {
            forwarder.set_bfd_up(watched.origin(), false);
        }
        let mut engine = Self {
            announced,
            watch: Watch::new(watched),
            forwarder,
            ports,
            inbox: Inbox::new(),
            drops: Drops::default(),
            scratch: Vec::with_capacity(2048),
        };
        for port in 1..engine.ports.len() {
            engine.measure(port);
        }
        engine
    }

    /// Finds out what the link at `port` takes. The announced MTU is promised to all; what takes
    /// more is not made to take less, as scionproto's services send a little more than is announced
    /// (and whatever is too large for the announced MTU, the system sends in fragments).
    fn measure(&mut self, port: usize) {
        let port = &mut self.ports[port];
        let announced = self.announced.get(&port.id).copied().unwrap_or(u16::MAX);
        // Without a way there is nothing to find out.
        let possible = match port.is_connected() {
            true => largest_payload(&port.socket).unwrap_or(0),
            false => 0,
        };
        let possible = u16::try_from(possible).unwrap_or(u16::MAX);
        self.forwarder.set_mtu(port.id, announced.max(possible));
    }

    /// The ports' sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.ports.iter().map(|port| port.socket.as_raw_fd())
    }

    /// When the next held or BFD packets are due.
    pub fn next_due(&self) -> Option<Instant> {
        self.ports
            .iter()
            .filter_map(|port| port.emulator.next_due())
            .chain(self.watch.next_due())
            .min()
    }

    /// Whether packets are held.
    pub fn holds(&self) -> bool {
        self.ports
            .iter()
            .any(|port| port.emulator.next_due().is_some())
    }

    /// Sends the held and BFD packets that are due.
    pub fn send_due(&mut self, now: Instant) {
        for port in &mut self.ports {
            port.send_due(now, &mut self.drops);
        }
        self.look_around(now);
    }

    /// Gives memory back that delayed packets have taken and left.
    pub fn slim(&mut self) {
        let mut slimmed = false;
        for port in &mut self.ports {
            slimmed |= port.emulator.has_slimmed();
        }
        if slimmed {
            give_back();
        }
    }

    /// Makes interface `id` behave as `state` says; false when there is none.
    pub fn set_link(&mut self, id: u16, state: &LinkState) -> bool {
        let Ok(at) = self.ports[1..].binary_search_by_key(&id, |port| port.id) else {
            return false;
        };
        self.ports[1 + at].set_link(state, &mut self.drops);
        self.measure(1 + at);
        self.forwarder.set_up(id, state.up)
    }

    pub fn counters(&self) -> Counters {
        let mut drops = self.drops.by_name();
        let unread = self
            .ports
            .iter()
            .filter_map(|port| dropped(&port.socket).ok());
        match unread.sum() {
            0 => {}
            unread => drop(drops.insert(Reason::ReceiveBufferFull.name().to_owned(), unread)),
        }
        Counters {
            interfaces: self
                .ports
                .iter()
                .map(|port| (port.id, port.counters))
                .collect(),
            drops,
            bfd: self.watch.states(),
        }
    }

    /// Receives at each port that is ready, in turns until none has more than it gave, but a
    /// bounded number of turns. Returns how many packets came, but for BFD packets.
    pub fn receive(&mut self, is_ready: impl Fn(usize) -> bool, now: Instant) -> usize {
        /// Then held packets and callers get their turn.
        const TURNS: usize = 8;
        let mut packets = 0;
        // Ports beyond 64 get one turn a round.
        let mut more = u64::MAX;
        for _ in 0..TURNS {
            let mut full = 0u64;
            for port in (0..self.ports.len()).filter(|port| is_ready(*port)) {
                let bit = 1u64.checked_shl(port as u32).unwrap_or(0);
                if more != u64::MAX && more & bit == 0 {
                    continue;
                }
                let (came, is_full) = self.turn(port, now);
                packets += came;
                if is_full {
                    full |= bit;
                }
            }
            more = full;
            if more == 0 {
                break;
            }
        }
        packets
    }

    /// One call's worth of packets from `port`. Returns how many, and whether there may be more.
    fn turn(&mut self, port: usize, now: Instant) -> (usize, bool) {
        let Port {
            socket, appetite, ..
        } = &mut self.ports[port];
        let (count, more) = match self.inbox.receive(socket, appetite) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (0, false),
            Err(error) => {
                // An ICMP message for a packet sent before: reported once.
                tracing::debug!(%error, interface = self.ports[port].id, "cannot receive");
                return (0, true);
            }
        };
        let time = unix_time();
        let mut packets = 0;
        for slot in 0..count {
            let origin = match port {
                INSIDE => self.forwarder.internal_origin(self.inbox.from(slot)),
                _ => Origin::Interface(self.ports[port].id),
            };
            for place in self.inbox.datagrams(slot) {
                packets += usize::from(self.packet(port, origin, slot, place, time, now));
            }
        }
        // A BFD packet counts only if its session accepts it.
        if packets > 0 {
            self.ports[port].heard = Some(now);
        }
        for to in 0..self.ports.len() {
            self.flush(to, port, now);
        }
        (packets, more)
    }

    /// Does with one packet what is to be done; says whether it counts, as all but BFD packets do.
    #[inline]
    fn packet(
        &mut self,
        port: usize,
        origin: Origin,
        slot: usize,
        place: Range<usize>,
        time: u64,
        now: Instant,
    ) -> bool {
        let from = &mut self.ports[port];
        from.counters.rx_packets += 1;
        from.counters.rx_bytes += place.len() as u64;
        if !from.up {
            self.drops.add(Reason::InterfaceDown, 1);
            return true;
        }
        let packet = &mut self.inbox.data_mut()[place.clone()];
        match self.forwarder.process(time, origin, packet) {
            Verdict::Forward { egress } => {
                match self.ports[1..].binary_search_by_key(&egress, |port| port.id) {
                    Ok(to) => self.enqueue(to + 1, port, None, place, now),
                    Err(_) => self.drops.add(Reason::UnknownEgress, 1),
                }
            }
            Verdict::Deliver { to } | Verdict::Transit { to } => {
                self.enqueue(INSIDE, port, Some(to), place, now);
            }
            Verdict::Bfd { at } => {
                from.counters.rx_packets -= 1;
                from.counters.rx_bytes -= place.len() as u64;
                self.hear(origin, place.start + at..place.end, now);
                return false;
            }
            Verdict::Drop(reason) => self.drops.add(reason, 1),
            Verdict::Refuse { reason, error } => {
                self.drops.add(reason, 1);
                let from = self.inbox.from(slot);
                self.send_back(port, origin, from, place, Message::Error(error), now);
            }
            Verdict::Answer(answer) => {
                let from = self.inbox.from(slot);
                self.send_back(port, origin, from, place, Message::Reply(answer), now);
            }
        }
        true
    }

    /// Puts a packet among those that leave next by port `to`.
    #[inline]
    fn enqueue(
        &mut self,
        to: usize,
        from: usize,
        address: Option<SocketAddr>,
        place: Range<usize>,
        now: Instant,
    ) {
        let port = &mut self.ports[to];
        if port.emulator.loses() {
            self.drops.add(Reason::EmulatedLoss, 1);
        } else if !port.add(address, place.clone()) {
            self.flush(to, from, now);
            // An empty run takes any packet.
            self.ports[to].add(address, place);
        }
    }

    /// Sends what is to leave by port `to`, all of which came in by `from`.
    #[inline]
    fn flush(&mut self, to: usize, from: usize, now: Instant) {
        let port = &mut self.ports[to];
        if port.run.is_empty() {
            return;
        }
        if let Err(NoWay) = port.send_run(self.inbox.data(), now, &mut self.drops) {
            self.no_way(to, from, now);
        }
        self.ports[to].run.clear();
    }

    /// The host of a delivered packet cannot be reached: tells the sources. Of another router's or
    /// a neighbour's being out of reach BFD tells.
    #[cold]
    fn no_way(&mut self, to: usize, from: usize, now: Instant) {
        let places: Vec<_> = self.ports[to].run.packets().collect();
        self.drops.add(Reason::Unreachable, places.len() as u64);
        let host = self.ports[to].run.to();
        if to != INSIDE || self.forwarder.internal_origin(host) != Origin::Host {
            return;
        }
        let origin = Origin::from(self.ports[from].id);
        for place in places {
            let packet = &mut self.inbox.data_mut()[place.clone()];
            self.forwarder.undo_delivery(origin.interface(), packet);
            let error = ScmpError::DestinationUnreachable {
                code: unreachable::ADDRESS,
            };
            self.send_back(from, origin, None, place, Message::Error(error), now);
        }
    }

    /// Sends a message back to where the packet at `place` came from.
    #[cold]
    fn send_back(
        &mut self,
        port: usize,
        origin: Origin,
        from: Option<SocketAddr>,
        place: Range<usize>,
        message: Message,
        now: Instant,
    ) {
        let to = &mut self.ports[port];
        let packet = &self.inbox.data()[place];
        let written = match message {
            Message::Error(error) if to.errors.take(now) => {
                self.forwarder
                    .write_error(origin, packet, error, &mut self.scratch)
            }
            Message::Reply(answer) if to.replies.take(now) => {
                self.forwarder
                    .write_answer(origin, packet, answer, &mut self.scratch)
            }
            Message::Error(_) | Message::Reply(_) => Err(Reason::ScmpRateLimited),
        };
        // Interfaces are connected to their neighbour; the inside is not.
        let address = from.filter(|_| port == INSIDE);
        match written {
            Ok(()) => to.send_one(&self.scratch, address, now, &mut self.drops),
            Err(reason) => self.drops.add(reason, 1),
        }
    }
}
