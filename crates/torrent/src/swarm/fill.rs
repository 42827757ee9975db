//! Requesting blocks.

use std::collections::BTreeMap;
use std::time::Instant;

use super::orders::room;
use super::state::Swarm;
use crate::picker::ConnId;
use crate::requests::{Filled, Source};
use crate::transport::Transport;
use crate::wire::{Message, Request};

impl<T: Transport> Swarm<T> {
    /// Tops up the requests over connections that may have room; over all connections if `all`.
    pub(super) fn fill(&mut self, now: Instant, all: bool) {
        if self.is_complete() {
            self.conns.take_touched();
            return;
        }
        // Requests over a path with a share make room on other paths.
        let shared = self.any_shares();
        let all = all || shared;
        if all {
            let sources = self.sources(now);
            self.requests.review(&sources, shared, now);
        }
        while self.fill_once(now, all) > 0 && shared {}
        self.conns.take_touched();
    }

    /// Returns the number of blocks requested.
    fn fill_once(&mut self, now: Instant, all: bool) -> usize {
        if self.requests.is_ending(&self.picker, now) {
            let sources = self.sources(now);
            let (conns, subflows, remotes) = (&self.conns, &self.subflows, &self.remotes);
            let filled = self
                .requests
                .fill_by_plan(&mut self.picker, &sources, |picker, id| {
                    room(id, picker, conns, subflows, remotes)
                });
            return self.request(filled, now);
        }
        let ids = match all {
            true => self.conns.ids(),
            false => self.conns.take_touched(),
        };
        ids.into_iter().map(|id| self.fill_one(id, now)).sum()
    }

    fn fill_one(&mut self, id: ConnId, now: Instant) -> usize {
        let Some(source) = self.source(id, now) else {
            return 0;
        };
        let room = room(id, &self.picker, &self.conns, &self.subflows, &self.remotes);
        let picker = &mut self.picker;
        let filled = self.requests.fill_one(picker, id, &source, room);
        self.request(filled, now)
    }

    /// The connections over which blocks may be requested.
    fn sources(&mut self, now: Instant) -> BTreeMap<ConnId, Source> {
        let ids = self.conns.ids().into_iter();
        ids.filter_map(|id| Some((id, self.source(id, now)?)))
            .collect()
    }

    /// A connection as one to request blocks over; `None` if no block may be requested over it.
    fn source(&mut self, id: ConnId, now: Instant) -> Option<Source> {
        let asked = self.picker.asked(id);
        let conn = self.conns.open.get_mut(&id)?;
        conn.set_asked(asked, now);
        let is_open = conn.unchoked && conn.stalled.is_none() && !conn.retiring && !conn.held;
        let is_usable = is_open && self.picker.is_interesting(id);
        is_usable.then(|| conn.source(asked, now))
    }

    /// Sends requests, after the cancels that belong to them. Returns their number.
    fn request(&mut self, filled: Filled, now: Instant) -> usize {
        let count = filled.count();
        self.cancel(filled.cancel);
        for (id, requests) in filled.requests {
            self.ask(id, &requests, now);
        }
        count
    }

    fn ask(&mut self, id: ConnId, requests: &[Request], now: Instant) {
        let asked = self.picker.asked(id);
        if let Some(conn) = self.conns.open.get_mut(&id) {
            conn.send(requests.iter().copied().map(Message::Request));
            conn.set_asked(asked, now);
        }
    }
}
