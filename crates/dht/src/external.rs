//! Under which address others see this node (BEP 42).

use std::collections::{BTreeMap, VecDeque};

use crate::address::Address;

/// How many networks are asked at least. The last ones count.
const VOTES: usize = 12;

/// What nodes say about the address of this node, one vote per network.
#[derive(Debug)]
pub(crate) struct Votes<A> {
    /// Network of the voter, and the host that it sees; the oldest first.
    votes: VecDeque<(A, A)>,
}

impl<A: Address> Votes<A> {
    pub fn new() -> Self {
        Self {
            votes: VecDeque::with_capacity(VOTES),
        }
    }

    /// Counts a vote. Returns the host that at least three quarters of the last voters see, if
    /// there are enough of them. Votes of and for local addresses do not count.
    pub fn vote(&mut self, voter: A, seen: A) -> Option<A> {
        if voter.is_local() || seen.is_local() || !seen.with_port(1).is_reachable() {
            return None;
        }
        let voter = voter.network();
        self.votes.retain(|(known, _)| *known != voter);
        if self.votes.len() == VOTES {
            self.votes.pop_front();
        }
        self.votes.push_back((voter, seen.with_port(0)));
        if self.votes.len() < VOTES {
            return None;
        }
        let mut counts = BTreeMap::new();
        for (_, host) in &self.votes {
            *counts.entry(*host).or_insert(0) += 1;
        }
        let majority = counts
            .into_iter()
            .find(|(_, count)| *count * 4 >= VOTES * 3);
        majority.map(|(host, _)| host)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV4;

    use super::*;

    fn addr(a: u8, b: u8) -> SocketAddrV4 {
        SocketAddrV4::new([8, a, b, 1].into(), 6881)
    }

    #[test]
    fn a_large_majority_of_networks_decides() {
        let mut votes = Votes::new();
        let own = addr(200, 1);
        for voter in 0..11 {
            let seen = if voter % 4 == 0 { addr(voter, 9) } else { own };
            assert_eq!(votes.vote(addr(voter, 1), seen), None);
        }
        // The same network again, then local addresses.
        assert_eq!(votes.vote(addr(10, 1), own), None);
        let local = "192.168.0.1:1".parse().unwrap();
        assert_eq!(votes.vote(local, own), None);
        assert_eq!(votes.vote(addr(30, 1), local), None);
        assert_eq!(
            votes.vote(addr(30, 1), own.with_port(7)),
            Some(own.with_port(0))
        );
        // A minority of liars, then a majority.
        let liars = (40..).map(|voter| votes.vote(addr(voter, 1), addr(0, 0)));
        let liars: Vec<_> = liars.take(12).collect();
        let (before, after) = liars.split_at(8);
        assert!(
            before
                .iter()
                .all(|seen| *seen != Some(addr(0, 0).with_port(0)))
        );
        assert_eq!(after[3], Some(addr(0, 0).with_port(0)));
    }
}
