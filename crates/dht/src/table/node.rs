//! A node of the routing table.

use std::time::{Duration, Instant};

use crate::address::Address;
use crate::id::Id;
use crate::secure::Standing;

/// Nodes in a bucket, and in an answer (k of Kademlia).
pub(crate) const K: usize = 8;
/// Most nodes in a bucket, and in an answer where there are others, whose ids do not follow from
/// their addresses: such nodes may have chosen their ids to be near to a target.
pub(crate) const MAX_UNVERIFIED: usize = K / 2;
/// How long a node is good after an answer, and a bucket fresh after a change.
pub(crate) const FRESH: Duration = Duration::from_secs(15 * 60);
/// After how many queries in a row without an answer a node is bad.
pub(crate) const MAX_FAILURES: u8 = 2;
/// Shortest time between two pings of a node.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Time between pings of a bad node for which there is no replacement: perhaps the own network was
/// down.
const BAD_PING_INTERVAL: Duration = Duration::from_secs(10 * 60);

/// A node that has answered once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableNode<A> {
    pub id: Id,
    pub addr: A,
    pub standing: Standing,
    /// When it last answered.
    pub answered: Instant,
    /// When it last asked.
    pub asked: Option<Instant>,
    /// When it was last pinged.
    pub pinged: Option<Instant>,
    /// Queries in a row that it did not answer.
    pub failures: u8,
}

impl<A: Address> TableNode<A> {
    pub fn new(id: Id, addr: A, standing: Standing, now: Instant) -> Self {
        Self {
            id,
            addr,
            standing,
            answered: now,
            asked: None,
            pinged: None,
            failures: 0,
        }
    }

    /// It has answered.
    pub fn answered(&mut self, now: Instant) {
        self.answered = now;
        self.failures = 0;
    }

    pub fn is_bad(&self) -> bool {
        self.failures >= MAX_FAILURES
    }

    pub fn is_good(&self, now: Instant) -> bool {
        let fresh = |at: Instant| now.saturating_duration_since(at) < FRESH;
        !self.is_bad() && (fresh(self.answered) || self.asked.is_some_and(fresh))
    }

    /// Whether it is time to see whether it still answers.
    pub fn ping_is_due(&self, now: Instant) -> bool {
        let interval = match self.is_bad() {
            true => BAD_PING_INTERVAL,
            false => PING_INTERVAL,
        };
        let recent = |at: Instant| now.saturating_duration_since(at) < interval;
        let answers = now.saturating_duration_since(self.answered) < FRESH && self.failures == 0;
        !answers && !self.pinged.is_some_and(recent)
    }
}

/// Whether a node with a worse standing gives its place to one with a better.
pub(crate) fn outranks(new: Standing, old: Standing) -> bool {
    old == Standing::Unverified && new != Standing::Unverified
}
