//! Which blocks are requested over which connection.

use std::collections::BTreeMap;
use std::time::Instant;

use hawser_store::Disk;

use super::connections::Connections;
use super::dialing::Dialing;
use super::digests::Digests;
use super::held::HeldPieces;
use crate::files::FileTally;
use crate::picker::{ConnId, Picker, Placed};
use crate::requests::{Filled, Requests, Source};
use crate::transport::Transport;
use crate::wire::{Message, Request};

/// The blocks of a torrent: which are requested, received, written and verified.
pub(super) struct Fetching {
    pub picker: Picker,
    /// How many blocks are requested over which connection.
    pub requests: Requests,
    pub disk: Disk,
    /// What the digests of blocks are for that the disk computes.
    pub digests: Digests,
    /// Pieces that have the wrong hash, while peers are asked for the hashes of their blocks.
    pub held: HeldPieces,
    /// How much of each file is verified.
    pub files: FileTally,
    /// Pieces verified and not announced to peers yet.
    pub unannounced: Vec<u32>,
    /// Most that is to arrive, in bytes per second.
    pub limit: Option<u64>,
}

impl Fetching {
    /// Nothing is requested yet; blocks go to `disk`.
    pub fn new(picker: Picker, disk: Disk, files: FileTally, now: Instant) -> Self {
        Self {
            requests: Requests::new(picker.free_blocks(), now),
            picker,
            disk,
            digests: Digests::default(),
            held: HeldPieces::default(),
            files,
            unannounced: Vec::new(),
            limit: None,
        }
    }

    /// Whether everything wanted is verified, so that nothing more is fetched.
    pub fn is_complete(&self) -> bool {
        self.picker.is_complete()
    }

    /// Tops up the requests over connections that may have room; over all connections if `all`.
    pub fn fill<T: Transport>(
        &mut self,
        conns: &mut Connections,
        dialing: &Dialing<T>,
        now: Instant,
        all: bool,
    ) {
        if self.is_complete() {
            conns.take_touched();
            return;
        }
        // Requests over a path with a share make room on other paths.
        let shared = dialing.any_shares();
        let all = all || shared;
        if all {
            let sources = self.sources(conns, now);
            self.picker.review(now);
            self.requests.review(&sources, shared, now);
        }
        while self.fill_once(conns, dialing, now, all) > 0 && shared {}
        conns.take_touched();
    }

    /// Returns the number of blocks requested.
    fn fill_once<T: Transport>(
        &mut self,
        conns: &mut Connections,
        dialing: &Dialing<T>,
        now: Instant,
        all: bool,
    ) -> usize {
        if self.requests.is_ending(&self.picker, now) {
            let sources = self.sources(conns, now);
            let room = |picker: &Picker, id| dialing.room(id, picker, conns);
            let filled = self.requests.fill_by_plan(&mut self.picker, &sources, room);
            return self.request(conns, filled, now);
        }
        let ids = match all {
            true => conns.ids(),
            false => conns.take_touched(),
        };
        let ids = ids.into_iter();
        ids.map(|id| self.fill_one(conns, dialing, id, now)).sum()
    }

    fn fill_one<T: Transport>(
        &mut self,
        conns: &mut Connections,
        dialing: &Dialing<T>,
        id: ConnId,
        now: Instant,
    ) -> usize {
        let Some(source) = self.source(conns, id, now) else {
            return 0;
        };
        let room = dialing.room(id, &self.picker, conns);
        let picker = &mut self.picker;
        let filled = self.requests.fill_one(picker, id, &source, room);
        self.request(conns, filled, now)
    }

    /// The connections over which blocks may be requested.
    fn sources(&mut self, conns: &mut Connections, now: Instant) -> BTreeMap<ConnId, Source> {
        let ids = conns.ids().into_iter();
        ids.filter_map(|id| Some((id, self.source(conns, id, now)?)))
            .collect()
    }

    /// A connection as one to request blocks over; `None` if no block may be requested over it.
    fn source(&mut self, conns: &mut Connections, id: ConnId, now: Instant) -> Option<Source> {
        let asked = self.picker.asked(id);
        let conn = conns.open.get_mut(&id)?;
        conn.set_asked(asked, now);
        let is_ordered = !conn.ordered.retiring && !conn.ordered.held;
        let is_open = conn.theirs.unchoked && conn.stall.since.is_none() && is_ordered;
        let is_usable = is_open && self.picker.is_interesting(id);
        is_usable.then(|| conn.source(asked, self.limit, now))
    }

    /// Sends requests, after the cancels that belong to them. Returns their number.
    fn request(&mut self, conns: &mut Connections, filled: Filled, now: Instant) -> usize {
        let count = filled.count();
        cancel(conns, filled.cancel);
        for (id, requests) in filled.requests {
            self.ask(conns, id, &requests, now);
        }
        count
    }

    fn ask(&mut self, conns: &mut Connections, id: ConnId, requests: &[Request], now: Instant) {
        let asked = self.picker.asked(id);
        if let Some(conn) = conns.open.get_mut(&id) {
            conn.request(requests.iter().copied());
            conn.set_asked(asked, now);
        }
    }
}

/// Cancels requests that are no longer needed.
pub(super) fn cancel(conns: &mut Connections, requests: Vec<Placed>) {
    for (id, request) in requests {
        if let Some(conn) = conns.open.get_mut(&id) {
            conn.send([Message::Cancel(request)]);
            conns.touch(id);
        }
    }
}
