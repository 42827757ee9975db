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
    /// The remote chooses the paths and connects back: one path is used, to reach it.
    pub contact_only: bool,
    /// What is done about a subflow that delivers nothing.
    pub replace: Replace,
}

/// What the transfer wants of the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Data is fetched from it, or sent to it.
    Transfer,
    /// It may want something: connections are kept, but nothing is weighed or found superfluous,
    /// and what fails is tried again seldom.
    Standby,
    /// Nothing any more: no path is dialed. What is connected the transfer closes by itself.
    None,
}

/// What is done about a subflow that delivers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Another one is dialed beside it at once, over the same path.
    Beside,
    /// It is closed after this long, and only then is another one dialed: for remotes that take one
    /// connection at a time.
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
        }
    }
}
