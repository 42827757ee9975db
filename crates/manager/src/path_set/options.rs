//! How the paths to one remote are chosen and used.

use std::time::Duration;

use hawser_path::{Policy, Select, SlotOptions};

/// How the paths to one remote are chosen and used.
#[derive(Debug, Clone, PartialEq)]
pub struct PathOptions {
    /// Which of the offered paths are used.
    pub select: Select,
    /// Most paths used at once; 0 counts as 1.
    pub subflows: usize,
    /// Which of the offered paths may be used at all.
    pub policy: Option<Policy>,
    /// How connected paths are weighed; those too light are held (000, section 3.3.2).
    pub slots: SlotOptions,
    /// Whether paths that share interfaces with those used are tried, and kept if the others lose
    /// nothing (001, section VIII).
    pub sensing: bool,
    /// Whether the remote chooses the paths and connects back. Then only one path is used, to
    /// contact it.
    pub contact_only: bool,
    /// What to do about a subflow that delivers nothing.
    pub replace: Replace,
    /// By how much the round trip of a path may exceed that of the best one that delivers, before it
    /// is held: for transfers that deliver in order, where a slow path holds up what the others carry.
    /// `None` for others.
    pub most_lag: Option<Duration>,
    /// Which share of its packets a path may lose, 0 to 1, before it is held while another one loses less
    /// than half as many: for transfers that deliver in order and send again over the same path what
    /// was lost. `None` for others: they gain from whatever such a path carries.
    pub most_loss: Option<f64>,
}

/// What the transfer wants of the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Data is fetched from it, or sent to it.
    Transfer,
    /// The remote may want something: connections are kept, but paths are not weighed, surplus
    /// subflows are not closed, and what fails is seldom retried.
    Standby,
    /// Nothing: no path is dialed. The transfer itself closes what is connected.
    None,
}

/// What to do about a subflow that delivers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Another one is dialed beside it at once, over the same path.
    Beside,
    /// It is closed after this long, and only then is another one dialed: for remotes that accept
    /// one connection at a time.
    After(Duration),
}

impl Default for PathOptions {
    /// Up to 4 disjoint paths, weighed every second, with sensing.
    fn default() -> Self {
        Self {
            select: Select::disjoint(),
            subflows: 4,
            policy: None,
            slots: SlotOptions::default(),
            sensing: true,
            contact_only: false,
            replace: Replace::Beside,
            most_lag: None,
            most_loss: None,
        }
    }
}
