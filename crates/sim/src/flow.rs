//! Flows: what path-level peers send.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_manager::Carried;

use crate::book::Book;
use crate::host::Host;
use crate::names::{FlowKey, HostId, Pair};
use crate::pieces::Fetch;

/// A path-level peer that was used at least once.
#[derive(Debug)]
pub(crate) struct Flow {
    /// The directions it takes: the uploader's sending direction, those of links, the leecher's
    /// receiving direction.
    pub links: Vec<u32>,
    pub rtt: Duration,
    /// Whether the path manager uses it.
    pub used: bool,
    /// When its first byte can arrive.
    pub ready: Duration,
    /// Whether it carries data in this step.
    pub carries: bool,
    /// The block that it carries.
    pub fetch: Option<Fetch>,
    /// Whether that block was late in the last step.
    pub was_late: bool,
    /// The chances that the leecher had had when nothing was found to ask for.
    pub in_vain: Option<u64>,
    /// Bytes per second.
    pub rate: f64,
    /// The fraction of a byte left over from the last step.
    pub rest: f64,
    /// Bytes carried in all.
    pub bytes: u64,
    /// While it carries data: the end of the last step in which it carried nothing.
    pub idle: Duration,
}

impl Flow {
    /// A flow that was not used before.
    pub fn new(book: &mut Book, hosts: &[Host], key: FlowKey) -> Self {
        let [from, to] = [key.from, key.to].map(|host| hosts[host as usize].isd_as);
        let between = book.between(from, to);
        let known = &between.known[key.path];
        let ((out, _), (_, into)) = (book.host(key.from), book.host(key.to));
        let mut links = vec![out];
        links.extend(&known.links);
        links.push(into);
        Self {
            links,
            rtt: known.rtt,
            used: false,
            ready: Duration::ZERO,
            carries: false,
            fetch: None,
            was_late: false,
            in_vain: None,
            rate: 0.0,
            rest: 0.0,
            bytes: 0,
            idle: Duration::ZERO,
        }
    }

    /// The link directions it takes.
    pub fn directions(&self) -> &[u32] {
        &self.links[1..self.links.len() - 1]
    }
}

/// All path-level peers that were used, while both hosts are present.
#[derive(Default)]
pub(crate) struct Flows {
    /// By the number of the uploader: by leecher and path.
    by_uploader: Vec<BTreeMap<(HostId, usize), Flow>>,
}

impl Flows {
    /// None yet, among this many hosts.
    pub fn new(hosts: usize) -> Self {
        Self {
            by_uploader: (0..hosts).map(|_| BTreeMap::new()).collect(),
        }
    }

    /// A path-level peer.
    pub fn get(&self, key: FlowKey) -> Option<&Flow> {
        self.by_uploader[key.from as usize].get(&(key.to, key.path))
    }

    /// A path-level peer, to change it.
    pub fn get_mut(&mut self, key: FlowKey) -> Option<&mut Flow> {
        self.by_uploader[key.from as usize].get_mut(&(key.to, key.path))
    }

    /// Adds a path-level peer.
    pub fn insert(&mut self, key: FlowKey, flow: Flow) -> &mut Flow {
        let of_uploader = &mut self.by_uploader[key.from as usize];
        of_uploader.entry((key.to, key.path)).or_insert(flow)
    }

    /// Removes a path-level peer.
    pub fn remove(&mut self, key: FlowKey) -> Option<Flow> {
        self.by_uploader[key.from as usize].remove(&(key.to, key.path))
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (FlowKey, &Flow)> {
        let all = (0..).zip(&self.by_uploader);
        all.flat_map(|(from, flows)| {
            let key = move |(to, path)| FlowKey { from, to, path };
            flows.iter().map(move |(at, flow)| (key(*at), flow))
        })
    }

    /// All of them, in their order, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FlowKey, &mut Flow)> {
        let all = (0..).zip(&mut self.by_uploader);
        all.flat_map(|(from, flows)| {
            let key = move |(to, path)| FlowKey { from, to, path };
            flows.iter_mut().map(move |(at, flow)| (key(*at), flow))
        })
    }

    /// Those of an uploader: each leecher with the path-level peer.
    pub fn from(&self, uploader: HostId) -> impl Iterator<Item = (FlowKey, &Flow)> {
        let flows = self.by_uploader[uploader as usize].iter();
        flows.map(move |((to, path), flow)| (Pair::new(uploader, *to).flow(*path), flow))
    }

    /// Those from an uploader to a leecher.
    pub fn between(&self, pair: Pair) -> impl Iterator<Item = (FlowKey, &Flow)> {
        let all = (pair.to, 0)..=(pair.to, usize::MAX);
        let flows = self.by_uploader[pair.from as usize].range(all);
        flows.map(move |((_, path), flow)| (pair.flow(*path), flow))
    }

    /// The bytes that an uploader has sent to a leecher.
    pub fn sent(&self, pair: Pair) -> u64 {
        self.between(pair).map(|(_, flow)| flow.bytes).sum()
    }

    /// The bytes that a path-level peer carried in all, and whether it carried data in every step
    /// after `since`, which is before this step.
    pub fn carried(&self, key: FlowKey, since: Duration) -> Carried {
        let flow = self.get(key);
        flow.map_or_else(Carried::default, |flow| Carried {
            bytes: flow.bytes,
            usable: flow.carries && flow.idle <= since,
        })
    }
}
