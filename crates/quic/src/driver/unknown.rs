//! What connections may cost together whose peers the application does not know yet.
//!
//! Everybody can set connections up, as many as they like, and let each of them hold as much as its
//! window allows. So those of unknown peers share a fixed amount of memory. When it is used up, a
//! connection of the host gives way whose connections take most: a host that floods an endpoint
//! displaces only itself, and many hosts that come at once have about as many connections each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a connection takes beside unread data, in bytes: the states of QUIC and of TLS, and a lane. As
/// measured by the resident memory of a server with 240 of them.
const CONNECTION: usize = 72 << 10;
/// Most memory of all of them, in bytes: 71 connections without data.
const MAX_MEMORY: usize = 5 << 20;
/// Time for which a connection does not give way to further ones of its own host: a peer that sends its
/// first message at once is known by then.
const GRACE: Duration = Duration::from_secs(1);

/// A [`Table`] behind a lock.
#[derive(Debug)]
pub(super) struct Shared<H, C>(Mutex<Table<H, C>>);

/// The number of a connection in a table. They count up.
pub(super) type Number = u64;

/// Connections by age, and what they take.
#[derive(Debug)]
struct Table<H, C> {
    connections: BTreeMap<Number, Entry<H, C>>,
    next: Number,
    /// What all take, in bytes.
    memory: usize,
}

#[derive(Debug)]
struct Entry<H, C> {
    host: H,
    connection: C,
    since: Instant,
    memory: usize,
}

impl<H, C> Default for Shared<H, C> {
    fn default() -> Self {
        Self(Mutex::new(Table {
            connections: BTreeMap::new(),
            next: 0,
            memory: 0,
        }))
    }
}

impl<H: Hash + Eq + Clone, C> Shared<H, C> {
    fn lock(&self) -> MutexGuard<'_, Table<H, C>> {
        // No operation on the table can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection with a peer on `host`. Returns its number, and the connections that give way;
    /// it may be among them.
    pub(super) fn insert(&self, host: H, connection: C, now: Instant) -> (Number, Vec<C>) {
        let mut table = self.lock();
        let number = table.next;
        table.next += 1;
        table.memory += CONNECTION;
        let entry = Entry {
            host,
            connection,
            since: now,
            memory: CONNECTION,
        };
        table.connections.insert(number, entry);
        (number, table.displace(Some((number, now))))
    }

    /// Notes that unread data of a connection takes `held` bytes of memory. Returns the connections that
    /// give way; it may be among them.
    pub(super) fn set_held(&self, number: Number, held: usize) -> Vec<C> {
        let mut table = self.lock();
        let Some(entry) = table.connections.get_mut(&number) else {
            return Vec::new();
        };
        let (before, after) = (entry.memory, CONNECTION + held);
        entry.memory = after;
        table.memory = table.memory - before + after;
        table.displace(None)
    }

    /// Removes a connection: its peer is known now, or it takes no memory any more.
    pub(super) fn remove(&self, number: Number) {
        self.lock().remove(number);
    }
}

impl<H: Hash + Eq + Clone, C> Table<H, C> {
    fn remove(&mut self, number: Number) -> Option<C> {
        let entry = self.connections.remove(&number)?;
        self.memory -= entry.memory;
        Some(entry.connection)
    }

    /// Takes out connections until the others are within the bound. `added` is one that comes now.
    fn displace(&mut self, added: Option<(Number, Instant)>) -> Vec<C> {
        let mut displaced = Vec::new();
        while self.memory > MAX_MEMORY {
            let Some(mut number) = self.largest() else {
                break;
            };
            if let Some((added, now)) = added
                && let (Some(one), Some(new)) =
                    (self.connections.get(&number), self.connections.get(&added))
                && one.host == new.host
                && now.saturating_duration_since(one.since) < GRACE
            {
                number = added;
            }
            displaced.extend(self.remove(number));
        }
        displaced
    }

    /// The connection that takes most, and of several the oldest, of the host whose connections take
    /// most.
    fn largest(&self) -> Option<Number> {
        let mut hosts: HashMap<&H, usize> = HashMap::new();
        for entry in self.connections.values() {
            *hosts.entry(&entry.host).or_default() += entry.memory;
        }
        let (host, _) = hosts.into_iter().max_by_key(|(_, memory)| *memory)?;
        let all = self.connections.iter().filter(|(_, one)| one.host == *host);
        let (number, _) = all.max_by_key(|(number, one)| (one.memory, Reverse(**number)))?;
        Some(*number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_CONNECTIONS: usize = MAX_MEMORY / CONNECTION;

    #[test]
    fn a_host_that_floods_displaces_only_itself() {
        let (table, start) = (Shared::default(), Instant::now());
        let (patient, gone) = table.insert('a', 0, start);
        assert!(gone.is_empty());
        for name in 1..MAX_CONNECTIONS {
            assert!(table.insert('b', name, start).1.is_empty());
        }
        // Further ones wait for those that may still send something, and replace those that do not.
        assert_eq!(table.insert('b', 1000, start).1, [1000]);
        assert_eq!(table.insert('c', 2000, start).1, [1]);
        assert_eq!(table.insert('b', 3000, start + GRACE).1, [2]);
        // What it holds counts as well.
        let half = MAX_MEMORY / 2 + 2 * CONNECTION;
        assert!(table.set_held(patient, CONNECTION / 2).len() < 2);
        assert!(table.set_held(patient, half).contains(&0));
        assert!(table.set_held(patient, MAX_MEMORY).is_empty(), "it is gone");
    }

    proptest! {
        /// Whatever connections come, go and hold, all of them together stay within the bound.
        #[test]
        fn unknown_connections_take_a_fixed_sum(
            steps in prop::collection::vec(
                (0u8..3, 0u8..4, any::<prop::sample::Index>(), 0usize..400 << 10), 1..600,
            ),
        ) {
            let (table, mut open) = (Shared::default(), BTreeMap::new());
            let mut now = Instant::now();
            for (step, host, index, held) in steps {
                let picked = (!open.is_empty()).then(|| {
                    *open.keys().nth(index.index(open.len())).unwrap()
                });
                let displaced = match (step, picked) {
                    (1, Some(number)) => {
                        open.insert(number, held);
                        table.set_held(number, held)
                    }
                    (2, Some(number)) if host == 0 => {
                        open.remove(&number);
                        table.remove(number);
                        Vec::new()
                    }
                    _ => {
                        let id = table.lock().next;
                        now += Duration::from_millis(held as u64 / 1000);
                        let (number, displaced) = table.insert(host, id, now);
                        open.insert(number, 0);
                        displaced
                    }
                };
                for number in displaced {
                    prop_assert!(open.remove(&number).is_some());
                }
                let memory: usize = open.values().map(|held| held + CONNECTION).sum();
                prop_assert_eq!(table.lock().memory, memory);
                prop_assert!(memory <= MAX_MEMORY);
                prop_assert_eq!(table.lock().connections.len(), open.len());
            }
        }
    }
}
