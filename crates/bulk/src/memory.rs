//! Memory for content on its way, shared by the sessions of a host.
//!
//! What counts is what a session holds, and what its peer was promised: a promise made when there
//! were fewer sessions counts until it is used. A further session has what is left, and more once
//! the others have kept their promises.
//!
//! A share is reserved by [`Memory::join`] before the session begins, since its credit is in the
//! first message to the peer. [`Membership::hold`] ties it to what it bounds: the gate of a source,
//! or the window of a sink. At every tick the session has its share adapted
//! ([`Membership::adapt`]), to an equal part of the pool or to what the others leave of it.
//! Dropping the [`Membership`] gives it back.
//!
//! There are two locks, `shares`, and `listed` for manifests; neither is taken under the other.
//! Under `shares` the lock of a gate is taken, and a command is given to the data thread, which may
//! write to its eventfd and does not block. Under `listed` there is only arithmetic.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_endhost::ScionAddr;

use crate::content::{ManifestError, tree};
use crate::data::{Command, Commands, SLACK, SessionKey};
use crate::gate::Gate;

/// Memory that the sessions share, in bytes, beside [`MIN_SESSION_MEMORY`] of each.
const POOL: u64 = 448 << 20;
/// Memory that each session has, in bytes, however many there are: with 16 of them, all have 512 MiB
/// together.
const MIN_SESSION_MEMORY: u64 = 4 << 20;
/// Most memory of one session: it bounds what is in flight, and is enough for 10 Gbit/s at 200 ms.
pub(crate) const MAX_SESSION_MEMORY: u64 = 256 << 20;

/// Memory for the manifests of all sinks, in bytes, beside [`MIN_MANIFEST_MEMORY`] of each. One host may take
/// three quarters of what the others leave: a manifest with ten million files fits, and a host that
/// sends such ones leaves memory to others.
const MANIFEST_MEMORY: u64 = 4 << 30;
/// Memory that each sink has for its manifest, in bytes: about 30,000 files.
const MIN_MANIFEST_MEMORY: u64 = 8 << 20;

/// What a session's share bounds.
pub(crate) enum Holder {
    /// What is read and not confirmed.
    Source(Arc<Gate>),
    /// What has arrived and is not written, or may still arrive: the number of bytes.
    Sink(Commands, Arc<AtomicU64>),
}

/// The memory of a host, for content of all its sessions. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    shares: Arc<Mutex<Shares>>,
    listed: Arc<Mutex<AllListed>>,
}

#[derive(Default)]
struct Shares {
    all: BTreeMap<u64, Share>,
    next: u64,
}

struct Share {
    /// Bytes that the session may hold from now on.
    granted: u64,
    holder: Option<(SessionKey, Holder)>,
}

impl Share {
    /// Bytes that are held or promised.
    fn taken(&self) -> u64 {
        let held = match &self.holder {
            Some((_, Holder::Source(gate))) => gate.held() as u64 * tree::RANGE,
            Some((_, Holder::Sink(_, bytes))) => bytes.load(Ordering::Relaxed),
            None => 0,
        };
        self.granted.max(held)
    }

    fn apply(&self) {
        match &self.holder {
            Some((_, Holder::Source(gate))) => {
                gate.set_most((self.granted / tree::RANGE) as usize);
            }
            Some((session, Holder::Sink(data, _))) => {
                data.give(Command::Window(*session, self.granted - SLACK));
            }
            None => {}
        }
    }
}

impl Shares {
    /// What the session `number` may hold, in bytes, as one of `sessions`.
    fn share(&self, number: u64, sessions: usize) -> u64 {
        let equal = MIN_SESSION_MEMORY + POOL / sessions.max(1) as u64;
        let others = self.all.iter().filter(|(other, _)| **other != number);
        let taken = others.map(|(_, share)| share.taken().saturating_sub(MIN_SESSION_MEMORY));
        let free = MIN_SESSION_MEMORY + POOL.saturating_sub(taken.sum());
        let share = equal
            .min(free)
            .clamp(MIN_SESSION_MEMORY, MAX_SESSION_MEMORY);
        share - share % tree::RANGE
    }
}

/// A session's share of the memory. Dropping it leaves the share to the others.
pub(crate) struct Membership {
    memory: Memory,
    number: u64,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the share of a further session.
    pub(crate) fn join(&self) -> Membership {
        let mut shares = self.lock();
        let number = shares.next;
        shares.next += 1;
        let granted = shares.share(number, shares.all.len() + 1);
        let holder = None;
        shares.all.insert(number, Share { granted, holder });
        drop(shares);
        let memory = self.clone();
        Membership { memory, number }
    }
}

impl Membership {
    /// The content that a sink with this share takes before anything is written, in bytes.
    pub(crate) fn credit(&self) -> u64 {
        let shares = self.memory.lock();
        let granted = shares.all.get(&self.number).map(|share| share.granted);
        granted.unwrap_or(MIN_SESSION_MEMORY) - SLACK
    }

    /// The memory for the manifest that `peer` sends in the session.
    pub(crate) fn listed(&self, peer: ScionAddr) -> Listed {
        Listed {
            all: Arc::clone(&self.memory.listed),
            host: peer.network(),
            taken: 0,
        }
    }

    /// The share bounds what `holder` holds from now on.
    pub(crate) fn hold(&self, session: SessionKey, holder: Holder) {
        if let Some(share) = self.memory.lock().all.get_mut(&self.number) {
            share.holder = Some((session, holder));
            share.apply();
        }
    }

    /// Adapts the share to what the sessions hold now. To be called often.
    pub(crate) fn adapt(&self) {
        let mut shares = self.memory.lock();
        let granted = shares.share(self.number, shares.all.len());
        if let Some(share) = shares.all.get_mut(&self.number)
            && share.granted != granted
        {
            share.granted = granted;
            share.apply();
        }
    }
}

/// What the manifests of each host take beyond [`MIN_MANIFEST_MEMORY`], in bytes.
#[derive(Default)]
struct AllListed(BTreeMap<ScionAddr, u64>);

impl AllListed {
    /// Takes `more` bytes for `host`, if its share allows them.
    fn take(&mut self, host: ScionAddr, more: u64) -> Option<()> {
        let Self(hosts) = self;
        let own = hosts.get(&host).copied().unwrap_or(0);
        let all: u64 = hosts.values().sum();
        let share = (MANIFEST_MEMORY - (all - own)) / 4 * 3;
        let taken = own.checked_add(more).filter(|taken| *taken <= share)?;
        if taken > 0 {
            hosts.insert(host, taken);
        }
        Some(())
    }

    fn give_back(&mut self, host: ScionAddr, bytes: u64) {
        if let Some(taken) = self.0.get_mut(&host) {
            *taken -= bytes;
            if *taken == 0 {
                self.0.remove(&host);
            }
        }
    }
}

/// What a manifest takes of the memory for all of them. Dropping it gives it back.
pub(crate) struct Listed {
    all: Arc<Mutex<AllListed>>,
    /// The host that sends it.
    host: ScionAddr,
    /// Bytes beyond [`MIN_MANIFEST_MEMORY`].
    taken: u64,
}

impl Listed {
    fn lock(&self) -> MutexGuard<'_, AllListed> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the manifest takes `bytes` now, at least as many as before.
    ///
    /// # Errors
    /// [`ManifestError::NoMemory`] when the manifests of its host take more than their share.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Result<(), ManifestError> {
        let more = bytes.saturating_sub(MIN_MANIFEST_MEMORY + self.taken);
        if more > 0 {
            let taken = self.lock().take(self.host, more);
            taken.ok_or(ManifestError::NoMemory)?;
            self.taken += more;
        }
        Ok(())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.lock().give_back(self.host, self.taken);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.memory.lock().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session whose peer uses up to `held` ranges, and how many its share allows.
    fn source(memory: &Memory, held: u64) -> (Membership, Arc<Gate>) {
        let (member, gate) = (memory.join(), Arc::new(Gate::new(1)));
        member.hold(SessionKey(0), Holder::Source(Arc::clone(&gate)));
        let most = gate.most() as u64;
        for range in 0..held.min(most) {
            assert!(gate.enter(range));
            gate.sent(range);
        }
        (member, gate)
    }

    fn taken(memory: &Memory) -> u64 {
        memory.lock().all.values().map(Share::taken).sum()
    }

    #[test]
    fn sessions_that_hold_little_have_equal_shares() {
        let memory = Memory::default();
        let members: Vec<_> = (0..8).map(|_| source(&memory, 0)).collect();
        (0..2).for_each(|_| members.iter().for_each(|(member, _)| member.adapt()));
        for (_, gate) in &members {
            assert_eq!(
                gate.most() as u64 * tree::RANGE,
                MIN_SESSION_MEMORY + POOL / 8
            );
        }
        let (first, gate) = members.into_iter().next().unwrap();
        first.adapt();
        assert_eq!(gate.most() as u64 * tree::RANGE, MAX_SESSION_MEMORY);
    }

    #[test]
    fn sessions_that_hold_all_they_can_share_one_budget() {
        let memory = Memory::default();
        let members: Vec<_> = (0..16).map(|_| source(&memory, 1000)).collect();
        for _ in 0..3 {
            members.iter().for_each(|(member, _)| member.adapt());
            assert!(taken(&memory) <= POOL + 16 * MIN_SESSION_MEMORY);
        }
        assert!(
            members
                .iter()
                .all(|(_, gate)| gate.held() as u64 >= MIN_SESSION_MEMORY / tree::RANGE)
        );
        // What the first ones free, the others may use.
        let last = &members[15];
        (0..256).for_each(|range| members[0].1.freed(range));
        members[0].0.adapt();
        last.0.adapt();
        assert_eq!(
            last.1.most() as u64 * tree::RANGE,
            MIN_SESSION_MEMORY + POOL / 16
        );
        assert!(taken(&memory) <= POOL + 16 * MIN_SESSION_MEMORY);
    }

    fn peer(last: u8) -> ScionAddr {
        ScionAddr::new(
            "1-ff00:0:110".parse().unwrap(),
            ([10, 0, 0, last], 7).into(),
        )
    }

    #[test]
    fn manifests_of_a_host_share_a_sum_and_give_it_back() {
        let memory = Memory::default();
        let mut all: Vec<_> = (0..3).map(|_| memory.join().listed(peer(1))).collect();
        let most = MANIFEST_MEMORY / 4 * 3;
        assert!(all[0].grow_to(most).is_ok());
        assert!(all[0].grow_to(most + MIN_MANIFEST_MEMORY).is_ok());
        let refused = Err(ManifestError::NoMemory);
        assert_eq!(all[0].grow_to(most + MIN_MANIFEST_MEMORY + 1), refused);
        // However long another one is, each has a little.
        assert!(all[1].grow_to(MIN_MANIFEST_MEMORY).is_ok());
        assert_eq!(all[1].grow_to(MIN_MANIFEST_MEMORY + 1), refused);
        drop(all.remove(0));
        assert!(all[0].grow_to(MIN_MANIFEST_MEMORY + 1).is_ok());
        assert_eq!(all[1].grow_to(u64::MAX), refused);
        assert!(all[1].grow_to(MIN_MANIFEST_MEMORY + most - 1).is_ok());
        drop(all);
        assert!(memory.listed.lock().unwrap().0.is_empty());
    }

    #[test]
    fn a_host_leaves_memory_for_the_manifests_of_others() {
        const LONG: u64 = MIN_MANIFEST_MEMORY + (700 << 20);
        let memory = Memory::default();
        let listed = |last| memory.join().listed(peer(last));
        // Many sessions of one host take what they can.
        let mut greedy: Vec<_> = (0..16).map(|_| listed(1)).collect();
        let taken = greedy.iter_mut().filter_map(|one| one.grow_to(LONG).ok());
        assert_eq!(taken.count(), 4);
        let mut others = [listed(2), listed(3)];
        assert!(others[0].grow_to(LONG).is_ok());
        assert!(others[1].grow_to(LONG / 2).is_ok());
        // What all take stays within the bound.
        let sum: u64 = memory.listed.lock().unwrap().0.values().sum();
        assert!(sum <= MANIFEST_MEMORY);
    }

    #[test]
    fn a_share_is_reserved_before_it_is_used() {
        let memory = Memory::default();
        let members: Vec<_> = (0..100).map(|_| memory.join()).collect();
        let credits: u64 = members.iter().map(Membership::credit).sum();
        assert!(credits <= POOL + 100 * MIN_SESSION_MEMORY);
        assert!(
            members
                .iter()
                .all(|member| member.credit() >= MIN_SESSION_MEMORY - SLACK)
        );
    }
}
