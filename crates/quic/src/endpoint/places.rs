//! Places for connections that are being set up, shared among the hosts that begin them.
//!
//! A host that begins connections and never completes them could hold all places. So when all are
//! taken, the host that holds most gives one up to a host that holds fewer.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A fixed number of places. Cloning shares them.
#[derive(Debug)]
pub(super) struct Places<H> {
    table: Arc<Mutex<Table<H>>>,
    number: usize,
}

impl<H> Clone for Places<H> {
    fn clone(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            number: self.number,
        }
    }
}

/// The taken places of each host, by age.
#[derive(Debug)]
struct Table<H> {
    hosts: HashMap<H, BTreeMap<u64, oneshot::Sender<()>>>,
    next: u64,
}

impl<H: Hash + Eq> Table<H> {
    fn taken(&self) -> usize {
        self.hosts.values().map(BTreeMap::len).sum()
    }

    fn held_by(&self, host: &H) -> usize {
        self.hosts.get(host).map_or(0, BTreeMap::len)
    }

    /// Takes the oldest place from the host that holds most, if it holds at least two more than `held`.
    fn displace(&mut self, held: usize) -> bool {
        let largest = self.hosts.values_mut().max_by_key(|places| places.len());
        let largest = largest.filter(|places| places.len() > held + 1);
        largest.is_some_and(|places| places.pop_first().is_some())
    }
}

/// A place. Dropping it makes room for another connection.
#[derive(Debug)]
pub(super) struct Place<H: Hash + Eq> {
    places: Places<H>,
    host: H,
    id: u64,
    displaced: oneshot::Receiver<()>,
}

impl<H: Hash + Eq + Clone> Places<H> {
    /// `number` places.
    pub(super) fn new(number: usize) -> Self {
        let table = Table {
            hosts: HashMap::new(),
            next: 0,
        };
        Self {
            table: Arc::new(Mutex::new(table)),
            number,
        }
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.lock().taken()
    }

    /// A place for a connection that `host` begins; `None` while all are taken and no host holds more
    /// of them than `host` would.
    pub(super) fn take(&self, host: H) -> Option<Place<H>> {
        let mut table = self.lock();
        let held = table.held_by(&host);
        if table.taken() >= self.number && !table.displace(held) {
            return None;
        }
        let id = table.next;
        table.next += 1;
        let (sender, displaced) = oneshot::channel();
        let places = table.hosts.entry(host.clone()).or_default();
        places.insert(id, sender);
        Some(Place {
            places: self.clone(),
            host,
            id,
            displaced,
        })
    }
}

impl<H> Places<H> {
    fn lock(&self) -> MutexGuard<'_, Table<H>> {
        // No operation on the table can panic half way.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Hash + Eq> Place<H> {
    /// Waits until the place is given to a connection of another host.
    pub(super) async fn displaced(&mut self) {
        // Nothing is sent: the table drops its end.
        let _ = (&mut self.displaced).await;
    }
}

impl<H: Hash + Eq> Drop for Place<H> {
    fn drop(&mut self) {
        let mut table = self.places.lock();
        if let Some(places) = table.hosts.get_mut(&self.host) {
            places.remove(&self.id);
            if places.is_empty() {
                table.hosts.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn is_displaced(place: &mut Place<u8>) -> bool {
        place.displaced.try_recv() == Err(TryRecvError::Closed)
    }

    #[test]
    fn the_host_that_holds_most_gives_way() {
        let places = Places::new(4);
        let take = |host| places.take(host);
        // A host may take all while no other one comes.
        let mut first: Vec<_> = (0..4).map(|_| take(1).unwrap()).collect();
        assert!(take(1).is_none());
        let second = take(2).unwrap();
        assert!(is_displaced(&mut first[0]));
        let mut third = take(2).unwrap();
        assert!(is_displaced(&mut first[1]));
        assert_eq!(places.taken(), 4);
        // Both have the same number.
        assert!(take(1).is_none() && take(2).is_none());
        assert!(!is_displaced(&mut first[2]) && !is_displaced(&mut third));
        // Those that were displaced have no place to give back.
        first.drain(..2).for_each(drop);
        assert_eq!(places.taken(), 4);
        drop((first, second, third));
        assert!(places.lock().hosts.is_empty());
    }

    proptest! {
        /// As connections come and go, each host can have its part of the places.
        #[test]
        fn each_host_can_have_its_part(
            steps in prop::collection::vec((0u8..4, any::<bool>()), 1..200),
        ) {
            const NUMBER: usize = 8;
            let places = Places::new(NUMBER);
            let mut held: Vec<Place<u8>> = Vec::new();
            for (host, comes) in steps {
                if comes {
                    let before = places.lock().held_by(&host);
                    let place = places.take(host);
                    prop_assert!(place.is_some() || before >= NUMBER / 4);
                    held.extend(place);
                } else if let Some(at) = held.iter().position(|one| one.host == host) {
                    held.swap_remove(at);
                }
                held.retain_mut(|one| !is_displaced(one));
                prop_assert_eq!(places.taken(), held.len());
                prop_assert!(held.len() <= NUMBER);
            }
        }
    }
}
