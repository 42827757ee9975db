//! The peers that are dialed, each with the paths to it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_address::PeerAddr;
use hawser_manager::{Demand, PathOptions, PathSet, Replace, SelectBy};
use hawser_path::{Decision, Path, Reason, Select, Verdict};
use tokio::task::AbortHandle;

use crate::progress::PathSummary;
use crate::reason;

/// A connection to an IP peer that delivers nothing for this long is closed, and the peer is dialed
/// anew. Many programs accept one connection from an address at a time.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Identifies a peer that is dialed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RemoteId(usize);

impl RemoteId {
    /// The id after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// An address-level peer that is dialed.
#[derive(Debug)]
pub(super) struct Remote<P> {
    pub addr: PeerAddr,
    /// Why it is never dialed again; `None` if it is not banned.
    pub banned: Option<String>,
    /// Why no path to it is known.
    pub no_path: Option<String>,
    pub paths: PathSet<P>,
    /// Whether it is asked for whole blocks, padding included; `None` if its connections have not shown it.
    pub whole_blocks: Option<bool>,
    /// When it was found; `None` if it is listed, and dialed as long as the torrent runs.
    pub found_at: Option<Instant>,
    /// The task that watches the paths to it.
    pub watch: Option<AbortHandle>,
}

/// All peers that are dialed.
pub(super) type Remotes<P> = BTreeMap<RemoteId, Remote<P>>;

impl<P: AsRef<Path> + Clone> Remote<P> {
    /// A remote to which no path is known yet.
    pub fn new(
        addr: PeerAddr,
        found_at: Option<Instant>,
        select_by: SelectBy,
        paths: &PathOptions,
    ) -> Self {
        let options = match addr {
            PeerAddr::Scion(_) => PathOptions {
                contact_only: select_by == SelectBy::Uploader,
                ..paths.clone()
            },
            // Policies apply to SCION paths; to an IP peer there is nothing to choose.
            PeerAddr::Ip(_) => PathOptions {
                select: Select::shortest(),
                subflows: 1,
                replace: Replace::After(SILENCE_TIMEOUT),
                ..PathOptions::default()
            },
        };
        Self {
            addr,
            banned: None,
            no_path: None,
            whole_blocks: None,
            paths: PathSet::new(options),
            found_at,
            watch: None,
        }
    }

    /// What each path to it carried, over connections that were dialed.
    pub fn summaries(&self) -> impl Iterator<Item = PathSummary> {
        let paths = self.paths.paths().filter(|path| path.bytes > 0);
        paths.map(|path| PathSummary {
            peer: self.addr,
            fingerprint: path.fingerprint,
            hops: self.hops(&path.path),
            interfaces: Vec::new(),
            bytes: path.bytes,
        })
    }

    /// Takes the paths that the endhost offers now; `fits` says why a path cannot be dialed at all.
    pub fn offer(
        &mut self,
        paths: &[P],
        no_path: Option<String>,
        fits: impl Fn(&P) -> Result<(), String>,
        now: Instant,
    ) {
        self.no_path = no_path;
        self.paths.offer(paths, fits, now);
        self.log_decisions();
    }

    /// Bans it: it is never dialed again.
    pub fn ban(&mut self, reason: &str) {
        self.banned.get_or_insert(reason.to_owned());
        self.paths.set_demand(Demand::None);
    }

    /// Sets the demand once everything is here: [`Demand::None`] if the peer is complete as well
    /// (`both`) or banned, else [`Demand::Standby`].
    pub fn set_complete(&mut self, both: bool) {
        let demand = match both || self.banned.is_some() {
            true => Demand::None,
            false => Demand::Standby,
        };
        self.paths.set_demand(demand);
    }

    /// ASes on a path, both ends included; 0 for an IP peer, as the path of IP packets is unknown.
    pub fn hops(&self, path: &P) -> usize {
        self.addr.scion().map_or(0, |_| path.as_ref().hops())
    }

    /// The decision about a path, with its reason.
    pub fn describe(&self, decision: Decision) -> reason::Decision {
        match self.addr {
            PeerAddr::Scion(_) => decision.convert(),
            PeerAddr::Ip(_) => reason::Decision::taken(reason::ChoiceReason::PlainIp),
        }
    }

    /// One line on why there is no connection, for an error message.
    pub fn trouble(&self) -> String {
        let banned = self.banned.clone();
        banned
            .or_else(|| self.paths.trouble())
            .or_else(|| self.no_path.clone())
            .or_else(|| self.paths.last_error())
            .unwrap_or_else(|| "no answer".into())
    }

    /// Whether there is nothing to dial and nothing to wait for: no path is known, or no known path
    /// can be dialed.
    pub fn is_hopeless(&self) -> bool {
        match self.paths.is_empty() {
            true => self.no_path.is_some(),
            false => !self.paths.is_usable(),
        }
    }

    /// Logs the decisions made since the last call.
    pub fn log_decisions(&mut self) {
        let peer = self.addr;
        for (path, decision) in self.paths.changes() {
            match &decision.reason {
                why @ (Reason::Policy { .. } | Reason::Unfit { .. })
                    if decision.verdict == Verdict::Left =>
                {
                    tracing::info!(%peer, %path, %why, "path left");
                }
                _ => tracing::debug!(%peer, %path, %decision, "path weighed"),
            }
        }
    }
}
