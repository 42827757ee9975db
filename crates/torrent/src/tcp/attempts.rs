//! Whether peers are dialed plainly or encrypted.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hawser_mse::{Policy, Wire};

/// Most peers that are remembered. Forgetting one costs a failed dial.
const MAX_PEERS: usize = 4096;

/// Which of the ways that a policy allows each peer is dialed in: the first, until the peer does not
/// answer.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub policy: Policy,
    /// The way in which those are dialed that did not answer the last dial.
    next: Mutex<HashMap<SocketAddr, Next>>,
}

/// The way in which a peer is dialed next.
#[derive(Debug, Clone, Copy)]
struct Next {
    wire: Wire,
    /// Whether the peer was not dialed since its way was changed.
    is_new: bool,
}

impl Attempts {
    pub fn new(policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            policy,
            next: Mutex::default(),
        })
    }

    /// Begins to talk to a peer over a new connection.
    pub fn begin(self: &Arc<Self>, peer: SocketAddr) -> Attempt {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let wire = next.get_mut(&peer).map(|next| {
            next.is_new = false;
            next.wire
        });
        Attempt {
            attempts: Arc::clone(self),
            peer,
            wire: wire.unwrap_or(self.policy.dials()[0]),
            is_answered: false,
        }
    }

    /// Whether the next dial to a peer is the first in another way than at first.
    pub fn has_other_way(&self, peer: SocketAddr) -> bool {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = |next: &Next| next.is_new && next.wire != self.policy.dials()[0];
        next.get(&peer).is_some_and(is_other)
    }

    /// Has the next dial to a peer be made in another way, if the policy allows one.
    fn failed(&self, peer: SocketAddr, wire: Wire) {
        let mut dials = self.policy.dials().iter().copied();
        let Some(wire) = dials.find(|other| *other != wire) else {
            return;
        };
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if next.len() >= MAX_PEERS && !next.contains_key(&peer) {
            next.clear();
        }
        next.insert(peer, Next { wire, is_new: true });
    }
}

/// A connection over which the peer has not answered yet. Dropping it means that it did not, or not in the
/// way in which it was dialed.
#[derive(Debug)]
pub(crate) struct Attempt {
    attempts: Arc<Attempts>,
    peer: SocketAddr,
    /// What the connection begins with.
    pub wire: Wire,
    is_answered: bool,
}

impl Attempt {
    pub fn policy(&self) -> Policy {
        self.attempts.policy
    }

    /// Whether there is another way to dial the peer.
    pub fn has_other(&self) -> bool {
        self.policy().dials().len() > 1
    }

    /// The peer has answered: it is dialed in this way again.
    pub fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_answered {
            self.attempts.failed(self.peer, self.wire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    #[test]
    fn a_peer_that_does_not_answer_is_dialed_in_the_other_way() {
        let attempts = Attempts::new(Policy::Allow);
        for wire in [Wire::Plain, Wire::Encrypted, Wire::Plain, Wire::Encrypted] {
            let attempt = attempts.begin(peer(1));
            assert!(attempt.wire == wire && !attempts.has_other_way(peer(1)));
            drop(attempt);
            assert_eq!(attempts.has_other_way(peer(1)), wire == Wire::Plain);
        }
        assert_eq!(attempts.begin(peer(2)).wire, Wire::Plain);
        // It stays with the way that worked.
        drop(attempts.begin(peer(1)));
        for _ in 0..3 {
            let attempt = attempts.begin(peer(1));
            assert_eq!(attempt.wire, Wire::Encrypted);
            attempt.answered();
        }
    }

    #[test]
    fn a_policy_with_one_way_keeps_to_it() {
        for (policy, wire) in [
            (Policy::Disable, Wire::Plain),
            (Policy::Require, Wire::Encrypted),
        ] {
            let attempts = Attempts::new(policy);
            for _ in 0..3 {
                let attempt = attempts.begin(peer(1));
                assert!(attempt.wire == wire && !attempt.has_other());
            }
        }
    }

    #[test]
    fn the_memory_of_peers_is_bounded() {
        let attempts = Attempts::new(Policy::Prefer);
        (0..10_000).for_each(|port| drop(attempts.begin(peer(port))));
        let next = attempts.next.lock().expect("no panic");
        assert!(next.len() <= MAX_PEERS);
    }
}
