//! Connections of peers that have yet to prove useful, a bounded number of them.
//!
//! Such a connection costs its peer nothing to open again. So when there are as many as there may be, a new
//! one takes the place of the oldest of the network that has most of them: a peer that opens many keeps out
//! none but itself.

use std::collections::{BTreeMap, HashMap};

use hawser_address::{IsdAsn, PeerAddr, ScionAddr};

/// The addresses that one host can be assumed to have all of.
pub(crate) fn network(peer: PeerAddr) -> ScionAddr {
    let addr = match peer {
        PeerAddr::Scion(addr) => addr,
        PeerAddr::Ip(addr) => ScionAddr::new(IsdAsn::WILDCARD, addr),
    };
    addr.network()
}

/// The first of the network of which there are most, which is to give way; `None` if no network has `least`.
pub(crate) fn victim<K: Copy>(
    waiting: impl Iterator<Item = (K, ScionAddr)> + Clone,
    least: usize,
) -> Option<K> {
    let mut counts: HashMap<ScionAddr, usize> = HashMap::new();
    for (_, network) in waiting.clone() {
        *counts.entry(network).or_default() += 1;
    }
    let most = counts
        .values()
        .copied()
        .max()
        .filter(|most| *most >= least)?;
    let mut of_most = waiting.filter(|(_, network)| counts.get(network) == Some(&most));
    of_most.next().map(|(key, _)| key)
}

/// Connections in the order in which they came, each with what ends it.
#[derive(Debug)]
pub(crate) struct Crowd<E> {
    max: usize,
    next: u64,
    waiting: BTreeMap<u64, (ScionAddr, E)>,
}

impl<E> Crowd<E> {
    /// At most `max` connections, 1 at least.
    pub fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            next: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Adds a connection of `peer`. Returns its number, and what ends the one that gives way, if one must.
    pub fn admit(&mut self, peer: PeerAddr, end: E) -> (u64, Option<E>) {
        let networks = self.waiting.iter().map(|(number, it)| (*number, it.0));
        let victim = match self.waiting.len() < self.max {
            true => None,
            false => victim(networks, 1),
        };
        let ended = victim.and_then(|number| self.waiting.remove(&number));
        self.next += 1;
        self.waiting.insert(self.next, (network(peer), end));
        (self.next, ended.map(|(_, end)| end))
    }

    /// Removes a connection that has proved useful or has ended.
    pub fn leave(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn peer(host: u8, port: u16) -> PeerAddr {
        PeerAddr::Ip(([10, 0, 0, host], port).into())
    }

    #[test]
    fn one_host_keeps_out_none_but_itself() {
        let mut crowd = Crowd::new(4);
        assert_eq!(crowd.admit(peer(1, 1), 'a').1, None);
        assert_eq!(crowd.admit(peer(2, 1), 'b').1, None);
        assert_eq!(crowd.admit(peer(2, 2), 'c').1, None);
        assert_eq!(crowd.admit(peer(2, 3), 'd').1, None);
        assert_eq!(crowd.admit(peer(2, 4), 'e').1, Some('b'));
        assert_eq!(crowd.admit(peer(3, 1), 'f').1, Some('c'));
        assert_eq!(crowd.admit(peer(3, 2), 'g').1, Some('d'));
        crowd.leave(1);
        assert_eq!(crowd.admit(peer(4, 1), 'h').1, None);
        assert_eq!(crowd.len(), 4);
    }

    #[test]
    fn networks_with_fewer_than_the_least_give_no_way() {
        let waiting = [1, 2, 3, 2].map(|host| (host, network(peer(host, 1))));
        assert_eq!(victim(waiting[..3].iter().copied(), 2), None);
        assert_eq!(victim(waiting.iter().copied(), 2), Some(2));
        assert_eq!(victim(waiting[..3].iter().copied(), 1), Some(1));
    }

    #[test]
    fn addresses_of_one_host_are_one_network() {
        let ip = |text: &str| network(PeerAddr::Ip(text.parse().unwrap()));
        assert_eq!(ip("[2001:db8::1]:1"), ip("[2001:db8::2]:2"));
        assert_ne!(ip("[2001:db8::1]:1"), ip("[2001:db8:0:1::1]:1"));
        assert_eq!(ip("[::ffff:8.8.8.8]:1"), ip("8.8.8.8:2"));
        let scion = |text: &str| network(text.parse().unwrap());
        assert_ne!(scion("1-ff00:0:110,8.8.8.8:1"), ip("8.8.8.8:1"));
    }

    proptest! {
        #[test]
        fn a_host_with_fewer_than_its_share_loses_none(
            max in 1..6_usize,
            hosts in prop::collection::vec(0..4_u8, 0..60),
        ) {
            let mut crowd = Crowd::new(max);
            let mut held: Vec<u8> = Vec::new();
            for host in hosts {
                let count = |held: &[u8], of: u8| held.iter().filter(|it| **it == of).count();
                let most = (0..4).map(|of| count(&held, of)).max().unwrap_or(0);
                let full = held.len() == max;
                let (_, ended) = crowd.admit(peer(host, 1), host);
                prop_assert_eq!(ended.is_some(), full);
                if let Some(ended) = ended {
                    prop_assert_eq!(count(&held, ended), most);
                    let at = held.iter().position(|it| *it == ended).unwrap();
                    held.remove(at);
                }
                held.push(host);
                prop_assert_eq!(crowd.len(), held.len());
            }
        }
    }
}
