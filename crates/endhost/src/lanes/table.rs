//! The flows of one socket, by number, by path and by the key of their packets.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

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

/// All flows of one socket.
#[derive(Debug, Default)]
pub(super) struct Flows(Mutex<Table>);

#[derive(Debug, Default)]
pub(super) struct Table {
    last_id: u64,
    flows: HashMap<FlowId, Entry>,
    by_path: HashMap<(ScionAddr, Box<[u16]>), FlowId>,
    /// Flows by the key of packets that arrive.
    by_key: HashMap<Box<[u8]>, FlowId>,
    /// Flows that no lane uses, the longest unused first.
    idle: BTreeMap<u64, FlowId>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    flow: Arc<Flow>,
    users: usize,
    idle_since: u64,
    keys: VecDeque<Box<[u8]>>,
}

/// A flow in use, which keeps its number until this is dropped.
#[derive(Debug)]
pub(super) struct FlowUse {
    flows: Arc<Flows>,
    pub(super) flow: Arc<Flow>,
}

impl Drop for FlowUse {
    fn drop(&mut self) {
        self.flows.lock().release(self.flow.id);
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
        table.hold(flow.id);
        drop(table);
        // The local side's path has precedence, also if packets arrived over another copy of it
        // before.
        flow.refresh(headers, expiry);
        FlowUse {
            flows: Arc::clone(self),
            flow,
        }
    }

    /// The flow `id`, for a lane to use; `None` when it was removed.
    pub(super) fn hold(self: &Arc<Self>, id: FlowId) -> Option<FlowUse> {
        let flow = self.lock().hold(id)?;
        let flows = Arc::clone(self);
        Some(FlowUse { flows, flow })
    }

    /// The flow `id`, to send an answer; `None` when it was removed.
    pub(super) fn find(&self, id: FlowId) -> Option<Arc<Flow>> {
        Some(Arc::clone(&self.lock().flows.get(&id)?.flow))
    }
}

impl Table {
    /// The flow whose packets have `key`.
    #[inline]
    pub(super) fn by_key(&self, key: &[u8]) -> Option<FlowId> {
        self.by_key.get(key).copied()
    }

    /// Records that packets with `key` belong to `flow`.
    pub(super) fn remember(&mut self, flow: FlowId, key: &[u8]) {
        let Some(entry) = self.flows.get_mut(&flow) else {
            return;
        };
        if entry.keys.len() == KEYS
            && let Some(oldest) = entry.keys.pop_front()
        {
            self.by_key.remove(&oldest);
        }
        entry.keys.push_back(key.into());
        self.by_key.insert(key.into(), flow);
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

    fn hold(&mut self, id: FlowId) -> Option<Arc<Flow>> {
        let entry = self.flows.get_mut(&id)?;
        entry.users += 1;
        self.idle.remove(&entry.idle_since);
        Some(Arc::clone(&entry.flow))
    }

    fn release(&mut self, id: FlowId) {
        let Some(entry) = self.flows.get_mut(&id) else {
            return;
        };
        entry.users -= 1;
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

#[cfg(test)]
mod tests;
