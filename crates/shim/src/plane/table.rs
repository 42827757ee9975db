//! Which lane carries which slot of a session, as the threads that carry packets see it.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;

use super::contacts::Contacts;
use crate::address::{Block, SLOTS, Slot};
use crate::protocol::{Epoch, Role, SlotEpoch};
use crate::session::{Bindings, LaneKey};

/// A lane that may be under a slot.
pub(crate) trait SlotLane {
    fn key(&self) -> LaneKey;
    fn is_closed(&self) -> bool;
    /// Whether datagrams get through.
    fn is_up(&self) -> bool;
    /// Whether an answer is overdue.
    fn is_doubtful(&self) -> bool;
    /// The round-trip time, if it was measured.
    fn rtt(&self) -> Option<Duration>;
}

/// The slots of one session, and the addresses of its packets.
pub(crate) struct SlotTable<L> {
    pub role: Role,
    /// The peer's addresses, as this host's kernel sees them.
    pub peer: Block,
    /// Which answers programs wait for.
    pub contacts: Contacts,
    /// Packets of the peer's programs that could not be sent to where they go.
    pub unsent: AtomicU64,
    own: Block,
    slots: [ArcSwapOption<Binding<L>>; SLOTS as usize],
    /// The latest epoch of each slot that has had a lane; [`NEVER`] for others.
    epochs: [AtomicU16; SLOTS as usize],
}

/// No epoch, which has 8 bits.
const NEVER: u16 = u16::MAX;

/// A lane under a slot.
pub(crate) struct Binding<L> {
    pub epoch: Epoch,
    pub lane: Arc<L>,
}

impl<L: SlotLane> SlotTable<L> {
    pub(crate) fn new(role: Role, own: Block, peer: Block) -> Self {
        Self {
            role,
            peer,
            contacts: Contacts::default(),
            unsent: AtomicU64::new(0),
            own,
            slots: std::array::from_fn(|_| ArcSwapOption::empty()),
            epochs: [const { AtomicU16::new(NEVER) }; SLOTS as usize],
        }
    }

    /// The source and destination of packets that arrive for `slot`.
    pub(crate) fn addresses(&self, slot: Slot) -> (Ipv6Addr, Ipv6Addr) {
        match self.role {
            Role::Client => (self.peer.address(0), self.own.address(slot)),
            Role::Server => (self.peer.address(slot), self.own.address(0)),
        }
    }

    fn slot(&self, slot: Slot) -> Option<&ArcSwapOption<Binding<L>>> {
        self.slots.get(usize::from(slot).checked_sub(1)?)
    }

    /// What is under `slot`.
    #[inline]
    pub(crate) fn binding(&self, slot: Slot) -> Option<Arc<Binding<L>>> {
        self.slot(slot)?.load_full()
    }

    /// What carries the packets of `slot`: what is under it, or the best lane if its own has failed. It
    /// may have the only subflow of a connection that is being set up.
    #[inline]
    pub(crate) fn carrier(&self, slot: Slot) -> Option<Arc<Binding<L>>> {
        self.binding(slot).or_else(|| self.substitute(slot))
    }

    #[cold]
    fn substitute(&self, slot: Slot) -> Option<Arc<Binding<L>>> {
        let epoch = self.epochs.get(usize::from(slot).checked_sub(1)?)?;
        let epoch = u8::try_from(epoch.load(Ordering::Relaxed)).ok()?;
        let (epoch, lane) = (Epoch(epoch), self.best()?);
        Some(Arc::new(Binding { epoch, lane }))
    }

    /// Puts `lane` under `slot`, unless it is closed.
    pub(crate) fn bind(&self, slot: Slot, epoch: Epoch, lane: &Arc<L>) {
        if let Some(entry) = self.slot(slot).filter(|_| !lane.is_closed()) {
            self.epochs[usize::from(slot) - 1].store(epoch.0.into(), Ordering::Relaxed);
            let bound = Arc::clone(lane);
            entry.store(Some(Arc::new(Binding { epoch, lane: bound })));
            // A lane is closed before it is taken from its slots: it may have been meanwhile.
            if lane.is_closed() {
                self.unbind(lane.key());
            }
        }
    }

    /// Follows the side that dials: puts `lane` under the slot that a packet of the lane names, if
    /// it is later than what is there. Returns whether that is new.
    #[inline]
    pub(crate) fn learn(&self, bound: SlotEpoch, lane: &Arc<L>) -> bool {
        let Some(entry) = self.slot(bound.slot) else {
            return false;
        };
        let known = entry.load();
        let is_new = !lane.is_closed()
            && (known.as_ref()).is_none_or(|known| bound.epoch.is_after(known.epoch));
        if is_new {
            self.bind(bound.slot, bound.epoch, lane);
        }
        is_new
    }

    /// Takes the lane from all of its slots; returns them with their epochs.
    pub(crate) fn unbind(&self, lane: LaneKey) -> Vec<(Slot, Epoch)> {
        let mut unbound = Vec::new();
        for (slot, entry) in (1..).zip(&self.slots) {
            let before =
                entry.rcu(|binding| binding.clone().filter(|binding| binding.lane.key() != lane));
            unbound.extend(
                before
                    .filter(|binding| binding.lane.key() == lane)
                    .map(|binding| (slot, binding.epoch)),
            );
        }
        unbound
    }

    /// The first slot that `lane` carries.
    pub(crate) fn bound_of(&self, lane: LaneKey) -> Option<SlotEpoch> {
        (1..=SLOTS).find_map(|slot| {
            let binding = self.binding(slot).filter(|one| one.lane.key() == lane)?;
            Some(SlotEpoch {
                slot,
                epoch: binding.epoch,
                ecn: 0,
            })
        })
    }

    /// Whether a slot has another lane than `lane`, over which datagrams get through and come back.
    pub(crate) fn has_other(&self, lane: LaneKey) -> bool {
        let works = |binding: &Binding<L>| {
            let other = &binding.lane;
            other.key() != lane && other.is_up() && !other.is_doubtful()
        };
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.load().as_deref().is_some_and(works))
    }

    /// The lane for a packet that is not of a connection: the one with the lowest round-trip time of
    /// those over which datagrams get through and come back, if there are such.
    pub(crate) fn best(&self) -> Option<Arc<L>> {
        let bindings = self.slots.iter().filter_map(|slot| slot.load_full());
        let rank = |binding: &Arc<Binding<L>>| {
            let lane = &binding.lane;
            let rtt = lane.rtt().unwrap_or(Duration::MAX);
            (!lane.is_up(), lane.is_doubtful(), rtt)
        };
        let best = bindings.min_by_key(rank)?;
        Some(Arc::clone(&best.lane))
    }

    /// The slots that have a lane.
    pub(crate) fn bindings(&self) -> Bindings {
        let slots = (1..).zip(&self.slots);
        let bound = slots.filter_map(|(slot, entry)| {
            let binding = entry.load();
            let binding = binding.as_ref()?;
            Some((slot, (binding.lane.key(), binding.epoch)))
        });
        bound.collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
