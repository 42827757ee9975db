//! Packets of programs that are not TCP: over the best path to the host behind their destination, and
//! from other hosts.

mod capture;
mod relay;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hawser_tun::Queue;

pub use self::capture::Captured;
pub(super) use self::capture::{Capture, Find};
use self::relay::{Relay, Replies, Rule};
use super::lane::{SealedLane, lock};
use super::table::SlotTable;
use crate::address::Block;
use crate::packets::{Ends, Received};
use crate::protocol::Role;
use crate::served::Served;

/// Most pairs of addresses of a session between which packets may arrive; beyond them it forgets
/// others.
const CONTACTS: usize = 4096;

/// What becomes of packets that arrive over sessions.
pub(crate) struct Packets {
    /// The queue of the device from which programs' packets come, and to which the answers go.
    queue: Arc<Queue>,
    served: Arc<Served>,
    /// The relays of sessions that other hosts opened.
    relays: Mutex<HashMap<Block, Arc<Relay>>>,
}

/// The pairs of addresses between which programs of this host have sent packets over a session: what
/// arrives from others is dropped, as nobody has asked for it.
#[derive(Debug, Default)]
pub(crate) struct Contacts {
    ends: Mutex<HashSet<Ends>>,
    packets: AtomicU64,
}

impl Contacts {
    /// Records a packet that is sent.
    fn add(&self, ends: Ends) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        let mut contacts = lock(&self.ends);
        if contacts.len() >= CONTACTS && !contacts.contains(&ends) {
            contacts.clear();
        }
        contacts.insert(ends);
    }

    /// Whether it may be the answer to one that was sent.
    fn has_asked(&self, answer: Ends) -> bool {
        let has_asked = lock(&self.ends).contains(&answer.reversed());
        self.packets.fetch_add(has_asked.into(), Ordering::Relaxed);
        has_asked
    }

    /// How many packets there were, with the answers.
    pub(super) fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }
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
    pub(crate) fn receive(&self, session: &Arc<SlotTable>, packet: &[u8]) {
        match session.role {
            Role::Client => self.answer(session, packet),
            Role::Server => self.relay(session).take(packet),
        }
    }

    /// Hands an answer to the kernel, for the program.
    fn answer(&self, session: &SlotTable, packet: &[u8]) {
        let is_wanted = Received::parse(packet)
            .is_some_and(|received| session.contacts.has_asked(received.ends));
        if is_wanted && let Err(error) = self.queue.try_write_datagram(packet) {
            tracing::debug!(%error, "the kernel does not take a packet");
        }
    }

    fn relay(&self, session: &Arc<SlotTable>) -> Arc<Relay> {
        let mut relays = lock(&self.relays);
        let relay = relays.entry(session.peer).or_insert_with(|| {
            let rule = Rule::Served(Arc::clone(&self.served));
            Relay::new(rule, Box::new(ToSession(Arc::clone(session))))
        });
        Arc::clone(relay)
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, session: &SlotTable) {
        if session.role == Role::Server {
            lock(&self.relays).remove(&session.peer);
        }
    }
}

/// Answers to programs of another host.
struct ToSession(Arc<SlotTable>);

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
struct ToPrograms(Arc<Queue>);

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
