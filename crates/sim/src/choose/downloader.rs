//! Leechers that choose for themselves, as downloads do: one path manager per uploader.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hawser_manager::{Action, Carried, PathOptions, PathSet, SubflowId};
use hawser_path::Path;

use super::{Chooser, Now, Orders};
use crate::book::PairPaths;
use crate::flow::Flows;
use crate::names::Pair;
use crate::options::{Options, STEP};

/// The smallest of all pairs.
const MIN_PAIR: Pair = Pair { from: 0, to: 0 };

/// Every leecher, with the address-level peers it downloads from.
pub(crate) struct Downloaders {
    options: PathOptions,
    peers: BTreeMap<Pair, Peer>,
    /// When each must be called next.
    due: BTreeSet<(Instant, Pair)>,
}

/// An address-level peer as a leecher sees it.
struct Peer {
    between: Rc<PairPaths>,
    set: PathSet<Rc<Path>>,
    subflows: BTreeMap<SubflowId, Subflow>,
    /// Whether it uses one path at most. Dials never fail here, so nothing is due then once that is connected.
    has_one_path: bool,
    /// When the path manager must be called next.
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
            due: BTreeSet::new(),
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
            has_one_path: paths.len() == 1 || self.options.subflows == 1,
            subflows: BTreeMap::new(),
            due: None,
            called: now.since.saturating_sub(STEP),
        };
        peer.obey(pair, now, orders);
        // Its time slots count from this step.
        peer.due = Some(now.instant);
        self.due.insert((now.instant, pair));
        self.peers.insert(pair, peer);
    }

    fn disconnect(&mut self, pair: Pair) {
        let due = self.peers.remove(&pair).and_then(|peer| peer.due);
        due.map(|due| self.due.remove(&(due, pair)));
    }

    fn tick(&mut self, flows: &Flows, now: Now, orders: &mut Orders) {
        let later = self
            .due
            .split_off(&(now.instant + Duration::from_nanos(1), MIN_PAIR));
        let due = std::mem::replace(&mut self.due, later);
        let due: BTreeSet<Pair> = due.into_iter().map(|(_, pair)| pair).collect();
        for pair in due {
            let Some(peer) = self.peers.get_mut(&pair) else {
                continue;
            };
            peer.shake_hands(now);
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
            peer.obey(pair, now, orders);
            self.due.extend(peer.due.map(|due| (due, pair)));
        }
    }
}

impl Peer {
    /// Completes the handshakes that are done.
    fn shake_hands(&mut self, now: Now) {
        for (id, subflow) in &mut self.subflows {
            if let Some(done) = subflow.connects.take_if(|done| *done <= now.since) {
                let at = now.instant - (now.since - done);
                // Nothing is measured: the announced latency is exact.
                self.set.connected(*id, None, at);
            }
        }
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
        let connects = self.subflows.values().filter_map(|it| it.connects);
        let connects = connects
            .min()
            .map(|at| now.instant + at.saturating_sub(now.since));
        let due = self.set.next_due().filter(|_| !self.has_one_path);
        self.due = due.into_iter().chain(connects).min();
    }
}
