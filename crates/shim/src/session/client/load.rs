//! What each lane of a session carries, for the path manager to judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hawser_manager::{Carried, SubflowId};

/// Bytes over all lanes in a [tick](super::TICK), from which on their rates are compared: with less,
/// programs have little to send, and what a lane carries says nothing about it. 8 Mbit/s.
const BUSY: u64 = 50_000;

/// What is measured of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Figures {
    /// The round-trip time, if there is one.
    pub rtt: Option<Duration>,
    /// Datagrams that the other side is known to have sent, and how many of them have arrived, in all.
    pub sent: u64,
    pub arrived: u64,
    /// Bytes carried so far: of datagrams in both directions, and of streams sent.
    pub carried: u64,
}

/// What the lanes of a session had carried at the last tick.
#[derive(Debug, Default)]
pub(super) struct Load {
    carried: BTreeMap<SubflowId, u64>,
    /// Those on trial.
    tried: BTreeSet<SubflowId>,
    /// Whether their rates can be compared.
    is_busy: bool,
}

impl Load {
    /// Adds what a subflow has carried so far.
    pub(super) fn add(&mut self, subflow: SubflowId, carried: u64, is_trial: bool) {
        self.carried.insert(subflow, carried);
        if is_trial {
            self.tried.insert(subflow);
        }
    }

    /// Takes `next`, of a tick later.
    pub(super) fn replace(&mut self, mut next: Self) {
        next.is_busy = next.total() >= self.total() + BUSY;
        *self = next;
    }

    /// What a subflow carried.
    pub(super) fn of(&self, subflow: SubflowId) -> Carried {
        Carried {
            bytes: self.carried.get(&subflow).copied().unwrap_or_default(),
            usable: self.is_busy && !self.tried.contains(&subflow),
        }
    }

    fn total(&self) -> u64 {
        self.carried.values().sum()
    }
}
