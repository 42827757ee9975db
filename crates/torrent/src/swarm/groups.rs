//! The numbers of peers: all path-level peers of one have the same.

use std::collections::HashMap;

use hawser_address::PeerAddr;

use super::recent::Recent;
use crate::picker::GroupId;

/// Most peers without a connection whose numbers are kept, the last ones: what they sent can still be held
/// against them.
const MAX_GONE: usize = 2000;

/// Numbers of peers by the keys of their certificates; for an IP peer, by a hash of its address.
#[derive(Debug)]
pub(super) struct Groups {
    numbers: HashMap<[u8; 32], Known>,
    /// Those of peers without a connection.
    gone: Recent<[u8; 32], ()>,
    next: GroupId,
}

/// What is kept of a peer.
#[derive(Debug, Clone, Copy)]
struct Known {
    number: GroupId,
    /// From where it was connected last; `None` if it never was.
    from: Option<PeerAddr>,
}

impl Default for Groups {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            gone: Recent::new(MAX_GONE),
            next: 0,
        }
    }
}

impl Groups {
    /// The number of a peer, which no other one gets. It is kept while the peer has a connection, see
    /// [`Self::joined`], and for some time before and after.
    pub fn number(&mut self, key: [u8; 32]) -> GroupId {
        if let Some(known) = self.numbers.get(&key) {
            return known.number;
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(key, Known { number, from: None });
        self.left(key);
        number
    }

    /// The key of a peer, unless its number is forgotten.
    pub fn key(&self, number: GroupId) -> Option<[u8; 32]> {
        let mut numbers = self.numbers.iter();
        numbers.find_map(|(key, known)| (known.number == number).then_some(*key))
    }

    /// From where a peer was connected last, also if it has left; `None` if its number is forgotten.
    pub fn last_address(&self, number: GroupId) -> Option<PeerAddr> {
        let mut known = self.numbers.values();
        known.find(|known| known.number == number)?.from
    }

    /// A peer has a connection from this address now.
    pub fn joined(&mut self, key: &[u8; 32], from: PeerAddr) {
        self.gone.remove(key);
        if let Some(known) = self.numbers.get_mut(key) {
            known.from = Some(from);
        }
    }

    /// A peer has no connection any more.
    pub fn left(&mut self, key: [u8; 32]) {
        if let Some(oldest) = self.gone.insert(key, ()) {
            self.numbers.remove(&oldest);
        }
    }

    /// Number of peers that are known.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> [u8; 32] {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        key
    }

    fn from(port: u16) -> PeerAddr {
        PeerAddr::Ip(([10, 0, 0, 1], port).into())
    }

    #[test]
    fn peers_that_left_are_forgotten_and_connected_ones_are_not() {
        let mut groups = Groups::default();
        let connected = groups.number(key(0));
        groups.joined(&key(0), from(1));
        for other in 1..100_000 {
            assert_eq!(groups.number(key(other)), other);
            groups.joined(&key(other), from(other as u16));
            groups.left(key(other));
        }
        assert_eq!(groups.len(), MAX_GONE + 1);
        assert_eq!(groups.number(key(0)), connected);
        assert_eq!(groups.number(key(99_999)), 99_999);
        assert_eq!(groups.key(99_999), Some(key(99_999)));
        assert_eq!(groups.key(1), None);
        assert_eq!(groups.last_address(99_999), Some(from(99_999_u32 as u16)));
        assert_eq!(groups.last_address(1), None);
        // A forgotten peer is a new one.
        assert_eq!(groups.number(key(1)), 100_000);
    }
}
