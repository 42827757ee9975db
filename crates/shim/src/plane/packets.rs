//! Packets of programs that are not TCP: over the best path to the host behind their destination, and
//! from other hosts.

mod relay;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use hawser_tun::Queue;

use self::relay::Replies;
pub(crate) use self::relay::{Relay, Rule};
use super::lane::LaneTable;
use crate::address::Block;
use crate::lock::lock;
use crate::packets::Received;
use crate::protocol::Role;
use crate::served::Served;

/// What becomes of packets that arrive over sessions.
pub(crate) struct Packets {
    /// The queue of the device from which programs' packets come, and to which the answers go.
    queue: Arc<Queue>,
    served: Arc<Served>,
    /// The relays of sessions that other hosts opened.
    relays: Mutex<HashMap<Block, Arc<Relay>>>,
}

impl Packets {
    pub(crate) fn new(queue: Arc<Queue>, served: Served) -> Self {
        Self {
            queue,
            served: Arc::new(served),
            relays: Mutex::default(),
        }
    }

    /// Takes a packet that arrived over a session. Must be called inside a tokio runtime.
    pub(crate) fn receive(&self, session: &Arc<LaneTable>, packet: &[u8]) {
        match session.role {
            Role::Client => self.answer(session, packet),
            Role::Server => self.relay(session).take(packet),
        }
    }

    /// Hands an answer to the kernel, for the program.
    fn answer(&self, session: &LaneTable, packet: &[u8]) {
        let is_wanted = Received::parse(packet)
            .is_some_and(|received| session.contacts.has_asked(received.ends));
        if is_wanted && let Err(error) = self.queue.try_write_datagram(packet) {
            tracing::debug!(%error, "the kernel does not take a packet");
        }
    }

    fn relay(&self, session: &Arc<LaneTable>) -> Arc<Relay> {
        let mut relays = lock(&self.relays);
        let relay = relays.entry(session.peer).or_insert_with(|| {
            let rule = Rule::Served(Arc::clone(&self.served));
            Relay::new(rule, Box::new(ToSession(Arc::clone(session))))
        });
        Arc::clone(relay)
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, session: &LaneTable) {
        if session.role == Role::Server {
            lock(&self.relays).remove(&session.peer);
        }
    }
}

/// Answers to programs of another host.
struct ToSession(Arc<LaneTable>);

impl Replies for ToSession {
    fn largest(&self) -> usize {
        let best = self.0.best();
        best.map_or(usize::MAX, |lane| lane.largest_packet())
    }

    fn send(&self, packets: &[Vec<u8>]) {
        if let Some(lane) = self.0.best() {
            packets.iter().for_each(|packet| lane.push_packet(packet));
            lane.flush();
        }
    }

    fn on_unsent(&self) {
        self.0.unsent.fetch_add(1, Ordering::Relaxed);
    }
}

/// Answers to programs of this host.
pub(crate) struct ToPrograms(pub(crate) Arc<Queue>);

impl Replies for ToPrograms {
    fn largest(&self) -> usize {
        u16::MAX.into()
    }

    fn send(&self, packets: &[Vec<u8>]) {
        for packet in packets {
            if let Err(error) = self.0.try_write_datagram(packet) {
                tracing::debug!(%error, "the kernel does not take a packet");
            }
        }
    }

    // Of no session; the program learns of it as without the shim.
    fn on_unsent(&self) {}
}
