//! Which hosts are present, which know each other, and which ones they serve.

use std::collections::BTreeSet;

use hawser_choker::{Action, Counters};

use super::Swarm;
use crate::choose::{Now, Pair};
use crate::host::Host;
use crate::names::HostId;
use crate::options::SimulateError;

/// Steps after which a leecher that knows few others looks for more: like a client that announces
/// itself to its tracker again.
const ANNOUNCE: u64 = 100;

/// How many times as many leechers as one is to know are drawn from one by one.
const FEW: usize = 4;

impl Swarm {
    /// Lets the leechers join that are due.
    pub(super) fn welcome(&mut self, now: Now) {
        let coming =
            |host: &Host| !host.here && host.finished.is_none() && host.arrives <= now.since;
        let coming: Vec<HostId> = self.hosts_that(coming).collect();
        for new in coming {
            self.introduce(new);
            self.hosts[new as usize].here = true;
            self.members.fetching.push(new);
            for seeder in &mut self.hosts[..self.members.seeders] {
                seeder.peers.insert(new);
                seeder.choker.join(new);
                // Until it is complete, and leaves.
                seeder.choker.set_interested(new, true);
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
            }
        }
        self.hosts[host as usize].peers.extend(others);
    }

    /// Lets leechers that know few others be introduced to more.
    pub(super) fn announce(&mut self) {
        for at in self.members.seeders..self.hosts.len() {
            let host = &self.hosts[at];
            let is_due = (self.steps + at as u64).is_multiple_of(ANNOUNCE);
            if host.here && is_due && host.peers.len() < self.members.peers / 2 {
                self.introduce(at as HostId);
            }
        }
    }

    /// Lets each host choke and unchoke the peers that it knows.
    ///
    /// # Errors
    /// When there is no path between two hosts that must be connected.
    pub(super) fn choke(&mut self, now: Now) -> Result<(), SimulateError> {
        for at in 0..self.hosts.len() {
            let (from, host) = (at as HostId, &self.hosts[at]);
            if !host.here || host.rides_free {
                continue;
            }
            // Nothing but coming and leaving changes what a seeder knows of its peers.
            if at >= self.members.seeders {
                self.look_at_peers(from);
            }
            let Host { choker, peers, .. } = &mut self.hosts[at];
            let served = &self.served;
            let report = || {
                peers.iter().map(|&to| {
                    let counters = Counters {
                        received: served.bytes(Pair::new(to, from)),
                        sent: served.bytes(Pair::new(from, to)),
                    };
                    (to, counters)
                })
            };
            for order in choker.tick(report, now.instant) {
                let pair = Pair::new(from, order.peer);
                match order.action {
                    Action::Unchoke => self.connect(pair, now)?,
                    Action::Choke => self.disconnect(pair, now),
                }
            }
        }
        Ok(())
    }

    /// Reports to the choker of a leecher which others it knows, and which of them want something of it.
    fn look_at_peers(&mut self, from: HostId) {
        let host = &self.hosts[from as usize];
        let interested = host.peers.iter().map(|&to| {
            let pieces = &self.hosts[to as usize].pieces;
            (to, pieces.wants(from))
        });
        let interested: Vec<(HostId, bool)> = interested.collect();
        let Host { choker, peers, .. } = &mut self.hosts[from as usize];
        let gone: Vec<HostId> = choker.peers().filter(|to| !peers.contains(to)).collect();
        gone.into_iter().for_each(|to| choker.leave(to));
        for (to, interested) in interested {
            choker.join(to);
            choker.set_interested(to, interested);
        }
    }

    /// Removes leechers that are complete.
    pub(super) fn part(&mut self, now: Now) {
        let done = |host: &Host| host.here && host.finished.is_some();
        let seeders = self.members.seeders as HostId;
        let gone: BTreeSet<HostId> = self
            .hosts_that(done)
            .filter(|&host| host >= seeders)
            .collect();
        if gone.is_empty() {
            return;
        }
        self.members.fetching.retain(|host| !gone.contains(host));
        for pair in self.served.now.clone() {
            if gone.contains(&pair.from) || gone.contains(&pair.to) {
                self.disconnect(pair, now);
            }
        }
        for host in &gone {
            let at = *host as usize;
            self.hosts[at].here = false;
            for other in std::mem::take(&mut self.hosts[at].peers) {
                let other = &mut self.hosts[other as usize];
                other.peers.remove(host);
                other.pieces.part(*host);
            }
            self.hosts[at].pieces.forget();
            for seeder in &mut self.hosts[..self.members.seeders] {
                seeder.peers.remove(host);
                seeder.choker.leave(*host);
            }
        }
        self.served.forget(&gone);
        // Ended flows count only in the total.
        let (past, loads, hosts) = (&mut self.past, &mut self.loads, &mut self.hosts);
        self.changed = true;
        self.flows.0.retain(|key, flow| {
            let stays = !gone.contains(&key.from) && !gone.contains(&key.to);
            if !stays {
                if flow.carries {
                    flow.set_carries(false, loads);
                }
                past.add(flow);
                hosts[key.to as usize].pieces.end(*key);
            }
            stays
        });
    }
}
