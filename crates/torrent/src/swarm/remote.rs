//! The paths to one address-level peer: which are taken, dialed, given up for a while.
//!
//! No I/O: the owner says what happened and when, and asks what to dial and what to close.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_path::{
    Decision, Fingerprint, Judged, Measured, Policy, Reason, Select, select_measured,
};

use crate::address::PeerAddr;
use crate::picker::ConnId;

/// Pauses before dialing a path again, by how often it failed in a row.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// After so many failures in a row another path is taken in this one's place, while this one goes
/// on being dialed.
const MOST_FAILURES: u32 = 2;

/// How paths are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub select: Select,
    pub most: usize,
    /// Which paths may be used at all.
    pub policy: Option<Policy>,
}

/// An address-level peer.
#[derive(Debug)]
pub(super) struct Remote<P> {
    pub addr: PeerAddr,
    /// Why it is never spoken to again.
    pub banned: Option<String>,
    /// It has everything, as we do: there is nothing to dial it for.
    pub complete: bool,
    /// Why no path to it is known.
    pub no_path: Option<String>,
    pub paths: BTreeMap<Fingerprint, PathPeer<P>>,
    choice: Choice,
    /// The peer chooses paths and connects back: one path is enough, to reach it.
    contact_only: bool,
}

/// A path-level peer: one path to the peer, connected or not.
#[derive(Debug)]
pub(super) struct PathPeer<P> {
    pub path: P,
    pub hops: usize,
    /// Whether the endhost offers it now.
    pub offered: bool,
    pub taken: bool,
    /// Why it cannot be dialed at all, or may not, if so.
    pub unfit: Option<Reason>,
    pub decision: Option<Decision>,
    /// What weighing or sensing decided about it since; it goes before `decision`.
    pub weighed: Option<Decision>,
    /// It is used on trial, or since a trial, though not taken.
    pub sensed: bool,
    /// How long it last took to connect and greet.
    pub handshake: Duration,
    /// The shortest round trip seen right after connecting, when nothing queues yet.
    rtt: Option<Duration>,
    pub link: Link,
    /// Since when its connection delivers nothing of what was asked for.
    pub stalled: Option<Instant>,
    /// How often in a row it could not be connected.
    failures: u32,
    pub retry_at: Option<Instant>,
    /// Bytes of blocks received over it.
    pub bytes: u64,
    /// The part of the bytes that it is to carry, 0 to 1, of those after its first `shared_from`;
    /// `None` where that is left open.
    pub share: Option<f64>,
    pub shared_from: u64,
    pub last_error: Option<String>,
}

/// The connection over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Link {
    pub conn: Option<ConnId>,
    /// The attempt to connect that is under way.
    pub attempt: Option<u64>,
}

/// What to do after the set of offered paths changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Withdrawn {
    /// Connections over paths that are not offered any more.
    pub conns: Vec<ConnId>,
    /// Connections over paths that the policy does not keep any more.
    pub denied: Vec<ConnId>,
    /// Attempts over either.
    pub attempts: Vec<u64>,
}

impl<P: AsRef<hawser_path::Path> + Clone> Remote<P> {
    pub fn new(addr: PeerAddr, mut choice: Choice, contact_only: bool) -> Self {
        if addr.ip().is_some() {
            // Policies are about SCION paths.
            choice.policy = None;
        }
        Self {
            addr,
            banned: None,
            complete: false,
            no_path: None,
            paths: BTreeMap::new(),
            choice,
            // Nobody chooses the way to an IP peer.
            contact_only: contact_only && addr.scion().is_some(),
        }
    }

    /// Whether it is connected to once at a time: an IP peer. Over a path of a SCION peer that
    /// delivers nothing, another connection is tried beside it.
    pub fn is_single(&self) -> bool {
        self.addr.ip().is_some()
    }

    /// The paths whose connection delivers nothing for longer than `patience`.
    pub fn silent(&self, now: Instant, patience: Duration) -> Vec<(Fingerprint, ConnId)> {
        let silent = self.paths.iter().filter_map(|(fingerprint, path)| {
            let over = now.saturating_duration_since(path.stalled?) > patience;
            Some((*fingerprint, path.link.conn.filter(|_| over)?))
        });
        silent.collect()
    }

    /// Whether a path is to be dialed once its time has come.
    fn is_open(&self, path: &PathPeer<P>) -> bool {
        let beside = path.stalled.is_some() && !self.is_single();
        path.is_wanted() && path.link.attempt.is_none() && (path.link.conn.is_none() || beside)
    }

    /// The peer does not choose paths: they are chosen here. Whether that is new.
    pub fn decide_here(&mut self) -> bool {
        let new = std::mem::take(&mut self.contact_only);
        if new {
            self.choose();
        }
        new
    }

    /// The endhost offers these paths now; `fits` tells why one of them cannot be dialed at all.
    pub fn offer(
        &mut self,
        offers: &[P],
        fits: impl Fn(&P) -> Result<(), String>,
        now: Instant,
    ) -> Withdrawn {
        let mut withdrawn = Withdrawn {
            conns: Vec::new(),
            denied: Vec::new(),
            attempts: Vec::new(),
        };
        // A policy judges all paths together.
        let policy = self.choice.policy.as_ref();
        let mut judged = policy
            .map_or_else(Vec::new, |policy| policy.filter(offers))
            .into_iter();
        let mut gone: Vec<Fingerprint> = self.paths.keys().copied().collect();
        for path in offers {
            let fingerprint = path.as_ref().fingerprint();
            // Nothing is known of how IP packets go.
            let hops = self.addr.scion().map_or(0, |_| path.as_ref().hops());
            gone.retain(|other| *other != fingerprint);
            let known = self.paths.entry(fingerprint).or_insert_with(|| PathPeer {
                path: path.clone(),
                hops,
                offered: false,
                taken: false,
                unfit: None,
                decision: None,
                weighed: None,
                sensed: false,
                handshake: Duration::ZERO,
                rtt: None,
                link: Link::default(),
                stalled: None,
                failures: 0,
                retry_at: None,
                bytes: 0,
                share: None,
                shared_from: 0,
                last_error: None,
            });
            known.path = path.clone();
            let unfit = match judged.next() {
                Some(Judged::Left(reason)) => Some(reason),
                _ => fits(path).err().map(|why| Reason::Unfit { why }),
            };
            if let Some(why) = unfit.as_ref().filter(|_| known.unfit.is_none()) {
                tracing::info!(peer = %self.addr, path = %fingerprint, %why, "path left");
            }
            if matches!(unfit, Some(Reason::Policy { .. })) {
                withdrawn.denied.extend(known.link.conn.take());
                withdrawn.attempts.extend(known.link.attempt.take());
                known.stalled = None;
            }
            known.unfit = unfit;
            if !known.offered {
                // It is back: what failed before says nothing any more.
                known.offered = true;
                known.failures = 0;
                known.retry_at = Some(now);
            }
        }
        for fingerprint in gone {
            let Some(path) = self.paths.get_mut(&fingerprint) else {
                continue;
            };
            if path.offered {
                path.offered = false;
                withdrawn.conns.extend(path.link.conn);
                withdrawn.attempts.extend(path.link.attempt.take());
            }
        }
        self.choose();
        withdrawn
    }

    /// Runs the selection anew, over the offered paths that can be connected; over all that can be
    /// dialed when none can.
    pub fn choose(&mut self) {
        if self.addr.ip().is_some() {
            return self.take_all();
        }
        let of = |failing: bool| {
            let paths = self.paths.values().filter(|p| p.is_fit());
            paths.filter(move |p| failing || !p.is_failing())
        };
        let all = of(false).next().is_none();
        let candidates: Vec<P> = of(all).map(|p| p.path.clone()).collect();
        let measured: Vec<Measured> = of(all)
            .map(|p| Measured {
                rtt: p.rtt,
                rate: None,
            })
            .collect();
        let most = match self.contact_only {
            true => 1,
            false => self.choice.most,
        };
        let selection = select_measured(&candidates, &measured, &self.choice.select, most);
        let taken = selection.taken.iter();
        let taken = taken.map(|index| candidates[*index].as_ref().fingerprint());
        let shares = selection.shares.map(|shares| taken.zip(shares).collect());
        self.share_out(shares.as_ref());
        for path in self.paths.values_mut() {
            path.taken = false;
            path.decision = path.unfit.clone().map(Decision::left);
        }
        for (index, decision) in selection.decisions.into_iter().enumerate() {
            let fingerprint = candidates[index].as_ref().fingerprint();
            if let Some(path) = self.paths.get_mut(&fingerprint) {
                path.taken = selection.taken.contains(&index);
                path.decision = Some(match self.contact_only && !path.taken {
                    true => Decision::left(Reason::ByUploader {
                        why: "not chosen".into(),
                    }),
                    false => decision,
                });
            }
        }
    }

    /// There is nothing to choose: the network takes the one way there is.
    fn take_all(&mut self) {
        for path in self.paths.values_mut() {
            path.taken = true;
            path.decision = Some(Decision::taken(Reason::PlainIp));
        }
    }

    /// The paths to dial now.
    pub fn due(&self, now: Instant) -> Vec<Fingerprint> {
        if self.banned.is_some() || self.complete {
            return Vec::new();
        }
        let due = self
            .paths
            .iter()
            .filter(|(_, path)| self.is_open(path) && path.retry_at.is_some_and(|at| at <= now));
        due.map(|(fingerprint, _)| *fingerprint).collect()
    }

    /// When the next path is to be dialed.
    pub fn next_due(&self) -> Option<Instant> {
        let waiting = self.paths.values().filter(|path| self.is_open(path));
        waiting.filter_map(|path| path.retry_at).min()
    }

    /// A path is connected, and its round trip measured: paths are chosen anew, since it may be
    /// other than announced. Returns the connection it takes the place of.
    pub fn connected(
        &mut self,
        fingerprint: Fingerprint,
        conn: ConnId,
        rtt: Duration,
    ) -> Option<ConnId> {
        let path = self.paths.get_mut(&fingerprint)?;
        let before = path.link.conn.replace(conn);
        path.link.attempt = None;
        path.stalled = None;
        path.failures = 0;
        path.rtt = Some(path.rtt.map_or(rtt, |least| least.min(rtt)));
        self.choose();
        before
    }

    /// A path could not be connected, or its connection ended. `pause` keeps it from being dialed
    /// for at least so long.
    pub fn failed(
        &mut self,
        fingerprint: Fingerprint,
        reason: String,
        pause: Duration,
        now: Instant,
    ) {
        let Some(path) = self.paths.get_mut(&fingerprint) else {
            return;
        };
        let backoff = PAUSES[(path.failures as usize).min(PAUSES.len() - 1)];
        path.failures += 1;
        path.retry_at = Some(now + backoff.max(pause));
        path.last_error = Some(reason);
        if path.failures == MOST_FAILURES {
            self.choose();
        }
    }

    /// The peer does not let us in over a path: another one is taken in its place, and this one is
    /// tried again after `pause`.
    pub fn refused(
        &mut self,
        fingerprint: Fingerprint,
        reason: String,
        pause: Duration,
        now: Instant,
    ) {
        if let Some(path) = self.paths.get_mut(&fingerprint) {
            path.failures = MOST_FAILURES;
            path.retry_at = Some(now + pause);
            path.last_error = Some(reason);
            self.choose();
        }
    }

    /// The connection over a path delivers nothing: another one is tried beside it at once, and
    /// another path is taken in its place.
    pub fn stalled(&mut self, fingerprint: Fingerprint, now: Instant) {
        if let Some(path) = self.paths.get_mut(&fingerprint) {
            path.stalled.get_or_insert(now);
            path.retry_at = Some(now);
            path.failures = path.failures.max(MOST_FAILURES);
            self.choose();
        }
    }

    /// The connection over a path delivers again. Returns the attempt to replace it.
    pub fn recovered(&mut self, fingerprint: Fingerprint) -> Option<u64> {
        let path = self.paths.get_mut(&fingerprint)?;
        path.stalled = None;
        if std::mem::take(&mut path.failures) >= MOST_FAILURES {
            self.choose();
        }
        self.paths.get_mut(&fingerprint)?.link.attempt.take()
    }

    /// Connections that the selection no longer takes, once all that it takes deliver: a path that
    /// works is not dropped for one that may not. Not those that are stalled: they may recover.
    pub fn surplus(&self) -> Vec<ConnId> {
        let ready = |path: &PathPeer<P>| path.link.conn.is_some() && path.stalled.is_none();
        let mut taken = self.paths.values().filter(|path| path.taken).peekable();
        if taken.peek().is_none() || !taken.all(ready) {
            return Vec::new();
        }
        let left = self.paths.values();
        let left = left.filter(|path| !path.is_wanted() && path.stalled.is_none());
        left.filter_map(|path| path.link.conn).collect()
    }

    /// One line on why there is no connection, for an error message.
    pub fn trouble(&self) -> String {
        if let Some(reason) = &self.banned {
            return reason.clone();
        }
        let offered = || self.paths.values().filter(|path| path.offered);
        let last = offered().find_map(|path| path.last_error.clone());
        let unfit = || offered().find_map(|path| path.unfit.as_ref().map(Reason::to_string));
        let any = || self.paths.values().find_map(|p| p.last_error.clone());
        last.or_else(unfit)
            .or_else(|| self.no_path.clone())
            .or_else(any)
            .unwrap_or_else(|| "no answer".into())
    }

    /// Whether there is nothing to dial and nothing to wait for: no path is known, or none that can
    /// be dialed.
    pub fn is_hopeless(&self) -> bool {
        match self.paths.is_empty() {
            true => self.no_path.is_some(),
            false => self.paths.values().all(|path| path.unfit.is_some()),
        }
    }
}

impl<P> PathPeer<P> {
    /// Whether it cannot be connected, so that another path takes its place.
    pub fn is_failing(&self) -> bool {
        self.failures >= MOST_FAILURES
    }

    /// Whether it is offered and can be dialed.
    fn is_fit(&self) -> bool {
        self.offered && self.unfit.is_none()
    }

    /// Whether a connection over it is wanted: also over one that fails, to see it come back.
    pub fn is_wanted(&self) -> bool {
        self.is_fit() && (self.taken || self.sensed || self.is_failing())
    }
}

/// The paths as the transport offers them, shared.
pub(super) type Offered<P> = Arc<Vec<P>>;

#[cfg(test)]
pub(super) mod tests;
