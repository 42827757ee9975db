//! Turns of peers, whatever number of connections each has.

use std::collections::{BTreeMap, VecDeque};

/// A connection that waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(u64);

/// The connections that wait, by peer.
///
/// The peers take turns, and so do the connections of each. Bounded by the connections: each has
/// one ticket at a time.
#[derive(Debug)]
pub(super) struct Turns<K> {
    /// Peers with connections that wait, in the order of their turns.
    order: VecDeque<K>,
    waiting: BTreeMap<K, VecDeque<Ticket>>,
    last: u64,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            waiting: BTreeMap::new(),
            last: 0,
        }
    }
}

impl<K: Ord + Copy> Turns<K> {
    /// Adds a connection of a peer.
    pub fn enter(&mut self, key: K) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        let queue = self.waiting.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            VecDeque::new()
        });
        queue.push_back(ticket);
        ticket
    }

    /// The connection that has its turn now; `None` if none waits.
    pub fn head(&self) -> Option<Ticket> {
        let queue = self.waiting.get(self.order.front()?)?;
        queue.front().copied()
    }

    /// Removes a connection that has had its turn, or does not wait any more. After its turn, that
    /// of the next peer comes.
    pub fn leave(&mut self, key: K, ticket: Ticket) {
        let was_head = self.head() == Some(ticket);
        let Some(queue) = self.waiting.get_mut(&key) else {
            return;
        };
        queue.retain(|waiting| *waiting != ticket);
        if queue.is_empty() {
            self.waiting.remove(&key);
            self.order.retain(|waiting| *waiting != key);
        } else if was_head {
            self.order.rotate_left(1);
        }
    }
}
