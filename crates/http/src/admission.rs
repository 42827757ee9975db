//! Which connections a listener has at once.
//!
//! A connection *waits* until the whole head and body of a request have arrived, and again after each
//! answer; in between it is *busy*. A waiting connection costs its host nothing to open again. So when
//! there is no room for a new connection, one that waits is closed: the oldest of the network that has most
//! of them. Half-open connections therefore delay nobody, whatever their number.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The address that stands for all of a host: a host with one IPv6 address usually has all of its /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 64 << 64).into()),
    }
}

/// The connections of a listener, in the order in which they began.
#[derive(Debug)]
struct Table {
    limit: usize,
    next: u64,
    connections: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    network: IpAddr,
    is_busy: bool,
    evicted: Arc<Notify>,
}

impl Table {
    /// Whether another connection can be admitted.
    fn has_room(&self) -> bool {
        self.connections.len() < self.limit || self.connections.values().any(|one| !one.is_busy)
    }

    /// Admits a connection from `network`, at the cost of one that waits if there is no room. Returns
    /// its number.
    fn admit(&mut self, network: IpAddr) -> (u64, Arc<Notify>) {
        if self.connections.len() >= self.limit
            && let Some(victim) = self.victim()
            && let Some(entry) = self.connections.remove(&victim)
        {
            entry.evicted.notify_one();
        }
        let (number, evicted) = (self.next, Arc::new(Notify::new()));
        self.next += 1;
        let entry = Entry {
            network,
            is_busy: false,
            evicted: Arc::clone(&evicted),
        };
        self.connections.insert(number, entry);
        (number, evicted)
    }

    /// The connection that makes room: the first that waits of the network of which most wait.
    fn victim(&self) -> Option<u64> {
        let waiting = || self.connections.iter().filter(|(_, entry)| !entry.is_busy);
        let mut counts = HashMap::new();
        for (_, entry) in waiting() {
            *counts.entry(entry.network).or_insert(0_usize) += 1;
        }
        let most = counts.values().copied().max()?;
        let mut waiting = waiting().filter(|(_, entry)| counts.get(&entry.network) == Some(&most));
        waiting.next().map(|(number, _)| *number)
    }
}

/// The connections of a listener. Cloning shares them.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    /// Notified when there may be room again.
    freed: Notify,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission {
    /// At most `limit` connections.
    pub fn new(limit: usize) -> Self {
        let table = Table {
            limit,
            next: 0,
            connections: BTreeMap::new(),
        };
        Self(Arc::new(Shared {
            table: Mutex::new(table),
            freed: Notify::new(),
        }))
    }

    /// Waits until another connection can be admitted: when all are busy.
    pub async fn room(&self) {
        while !self.0.table().has_room() {
            // A permit is kept if it comes before the wait.
            self.0.freed.notified().await;
        }
    }

    /// Admits a connection from `address`, at the cost of one that waits if there is no room.
    pub fn admit(&self, address: IpAddr) -> Admitted {
        let (number, evicted) = self.0.table().admit(network(address));
        Admitted {
            shared: Arc::clone(&self.0),
            number,
            evicted,
        }
    }
}

/// A connection that was admitted, until this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    shared: Arc<Shared>,
    number: u64,
    evicted: Arc<Notify>,
}

impl Admitted {
    /// Sets whether the connection is busy with a request.
    pub fn set_busy(&self, is_busy: bool) {
        if let Some(entry) = self.shared.table().connections.get_mut(&self.number) {
            entry.is_busy = is_busy;
        }
        if !is_busy {
            self.shared.freed.notify_one();
        }
    }

    /// Waits until the connection has to make room for another one.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.shared.table().connections.remove(&self.number);
        self.shared.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(limit: usize) -> Table {
        Table {
            limit,
            next: 0,
            connections: BTreeMap::new(),
        }
    }

    fn host(number: u8) -> IpAddr {
        network([10, 0, 0, number].into())
    }

    #[test]
    fn the_network_with_most_waiting_connections_makes_room() {
        let mut table = table(4);
        let numbers = [1, 2, 2, 1].map(|of| table.admit(host(of)).0);
        table.connections.get_mut(&numbers[0]).unwrap().is_busy = true;
        // Two of the second host wait, and one of the first.
        table.admit(host(3));
        let left: Vec<u64> = table.connections.keys().copied().collect();
        assert_eq!(left, [0, 2, 3, 4]);
        // All have one that waits now: the first of them.
        table.admit(host(4));
        let left: Vec<u64> = table.connections.keys().copied().collect();
        assert_eq!(left, [0, 3, 4, 5]);
        for entry in table.connections.values_mut() {
            entry.is_busy = true;
        }
        assert!(!table.has_room());
    }

    #[test]
    fn an_ipv6_network_is_one_host() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }

    proptest! {
        #[test]
        fn busy_connections_stay_and_the_limit_holds(
            operations in prop::collection::vec((0_u8..4, 0_u8..3, 0_u64..40), 0..200),
        ) {
            let mut table = table(6);
            for (operation, from, number) in operations {
                match operation {
                    0 | 1 if table.has_room() => {
                        let busy = |table: &Table| -> Vec<u64> {
                            let all = table.connections.iter();
                            all.filter(|(_, one)| one.is_busy).map(|(key, _)| *key).collect()
                        };
                        let before = busy(&table);
                        let (new, _) = table.admit(host(from));
                        prop_assert!(table.connections.contains_key(&new));
                        prop_assert_eq!(busy(&table), before);
                    }
                    2 => drop(table.connections.remove(&number)),
                    _ => {
                        if let Some(entry) = table.connections.get_mut(&number) {
                            entry.is_busy = !entry.is_busy;
                        }
                    }
                }
                prop_assert!(table.connections.len() <= 6);
            }
        }
    }
}
