//! What the threads that carry packets and the sessions share.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use hawser_kernel::pace::BusyPoll;
use hawser_seal::SubflowId;
use hawser_tun::{MergedPacket, Queue};

use super::turn::Turn;
use crate::address::Block;
use crate::ended::Watcher;
use crate::plane::lane::{LaneTable, SealedLane};
use crate::plane::packets::Packets;
use crate::protocol::Role;

/// What the threads and the sessions share.
pub(super) struct Shared {
    /// `None` without MPTCP.
    pub(super) queue: Option<Queue>,
    pub(super) packets: Packets,
    pub(super) own: Block,
    /// The sessions by the peer's addresses.
    pub(super) sessions: RwLock<HashMap<(Block, Role), Arc<LaneTable>>>,
    /// The lanes by the id in packets that arrive.
    pub(super) by_id: RwLock<HashMap<SubflowId, Arc<SealedLane>>>,
    pub(super) next_lane: AtomicU64,
    pub(super) began: Instant,
    pub(super) watcher: Watcher,
    pub(super) busy_poll: BusyPoll,
    /// Who reads the device.
    pub(super) turn: Turn,
    /// Readable once the threads are to end.
    pub(super) stop: OwnedFd,
}

impl Shared {
    /// Hands a packet to the kernel, which takes or drops it as any packet that is received.
    #[inline]
    pub(super) fn hand_over(&self, packet: MergedPacket<'_>) {
        let Some(queue) = &self.queue else { return };
        if let Err(error) = queue.try_write(packet) {
            tracing::debug!(%error, "the kernel does not take a packet");
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        let mut count = [0; 8];
        // Stays readable for the other threads.
        let stopped = rustix::io::read(&self.stop, &mut count).is_ok();
        if stopped {
            let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        }
        stopped
    }
}

pub(super) fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}
