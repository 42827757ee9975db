//! A set with its subflows, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_path::{Fingerprint, Interface, Metadata, Path, Select};

use super::{PathOptions, PathSet};
use crate::backoff::Failure;
use crate::order::{Action, Order, SubflowId};

pub(super) const MS: Duration = Duration::from_millis(1);

/// A path from AS 1 to AS 99 whose links have these interface numbers, one link per number. Paths
/// with the same number at the same place overlap.
pub(super) fn path(ids: &[u16]) -> Arc<Path> {
    let isd_as = |n: usize| format!("1-ff00:0:{n}").parse().unwrap();
    let mut interfaces = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        let next = if n + 1 == ids.len() { 99 } else { n + 2 };
        for isd_as in [isd_as(n + 1), isd_as(next)] {
            interfaces.push(Interface { isd_as, id: *id });
        }
    }
    Arc::new(Path::new(isd_as(1), isd_as(99), interfaces, Metadata::default()).unwrap())
}

/// A set, and the subflows that it ordered.
pub(super) struct Bench {
    pub set: PathSet<Arc<Path>>,
    /// The last subflow dialed over each path, and all that were ordered to be closed.
    pub subflows: BTreeMap<Fingerprint, SubflowId>,
    pub closed: Vec<SubflowId>,
}

impl Bench {
    pub fn new(select: Select, subflows: usize) -> Self {
        Self::with(PathOptions {
            select,
            subflows,
            ..PathOptions::default()
        })
    }

    pub fn with(options: PathOptions) -> Self {
        Self {
            set: PathSet::new(options),
            subflows: BTreeMap::new(),
            closed: Vec::new(),
        }
    }

    /// Offers paths that can all be dialed.
    pub fn offer(&mut self, paths: &[Arc<Path>], now: Instant) {
        self.set.offer(paths, |_| Ok(()), now);
    }

    pub fn orders(&mut self, now: Instant) -> Vec<Order> {
        let orders = self.set.orders(now);
        for order in &orders {
            match order.action {
                Action::Dial => drop(self.subflows.insert(order.path, order.subflow)),
                Action::Close { .. } => self.closed.push(order.subflow),
                Action::Hold | Action::Resume => {}
            }
        }
        orders
    }

    /// The paths that are ordered to be dialed now.
    pub fn dials(&mut self, now: Instant) -> Vec<Fingerprint> {
        let orders = self.orders(now).into_iter();
        let dials = orders.filter(|order| order.action == Action::Dial);
        dials.map(|order| order.path).collect()
    }

    /// The paths whose subflow is ordered to be closed now.
    pub fn closes(&mut self, now: Instant) -> Vec<Fingerprint> {
        let orders = self.orders(now).into_iter();
        let closes = orders.filter(|order| matches!(order.action, Action::Close { .. }));
        closes.map(|order| order.path).collect()
    }

    /// Connects the subflow that was dialed last over a path.
    pub fn connected(&mut self, path: &Path, rtt: Duration, now: Instant) {
        self.orders(now);
        let subflow = self.subflows[&path.fingerprint()];
        self.set.connected(subflow, Some(rtt), now);
    }

    pub fn failed(&mut self, path: Fingerprint, now: Instant) {
        let subflow = self.subflows[&path];
        self.set
            .lost(subflow, Failure::Failed, "no answer".into(), now);
    }

    pub fn taken(&self) -> Vec<Fingerprint> {
        let taken = self.set.paths().filter(|path| path.taken);
        taken.map(|path| path.fingerprint).collect()
    }
}
