//! Data transfer: which path-level peers carry data, at which rate, and what arrives.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Load, Swarm};
use crate::choose::Pair;
use crate::fair::max_min;
use crate::flow::Flow;
use crate::host::HostId;
use crate::options::STEP;

impl Swarm {
    /// Determines which path-level peers have data to carry.
    pub(super) fn set_carrying(&mut self, now: Duration) {
        for (key, flow) in &mut self.flows.0 {
            if !flow.used && !flow.carries {
                continue;
            }
            let [from, to] = [key.from, key.to].map(|host| &self.hosts[host as usize]);
            let carries = flow.used && flow.ready <= now && to.pieces.wants(&from.pieces);
            if carries != flow.carries {
                flow.set_carries(carries, &mut self.loads);
                self.changed = true;
            }
        }
        for load in &mut self.loads {
            load.most = load.most.max(load.now);
            load.sum += u64::from(load.now);
        }
    }

    pub(super) fn share_out(&mut self) {
        let carrying = || self.flows.0.values().filter(|flow| flow.carries);
        let links: Vec<&[u32]> = carrying().map(|flow| flow.links.as_slice()).collect();
        let rates = max_min(&self.book.capacity, &links);
        let carrying = self.flows.0.values_mut().filter(|flow| flow.carries);
        for (flow, rate) in carrying.zip(rates) {
            flow.rate = rate;
        }
    }

    /// Transfers bytes for one step, which begins at `now`.
    pub(super) fn carry(&mut self, now: Duration) {
        let end = now + STEP;
        // A leecher receives at the sum of the rates of its path-level peers.
        let mut rates: BTreeMap<HostId, (f64, u64)> = BTreeMap::new();
        for (key, flow) in self.flows.0.iter().filter(|(_, flow)| flow.carries) {
            let left = self.hosts[key.to as usize].pieces.left();
            rates.entry(key.to).or_insert((0.0, left)).0 += flow.rate;
        }
        for (key, flow) in &mut self.flows.0 {
            if !flow.carries {
                flow.idle = end;
                continue;
            }
            let bytes = flow.rate * STEP.as_secs_f64() + flow.rest;
            let mut open = bytes as u64;
            flow.rest = bytes - open as f64;
            let mut carried = 0;
            while open > 0 {
                let ends = [key.from, key.to].map(|host| host as usize);
                let Ok([from, to]) = self.hosts.get_disjoint_mut(ends) else {
                    unreachable!("a flow joins two hosts of the swarm");
                };
                let Some(piece) = flow.piece.or_else(|| {
                    let next = to.pieces.next(&from.pieces, &self.copies);
                    next.inspect(|&piece| to.pieces.begin(piece))
                }) else {
                    flow.piece = None;
                    break;
                };
                let (taken, whole) = to.pieces.take(piece, open);
                open -= taken;
                carried += taken;
                self.copies[piece] += u32::from(whole);
                flow.piece = Some(piece).filter(|&piece| !to.pieces.has(piece));
                if flow.piece.is_none() {
                    to.pieces.end(piece);
                }
            }
            flow.bytes += carried;
            if carried == 0 {
                flow.idle = end;
            }
            for link in flow.directions() {
                self.loads[*link as usize].bytes += carried;
            }
            self.served.count(Pair::new(key.from, key.to), carried);
        }
        for (to, (rate, left)) in rates {
            let host = &mut self.hosts[to as usize];
            if host.pieces.left() == 0 && host.finished.is_none() {
                let seconds = (left as f64 / rate).min(STEP.as_secs_f64());
                host.finished = Some(now + Duration::from_secs_f64(seconds));
            }
        }
    }
}

impl Flow {
    /// Sets whether it carries data.
    pub(super) fn set_carries(&mut self, carries: bool, loads: &mut [Load]) {
        self.carries = carries;
        for link in self.directions() {
            let now = &mut loads[*link as usize].now;
            *now = if carries { *now + 1 } else { *now - 1 };
        }
    }
}
