//! Data transfer: which path-level peers carry data, at which rate, and what arrives.

use std::time::Duration;

use hawser_picker::Placed;

use super::{Load, Swarm};
use crate::choose::Now;
use crate::fair::max_min;
use crate::flow::Flow;
use crate::host::Host;
use crate::names::{FlowKey, HostId, Pair};
use crate::options::STEP;
use crate::pieces;

/// A block that takes longer than this, in seconds, is requested from another peer, too, which has nothing
/// else to send.
const LATE: f64 = 2.0 * STEP.as_secs_f64();

/// Path-level peers that carry no block.
#[derive(Debug, Default)]
struct Idle {
    /// Those that could be asked for one.
    ready: Vec<FlowKey>,
    /// Those that carried one in the last step.
    stopped: Vec<FlowKey>,
}

/// What arrives at a leecher in a step.
#[derive(Debug, Clone, Copy, Default)]
struct Arriving {
    /// The sum of the rates of its path-level peers, in bytes per second.
    rate: f64,
    /// Bytes that had arrived before, of the blocks that are on their way at the beginning of the step.
    begun: u64,
    /// Bytes of the blocks that are whole in the end.
    whole: u64,
}

impl Swarm {
    /// Lets the pickers take note of the time of those that fetch from seeders, or have news.
    pub(super) fn review(&mut self, now: Now) {
        let informed = std::mem::take(&mut self.members.informed);
        let fed = self.members.fed.keys().copied();
        self.looks += (fed.len() + informed.len()) as u64;
        for host in fed {
            self.hosts[host as usize].pieces.review(now.instant);
        }
        for host in informed {
            let pieces = &mut self.hosts[host as usize].pieces;
            if pieces.has_news() {
                pieces.review(now.instant);
            }
        }
    }

    /// Determines which path-level peers have data to carry: those that are asked for a block.
    pub(super) fn set_carrying(&mut self, now: Duration) {
        let Idle { ready, stopped } = self.idle(now);
        let mut asked = Vec::new();
        for key in ready {
            let flows = &self.flows;
            let to = &mut self.hosts[key.to as usize].pieces;
            let Some(flow) = flows.get(key).filter(|it| it.in_vain != Some(to.chances())) else {
                continue;
            };
            self.looks += 1;
            let fetch = to.request(key).or_else(|| {
                let late = |conn| flows.get(pieces::flow(conn, key.to)?)?.late();
                to.is_ending().then(|| to.repeat(key, late))?
            });
            // What a seeder is asked for depends on the time, too.
            let is_seeder = (key.from as usize) < self.members.seeders;
            let in_vain = (fetch.is_none() && !is_seeder).then(|| to.chances());
            if fetch.is_some() || in_vain != flow.in_vain {
                asked.push((key, fetch, in_vain));
            }
        }
        for (key, fetch, in_vain) in asked {
            if let Some(flow) = self.flows.get_mut(key) {
                flow.fetch = fetch;
                flow.in_vain = in_vain;
                if fetch.is_some() && !flow.carries {
                    flow.set_carries(true, &mut self.loads);
                    flow.idle = now;
                    self.changed = true;
                }
            }
        }
        for key in stopped {
            if let Some(flow) = self.flows.get_mut(key).filter(|it| it.fetch.is_none()) {
                flow.set_carries(false, &mut self.loads);
                self.changed = true;
            }
        }
        for load in &mut self.loads {
            load.most = load.most.max(load.now);
            load.sum += u64::from(load.now);
        }
    }

    /// The path-level peers that carry no block. Hosts for which a block has become late take note.
    fn idle(&mut self, now: Duration) -> Idle {
        let mut idle = Idle::default();
        for (key, flow) in self.flows.iter_mut() {
            let is_late = flow.late().is_some();
            if is_late && !flow.was_late {
                self.hosts[key.to as usize].pieces.add_chance();
            }
            flow.was_late = is_late;
            if flow.fetch.is_some() {
                continue;
            }
            if flow.used && flow.ready <= now {
                idle.ready.push(key);
            }
            if flow.carries {
                idle.stopped.push(key);
            }
        }
        idle
    }

    pub(super) fn share_out(&mut self) {
        let carrying = self.flows.iter().filter(|(_, flow)| flow.carries);
        let links: Vec<&[u32]> = carrying.map(|(_, flow)| flow.links.as_slice()).collect();
        let rates = max_min(&self.book.capacity, &links);
        let carrying = self.flows.iter_mut().filter(|(_, flow)| flow.carries);
        for ((_, flow), rate) in carrying.zip(rates) {
            flow.rate = rate;
        }
    }

    /// Transfers bytes for one step, which begins at `now`.
    pub(super) fn carry(&mut self, now: Now) {
        let end = now.since + STEP;
        let mut arriving = vec![Arriving::default(); self.hosts.len()];
        let (mut whole, mut cancelled) = (Vec::new(), Vec::new());
        for (key, flow) in self.flows.iter_mut().filter(|(_, flow)| flow.carries) {
            let to = &mut self.hosts[key.to as usize].pieces;
            let arriving = &mut arriving[key.to as usize];
            arriving.rate += flow.rate;
            arriving.begun += flow.fetch.map_or(0, |fetch| fetch.begun());
            let bytes = flow.rate * STEP.as_secs_f64() + flow.rest;
            let mut open = bytes as u64;
            flow.rest = bytes - open as f64;
            let mut carried = 0;
            while let Some(fetch) = flow.fetch.as_mut().filter(|_| open > 0) {
                let (taken, is_whole) = fetch.take(open);
                open -= taken;
                carried += taken;
                if is_whole {
                    let left = to.left();
                    let arrived = to.receive(key, *fetch, now.instant);
                    arriving.whole += left - to.left();
                    whole.extend(arrived.whole.map(|piece| (key.to, piece)));
                    cancelled.extend(arrived.cancel.into_iter().map(|placed| (key.to, placed)));
                    flow.fetch = to.request(key);
                    flow.was_late = false;
                }
            }
            flow.bytes += carried;
            if carried == 0 {
                flow.idle = end;
            }
            for link in flow.directions() {
                self.loads[*link as usize].bytes += carried;
            }
        }
        for (to, placed) in cancelled {
            self.cancel(to, &placed);
        }
        for (host, piece) in &whole {
            self.announce_piece(*host, *piece);
        }
        for (to, _) in whole {
            let host = &mut self.hosts[to as usize];
            if host.pieces.is_complete() && host.finished.is_none() {
                let Arriving { rate, begun, whole } = arriving[to as usize];
                let left = whole.saturating_sub(begun);
                let seconds = (left as f64 / rate).min(STEP.as_secs_f64());
                host.finished = Some(now.since + Duration::from_secs_f64(seconds));
                self.members.finished += 1;
                self.members.done.insert(to);
            }
        }
    }

    /// The host `to` needs a block no more that it has requested.
    fn cancel(&mut self, to: HostId, placed: &Placed) {
        let key = pieces::flow(placed.0, to);
        let flow = key.and_then(|key| Some((key, self.flows.get_mut(key)?)));
        if let Some((key, flow)) = flow
            && flow.fetch.is_some_and(|fetch| fetch.is(key, placed))
        {
            flow.fetch = None;
        }
    }

    /// Lets those that know a leecher learn that it has one more piece.
    fn announce_piece(&mut self, host: HostId, piece: u32) {
        let mut cancelled = Vec::new();
        let Host { peers, pieces, .. } = &mut self.hosts[host as usize];
        if pieces.has_news() {
            self.members.informed.push(host);
        }
        let peers = std::mem::take(peers);
        for &other in &peers {
            let flows = self.flows.between(Pair::new(host, other));
            let flows: Vec<FlowKey> = flows.map(|(key, _)| key).collect();
            let pieces = &mut self.hosts[other as usize].pieces;
            let wanted = pieces.wants(host);
            let cancel = pieces.add(host, &flows, piece).into_iter();
            for key in &flows {
                if let Some(flow) = self.flows.get_mut(*key) {
                    flow.in_vain = None;
                }
            }
            cancelled.extend(cancel.map(|placed| (other, placed)));
            if pieces.has_news() {
                self.members.informed.push(other);
            }
            if pieces.wants(host) != wanted {
                self.chokers.note(Pair::new(host, other));
            }
            if self.hosts[host as usize].pieces.may_want_less(other, piece) {
                self.chokers.note(Pair::new(other, host));
            }
        }
        self.hosts[host as usize].peers = peers;
        for (to, placed) in cancelled {
            self.cancel(to, &placed);
        }
    }
}

impl Flow {
    /// In how many seconds its block arrives, if that is late.
    fn late(&self) -> Option<f64> {
        let fetch = self.fetch.filter(|_| self.carries)?;
        let seconds = fetch.seconds(self.rate);
        (seconds > LATE).then_some(seconds)
    }

    /// Sets whether it carries data.
    pub(super) fn set_carries(&mut self, carries: bool, loads: &mut [Load]) {
        self.carries = carries;
        for link in self.directions() {
            let now = &mut loads[*link as usize].now;
            *now = if carries { *now + 1 } else { *now - 1 };
        }
    }
}
