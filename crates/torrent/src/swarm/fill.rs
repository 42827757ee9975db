//! Requesting blocks.

use std::collections::BTreeMap;
use std::time::Instant;

use super::state::Swarm;
use crate::picker::ConnId;
use crate::pipeline::{Plan, Subflow};
use crate::transport::Transport;
use crate::wire::{BLOCK, Message, Request};

/// Blocks are shared out by plan once fewer than this many are left per connection, or less than
/// this many seconds' worth. Before that each connection may request what fills its pipe.
const NEAR_END: (u64, f64) = (256, 4.0);

impl<T: Transport> Swarm<T> {
    /// Tops up the requests over connections that may have room; over all connections if `all`.
    pub(super) fn fill(&mut self, now: Instant, all: bool) {
        if self.is_complete() {
            self.conns.take_touched();
            return;
        }
        let shared = self.any_shares();
        let all = all || shared;
        // Requests over a path with a share make room on other paths.
        while self.fill_once(now, all) > 0 && shared {}
        self.conns.take_touched();
    }

    /// Returns the number of blocks requested.
    fn fill_once(&mut self, now: Instant, all: bool) -> usize {
        let left = self.picker.free_blocks() + self.picker.asked_blocks();
        let (blocks, seconds) = NEAR_END;
        let enough = (self.tally.total_rate() * seconds / f64::from(BLOCK)) as u64;
        if left > enough.max(blocks * self.conns.open.len() as u64) {
            let ids = match all {
                true => self.conns.ids(),
                false => self.conns.take_touched(),
            };
            ids.into_iter().map(|id| self.fill_one(id, now)).sum()
        } else {
            self.fill_by_plan(now)
        }
    }

    /// What a connection delivers, and how many blocks to keep requested over it; `None` if no
    /// block may be requested over it.
    fn usable(&mut self, id: ConnId, now: Instant) -> Option<(Subflow, usize)> {
        let asked = self.picker.asked(id);
        let conn = self.conns.open.get_mut(&id)?;
        conn.set_asked(asked, now);
        let is_open = conn.unchoked && conn.stalled.is_none() && !conn.retiring && !conn.held;
        let is_usable = is_open && self.picker.is_interesting(id);
        is_usable.then(|| (conn.subflow(asked, now), conn.depth(now)))
    }

    fn fill_one(&mut self, id: ConnId, now: Instant) -> usize {
        let Some((subflow, depth)) = self.usable(id, now) else {
            return 0;
        };
        let more = depth.saturating_sub(subflow.asked);
        let more = more.min(blocks(self.room(id).new));
        let requests = self.picker.pick(id, more);
        self.ask(id, &requests, now);
        requests.len()
    }

    /// Near the end: each connection gets what it can deliver by the time all are done. One without
    /// free blocks to request duplicates requests of others that it can answer sooner.
    fn fill_by_plan(&mut self, now: Instant) -> usize {
        let (mut subflows, mut depths) = (BTreeMap::new(), BTreeMap::new());
        for id in self.conns.ids() {
            if let Some((subflow, depth)) = self.usable(id, now) {
                subflows.insert(id, subflow);
                depths.insert(id, depth);
            }
        }
        let left = self.picker.free_blocks() + self.picker.asked_blocks();
        // A connection without room cannot help to finish.
        let open = subflows.iter();
        let open = open.filter(|(id, _)| blocks(self.room(**id).new) > 0);
        let all: Vec<Subflow> = open.map(|(_, subflow)| *subflow).collect();
        let plan = Plan::new(&all, left);
        let rate = |subflow: &Subflow| subflow.rate.unwrap_or(f64::INFINITY);
        let mut order: Vec<ConnId> = subflows.keys().copied().collect();
        order.sort_by(|a, b| {
            rate(&subflows[b])
                .total_cmp(&rate(&subflows[a]))
                .then(a.cmp(b))
        });
        let free = self.picker.free_blocks();
        let mut sum = 0;
        for id in order {
            let depth = depths[&id];
            let share = plan.share(&subflows[&id], depth, free);
            let mut requests = self.picker.pick(id, share.min(blocks(self.room(id).new)));
            let mut asked = subflows[&id].asked + requests.len();
            let most = depth.min(asked.saturating_add(blocks(self.room(id).again)));
            while self.picker.free_blocks() == 0 && asked < most {
                let subflow = Subflow {
                    asked,
                    ..subflows[&id]
                };
                let gain = |holder: ConnId, place: usize| {
                    let holder = subflows.get(&holder)?;
                    plan.gain(&subflow, holder, place)
                };
                let Some(request) = self.picker.duplicate(id, gain) else {
                    break;
                };
                requests.push(request);
                asked += 1;
            }
            sum += requests.len();
            self.ask(id, &requests, now);
        }
        sum
    }

    fn ask(&mut self, id: ConnId, requests: &[Request], now: Instant) {
        let asked = self.picker.asked(id);
        if let Some(conn) = self.conns.open.get_mut(&id) {
            conn.send(requests.iter().copied().map(Message::Request));
            conn.set_asked(asked, now);
        }
    }
}

/// How many whole blocks fit into `bytes`.
fn blocks(bytes: u64) -> usize {
    usize::try_from(bytes / u64::from(BLOCK)).unwrap_or(usize::MAX)
}
