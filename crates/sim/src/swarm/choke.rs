//! Which peers each host serves.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Instant;

use hawser_choker::{Action, Counters};

use super::Swarm;
use crate::choose::Now;
use crate::host::Host;
use crate::names::{HostId, Pair};
use crate::options::SimulateError;

/// The chokers that have something to do.
pub(super) struct Chokers {
    /// When each reviews its peers next.
    reviews: BinaryHeap<Reverse<(Instant, HostId)>>,
    /// Those whose peers came, left, or changed their interest.
    woken: BTreeSet<HostId>,
    /// Pairs of an uploader and a leecher that may want something of it, or nothing any more, since
    /// the last step.
    interests: Vec<Pair>,
}

impl Chokers {
    /// Those of the hosts that are here.
    pub fn new(hosts: &[Host]) -> Self {
        let mut chokers = Self {
            reviews: BinaryHeap::new(),
            woken: BTreeSet::new(),
            interests: Vec::new(),
        };
        let here = (0..).zip(hosts).filter(|(_, host)| host.here);
        here.for_each(|(at, host)| chokers.add(at, host));
        chokers
    }

    /// Adds the choker of a host that joins.
    pub fn add(&mut self, at: HostId, host: &Host) {
        self.reviews.push(Reverse((host.choker.next_review(), at)));
    }

    /// A choker has something to do in the next step.
    pub fn wake(&mut self, at: HostId) {
        self.woken.insert(at);
    }

    /// A leecher has met an uploader, or its interest in it may have changed.
    pub fn note(&mut self, pair: Pair) {
        self.interests.push(pair);
    }

    /// The hosts whose chokers have something to do now, in their order.
    fn due(&mut self, now: Instant) -> BTreeSet<HostId> {
        while let Some(Reverse((at, host))) = self.reviews.peek().copied()
            && at <= now
        {
            self.reviews.pop();
            self.woken.insert(host);
        }
        std::mem::take(&mut self.woken)
    }
}

impl Swarm {
    /// Lets hosts choke and unchoke the peers that they know.
    ///
    /// # Errors
    /// When there is no path between two hosts that must be connected.
    pub(super) fn choke(&mut self, now: Now) -> Result<(), SimulateError> {
        self.review_interests();
        for from in self.chokers.due(now.instant) {
            self.looks += 1;
            let Host {
                choker,
                peers,
                here,
                rides_free,
                ..
            } = &mut self.hosts[from as usize];
            if !*here || *rides_free {
                continue;
            }
            let flows = &self.flows;
            let report = || {
                let sent = flows.from(from).map(|(key, flow)| {
                    let sent = flow.bytes;
                    (key.to, Counters { received: 0, sent })
                });
                let received = peers.iter().map(|&to| {
                    let received = flows.sent(Pair::new(to, from));
                    (to, Counters { received, sent: 0 })
                });
                sent.chain(received)
            };
            let is_review = choker.next_review() <= now.instant;
            let orders = choker.tick(report, now.instant);
            if is_review {
                let next = choker.next_review();
                self.chokers.reviews.push(Reverse((next, from)));
            }
            for order in orders {
                let pair = Pair::new(from, order.peer);
                match order.action {
                    Action::Unchoke => self.connect(pair, now)?,
                    Action::Choke => self.disconnect(pair, now),
                }
            }
        }
        Ok(())
    }

    /// Reports to the chokers of leechers which peers want something since the last step, or nothing any more.
    fn review_interests(&mut self) {
        let mut pairs = std::mem::take(&mut self.chokers.interests);
        pairs.sort_unstable();
        pairs.dedup();
        self.looks += pairs.len() as u64;
        for Pair { from, to } in pairs {
            let wants = self.hosts[to as usize].pieces.wants(from);
            let host = &mut self.hosts[from as usize];
            if host.rides_free || !host.peers.contains(&to) {
                continue;
            }
            host.choker.join(to);
            host.choker.set_interested(to, wants);
            self.chokers.wake(from);
        }
    }
}
