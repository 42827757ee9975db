//! The two threads that carry packets: from the TUN queue to lanes, and from lanes to the TUN queue.

mod inbound;
mod outbound;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use hawser_endhost::lanes::{Doubt, Lane, LaneEnd, LaneUser, Lanes, Probing, Verdict};
use hawser_endhost::socket::Socket;
use hawser_endhost::{Headers, HeadersError, Path, ScionAddr};
use hawser_seal::SubflowId;
use hawser_tun::{MergedPacket, Merger, Queue};
use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::mpsc::UnboundedSender;

use super::lane::{LaneEvent, LaneKey, LaneKeys, NewLane, SealedLane};
use super::table::SlotTable;
use crate::address::{Block, Slot};
use crate::link::Role;
use crate::protocol::datagram::FORMAT;
use crate::protocol::{Bound, Epoch, Message};

/// Longest wait for an answer when a router reports the path down: the answer takes a round trip.
const DOUBTED: Duration = Duration::from_millis(40);

/// The sessions and lanes of this host, and the threads that carry packets between them and the
/// TUN queue. Dropping it ends the threads.
pub(crate) struct Plane(Arc<Shared>);

/// What the threads and the sessions share.
struct Shared {
    lanes: Lanes,
    queue: Queue,
    own: Block,
    /// The sessions by the peer's addresses.
    sessions: RwLock<HashMap<(Block, Role), Arc<SlotTable>>>,
    /// The lanes by the id in packets that arrive.
    by_id: RwLock<HashMap<SubflowId, Arc<SealedLane>>>,
    next_lane: AtomicU64,
    began: Instant,
    /// Readable once the threads are to end.
    stop: OwnedFd,
}

impl Plane {
    /// Starts the threads. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(crate) fn start(socket: Socket, queue: Queue, own: Block) -> io::Result<Self> {
        let (lanes, receiver) = Lanes::new(socket, FORMAT);
        let shared = Arc::new(Shared {
            lanes,
            queue,
            own,
            sessions: RwLock::default(),
            by_id: RwLock::default(),
            next_lane: AtomicU64::new(1),
            began: Instant::now(),
            stop: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let plane = Self(Arc::clone(&shared));
        let runtime = tokio::runtime::Handle::current();
        let (inbound, outbound) = (Arc::clone(&shared), shared);
        let entered = runtime.clone();
        thread::Builder::new()
            .name("shim-in".into())
            .spawn(move || {
                let _runtime = entered.enter();
                inbound::run(&inbound, receiver);
            })?;
        thread::Builder::new()
            .name("shim-out".into())
            .spawn(move || {
                let _runtime = runtime.enter();
                outbound::run(&outbound);
            })?;
        Ok(plane)
    }

    /// The address of datagrams.
    pub(crate) fn local_addr(&self) -> ScionAddr {
        self.0.lanes.socket().local_addr()
    }

    /// The session with these addresses, which is added if it is new.
    pub(crate) fn session(&self, peer: Block, role: Role) -> Arc<SlotTable> {
        let mut sessions = write(&self.0.sessions);
        let table = sessions
            .entry((peer, role))
            .or_insert_with(|| Arc::new(SlotTable::new(role, self.0.own, peer)));
        Arc::clone(table)
    }

    /// Removes a session.
    pub(crate) fn remove_session(&self, table: &SlotTable) {
        write(&self.0.sessions).remove(&(table.peer, table.role));
    }

    /// Adds a lane, whose path is not known yet.
    pub(crate) fn add(
        &self,
        keys: LaneKeys,
        remote: ScionAddr,
        table: Arc<SlotTable>,
        messages: UnboundedSender<Message>,
        events: UnboundedSender<(LaneKey, LaneEvent)>,
    ) -> Arc<SealedLane> {
        let lane = Arc::new(SealedLane::new(NewLane {
            key: LaneKey(self.0.next_lane.fetch_add(1, Ordering::Relaxed)),
            keys,
            remote,
            table,
            sender: self.0.lanes.sender(),
            messages,
            events,
            began: self.0.began,
        }));
        let id = lane.opener().subflow_id();
        write(&self.0.by_id).insert(id, Arc::clone(&lane));
        lane
    }

    /// Removes a lane from its session. Returns the slots that it carried.
    pub(crate) fn remove(&self, lane: &SealedLane) -> Vec<(Slot, Epoch)> {
        write(&self.0.by_id).remove(&lane.opener().subflow_id());
        lane.close();
        lane.table.unbind(lane.key)
    }

    /// Hands a segment that came over a connection to the kernel.
    pub(crate) fn inject(&self, table: &SlotTable, bound: Bound, segment: &[u8]) {
        let (source, destination) = table.addresses(bound.slot);
        let mut merger = Merger::new();
        let mut hand_over = |packet: MergedPacket<'_>| self.0.hand_over(packet);
        match merger.push(source, destination, bound.ecn, segment, &mut hand_over) {
            Ok(()) => merger.flush(hand_over),
            Err(error) => tracing::debug!(%error, "a segment was dropped"),
        }
    }

    /// The largest datagram to `remote` over `path`, in bytes.
    ///
    /// # Errors
    /// When the path does not lead to the remote.
    pub(crate) fn largest(&self, remote: ScionAddr, path: &Path) -> Result<u16, HeadersError> {
        let headers = Headers::new(self.local_addr(), remote, path)?;
        Ok(headers.max_payload(path.mtu()))
    }

    /// Opens the path of a lane that this side dialed.
    ///
    /// # Errors
    /// When the path does not lead to the remote.
    pub(crate) fn open(
        &self,
        lane: &Arc<SealedLane>,
        remote: ScionAddr,
        path: Path,
    ) -> Result<(), HeadersError> {
        let opened = self.0.lanes.open(remote, path)?;
        lane.set_lane(opened.clone());
        watch(lane, &opened);
        Ok(())
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // It fails only when it was written to very often.
        let _ = rustix::io::write(&self.0.stop, &1u64.to_ne_bytes());
    }
}

impl Shared {
    /// Hands a packet to the kernel, which takes or drops it as any packet that is received.
    #[inline]
    fn hand_over(&self, packet: MergedPacket<'_>) {
        if let Err(error) = self.queue.try_write(packet) {
            tracing::debug!(%error, "the kernel does not take a packet");
        }
    }

    fn is_stopped(&self) -> bool {
        let mut count = [0; 8];
        // Stays readable for the other thread.
        let stopped = rustix::io::read(&self.stop, &mut count).is_ok();
        if stopped {
            let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        }
        stopped
    }
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Lets `lane` decide whether the path under it works.
fn watch(lane: &Arc<SealedLane>, path: &Lane) {
    path.attach(Arc::new(Watched(Arc::downgrade(lane))));
}

/// The user of a path: the lane over it.
struct Watched(std::sync::Weak<SealedLane>);

impl LaneUser for Watched {
    fn probe<'a>(&'a self, doubt: &'a Doubt) -> Probing<'a> {
        Box::pin(async move {
            let Some(lane) = self.0.upgrade() else {
                return Verdict::Unknown;
            };
            if let Some(most) = doubt.max_payload {
                lane.set_datagram(most.min(lane.datagram()));
                return Verdict::Unknown;
            }
            let Some(bound) = lane.table.bound_of(lane.key) else {
                return Verdict::Unknown;
            };
            let (since, at) = (lane.now(), Instant::now());
            let wait = DOUBTED + lane.rtt().unwrap_or_default() * 5 / 4;
            for _ in 0..2 {
                lane.probe(bound, 0, true);
                tokio::time::sleep(wait / 2).await;
            }
            match lane.liveness.has_received_after(since) {
                true => Verdict::Alive(at),
                false => Verdict::Dead,
            }
        })
    }

    fn on_end(&self, end: &LaneEnd) {
        if let Some(lane) = self.0.upgrade() {
            lane.report(LaneEvent::Failed(end.to_string()));
        }
    }
}
