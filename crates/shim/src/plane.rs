//! The threads that carry packets: one from the TUN queue to lanes, and one for each socket from lanes
//! to the TUN queue.
//!
//! `shim-out` runs from [`Plane::start`] on if there is MPTCP, and `shim-in` for each socket from
//! [`Plane::receive`] on. While little comes, the first `shim-in` does the work of `shim-out` (`turn`), and
//! copies the connections that the holder lends (`rest`, `borrowed`). They end when the plane is dropped;
//! when one fails or panics before, the carrier ends. Tasks of sessions add and remove sessions and lanes. A
//! lane is *added* with its keys, has a *path* once its session opens it or a datagram of the side that dials
//! shows it, is *up* once a datagram has arrived, and is *closed* when it is removed. `shim-in` sets the path
//! of the other side's lanes, notes that lanes are up, and follows the slots under which the other side puts
//! them.
//!
//! A lane keeps a batch of up to 64 KiB until it is flushed. What has to go over the connection beside it
//! waits there, up to 1 MiB of segments and 128 KiB of other packets. A session remembers 4096 pairs of
//! addresses; a relay has 1024 flows.
//!
//! Two RwLocks have the sessions, and the lanes by their ids. A lane has a Mutex for what it sends and one
//! for the keys of what it receives, a session one for its pairs of addresses (`contacts`), and `packets`
//! one for all relays, each of which has one for its flows and one for its fragments. The lanes are locked
//! before the keys of one of them, in [`Plane::remove`]; no other two are held at once. Which lane a slot
//! has is read without a lock. Under the first Mutex of a lane its batch is sealed and given to the socket,
//! which does not wait for room; under those of relays and flows, sockets are closed. Nothing is awaited
//! under any.

mod borrowed;
pub(crate) mod contacts;
mod inbound;
pub(crate) mod lane;
mod outbound;
pub(crate) mod packets;
mod rest;
mod shared;
pub(crate) mod table;
mod turn;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Instant;

use hawser_endhost::lanes::Lanes;
use hawser_endhost::socket::Socket;
use hawser_kernel::pace::BusyPoll;
use hawser_tun::{MergedPacket, Merger, Queue};
use rustix::event::{EventfdFlags, eventfd};

use self::lane::{LaneKey, LaneTable, NewLane, SealedLane};
use self::packets::Packets;
use self::rest::Rest;
use self::shared::{Shared, read, write};
use self::turn::Turn;
use crate::address::{Block, Slot};
use crate::ended::Watcher;
use crate::lock::lock;
use crate::protocol::datagram::FORMAT;
use crate::protocol::{Epoch, Role, SlotEpoch};

/// The sessions and lanes of this host, and the threads that carry packets between them and the
/// TUN queue. Dropping it ends the threads.
pub(crate) struct Plane {
    shared: Arc<Shared>,
    /// For the first thread that receives.
    rest: Mutex<Option<Rest>>,
}

/// What a plane begins with.
pub(crate) struct NewPlane {
    /// `None` without MPTCP.
    pub queue: Option<Queue>,
    pub packets: Packets,
    /// The channel over which the holder lends connections at rest.
    pub lent: Option<OwnedFd>,
    /// The addresses of this host.
    pub own: Block,
    pub watcher: Watcher,
}

impl Plane {
    /// Starts the thread that sends. Those that receive look for more for as long as `busy_poll` says before
    /// they wait. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(new: NewPlane, busy_poll: BusyPoll) -> io::Result<Self> {
        let NewPlane {
            queue,
            packets,
            lent,
            own,
            watcher,
        } = new;
        let shared = Arc::new(Shared {
            queue,
            packets,
            own,
            sessions: RwLock::default(),
            by_id: RwLock::default(),
            next_lane: AtomicU64::new(1),
            began: Instant::now(),
            watcher,
            busy_poll,
            turn: Turn::new()?,
            stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let plane = Self {
            rest: Mutex::new(Some(Rest::new(&shared, lent)?)),
            shared: Arc::clone(&shared),
        };
        let runtime = tokio::runtime::Handle::current();
        thread::Builder::new()
            .name("shim-out".into())
            .spawn(move || {
                let _runtime = runtime.enter();
                let name = "read packets from the TUN device";
                shared.watcher.run(name, || outbound::run(&shared));
            })?;
        Ok(plane)
    }

    /// Starts a thread that receives at `socket`, and returns the socket's lanes. Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn receive(&self, socket: Socket) -> io::Result<Lanes> {
        let (lanes, receiver) = Lanes::new(socket, FORMAT);
        let runtime = tokio::runtime::Handle::current();
        let (shared, received) = (Arc::clone(&self.shared), lanes.clone());
        let rest = lock(&self.rest).take();
        thread::Builder::new()
            .name("shim-in".into())
            .spawn(move || {
                let _runtime = runtime.enter();
                let work = || inbound::run(&shared, &received, receiver, rest);
                shared.watcher.run("receive packets", work);
            })?;
        Ok(lanes)
    }

    /// The session with these addresses, which is added if it is new.
    pub(crate) fn session(&self, peer: Block, role: Role) -> Arc<LaneTable> {
        let mut sessions = write(&self.shared.sessions);
        let table = sessions
            .entry((peer, role))
            .or_insert_with(|| Arc::new(LaneTable::new(role, self.shared.own, peer)));
        Arc::clone(table)
    }

    /// The session that this host has opened with these addresses, if there is one.
    pub(crate) fn client_session(&self, peer: Block) -> Option<Arc<LaneTable>> {
        let sessions = read(&self.shared.sessions);
        sessions.get(&(peer, Role::Client)).map(Arc::clone)
    }

    /// Takes a packet that came over a connection.
    pub(crate) fn receive_packet(&self, session: &Arc<LaneTable>, packet: &[u8]) {
        self.shared.packets.receive(session, packet);
    }

    /// Removes a session.
    pub(crate) fn remove_session(&self, table: &LaneTable) {
        self.shared.packets.forget(table);
        write(&self.shared.sessions).remove(&(table.peer, table.role));
    }

    /// A number that no lane of this process has had.
    pub(crate) fn next_lane(&self) -> LaneKey {
        LaneKey(self.shared.next_lane.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds a lane, whose path is not known yet.
    pub(crate) fn add(&self, new: NewLane) -> Arc<SealedLane> {
        let lane = Arc::new(SealedLane::new(new, self.shared.began));
        let id = lane.opener().subflow_id();
        write(&self.shared.by_id).insert(id, Arc::clone(&lane));
        lane
    }

    /// Removes a lane from its session. Returns the slots that it carried.
    pub(crate) fn remove(&self, lane: &SealedLane) -> Vec<(Slot, Epoch)> {
        write(&self.shared.by_id).remove(&lane.opener().subflow_id());
        // First, so that none of its packets that is on its way here puts it under a slot again.
        lane.close();
        lane.table.unbind(lane.key)
    }

    /// Hands a segment that came over a connection to the kernel.
    pub(crate) fn inject(&self, table: &LaneTable, bound: SlotEpoch, segment: &[u8]) {
        let (source, destination) = table.addresses(bound.slot);
        let mut merger = Merger::new();
        let mut hand_over = |packet: MergedPacket<'_>| self.shared.hand_over(packet);
        match merger.push(source, destination, bound.ecn, segment, &mut hand_over) {
            Ok(()) => merger.flush(hand_over),
            Err(error) => tracing::debug!(%error, "a segment was dropped"),
        }
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // It fails only when it was written to very often.
        let _ = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
    }
}
