//! Asking for blocks.

use std::collections::HashMap;
use std::time::Instant;

use super::state::Swarm;
use crate::picker::ConnId;
use crate::pipeline::{Plan, Subflow};
use crate::transport::Transport;
use crate::wire::{BLOCK, Message, Request};

/// The rest is shared out by plan when there is less than this many blocks for each connection, or
/// less than so many seconds' worth: before that everybody may take what fills its pipe.
const NEAR_END: (u64, f64) = (256, 4.0);

impl<T: Transport> Swarm<T> {
    /// Tops up what is asked for over the connections that may have room; over all of them if
    /// `all`.
    pub(super) fn fill(&mut self, now: Instant, all: bool) {
        if self.is_complete() {
            self.conns.take_touched();
            return;
        }
        let shared = self.any_shares();
        let all = all || shared;
        // What is asked for over a path with a share gives room to the others.
        while self.fill_once(now, all) > 0 && shared {}
        self.conns.take_touched();
    }

    /// Returns how many blocks were asked for.
    fn fill_once(&mut self, now: Instant, all: bool) -> usize {
        let left = self.picker.free_blocks() + self.picker.asked_blocks();
        let (blocks, seconds) = NEAR_END;
        let enough = (self.tally.total_rate() * seconds / f64::from(BLOCK)) as u64;
        if left > enough.max(blocks * self.conns.open.len() as u64) {
            let ids: Vec<ConnId> = if all {
                self.conns.open.keys().copied().collect()
            } else {
                self.conns.take_touched()
            };
            ids.into_iter().map(|id| self.fill_one(id, now)).sum()
        } else {
            self.fill_by_plan(now)
        }
    }

    /// Whether blocks may be asked for over a connection.
    fn is_usable(&self, id: ConnId) -> bool {
        self.conns
            .open
            .get(&id)
            .is_some_and(|c| c.unchoked && c.stalled.is_none() && !c.retiring && !c.held)
            && self.picker.is_interesting(id)
    }

    fn fill_one(&mut self, id: ConnId, now: Instant) -> usize {
        let asked = self.picker.asked(id);
        if let Some(conn) = self.conns.open.get_mut(&id) {
            conn.set_asked(asked, now);
        }
        if !self.is_usable(id) {
            return 0;
        }
        let depth = self.conns.open.get(&id).map_or(0, |conn| conn.depth(now));
        let more = depth.saturating_sub(asked).min(blocks(self.room(id).new));
        let requests = self.picker.pick(id, more);
        self.ask(id, &requests, now);
        requests.len()
    }

    /// Near the end: everybody gets what it can deliver by the time all are through, and who has
    /// nothing left to ask for helps out where that comes sooner.
    fn fill_by_plan(&mut self, now: Instant) -> usize {
        let mut subflows: HashMap<ConnId, Subflow> = HashMap::new();
        let ids: Vec<ConnId> = self.conns.open.keys().copied().collect();
        for id in ids {
            let asked = self.picker.asked(id);
            if let Some(conn) = self.conns.open.get_mut(&id) {
                conn.set_asked(asked, now);
            }
            if self.is_usable(id)
                && let Some(conn) = self.conns.open.get(&id)
            {
                subflows.insert(id, conn.subflow(asked, now));
            }
        }
        let left = self.picker.free_blocks() + self.picker.asked_blocks();
        // Who may not have any more cannot help to finish.
        let open = subflows
            .iter()
            .filter(|(id, _)| blocks(self.room(**id).new) > 0);
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
            let depth = self.conns.open.get(&id).map_or(0, |conn| conn.depth(now));
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
