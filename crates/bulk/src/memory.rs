//! Memory for content on its way, shared equally by the sessions of a host.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::content::tree;
use crate::data::{Command, Commands, SessionKey};
use crate::gate::Gate;

/// Memory of all sessions together, in bytes, as long as none has less than [`LEAST`].
const TOTAL: u64 = 512 << 20;
/// Most memory of one session: it bounds what is in flight, and is enough for 10 Gbit/s at 200 ms.
pub(crate) const MOST: u64 = 256 << 20;
/// Least memory of one session: a few ranges, without which nothing flows.
const LEAST: u64 = 16 << 20;

/// What a session's share bounds.
pub(crate) enum Holder {
    /// What is read and not confirmed.
    Source(Arc<Gate>),
    /// What has arrived and is not written: the credit of the source.
    Sink(Commands),
}

/// The memory of a host, for content of all its sessions. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<BTreeMap<SessionKey, Holder>>>);

/// A session's part in the memory. Dropping it leaves the memory to the others.
pub(crate) struct Membership {
    memory: Memory,
    session: SessionKey,
}

/// The share of each of `sessions` sessions, in bytes.
fn share(sessions: usize) -> u64 {
    (TOTAL / sessions.max(1) as u64).clamp(LEAST, MOST)
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a further session would have, in bytes.
    pub(crate) fn next_share(&self) -> u64 {
        share(self.lock().len() + 1)
    }

    /// Takes a session in: the shares of the others shrink. What they hold already they keep until
    /// it is sent or written.
    pub(crate) fn join(&self, session: SessionKey, holder: Holder) -> Membership {
        let mut holders = self.lock();
        holders.insert(session, holder);
        divide(&holders);
        drop(holders);
        let memory = self.clone();
        Membership { memory, session }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut holders = self.memory.lock();
        holders.remove(&self.session);
        divide(&holders);
    }
}

fn divide(holders: &BTreeMap<SessionKey, Holder>) {
    let share = share(holders.len());
    for (session, holder) in holders {
        match holder {
            Holder::Source(gate) => gate.set_most((share / tree::RANGE) as usize),
            Holder::Sink(data) => data.give(Command::Window(*session, share)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_has_enough_for_a_far_path_and_many_have_equal_shares() {
        assert_eq!(share(1), MOST);
        assert_eq!(share(2), MOST);
        assert_eq!(share(8), TOTAL / 8);
        assert_eq!(share(10_000), LEAST);
    }

    #[test]
    fn a_session_that_ends_leaves_its_share_to_the_others() {
        let memory = Memory::default();
        let gates: Vec<_> = (0..4).map(|_| Arc::new(Gate::new(1))).collect();
        let mut members: Vec<_> = (0..)
            .zip(&gates)
            .map(|(number, gate)| memory.join(SessionKey(number), Holder::Source(Arc::clone(gate))))
            .collect();
        let ranges = |gate: &Gate| gate.most() as u64 * tree::RANGE;
        assert!(gates.iter().all(|gate| ranges(gate) == TOTAL / 4));
        assert_eq!(memory.next_share(), TOTAL / 5);
        members.truncate(2);
        assert_eq!(ranges(&gates[0]), TOTAL / 2);
        assert_eq!(ranges(&gates[1]), TOTAL / 2);
    }
}
