//! The flows of one socket, by number, by path and by the key of their packets.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hawser_address::ScionAddr;

use super::flow::{Candidate, Flow, FlowId};
use crate::clock::unix_now;
use crate::headers::Headers;
use crate::sync::lock;

/// Most flows kept that no lane uses. Any host can create some by sending packets; beyond this
/// number the oldest is removed.
const MAX_UNUSED_FLOWS: usize = 1024;
/// Keys of one flow that are recognised without reading a packet's path: one, and some more while a
/// path is refreshed. A remote that sends others only causes more work.
const KEYS: usize = 4;
/// A lane's path for answers is replaced this long before it expires. The remote has fresher copies by
/// then.
const DUE: Duration = Duration::from_secs(60);
/// Time between two checks whether packets show a candidate.
const CANDIDATE_INTERVAL: Duration = Duration::from_secs(1);

/// All flows of one socket.
#[derive(Debug, Default)]
pub(super) struct Flows {
    table: Mutex<Table>,
    /// Uses that ended while the table was locked: flow, and whether this side chose the path. A thread
    /// that reads a batch has the table locked, and may drop the last copy of a lane meanwhile.
    ended: Mutex<Vec<(FlowId, bool)>>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    last_id: u64,
    flows: HashMap<FlowId, Entry>,
    by_path: HashMap<(ScionAddr, Box<[u16]>), FlowId>,
    /// Flows by the key of packets that arrive.
    by_key: HashMap<Box<[u8]>, Known>,
    /// Flows that no lane uses, the longest unused first.
    idle: BTreeMap<u64, FlowId>,
    clock: u64,
}

/// What is known of packets with a key.
#[derive(Debug)]
struct Known {
    seen: Seen,
    /// When to check again whether they show a candidate; `None` when answers take their path.
    again: Option<Instant>,
}

/// The flow of a packet, and its path if answers may take it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) flow: FlowId,
    pub(super) candidate: Option<Arc<Candidate>>,
}

impl Seen {
    /// Whether this holds for a packet that came from the router `from`, too: answers go back to it,
    /// and keys do not contain it.
    #[inline]
    pub(super) fn holds_for(&self, from: SocketAddr) -> bool {
        let candidate = self.candidate.as_ref();
        candidate.is_none_or(|candidate| candidate.headers.next_hop == from)
    }
}

#[derive(Debug)]
struct Entry {
    flow: Arc<Flow>,
    users: usize,
    /// Those of `users` whose side chose the path.
    openers: usize,
    idle_since: u64,
    keys: VecDeque<Box<[u8]>>,
}

/// A flow in use, which keeps its number until this is dropped.
#[derive(Debug)]
pub(super) struct FlowUse {
    flows: Arc<Flows>,
    pub(super) flow: Arc<Flow>,
    /// Whether this side chose the path.
    opened: bool,
}

impl Drop for FlowUse {
    fn drop(&mut self) {
        lock(&self.flows.ended).push((self.flow.id, self.opened));
        if let Ok(mut table) = self.flows.table.try_lock() {
            self.flows.settle(&mut table);
        }
    }
}

impl Flows {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        let mut table = lock(&self.table);
        self.settle(&mut table);
        table
    }

    /// Releases the flows whose uses have ended.
    fn settle(&self, table: &mut Table) {
        let ended = mem::take(&mut *lock(&self.ended));
        for (id, opened) in ended {
            table.release(id, opened);
        }
    }

    /// The flow over `interfaces` with `headers`, for a lane to use.
    pub(super) fn open(
        self: &Arc<Self>,
        headers: Headers,
        interfaces: &[u16],
        expiry: u64,
    ) -> FlowUse {
        let mut table = self.lock();
        let flow = Arc::clone(table.flow(headers.clone(), interfaces, expiry));
        table.hold(flow.id, true, None);
        drop(table);
        // The local side's path has precedence, also if packets arrived over another copy of it
        // before.
        flow.refresh(headers, expiry);
        FlowUse {
            flows: Arc::clone(self),
            flow,
            opened: true,
        }
    }

    /// The flow `id`, for a lane to use; `None` when it was removed. The lane answers over the path
    /// of `candidate` if no other one needs the flow's.
    pub(super) fn hold(
        self: &Arc<Self>,
        id: FlowId,
        candidate: Option<&Candidate>,
    ) -> Option<FlowUse> {
        let flow = self.lock().hold(id, false, candidate)?;
        Some(FlowUse {
            flows: Arc::clone(self),
            flow,
            opened: false,
        })
    }

    /// The flow `id`, to send an answer; `None` when it was removed.
    pub(super) fn find(&self, id: FlowId) -> Option<Arc<Flow>> {
        Some(Arc::clone(&self.lock().flows.get(&id)?.flow))
    }
}

impl Table {
    /// What is known of packets with `key` from the router `from`; `None` when they are to be
    /// [considered](Self::consider), for the first time or again.
    #[inline]
    pub(super) fn by_key(&self, key: &[u8], from: SocketAddr) -> Option<Seen> {
        let known = self.by_key.get(key)?;
        let due = known.again.is_some_and(|again| again <= Instant::now());
        (!due && known.seen.holds_for(from)).then(|| known.seen.clone())
    }

    /// Finds out whether answers of `flow` may take the path of a packet with `key`. It is the path
    /// in `headers`, which expires at `expiry`.
    pub(super) fn consider(
        &mut self,
        flow: FlowId,
        key: &[u8],
        headers: Headers,
        expiry: u64,
    ) -> Seen {
        let mut seen = Seen {
            flow,
            candidate: None,
        };
        let Some(entry) = self.flows.get_mut(&flow) else {
            return seen;
        };
        let same = **entry.flow.headers() == headers;
        if !same && entry.may_adopt(expiry) {
            seen.candidate = Some(Arc::new(Candidate {
                flow,
                headers,
                expiry,
            }));
        }
        let known = Known {
            seen: seen.clone(),
            again: (!same).then(|| Instant::now() + CANDIDATE_INTERVAL),
        };
        if let Some(before) = self.by_key.get_mut(key) {
            *before = known;
            return seen;
        }
        if entry.keys.len() == KEYS
            && let Some(oldest) = entry.keys.pop_front()
        {
            self.by_key.remove(&oldest);
        }
        entry.keys.push_back(key.into());
        self.by_key.insert(key.into(), known);
        seen
    }

    /// Lets answers take the path of a packet that was authenticated, if they still may.
    pub(super) fn adopt(&mut self, candidate: &Candidate) {
        let entry = self.flows.get(&candidate.flow);
        if entry.is_some_and(|entry| entry.may_adopt(candidate.expiry)) {
            self.replace(candidate);
        }
    }

    fn replace(&mut self, candidate: &Candidate) {
        let Some(entry) = self.flows.get(&candidate.flow) else {
            return;
        };
        (entry.flow).refresh(candidate.headers.clone(), candidate.expiry);
        // All packets of the flow are considered again.
        let now = Instant::now();
        for key in &entry.keys {
            if let Some(known) = self.by_key.get_mut(key) {
                known.seen.candidate = None;
                known.again = Some(now);
            }
        }
    }

    /// The flow to the remote of `headers` over `interfaces`; created if it is missing.
    pub(super) fn flow(&mut self, headers: Headers, interfaces: &[u16], expiry: u64) -> &Arc<Flow> {
        let path = (headers.remote, interfaces.into());
        let id = match self.by_path.get(&path) {
            Some(id) => *id,
            None => {
                self.make_room();
                self.last_id += 1;
                let id = FlowId(self.last_id);
                self.by_path.insert(path, id);
                let entry = Entry {
                    flow: Arc::new(Flow::new(id, headers, interfaces, expiry)),
                    users: 0,
                    openers: 0,
                    idle_since: self.clock,
                    keys: VecDeque::new(),
                };
                self.flows.insert(id, entry);
                self.rest(id);
                id
            }
        };
        &self.flows[&id].flow
    }

    fn hold(
        &mut self,
        id: FlowId,
        opened: bool,
        candidate: Option<&Candidate>,
    ) -> Option<Arc<Flow>> {
        let free = self.flows.get(&id)?.is_free();
        if let Some(candidate) = candidate.filter(|candidate| free && candidate.flow == id) {
            self.replace(candidate);
        }
        let entry = self.flows.get_mut(&id)?;
        entry.users += 1;
        entry.openers += usize::from(opened);
        self.idle.remove(&entry.idle_since);
        Some(Arc::clone(&entry.flow))
    }

    fn release(&mut self, id: FlowId, opened: bool) {
        let Some(entry) = self.flows.get_mut(&id) else {
            return;
        };
        entry.users -= 1;
        entry.openers -= usize::from(opened);
        if entry.users == 0 {
            self.rest(id);
            self.make_room();
        }
    }

    /// Appends a flow that no lane uses to those that may be removed.
    fn rest(&mut self, id: FlowId) {
        if let Some(entry) = self.flows.get_mut(&id) {
            self.clock += 1;
            entry.idle_since = self.clock;
            self.idle.insert(self.clock, id);
        }
    }

    fn make_room(&mut self) {
        while self.idle.len() >= MAX_UNUSED_FLOWS
            && let Some((_, id)) = self.idle.pop_first()
            && let Some(entry) = self.flows.remove(&id)
        {
            for key in &entry.keys {
                self.by_key.remove(key);
            }
            let interfaces = entry.flow.interfaces.clone();
            self.by_path.remove(&(entry.flow.remote, interfaces));
        }
    }
}

impl Entry {
    /// Whether answers may take a path that expires at `expiry`, once a packet over it was
    /// authenticated. Even such a packet may be a copy over a damaged path that overtook its
    /// original. So a lane's path is kept until shortly before it expires, and a path that this side
    /// chose is never replaced.
    fn may_adopt(&self, expiry: u64) -> bool {
        let due = self.flow.expiry() <= unix_now() + DUE.as_secs();
        let fresher = expiry > self.flow.expiry();
        self.openers == 0 && (self.is_free() || due && fresher)
    }

    /// Whether no lane needs the path: none uses it, or the remote let it expire.
    fn is_free(&self) -> bool {
        let expired = self.flow.expiry() <= unix_now();
        self.users == 0 || expired && self.openers == 0
    }
}

#[cfg(test)]
mod tests;
