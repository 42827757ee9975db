//! Which hosts are present, and which know each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Swarm;
use crate::choose::Now;
use crate::host::Host;
use crate::names::{FlowKey, HostId, Pair};
use crate::options::Options;

/// Steps after which a leecher that knows few others looks for more: like a client that announces
/// itself to its tracker again.
const ANNOUNCE: u64 = 100;

/// How many times as many leechers as one is to know are drawn from one by one.
const FEW: usize = 4;

/// The members of a swarm.
pub(super) struct Members {
    /// Number of seeders: the hosts with the lowest numbers.
    pub seeders: usize,
    /// The leechers that have not joined yet, in the order in which they join.
    coming: VecDeque<HostId>,
    /// The leechers that are here.
    pub fetching: Vec<HostId>,
    /// The leechers that are complete and still here.
    pub done: BTreeSet<HostId>,
    /// Number of leechers that are complete.
    pub finished: usize,
    /// The leechers that fetch from seeders, and over how many path-level peers each.
    pub fed: BTreeMap<HostId, usize>,
    /// The leechers that have news for their pickers.
    pub informed: Vec<HostId>,
    /// How many others each leecher is to know.
    peers: usize,
}

impl Members {
    pub fn new(options: &Options, hosts: &[Host]) -> Self {
        let seeders = options.hosts.seeders;
        let mut coming: Vec<HostId> = (seeders as HostId..hosts.len() as HostId).collect();
        coming.sort_by_key(|host| hosts[*host as usize].arrives);
        Self {
            seeders,
            coming: coming.into(),
            fetching: Vec::new(),
            done: BTreeSet::new(),
            finished: 0,
            fed: BTreeMap::new(),
            informed: Vec::new(),
            peers: options.peers,
        }
    }

    /// A seeder begins to send to a leecher over a path-level peer, or ends.
    pub fn count_fed(&mut self, leecher: HostId, begins: bool) {
        let count = self.fed.entry(leecher).or_default();
        *count = if begins { *count + 1 } else { *count - 1 };
        if *count == 0 {
            self.fed.remove(&leecher);
        }
    }
}

impl Swarm {
    /// Lets the leechers join that are due.
    pub(super) fn welcome(&mut self, now: Now) {
        let (hosts, coming) = (&self.hosts, &mut self.members.coming);
        let is_due = |host: &&HostId| hosts[**host as usize].arrives <= now.since;
        let count = coming.iter().take_while(is_due).count();
        let mut due: Vec<HostId> = coming.drain(..count).collect();
        due.sort_unstable();
        for new in due {
            self.introduce(new);
            self.hosts[new as usize].here = true;
            self.members.fetching.push(new);
            self.chokers.add(new, &self.hosts[new as usize]);
            for (at, seeder) in (0..).zip(&mut self.hosts[..self.members.seeders]) {
                seeder.choker.join(new);
                // Until it is complete, and leaves.
                seeder.choker.set_interested(new, true);
                self.chokers.wake(at);
            }
        }
    }

    /// Introduces a leecher to random others, until it knows as many as the options say.
    fn introduce(&mut self, host: HostId) {
        let known = &self.hosts[host as usize].peers;
        let missing = self.members.peers.saturating_sub(known.len());
        let is_new = |other: &HostId| *other != host && !known.contains(other);
        let mut others = Vec::new();
        if self.members.fetching.len() > FEW * (self.members.peers + known.len()) {
            // Most draws are new.
            while others.len() < missing {
                let drawn = self.rng.choice(&self.members.fetching).copied();
                let drawn = drawn.filter(|other| is_new(other) && !others.contains(other));
                others.extend(drawn);
            }
        } else {
            others.extend(self.members.fetching.iter().copied().filter(is_new));
            self.rng.shuffle(&mut others);
            others.truncate(missing);
        }
        for other in &others {
            self.hosts[*other as usize].peers.insert(host);
            for (one, met) in [(host, *other), (*other, host)] {
                let has = self.hosts[met as usize].pieces.held().clone();
                self.hosts[one as usize].pieces.meet(met, has);
                self.members.informed.push(one);
                self.chokers.note(Pair::new(one, met));
            }
        }
        self.hosts[host as usize].peers.extend(others);
    }

    /// Lets leechers that know few others be introduced to more.
    pub(super) fn announce(&mut self) {
        let seeders = self.members.seeders as u64;
        // In each step, one leecher in `ANNOUNCE`.
        let skipped = (ANNOUNCE - (seeders + self.steps) % ANNOUNCE) % ANNOUNCE;
        let leechers = (seeders + skipped) as usize..self.hosts.len();
        for at in leechers.step_by(ANNOUNCE as usize) {
            let host = &self.hosts[at];
            if host.here && host.peers.len() < self.members.peers / 2 {
                self.introduce(at as HostId);
            }
        }
    }

    /// Removes leechers that are complete.
    pub(super) fn part(&mut self, now: Now) {
        let gone = std::mem::take(&mut self.members.done);
        if gone.is_empty() {
            return;
        }
        self.members.fetching.retain(|host| !gone.contains(host));
        let (mut served, mut flows) = (BTreeSet::new(), BTreeSet::new());
        for host in &gone {
            let unchoked = self.hosts[*host as usize].choker.unchoked();
            served.extend(unchoked.map(|to| Pair::new(*host, to)));
            flows.extend(self.flows.from(*host).map(|(key, _)| key));
            for from in self.acquaintances(*host) {
                let pair = Pair::new(from, *host);
                if self.hosts[from as usize].choker.is_unchoked(*host) {
                    served.insert(pair);
                }
                flows.extend(self.flows.between(pair).map(|(key, _)| key));
            }
        }
        served
            .into_iter()
            .for_each(|pair| self.disconnect(pair, now));
        gone.into_iter().for_each(|host| self.dismiss(host));
        flows.into_iter().for_each(|key| self.end(key));
        self.changed = true;
    }

    /// The seeders, and the leechers that know a leecher.
    fn acquaintances(&self, host: HostId) -> impl Iterator<Item = HostId> {
        let peers = self.hosts[host as usize].peers.iter();
        (0..self.members.seeders as HostId).chain(peers.copied())
    }

    /// Removes a leecher that has left, and lets others forget it.
    fn dismiss(&mut self, host: HostId) {
        let others: Vec<HostId> = self.acquaintances(host).collect();
        for at in others {
            let other = &mut self.hosts[at as usize];
            other.peers.remove(&host);
            other.pieces.part(host);
            other.choker.leave(host);
            self.chokers.wake(at);
        }
        self.hosts[host as usize].leave(self.base);
    }

    /// Ends a path-level peer whose uploader or leecher has left: it counts only in the total.
    fn end(&mut self, key: FlowKey) {
        let Some(mut flow) = self.flows.remove(key) else {
            return;
        };
        if flow.carries {
            flow.set_carries(false, &mut self.loads);
        }
        self.past.add(&flow);
        self.hosts[key.to as usize].pieces.end(key);
    }
}
