//! Flows: what path-level peers send.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_manager::Carried;

use crate::book::Book;
use crate::host::Host;
use crate::names::FlowKey;
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
    /// Bytes per second.
    pub rate: f64,
    /// The fraction of a byte left over from the last step.
    pub rest: f64,
    /// Bytes carried in all.
    pub bytes: u64,
    /// The end of the last step in which it carried nothing.
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
pub(crate) struct Flows(pub BTreeMap<FlowKey, Flow>);

impl Flows {
    /// The bytes that a path-level peer carried in all, and whether it carried data in every step
    /// after `since`.
    pub fn carried(&self, key: FlowKey, since: Duration) -> Carried {
        let flow = self.0.get(&key);
        flow.map_or_else(Carried::default, |flow| Carried {
            bytes: flow.bytes,
            usable: flow.idle <= since,
        })
    }
}
