//! A router without its waiting and its control socket.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

use hawser_topology::LinkState;

use crate::bfd::{Change, Location, Neighbours};
use crate::counters::Counters;
use crate::forwarder::Forwarder;
use crate::io::{dropped, largest_payload, release_memory};
use crate::port::{Port, position};
use crate::reason::Reason;
use crate::switch::{Switch, unix_time};
use crate::verdict::Origin;

/// A router without its waiting and its control socket.
pub(crate) struct Engine {
    switch: Switch,
    /// The MTU of each interface as announced to the neighbour.
    announced: BTreeMap<u16, u16>,
}

impl Engine {
    /// The router that forwards as `forwarder` says between `ports`: the internal one, then the
    /// external ones by interface. Its `neighbours` are down until BFD finds them up.
    pub fn new(mut forwarder: Forwarder, ports: Vec<Port>, neighbours: Neighbours) -> Self {
        let announced = ports.iter().filter_map(|port| {
            let entry = forwarder.interface(port.id)?;
            Some((port.id, entry.external.mtu))
        });
        let announced = announced.collect();
        for origin in neighbours.origins() {
            forwarder.set_bfd_up(origin, false);
        }
        let mut engine = Self {
            switch: Switch::new(forwarder, ports, neighbours),
            announced,
        };
        for port in 1..engine.switch.ports.len() {
            engine.measure_mtu(port);
        }
        engine
    }

    /// Sets the MTU of an external port to what its link takes, at least the announced one: that is
    /// promised to all. What is larger is not refused, as scionproto's services send a little more
    /// than announced (and the system sends packets beyond the link's MTU in fragments).
    fn measure_mtu(&mut self, port: usize) {
        let port = &mut self.switch.ports[port];
        let announced = self.announced.get(&port.id).copied().unwrap_or(u16::MAX);
        // Without a route there is nothing to measure.
        let possible = match port.is_connected() {
            true => largest_payload(&port.socket).unwrap_or(0),
            false => 0,
        };
        let possible = u16::try_from(possible).unwrap_or(u16::MAX);
        let forwarder = &mut self.switch.forwarder;
        forwarder.set_mtu(port.id, announced.max(possible));
    }

    /// The ports' sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.switch.ports.iter().map(|port| port.socket.as_raw_fd())
    }

    /// When the next held or BFD packets are due.
    pub fn next_due(&self) -> Option<Instant> {
        let ports = self.switch.ports.iter();
        ports
            .filter_map(|port| port.emulator.next_due())
            .chain(self.switch.neighbours.next_due())
            .min()
    }

    /// Whether packets are held.
    pub fn holds_packets(&self) -> bool {
        let mut ports = self.switch.ports.iter();
        ports.any(|port| port.emulator.next_due().is_some())
    }

    /// Sends the held and BFD packets that are due.
    pub fn send_due(&mut self, now: Instant) {
        for port in &mut self.switch.ports {
            port.send_due(now, &mut self.switch.drops);
        }
        self.run_bfd(now);
    }

    /// Releases memory that delayed packets no longer use.
    pub fn release_memory(&mut self) {
        let mut drained = false;
        for port in &mut self.switch.ports {
            drained |= port.emulator.take_drained();
        }
        if drained {
            release_memory();
        }
    }

    /// Makes interface `id` behave as `state` says; `false` when the router does not have it.
    pub fn set_link(&mut self, id: u16, state: &LinkState) -> bool {
        let Some(port) = position(&self.switch.ports, id).filter(|_| id != 0) else {
            return false;
        };
        self.switch.ports[port].set_link(state, &mut self.switch.drops);
        self.measure_mtu(port);
        self.switch.forwarder.set_up(id, state.up)
    }

    pub fn counters(&self) -> Counters {
        let ports = &self.switch.ports;
        let mut drops = self.switch.drops.by_name();
        let unread = ports.iter().filter_map(|port| dropped(&port.socket).ok());
        match unread.sum() {
            0 => {}
            unread => drop(drops.insert(Reason::ReceiveBufferFull.name().to_owned(), unread)),
        }
        Counters {
            interfaces: ports.iter().map(|port| (port.id, port.counters)).collect(),
            drops,
            bfd: self.switch.neighbours.states(),
        }
    }

    /// Receives at each port that is ready, in turns until none has more packets, but for a bounded
    /// number of turns. Returns the number of packets, without BFD packets.
    pub fn receive(&mut self, is_ready: impl Fn(usize) -> bool, now: Instant) -> usize {
        /// Then held packets and the control socket get their turn.
        const TURNS: usize = 8;
        let mut packets = 0;
        // Ports beyond 64 get one turn a call.
        let mut more = u64::MAX;
        for _ in 0..TURNS {
            let mut full = 0u64;
            for port in (0..self.switch.ports.len()).filter(|port| is_ready(*port)) {
                let bit = 1u64.checked_shl(port as u32).unwrap_or(0);
                if more != u64::MAX && more & bit == 0 {
                    continue;
                }
                let (count, is_full) = self.switch.turn(port, now);
                packets += count;
                if is_full {
                    full |= bit;
                }
                for change in std::mem::take(&mut self.switch.changes) {
                    self.apply(change);
                }
            }
            more = full;
            if more == 0 {
                break;
            }
        }
        packets
    }

    /// Ends BFD sessions with silent neighbours, and sends the BFD packets that are due.
    fn run_bfd(&mut self, now: Instant) {
        let Switch {
            neighbours, ports, ..
        } = &mut self.switch;
        if neighbours.next_due().is_none_or(|due| now < due) {
            return;
        }
        let last_arrival = |id| {
            let port = &ports[position(ports, id)?];
            port.last_arrival.filter(|_| port.up)
        };
        for change in neighbours.expire(now, last_arrival) {
            self.apply(change);
        }
        let Switch {
            forwarder,
            neighbours,
            ports,
            scratch,
            ..
        } = &mut self.switch;
        neighbours.send_due(
            now,
            unix_time(),
            &forwarder.key,
            scratch,
            |location, packet| {
                let (id, to) = match location {
                    Location::Sibling(_, address) => (0, Some(address)),
                    Location::Interface(id) => (id, None),
                };
                if let Some(port) = position(ports, id) {
                    ports[port].send_bfd(packet, to, now);
                }
            },
        );
    }

    fn apply(&mut self, Change { origin, up }: Change) {
        self.switch.forwarder.set_bfd_up(origin, up);
        // A link that was down may have another MTU now.
        if up
            && let Origin::Interface(id) = origin
            && let Some(port) = position(&self.switch.ports, id)
        {
            self.measure_mtu(port);
        }
    }
}
