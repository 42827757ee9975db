//! Hosts that choose paths: which path-level peers are used, as the path manager orders.

mod downloader;
mod uploader;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hawser_path::{Decision, Fingerprint, Verdict};

pub(crate) use self::downloader::Downloaders;
pub(crate) use self::uploader::Uploaders;
use crate::book::PairPaths;
use crate::flow::Flows;
use crate::names::{FlowKey, Pair};

/// All hosts of the side that chooses paths.
pub(crate) trait Chooser {
    /// An uploader begins to serve a leecher.
    fn connect(&mut self, pair: Pair, between: Rc<PairPaths>, now: Now, orders: &mut Orders);

    /// An uploader stops serving a leecher. The swarm ends the flows between them without orders.
    fn disconnect(&mut self, pair: Pair);

    /// Handles a step of time.
    fn tick(&mut self, flows: &Flows, now: Now, orders: &mut Orders);
}

/// A moment of virtual time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Time since the beginning.
    pub since: Duration,
    /// The same moment, for the path manager.
    pub instant: Instant,
}

/// The orders of a step, and counts of decisions.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Path-level peers, each with whether it is used now.
    pub list: Vec<(FlowKey, bool)>,
    /// Decisions by verdict and kind of reason.
    pub decisions: BTreeMap<String, u64>,
    /// How many of the decisions hold a path.
    pub waits: u64,
    /// Number of turns that uploaders gave to waiting leechers.
    pub turns: u64,
    /// All decisions; `None` if they are not recorded.
    pub log: Option<Vec<Decided>>,
}

/// A decision of a simulation about a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decided {
    /// Virtual time since the beginning.
    pub time: Duration,
    /// The number of the host that sends over the path; seeders come first.
    pub uploader: usize,
    /// The number of the host that receives over it.
    pub leecher: usize,
    /// The path, in the direction from the host that chooses.
    pub path: Fingerprint,
    /// The decision.
    pub decision: Decision,
}

impl Orders {
    fn count(&mut self, decision: &Decision) {
        self.waits += u64::from(decision.verdict == Verdict::Waiting);
        let kind = decision.reason.kind();
        let name = format!("{}: {kind}", decision.verdict);
        *self.decisions.entry(name).or_default() += 1;
    }

    /// Records a decision, if decisions are recorded.
    fn log(&mut self, pair: Pair, path: Fingerprint, decision: Decision, now: Now) {
        if let Some(log) = &mut self.log {
            log.push(Decided {
                time: now.since,
                uploader: pair.from as usize,
                leecher: pair.to as usize,
                path,
                decision,
            });
        }
    }
}
