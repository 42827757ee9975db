//! Peers that download from us over paths chosen here (001, section VI).
//!
//! A downloader opens one connection and offers its address. The paths to it are looked up, the
//! path manager assigns it some that overlap as little as possible with those of others, and those
//! are dialed. Connections over all other paths are choked: they stay open and wait.
//!
//! All peers, these and others, share the slots of the torrent: one that holds none is choked over
//! all paths to it.

mod choking;
mod revealing;
mod serve;
mod serving;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use hawser_choker::{Choker, DEFAULT_SLOTS, Goal};
use hawser_endhost::ScionAddr;
use hawser_manager::{PathOptions, Sharing};
use hawser_path::{Decision, Fingerprint, Path, Verdict};
use tokio::task::AbortHandle;

pub(super) use self::serving::{Announcement, Serving};
use crate::picker::GroupId;
use crate::super_seeding::SuperSeeding;

/// Most connections that are dialed to downloaders.
const MAX_DIALED: usize = 500;

/// Which peers are served, and the paths to those that download over paths chosen here.
#[derive(Debug)]
pub(super) struct Uploads<P> {
    /// Which peers hold a slot.
    pub choker: Choker<GroupId>,
    /// The number of slots that is wanted; `None` for one that fits the limit of the rate.
    pub slots: Option<usize>,
    /// What is revealed to which peer; `None` if all is.
    pub super_seeding: Option<SuperSeeding>,
    pub sharing: Sharing<Downloader, P>,
    known: BTreeMap<GroupId, Known>,
}

/// A downloader, printed as its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Downloader {
    pub group: GroupId,
    /// The address it listens at and sends from.
    pub addr: ScionAddr,
}

impl fmt::Display for Downloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.addr, f)
    }
}

/// A peer that is served over paths chosen here.
#[derive(Debug)]
struct Known {
    downloader: Downloader,
    /// The task that watches the paths to it.
    watch: AbortHandle,
}

impl<P: AsRef<Path> + Clone> Uploads<P> {
    /// No peers yet.
    pub fn new(paths: PathOptions, now: Instant) -> Self {
        Self {
            choker: Choker::new(Goal::Fetching, DEFAULT_SLOTS, fastrand::u64(..), now),
            slots: None,
            super_seeding: None,
            sharing: Sharing::new(paths, MAX_DIALED, now),
            known: BTreeMap::new(),
        }
    }

    /// Whether paths are chosen here for a peer.
    pub fn has(&self, group: GroupId) -> bool {
        self.known.contains_key(&group)
    }

    /// The decision about a path to a peer, with its reason; `None` if paths to the peer are not
    /// chosen here, or the path is not offered.
    pub fn decision(&self, group: GroupId, path: Fingerprint) -> Option<Decision> {
        let downloader = self.known.get(&group)?.downloader;
        self.sharing.decision(downloader, path)
    }

    /// A path that is offered to a peer for which paths are chosen here.
    pub fn path(&self, group: GroupId, path: Fingerprint) -> Option<&P> {
        let downloader = self.known.get(&group)?.downloader;
        self.sharing.path(downloader, path)
    }

    /// The paths that are not assigned to their downloaders, with the reasons.
    pub fn left(&self) -> impl Iterator<Item = (Downloader, Fingerprint, Decision)> {
        let decisions = self.sharing.decisions();
        decisions.filter(|(_, _, decision)| decision.verdict != Verdict::Taken)
    }
}
