//! Peers that download from us over paths chosen here (001, section VI).
//!
//! A downloader opens one connection and offers its address. The paths to it are looked up, the
//! path manager assigns it some that overlap as little as possible with those of others, and those
//! are dialed. Connections over all other paths are choked: they stay open and wait.

mod negotiate;
mod serve;
mod serving;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Instant;

use hawser_endhost::ScionAddr;
use hawser_manager::{Carried, Failure, Order, PathOptions, Sharing, SubflowId};
use hawser_path::{Decision, Fingerprint, Interface, Path, Verdict};
use tokio::task::AbortHandle;

pub(super) use self::serving::{Announcement, Serving};
use crate::picker::{ConnId, GroupId};

/// Most connections that are dialed to downloaders.
const MAX_DIALED: usize = 500;

/// The peers that download over paths chosen here, and their connections.
#[derive(Debug)]
pub(super) struct Uploads<P> {
    sharing: Sharing<Downloader, P>,
    known: BTreeMap<GroupId, Known>,
}

/// A downloader, printed as its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Downloader {
    pub group: GroupId,
    /// Where it listens, and speaks from.
    pub addr: ScionAddr,
}

impl fmt::Display for Downloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.addr, f)
    }
}

/// A subflow that was dialed to a downloader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DialedBack {
    pub to: Downloader,
    pub subflow: SubflowId,
    pub path: Fingerprint,
}

/// What is known of a downloader besides its paths.
#[derive(Debug)]
struct Known {
    downloader: Downloader,
    /// The task that follows the paths to it.
    watch: AbortHandle,
    dials: HashMap<SubflowId, AbortHandle>,
    conns: BTreeMap<ConnId, (SubflowId, Fingerprint)>,
}

impl Known {
    fn conn(&self, subflow: SubflowId) -> Option<ConnId> {
        let mut conns = self.conns.iter();
        let found = conns.find(|(_, (of, _))| *of == subflow);
        found.map(|(conn, _)| *conn)
    }
}

impl<P: AsRef<Path> + Clone> Uploads<P> {
    /// No downloaders yet.
    pub fn new(paths: PathOptions, now: Instant) -> Self {
        Self {
            sharing: Sharing::new(paths, MAX_DIALED, now),
            known: BTreeMap::new(),
        }
    }

    /// Whether paths are chosen here for a peer.
    pub fn has(&self, group: GroupId) -> bool {
        self.known.contains_key(&group)
    }

    /// A downloader takes another number of paths. Whether it is known, if only at another address.
    pub fn set_max(&mut self, downloader: Downloader, max: usize, now: Instant) -> bool {
        let known = self.known.get(&downloader.group);
        if known.is_some_and(|known| known.downloader == downloader) {
            self.sharing.join(downloader, max, now);
        }
        known.is_some()
    }

    /// A downloader that takes at most `max` paths, connected as `conns` say; `watch` is the task
    /// that follows the paths to it.
    pub fn join(
        &mut self,
        downloader: Downloader,
        max: usize,
        watch: AbortHandle,
        conns: impl Iterator<Item = (ConnId, Fingerprint)>,
        now: Instant,
    ) {
        self.sharing.join(downloader, max, now);
        let known = Known {
            downloader,
            watch,
            dials: HashMap::new(),
            conns: BTreeMap::new(),
        };
        self.known.insert(downloader.group, known);
        for (conn, path) in conns {
            self.accepted(downloader.group, conn, path);
        }
    }

    /// These are the paths to a downloader now; `fits` tells why nothing can be sent over one.
    pub fn offer(
        &mut self,
        downloader: Downloader,
        paths: &[P],
        fits: impl Fn(&P) -> Result<(), String>,
    ) {
        // Nothing happens for one that left, and came back from elsewhere.
        self.sharing.offer(downloader, paths, fits);
    }

    /// A peer opened a connection, or is connected for other reasons.
    pub fn accepted(&mut self, group: GroupId, conn: ConnId, path: Fingerprint) {
        if let Some(known) = self.known.get_mut(&group)
            && let Some(subflow) = self.sharing.accepted(known.downloader, path)
        {
            known.conns.insert(conn, (subflow, path));
        }
    }

    /// A subflow is being dialed.
    fn dialing(&mut self, dialed: DialedBack, task: AbortHandle) {
        if let Some(known) = self.known.get_mut(&dialed.to.group) {
            known.dials.insert(dialed.subflow, task);
        }
    }

    /// A dial came to an end. Whether it is still wanted.
    fn dialed(&mut self, dialed: DialedBack) -> bool {
        let known = self.known.get_mut(&dialed.to.group);
        let known = known.filter(|known| known.downloader == dialed.to);
        known.is_some_and(|known| known.dials.remove(&dialed.subflow).is_some())
    }

    /// A dialed subflow is connected.
    fn connected(&mut self, dialed: DialedBack, conn: ConnId) {
        if let Some(known) = self.known.get_mut(&dialed.to.group) {
            let of = (dialed.subflow, dialed.path);
            known.conns.insert(conn, of);
            self.sharing.connected(dialed.subflow);
        }
    }

    /// A connection ended. Without any, its downloader has left.
    pub fn gone(&mut self, group: GroupId, conn: ConnId, now: Instant) {
        let Some(known) = self.known.get_mut(&group) else {
            return;
        };
        if let Some((subflow, _)) = known.conns.remove(&conn) {
            let why = "its connection ended";
            self.sharing.lost(subflow, Failure::Closed, why, now);
        }
        if known.conns.is_empty()
            && let Some(gone) = self.known.remove(&group)
        {
            gone.watch.abort();
            gone.dials.values().for_each(AbortHandle::abort);
            self.sharing.leave(gone.downloader);
        }
    }

    /// What is to be done now, where `sent` tells how many bytes went over a connection in all.
    fn orders(
        &mut self,
        now: Instant,
        sent: impl Fn(ConnId) -> Option<u64>,
    ) -> Vec<(Downloader, Order)> {
        let known = &self.known;
        let carried = |downloader: Downloader, subflow| {
            let conn = known.get(&downloader.group).and_then(|it| it.conn(subflow));
            let bytes = conn.and_then(&sent);
            Carried {
                bytes: bytes.unwrap_or(0),
                usable: bytes.is_some(),
            }
        };
        self.sharing.tick(carried, now)
    }

    /// A subflow is to be closed: ends a dial, and returns the connection.
    fn close(&mut self, downloader: Downloader, subflow: SubflowId) -> Option<ConnId> {
        let known = self.known.get_mut(&downloader.group)?;
        if let Some(task) = known.dials.remove(&subflow) {
            task.abort();
        }
        let conn = known.conn(subflow)?;
        known.conns.remove(&conn);
        Some(conn)
    }

    /// The connection of a subflow.
    fn conn(&self, downloader: Downloader, subflow: SubflowId) -> Option<ConnId> {
        self.known.get(&downloader.group)?.conn(subflow)
    }

    /// The connections whose path has a decision that the downloader was not told.
    fn changes(&mut self) -> Vec<(ConnId, Vec<Interface>, Decision)> {
        let mut changes = Vec::new();
        for (downloader, path, decision) in self.sharing.changes() {
            tracing::debug!(peer = %downloader, %path, %decision, "path weighed");
            let conns = self.known.get(&downloader.group);
            let conns = conns.into_iter().flat_map(|known| &known.conns);
            let Some(offered) = self.sharing.path(downloader, path) else {
                continue;
            };
            for (conn, _) in conns.filter(|(_, (_, of))| *of == path) {
                let interfaces = offered.as_ref().interfaces.clone();
                changes.push((*conn, interfaces, decision.clone()));
            }
        }
        changes
    }

    /// What is decided about a path to a peer, and the interfaces on it; `None` if no path to it is
    /// chosen here, or this one is not offered.
    fn announcement(
        &self,
        group: GroupId,
        path: Fingerprint,
    ) -> Option<(Vec<Interface>, Decision)> {
        let downloader = self.known.get(&group)?.downloader;
        let interfaces = &self.sharing.path(downloader, path)?.as_ref().interfaces;
        let decision = self.sharing.decision(downloader, path)?;
        Some((interfaces.clone(), decision))
    }

    /// Why a path is assigned to a peer, or not.
    pub fn decision(&self, group: GroupId, path: Fingerprint) -> Option<Decision> {
        let downloader = self.known.get(&group)?.downloader;
        self.sharing.decision(downloader, path)
    }

    /// The paths that are not assigned to their downloaders, and why.
    pub fn left(&self) -> impl Iterator<Item = (Downloader, Fingerprint, Decision)> {
        let decisions = self.sharing.decisions();
        decisions.filter(|(_, _, decision)| decision.verdict != Verdict::Taken)
    }
}
