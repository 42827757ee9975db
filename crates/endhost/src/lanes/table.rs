//! The flows of one socket, by number, by path and by the key of their packets.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_packet::ScionAddr;

use super::flow::{Flow, FlowId};
use crate::headers::Headers;
use crate::sync::lock;

/// Most flows kept that no lane uses. Any host can create some by sending packets; beyond this
/// number the oldest is removed.
const IDLE: usize = 1024;
/// Keys of one flow that are recognised without reading a packet's path: one, and some more while a
/// path is refreshed. A remote that sends others only causes more work.
const KEYS: usize = 4;
/// A lane's path for answers is replaced this long before it expires. The remote has fresher copies by
/// then.
const DUE: Duration = Duration::from_secs(60);
/// Time between two checks whether answers may take the path of packets.
const AGAIN: Duration = Duration::from_secs(1);

/// All flows of one socket.
#[derive(Debug, Default)]
pub(super) struct Flows(Mutex<Table>);

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
    flow: FlowId,
    /// When to check again whether answers may take their path; `None` when they do.
    again: Option<Instant>,
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
        self.flows.lock().release(self.flow.id, self.opened);
    }
}

impl Flows {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.0)
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
        table.hold(flow.id, true);
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

    /// The flow `id`, for a lane to use; `None` when it was removed.
    pub(super) fn hold(self: &Arc<Self>, id: FlowId) -> Option<FlowUse> {
        let flow = self.lock().hold(id, false)?;
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
    /// The flow whose packets have `key`; `None` when their path is unknown, or to be
    /// [considered](Self::consider) again.
    #[inline]
    pub(super) fn by_key(&self, key: &[u8]) -> Option<FlowId> {
        let known = self.by_key.get(key)?;
        let due = known.again.is_some_and(|again| again <= Instant::now());
        (!due).then_some(known.flow)
    }

    /// Lets answers of `flow` take the path of a packet with `key`, if they may: then they are sent
    /// with `headers` until `expiry`.
    ///
    /// Packets are not authenticated, and only the last router has verified a hop of their path.
    /// An attacker on a link can send copies of packets with a damaged path, over which no router
    /// returns answers. So the path of the first packet is kept until shortly before it expires, and a path that this side chose is never
    /// replaced.
    pub(super) fn consider(&mut self, flow: FlowId, key: &[u8], headers: Headers, expiry: u64) {
        let Some(entry) = self.flows.get_mut(&flow) else {
            return;
        };
        let same = *entry.flow.headers().path() == *headers.path();
        let adopts = !same && entry.adopts(expiry);
        if adopts {
            entry.flow.refresh(headers, expiry);
        }
        let again = (!same && !adopts).then(|| Instant::now() + AGAIN);
        if let Some(known) = self.by_key.get_mut(key) {
            known.again = again;
            return;
        }
        if entry.keys.len() == KEYS
            && let Some(oldest) = entry.keys.pop_front()
        {
            self.by_key.remove(&oldest);
        }
        entry.keys.push_back(key.into());
        self.by_key.insert(key.into(), Known { flow, again });
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

    fn hold(&mut self, id: FlowId, opened: bool) -> Option<Arc<Flow>> {
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
        while self.idle.len() >= IDLE
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
    /// Whether answers may take a packet's path that expires at `expiry`.
    fn adopts(&self, expiry: u64) -> bool {
        // A path that expires earlier may come from an old packet.
        if self.openers > 0 || expiry <= self.flow.expiry() {
            return false;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let due = now.unwrap_or_default() + DUE;
        self.users == 0 || self.flow.expiry() <= due.as_secs()
    }
}

#[cfg(test)]
mod tests;
