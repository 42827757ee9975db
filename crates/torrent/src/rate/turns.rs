//! Turns of peers or torrents, whatever number of connections each has.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A connection that waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(u64);

/// The place of one in the order of turns: by what it has cost, then by when it came or had its last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    cost: u64,
    since: u64,
}

/// The connections of one that wait.
#[derive(Debug)]
struct Queue {
    place: Place,
    /// What a byte of it costs.
    price: u64,
    tickets: VecDeque<Ticket>,
}

/// The connections that wait, by peer or torrent, the key `K`.
///
/// The turn goes to the key that has cost least so far, so that those that always wait get bytes in inverse
/// proportion to their prices; the connections of a key take turns. A key that waited for nothing saves nothing up: it counts as one that has
/// cost as much as the one that had the last turn. Start-time fair queueing, in which the bytes of a turn are
/// known at its end.
///
/// Bounded by the connections: each has one ticket at a time, and by the keys that had a turn lately.
#[derive(Debug)]
pub(super) struct Turns<K> {
    order: BTreeMap<Place, K>,
    waiting: BTreeMap<K, Queue>,
    /// The connection that was given its turn, which nobody takes before its end.
    given: Option<(K, Ticket)>,
    /// What the key with the last turn had cost at its beginning.
    reached: u64,
    /// What keys that do not wait have cost, beyond `reached`.
    idle: BTreeMap<K, u64>,
    idle_order: BTreeSet<(u64, K)>,
    last: u64,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self {
            order: BTreeMap::new(),
            waiting: BTreeMap::new(),
            given: None,
            reached: 0,
            idle: BTreeMap::new(),
            idle_order: BTreeSet::new(),
            last: 0,
        }
    }
}

impl<K: Ord + Copy> Turns<K> {
    /// Adds a connection of a key, of which a byte has this price from now on.
    pub fn enter(&mut self, key: K, price: u64) -> Ticket {
        let since = self.next();
        let ticket = Ticket(since);
        if let Some(queue) = self.waiting.get_mut(&key) {
            queue.price = price;
            queue.tickets.push_back(ticket);
            return ticket;
        }
        let kept = self.idle.remove(&key);
        if let Some(cost) = kept {
            self.idle_order.remove(&(cost, key));
        }
        let cost = kept.unwrap_or(0).max(self.reached);
        let place = Place { cost, since };
        let tickets = VecDeque::from([ticket]);
        self.order.insert(place, key);
        let queue = Queue {
            place,
            price,
            tickets,
        };
        self.waiting.insert(key, queue);
        ticket
    }

    /// The connection that has its turn now; `None` if none waits.
    pub fn head(&self) -> Option<Ticket> {
        if let Some((_, ticket)) = self.given {
            return Some(ticket);
        }
        let (_, key) = self.order.first_key_value()?;
        self.waiting.get(key)?.tickets.front().copied()
    }

    /// Gives the turn to the [head](Self::head): it stays the head until it leaves.
    pub fn give(&mut self) {
        if self.given.is_none()
            && let Some((place, key)) = self.order.first_key_value()
            && let Some(queue) = self.waiting.get(key)
            && let Some(ticket) = queue.tickets.front()
        {
            self.reached = self.reached.max(place.cost);
            self.given = Some((*key, *ticket));
            self.forget();
        }
    }

    /// Removes a connection that has had its turn, in which these bytes passed, or does not wait any more.
    pub fn leave(&mut self, key: K, ticket: Ticket, bytes: u64) {
        let was_head = self.head() == Some(ticket);
        self.given = self.given.filter(|(_, given)| *given != ticket);
        let since = self.next();
        let Some(queue) = self.waiting.get_mut(&key) else {
            return;
        };
        queue.tickets.retain(|waiting| *waiting != ticket);
        let place = queue.place;
        let cost = place.cost.saturating_add(queue.price.saturating_mul(bytes));
        if queue.tickets.is_empty() {
            self.waiting.remove(&key);
            self.order.remove(&place);
            if cost > self.reached {
                self.idle.insert(key, cost);
                self.idle_order.insert((cost, key));
            }
        } else if was_head {
            self.order.remove(&place);
            queue.place = Place { cost, since };
            self.order.insert(queue.place, key);
        }
    }

    /// Forgets what keys that do not wait have cost, where that makes no difference any more.
    fn forget(&mut self) {
        while let Some((cost, key)) = self.idle_order.first().copied()
            && cost <= self.reached
        {
            self.idle_order.remove(&(cost, key));
            self.idle.remove(&key);
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
