//! Data transfer: which path-level peers carry data, at which rate, and what arrives.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_picker::{ConnId, Placed};

use super::{Load, Swarm};
use crate::choose::{Now, Pair};
use crate::fair::max_min;
use crate::flow::{Flow, Flows};
use crate::names::{FlowKey, HostId};
use crate::options::STEP;
use crate::pieces;

/// A block that takes longer than this, in seconds, is requested from another peer, too, which has nothing
/// else to send.
const LATE: f64 = 2.0 * STEP.as_secs_f64();

impl Swarm {
    /// Lets the pickers of all that fetch take note of the time.
    pub(super) fn review(&mut self, now: Now) {
        let fetching = self.hosts[self.members.seeders..].iter_mut();
        let fetching = fetching.filter(|host| host.here && host.finished.is_none());
        fetching.for_each(|host| host.pieces.review(now.instant));
    }

    /// Determines which path-level peers have data to carry: those that are asked for a block.
    pub(super) fn set_carrying(&mut self, now: Duration) {
        let mut late: Option<BTreeMap<(HostId, ConnId), f64>> = None;
        let idle = self.flows.0.iter();
        let idle = idle.filter(|(_, flow)| flow.used && flow.ready <= now && flow.fetch.is_none());
        let idle: Vec<FlowKey> = idle.map(|(key, _)| *key).collect();
        for key in idle {
            let to = &mut self.hosts[key.to as usize].pieces;
            let fetch = to.request(key).or_else(|| {
                if !to.is_ending() {
                    return None;
                }
                let late = late.get_or_insert_with(|| self.flows.late());
                to.repeat(key, |conn| late.get(&(key.to, conn)).copied())
            });
            if let Some(flow) = self.flows.0.get_mut(&key) {
                flow.fetch = fetch;
            }
        }
        for flow in self.flows.0.values_mut() {
            if flow.carries != flow.fetch.is_some() {
                flow.set_carries(flow.fetch.is_some(), &mut self.loads);
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
    pub(super) fn carry(&mut self, now: Now) {
        let end = now.since + STEP;
        // A leecher receives at the sum of the rates of its path-level peers.
        let mut rates: BTreeMap<HostId, (f64, u64)> = BTreeMap::new();
        for (key, flow) in self.flows.0.iter().filter(|(_, flow)| flow.carries) {
            let left = self.hosts[key.to as usize].pieces.left();
            let (rate, left) = rates.entry(key.to).or_insert((0.0, left));
            *rate += flow.rate;
            *left = left.saturating_sub(flow.fetch.map_or(0, |fetch| fetch.begun()));
        }
        let (mut whole, mut cancelled) = (Vec::new(), Vec::new());
        for (key, flow) in &mut self.flows.0 {
            if !flow.carries {
                flow.idle = end;
                continue;
            }
            let to = &mut self.hosts[key.to as usize].pieces;
            let bytes = flow.rate * STEP.as_secs_f64() + flow.rest;
            let mut open = bytes as u64;
            flow.rest = bytes - open as f64;
            let mut carried = 0;
            while let Some(fetch) = flow.fetch.as_mut().filter(|_| open > 0) {
                let (taken, is_whole) = fetch.take(open);
                open -= taken;
                carried += taken;
                if is_whole {
                    let arrived = to.receive(*key, *fetch, now.instant);
                    whole.extend(arrived.whole.map(|piece| (key.to, piece)));
                    cancelled.extend(arrived.cancel.into_iter().map(|placed| (key.to, placed)));
                    flow.fetch = to.request(*key);
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
        for (to, placed) in cancelled {
            self.cancel(to, &placed);
        }
        for (host, piece) in whole {
            self.announce_piece(host, piece);
        }
        for (to, (rate, left)) in rates {
            let host = &mut self.hosts[to as usize];
            if host.pieces.is_complete() && host.finished.is_none() {
                let seconds = (left as f64 / rate).min(STEP.as_secs_f64());
                host.finished = Some(now.since + Duration::from_secs_f64(seconds));
            }
        }
    }

    /// The host `to` needs a block no more that it has requested.
    fn cancel(&mut self, to: HostId, placed: &Placed) {
        let key = pieces::flow(placed.0, to);
        let flow = key.and_then(|key| Some((key, self.flows.0.get_mut(&key)?)));
        if let Some((key, flow)) = flow
            && flow.fetch.is_some_and(|fetch| fetch.is(key, placed))
        {
            flow.fetch = None;
        }
    }

    /// Lets those that know a leecher learn that it has one more piece.
    fn announce_piece(&mut self, host: HostId, piece: u32) {
        let mut cancelled = Vec::new();
        for other in &self.hosts[host as usize].peers.clone() {
            let pair = Pair::new(host, *other);
            let flows = self.flows.0.range(pair.flow(0)..=pair.flow(usize::MAX));
            let flows: Vec<FlowKey> = flows.map(|(key, _)| *key).collect();
            let other_pieces = &mut self.hosts[*other as usize].pieces;
            let cancel = other_pieces.add(host, &flows, piece).into_iter();
            cancelled.extend(cancel.map(|placed| (*other, placed)));
        }
        for (to, placed) in cancelled {
            self.cancel(to, &placed);
        }
    }
}

impl Flows {
    /// Blocks that arrive late: the host that waits, over which connection, and for how many seconds.
    fn late(&self) -> BTreeMap<(HostId, ConnId), f64> {
        let carrying = self.0.iter().filter(|(_, flow)| flow.carries);
        let waits = carrying.filter_map(|(key, flow)| {
            let seconds = flow.fetch?.seconds(flow.rate);
            Some(((key.to, pieces::connection(*key)), seconds))
        });
        waits.filter(|(_, seconds)| *seconds > LATE).collect()
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
