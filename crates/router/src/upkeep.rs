//! The regular tasks of the switch other than forwarding: delayed packets, BFD, link state.

use std::os::fd::{AsRawFd, RawFd};
use std::time::Instant;

use hawser_kernel::memory;
use hawser_topology::LinkState;

use crate::io::dropped;
use crate::live::Counters;
use crate::port::position;
use crate::reason::DropReason;
use crate::switch::{Switch, unix_time};
use crate::verdict::Origin;

/// Packets that are received at one port before other ports, held packets and the control socket are
/// served: as many for each port, in whatever batches they arrive.
const PORT_PACKETS: usize = 700;

impl Switch {
    /// The ports' sockets.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.ports.iter().map(|port| port.socket.as_raw_fd())
    }

    /// When the next held packet or the next BFD packet is due.
    pub fn next_due(&self) -> Option<Instant> {
        let held = self.ports.iter();
        held.filter_map(|port| port.emulator.next_due())
            .chain(self.neighbours.next_due())
            .min()
    }

    /// Whether packets are held.
    pub fn holds_packets(&self) -> bool {
        let mut ports = self.ports.iter();
        ports.any(|port| port.emulator.next_due().is_some())
    }

    /// Sends the held and BFD packets that are due.
    pub fn send_due(&mut self, now: Instant) {
        for port in &mut self.ports {
            port.send_due(now, &mut self.drops);
        }
        self.run_bfd(now);
    }

    /// Releases memory that packets no longer use, delayed ones or those that arrived.
    pub fn release_memory(&mut self) {
        self.inbox.release();
        let mut drained = false;
        for port in &mut self.ports {
            drained |= port.emulator.take_drained();
        }
        if drained {
            memory::release();
        }
    }

    /// Sets the state of the link at interface `id`; returns `false` if the router does not have
    /// that interface.
    pub fn set_link(&mut self, id: u16, state: &LinkState) -> bool {
        let Some(port) = position(&self.ports, id).filter(|_| id != 0) else {
            return false;
        };
        self.ports[port].set_link(state, &mut self.drops);
        self.forwarder.set_up(id, state.up)
    }

    pub fn counters(&self) -> Counters {
        let ports = self.ports.iter();
        let mut drops = self.drops.clone();
        for unread in ports.clone().filter_map(|port| dropped(&port.socket).ok()) {
            drops.add(DropReason::ReceiveBufferFull, unread);
        }
        Counters {
            interfaces: ports.map(|port| (port.id, port.counters)).collect(),
            drops: drops.by_name(),
            stun_answers: self.bindings,
            bfd: self.neighbours.states(),
            at_rest: self.neighbours.resting(),
        }
    }

    /// Receives at each of the ports that are `ready`, until it has no more packets or enough were received,
    /// and keeps those that may have more. Returns the number of packets, without BFD packets.
    pub fn receive(&mut self, ready: &mut Vec<usize>, now: Instant) -> usize {
        let mut packets = 0;
        ready.retain(|port| {
            let mut received = 0;
            loop {
                let (count, more) = self.turn(*port, now);
                received += count;
                if !more || count == 0 || received >= PORT_PACKETS {
                    packets += received;
                    return more;
                }
            }
        });
        packets
    }

    /// Ends BFD sessions with silent neighbours, and sends the BFD packets that are due.
    fn run_bfd(&mut self, now: Instant) {
        if self.neighbours.next_due().is_none_or(|due| now < due) {
            return;
        }
        let ports = &self.ports;
        self.neighbours.observe(now, |origin| {
            ports[position(ports, origin.interface())?]
                .shared
                .last_use()
        });
        let last_arrival = |origin| match origin {
            Origin::Interface(id) => {
                let port = &ports[position(ports, id)?];
                port.shared.last_arrival().filter(|_| port.up)
            }
            Origin::Sibling(_) | Origin::Host => None,
        };
        for origin in self.neighbours.expire(now, last_arrival) {
            self.change_bfd(origin, false);
        }
        let (key, time) = (&self.forwarder.key, unix_time());
        let out = &mut self.scratch;
        self.neighbours
            .send_due(now, time, key, out, |neighbour, packet| {
                if let Some(port) = position(&self.ports, neighbour.origin.interface()) {
                    self.ports[port].send_bfd(packet, neighbour.address, now);
                }
            });
    }
}
