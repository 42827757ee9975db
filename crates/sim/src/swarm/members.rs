//! Which hosts are present, which know each other, and which ones leechers serve.

use std::collections::BTreeSet;

use super::Swarm;
use crate::choose::{Now, Pair};
use crate::host::{Host, HostId};
use crate::options::SimulateError;

/// Steps in a second, after which a leecher looks for more peers to serve, and in a choking period
/// (BEP 3).
const SECOND: u64 = 10;
const CHOKING: u64 = 100;

/// Most peers that a leecher serves at once.
const MAX_UNCHOKED: usize = 4;

impl Swarm {
    /// Lets the leechers join that are due.
    pub(super) fn welcome(&mut self, now: Now) -> Result<(), SimulateError> {
        let coming =
            |host: &Host| !host.here && host.finished.is_none() && host.arrives <= now.since;
        let coming: Vec<HostId> = self.hosts_that(coming).collect();
        for new in coming {
            self.introduce(new);
            self.hosts[new as usize].here = true;
            for from in 0..self.seeders as u32 {
                self.connect(Pair::new(from, new), now)?;
            }
        }
        Ok(())
    }

    /// Introduces a leecher to random others, until it knows as many as the options say.
    fn introduce(&mut self, host: HostId) {
        let known = &self.hosts[host as usize].peers;
        let missing = self.peers.saturating_sub(known.len());
        let mut others: Vec<HostId> = self
            .hosts_that(|other| other.here && other.finished.is_none())
            .filter(|other| *other != host && !known.contains(other))
            .collect();
        self.rng.shuffle(&mut others);
        others.truncate(missing);
        for other in &others {
            self.hosts[*other as usize].peers.insert(host);
        }
        self.hosts[host as usize].peers.extend(others);
    }

    /// Lets leechers choose the peers they serve: again every choking period, and more of them
    /// every second while there is room.
    pub(super) fn choke(&mut self, now: Now) -> Result<(), SimulateError> {
        for at in self.seeders..self.hosts.len() {
            let from = at as HostId;
            let phase = self.steps + u64::from(from);
            if !self.hosts[at].here || !phase.is_multiple_of(SECOND) {
                continue;
            }
            let all = Pair::new(from, 0)..=Pair::new(from, HostId::MAX);
            let serves: Vec<HostId> = self.serves.range(all).map(|pair| pair.to).collect();
            let anew = phase.is_multiple_of(CHOKING);
            if !anew && serves.len() >= MAX_UNCHOKED {
                continue;
            }
            // Like a client that announces itself to its tracker again when few peers are left.
            if anew && self.hosts[at].peers.len() < self.peers / 2 {
                self.introduce(from);
            }
            let host = &self.hosts[at];
            let interested = host.peers.iter().filter(|&&to| {
                let other = &self.hosts[to as usize];
                other.here && other.finished.is_none() && other.pieces.wants(&host.pieces)
            });
            let gave = |to: &HostId| {
                let pair = Pair::new(*to, from);
                self.period.get(&pair).copied().unwrap_or(0)
            };
            let interested: Vec<(HostId, u64)> = interested.map(|to| (*to, gave(to))).collect();
            let chosen = if anew {
                let chosen = unchoke(&interested, &mut self.rng);
                for &to in serves.iter().filter(|to| !chosen.contains(to)) {
                    self.disconnect(Pair { from, to }, now);
                }
                self.period.retain(|pair, _| pair.to != from);
                chosen
            } else {
                let mut open = interested;
                open.retain(|(to, _)| !serves.contains(to));
                let count = MAX_UNCHOKED - serves.len();
                self.rng.shuffle(&mut open);
                open.into_iter().take(count).map(|(to, _)| to).collect()
            };
            for to in chosen.into_iter().filter(|to| !serves.contains(to)) {
                self.connect(Pair { from, to }, now)?;
            }
        }
        Ok(())
    }

    /// Removes leechers that are complete.
    pub(super) fn part(&mut self, now: Now) {
        let done = |host: &Host| host.here && host.finished.is_some();
        let seeders = self.seeders as HostId;
        let gone: BTreeSet<HostId> = self
            .hosts_that(done)
            .filter(|&host| host >= seeders)
            .collect();
        if gone.is_empty() {
            return;
        }
        for pair in self.serves.clone() {
            if gone.contains(&pair.from) || gone.contains(&pair.to) {
                self.disconnect(pair, now);
            }
        }
        for host in &gone {
            let at = *host as usize;
            self.hosts[at].here = false;
            for piece in self.hosts[at].pieces.held() {
                self.copies[piece] -= 1;
            }
            for other in std::mem::take(&mut self.hosts[at].peers) {
                self.hosts[other as usize].peers.remove(host);
            }
        }
        // Ended flows count only in the total.
        let (past, loads) = (&mut self.past, &mut self.loads);
        self.changed = true;
        self.flows.0.retain(|key, flow| {
            let stays = !gone.contains(&key.from) && !gone.contains(&key.to);
            if !stays {
                if flow.carries {
                    flow.set_carries(false, loads);
                }
                past.add(flow);
            }
            stays
        });
    }
}

/// The peers to serve: of those interested, each with the bytes it sent in the last choking period,
/// the best three and a random one.
fn unchoke(interested: &[(HostId, u64)], rng: &mut fastrand::Rng) -> Vec<HostId> {
    let mut ranked: Vec<(HostId, u64)> = interested.to_vec();
    // Peers that sent equally much come in random order.
    rng.shuffle(&mut ranked);
    ranked.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let best = ranked.len().min(MAX_UNCHOKED - 1);
    rng.shuffle(&mut ranked[best..]);
    ranked.truncate(MAX_UNCHOKED);
    ranked.into_iter().map(|(host, _)| host).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn three_are_served_for_what_they_give_and_one_by_chance() {
        let interested = [(1, 5), (2, 0), (3, 9), (4, 1), (5, 7), (6, 0)];
        let mut rng = fastrand::Rng::with_seed(1);
        let mut by_chance = BTreeSet::new();
        for _ in 0..100 {
            let mut served = unchoke(&interested, &mut rng);
            assert_eq!(served.len(), 4);
            by_chance.insert(served.remove(3));
            assert_eq!(served, [3, 5, 1]);
        }
        assert_eq!(by_chance, BTreeSet::from([2, 4, 6]));
        assert_eq!(unchoke(&interested[..1], &mut rng), [1]);
        assert!(unchoke(&[], &mut rng).is_empty());
    }
}
