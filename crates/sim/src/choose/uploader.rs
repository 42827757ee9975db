//! Uploaders that assign paths to all their leechers (001, section VI).

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use hawser_manager::{Action, Carried, Cause, Order, PathOptions, Sharing, SubflowId, TIME_SLOT};
use hawser_path::{Decision, Path, Reason};

use super::{Chooser, Now, Orders};
use crate::book::PairPaths;
use crate::flow::Flows;
use crate::names::{FlowKey, HostId, Pair};
use crate::options::Options;

/// Every host that uploads.
pub(crate) struct Uploaders {
    options: PathOptions,
    /// Most paths to each leecher.
    max: usize,
    uploaders: BTreeMap<HostId, Uploader>,
}

/// A leecher, as reasons name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Leecher(HostId);

impl fmt::Display for Leecher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.0)
    }
}

struct Uploader {
    sharing: Sharing<Leecher, Rc<Path>>,
    paths: BTreeMap<Leecher, Rc<PairPaths>>,
    subflows: BTreeMap<SubflowId, FlowKey>,
}

impl Uploaders {
    /// Each leecher gets at most `options.paths` paths from each uploader, those that
    /// `options.select` ranks first.
    pub fn new(options: &Options) -> Self {
        Self {
            options: PathOptions {
                select: options.select.clone(),
                ..PathOptions::default()
            },
            max: options.paths,
            uploaders: BTreeMap::new(),
        }
    }
}

impl Chooser for Uploaders {
    fn connect(&mut self, pair: Pair, between: Rc<PairPaths>, now: Now, _: &mut Orders) {
        let uploader = self.uploaders.entry(pair.from);
        let uploader = uploader.or_insert_with(|| Uploader {
            sharing: Sharing::new(self.options.clone(), usize::MAX, now.instant),
            paths: BTreeMap::new(),
            subflows: BTreeMap::new(),
        });
        let leecher = Leecher(pair.to);
        let paths: Vec<Rc<Path>> = between.known.iter().map(|it| Rc::clone(&it.path)).collect();
        uploader.paths.insert(leecher, between);
        uploader.sharing.join(leecher, self.max, now.instant);
        uploader.sharing.offer(leecher, &paths, |_| Ok(()));
    }

    fn disconnect(&mut self, pair: Pair) {
        let Some(uploader) = self.uploaders.get_mut(&pair.from) else {
            return;
        };
        let leecher = Leecher(pair.to);
        uploader.sharing.leave(leecher);
        uploader.paths.remove(&leecher);
    }

    fn tick(&mut self, flows: &Flows, now: Now, orders: &mut Orders) {
        for (from, uploader) in &mut self.uploaders {
            let turns = uploader.sharing.turns();
            let subflows = &uploader.subflows;
            let since = now.since.saturating_sub(TIME_SLOT);
            let carried = |_, subflow| {
                let flow = subflows.get(&subflow);
                flow.map_or_else(Carried::default, |flow| flows.carried(*flow, since))
            };
            for (leecher, order) in uploader.sharing.tick(carried, now.instant) {
                uploader.obey(leecher, Pair::new(*from, leecher.0), &order, orders);
            }
            orders.turns += uploader.sharing.turns() - turns;
            if orders.log.is_some() {
                for (leecher, path, decision) in uploader.sharing.changes() {
                    orders.log(Pair::new(*from, leecher.0), path, decision, now);
                }
            }
        }
        self.uploaders
            .retain(|_, uploader| !uploader.paths.is_empty());
    }
}

impl Uploader {
    fn obey(&mut self, leecher: Leecher, pair: Pair, order: &Order, orders: &mut Orders) {
        let flow = match order.action {
            Action::Dial => {
                let between = self.paths.get(&leecher);
                let Some(path) = between.and_then(|between| between.find(order.path)) else {
                    return;
                };
                self.subflows.insert(order.subflow, pair.flow(path));
                // The flow accounts for the time this takes.
                self.sharing.connected(order.subflow);
                Some(pair.flow(path))
            }
            Action::Hold | Action::Resume => self.subflows.get(&order.subflow).copied(),
            Action::Close { .. } => self.subflows.remove(&order.subflow),
        };
        let decision = match order.cause {
            Cause::Ended => None,
            _ => self.sharing.decision(leecher, order.path),
        };
        let peer = leecher.to_string();
        orders.count(&decision.unwrap_or(Decision::left(Reason::Withdrawn { peer })));
        let used = matches!(order.action, Action::Dial | Action::Resume);
        orders.list.extend(flow.map(|flow| (flow, used)));
    }
}
