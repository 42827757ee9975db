//! Leechers that choose for themselves, as downloads do: one path manager per uploader.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hawser_manager::{Action, Carried, PathOptions, PathSet, SubflowId};
use hawser_path::Path;

use super::{Chooser, Now, Orders, Pair};
use crate::book::PairPaths;
use crate::flow::Flows;
use crate::options::{Options, STEP};

/// Every leecher, with the address-level peers it downloads from.
pub(crate) struct Downloaders {
    options: PathOptions,
    peers: BTreeMap<Pair, Peer>,
}

/// An address-level peer as a leecher sees it.
struct Peer {
    between: Rc<PairPaths>,
    set: PathSet<Rc<Path>>,
    subflows: BTreeMap<SubflowId, Subflow>,
    /// When the path manager must be called next even if nothing happens.
    due: Option<Instant>,
    /// When it was last called.
    called: Duration,
}

/// A subflow that was dialed.
struct Subflow {
    /// The index of its path.
    path: usize,
    /// When the handshake under way is done.
    connects: Option<Duration>,
    held: bool,
}

impl Downloaders {
    /// Each leecher chooses for each peer as `options` say.
    pub fn new(options: &Options) -> Self {
        Self {
            options: PathOptions {
                select: options.select.clone(),
                subflows: options.paths,
                ..PathOptions::default()
            },
            peers: BTreeMap::new(),
        }
    }
}

impl Chooser for Downloaders {
    fn connect(&mut self, pair: Pair, between: Rc<PairPaths>, now: Now, orders: &mut Orders) {
        let mut set = PathSet::new(self.options.clone());
        let paths: Vec<_> = between
            .known
            .iter()
            .map(|one| Rc::clone(&one.path))
            .collect();
        set.offer(&paths, |_| Ok(()), now.instant);
        let mut peer = Peer {
            between,
            set,
            subflows: BTreeMap::new(),
            due: None,
            called: now.since.saturating_sub(STEP),
        };
        peer.obey(pair, now, orders);
        // Its time slots count from this step.
        peer.due = Some(now.instant);
        self.peers.insert(pair, peer);
    }

    fn disconnect(&mut self, pair: Pair) {
        self.peers.remove(&pair);
    }

    fn tick(&mut self, flows: &Flows, now: Now, orders: &mut Orders) {
        for (pair, peer) in &mut self.peers {
            let connected = peer.shake_hands(now);
            if !connected && peer.due.is_none_or(|due| due > now.instant) {
                continue;
            }
            let before = std::mem::replace(&mut peer.called, now.since);
            let subflows = &peer.subflows;
            let carried = |subflow: SubflowId| {
                let Some(subflow) = subflows.get(&subflow) else {
                    return Carried::default();
                };
                let mut carried = flows.carried(pair.flow(subflow.path), before);
                carried.usable |= subflow.held;
                carried
            };
            peer.set.tick(carried, now.instant);
            peer.obey(*pair, now, orders);
        }
    }
}

impl Peer {
    /// Completes the handshakes that are done. Returns whether there were any.
    fn shake_hands(&mut self, now: Now) -> bool {
        let mut any = false;
        for (id, subflow) in &mut self.subflows {
            if let Some(done) = subflow.connects.take_if(|done| *done <= now.since) {
                let at = now.instant - (now.since - done);
                // Nothing is measured: the announced latency is exact.
                self.set.connected(*id, None, at);
                any = true;
            }
        }
        any
    }

    /// Executes the orders of the path manager.
    fn obey(&mut self, pair: Pair, now: Now, orders: &mut Orders) {
        for order in self.set.orders(now.instant) {
            let Some(path) = self.between.find(order.path) else {
                continue;
            };
            let used = matches!(order.action, Action::Dial | Action::Resume);
            orders.list.push((pair.flow(path), used));
            match order.action {
                Action::Dial => {
                    let subflow = Subflow {
                        path,
                        connects: Some(now.since + self.between.known[path].rtt),
                        held: false,
                    };
                    self.subflows.insert(order.subflow, subflow);
                }
                Action::Hold | Action::Resume => {
                    if let Some(subflow) = self.subflows.get_mut(&order.subflow) {
                        subflow.held = !used;
                    }
                }
                Action::Close { .. } => drop(self.subflows.remove(&order.subflow)),
            }
        }
        for (path, decision) in self.set.changes() {
            orders.count(&decision);
            orders.log(pair, path, decision, now);
        }
        self.due = self.set.next_due();
    }
}
