//! The path engine at work: which path-level peers are used.

mod downloader;
mod kind;
mod uploader;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hawser_path::{Decision, Verdict};

pub(crate) use self::downloader::Downloaders;
pub(crate) use self::uploader::Uploaders;
use crate::book::Ways;
use crate::flow::{Carried, FlowKey};
use crate::host::HostId;

/// An uploader and a leecher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    pub from: HostId,
    pub to: HostId,
}

impl Pair {
    pub fn flow(self, path: usize) -> FlowKey {
        FlowKey {
            from: self.from,
            to: self.to,
            path,
        }
    }
}

/// Those who choose paths, all of them.
pub(crate) trait Chooser {
    /// An uploader serves a leecher from now on.
    fn connect(&mut self, pair: Pair, ways: Rc<Ways>, now: Now, orders: &mut Orders);

    /// It no longer does. What it used is not ordered to end: that is known.
    fn disconnect(&mut self, pair: Pair, now: Now, orders: &mut Orders);

    /// Time went by.
    fn tick(&mut self, carried: &dyn Carried, now: Now, orders: &mut Orders);
}

/// A moment of virtual time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Since the beginning.
    pub since: Duration,
    /// The same for the engine, whose clock begins anywhere.
    pub instant: Instant,
}

/// What is to be done, and what was decided.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// Path-level peers to use, or no longer.
    pub list: Vec<(FlowKey, bool)>,
    /// Decisions by verdict and kind of reason.
    pub decisions: BTreeMap<String, u64>,
    /// How many of them made a path wait.
    pub waits: u64,
    /// Choking periods in which an uploader gave somebody a turn.
    pub turns: u64,
}

impl Orders {
    fn count(&mut self, decision: &Decision) {
        self.waits += u64::from(decision.verdict == Verdict::Waiting);
        let kind = kind::of(&decision.reason);
        let name = format!("{}: {kind}", decision.verdict);
        *self.decisions.entry(name).or_default() += 1;
    }
}
