//! State that a host and its clones share, and the task that keeps paths fresh.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use hawser_address::IsdAsn;
use hawser_topology::rough_duration;
use thiserror::Error;
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::cache::PathCache;
use crate::local_as::LocalTopology;
use crate::outage::Outage;
use crate::path::Path;
use crate::rates::PathRates;
use crate::service::{Freshness, SourceError};
use crate::source::Source;
use crate::sync::lock;

/// Number of outages by which a receiver may lag before it misses some.
const OUTAGES_KEPT: usize = 64;

pub(super) struct Inner {
    pub(super) source: Source,
    pub(super) topology: LocalTopology,
    pub(super) address: Option<IpAddr>,
    pub(super) mark: Option<u32>,
    pub(super) cache: Mutex<PathCache>,
    pub(super) outages: broadcast::Sender<Outage>,
    pub(super) rates: PathRates,
    /// Wakes the task that refreshes paths when its plan may have changed.
    pub(super) replan: Arc<Notify>,
}

/// Why there are no paths.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathsError {
    /// The source of paths gave no usable answer.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source of paths knows no path.
    #[error("no path to {dst}: {source_name} knows none (does the AS exist, are its links up?)")]
    None {
        /// The requested AS.
        dst: IsdAsn,
        /// The source of paths.
        source_name: String,
    },
    /// All paths that the source offers have expired by this host's clock.
    #[error(
        "no path to {dst}: all {count} that {source_name} offers have expired, the last {} ago: the clock of this host may be wrong (`hawser doctor`)",
        rough_duration(*.ago)
    )]
    Expired {
        /// The requested AS.
        dst: IsdAsn,
        /// The source of paths.
        source_name: String,
        /// The number of offered paths.
        count: usize,
        /// How long ago the last of them expired, in seconds.
        ago: u64,
    },
    /// All paths that the source knows cross a reported outage.
    #[error("no path to {dst}: all {count} paths cross links reported down")]
    AllDown {
        /// The requested AS.
        dst: IsdAsn,
        /// The number of known paths.
        count: usize,
    },
}

impl Inner {
    pub(super) fn new(source: Source, topology: LocalTopology, address: Option<IpAddr>) -> Self {
        Self {
            cache: Mutex::new(PathCache::new(topology.local)),
            source,
            topology,
            address,
            mark: None,
            outages: broadcast::channel(OUTAGES_KEPT).0,
            rates: PathRates::default(),
            replan: Arc::new(Notify::new()),
        }
    }

    /// The usable paths to `dst`; `None` if there is none or they are not fresh.
    pub(super) fn fresh(&self, dst: IsdAsn) -> Option<Vec<Path>> {
        let mut cache = lock(&self.cache);
        let here = dst == self.topology.local.isd_as;
        let fresh = cache.want(dst).is_fresh();
        if !here && !fresh {
            return None;
        }
        let (usable, _) = cache.usable(dst);
        (!usable.is_empty()).then_some(usable)
    }

    /// The usable paths to `dst` after a request, or why there are none.
    pub(super) fn outcome(
        &self,
        dst: IsdAsn,
        asked: Result<(), SourceError>,
    ) -> Result<Vec<Path>, PathsError> {
        let cache = lock(&self.cache);
        let (usable, offered) = cache.usable(dst);
        let expired = cache.expired(dst);
        drop(cache);
        if !usable.is_empty() {
            // Paths stay usable while the source does not answer.
            return Ok(usable);
        }
        asked?;
        Err(match offered {
            0 => PathsError::None {
                dst,
                source_name: self.source.to_string(),
            },
            count => match expired {
                Some(ago) => PathsError::Expired {
                    dst,
                    source_name: self.source.to_string(),
                    count,
                    ago,
                },
                None => PathsError::AllDown { dst, count },
            },
        })
    }

    /// Requests the paths to `dst` from the source and caches the answer.
    pub(super) async fn ask(&self, dst: IsdAsn, freshness: Freshness) -> Result<(), SourceError> {
        if dst == self.topology.local.isd_as {
            return Ok(());
        }
        let asked = Instant::now();
        let answer = self.source.paths(dst, freshness).await;
        lock(&self.cache).update(dst, asked, freshness, answer)
    }

    pub(super) fn report(&self, outage: Outage) {
        if lock(&self.cache).report(outage) {
            tracing::info!(%outage, "reported down");
            self.replan.notify_one();
        }
        // Sending fails only without a receiver.
        let _ = self.outages.send(outage);
    }
}

/// A request in flight for the paths to an AS, which keeps the refreshing task from sending
/// another.
pub(super) struct Query<'a>(&'a Inner, IsdAsn);

impl<'a> Query<'a> {
    pub(super) fn new(inner: &'a Inner, dst: IsdAsn) -> Self {
        lock(&inner.cache).begin(dst);
        Self(inner, dst)
    }
}

impl Drop for Query<'_> {
    fn drop(&mut self) {
        lock(&self.0.cache).done(self.1);
        self.0.replan.notify_one();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.replan.notify_one();
    }
}

/// Spawns the task that keeps paths fresh; not in an async function, whose code is compiled once more in each
/// crate that calls it.
pub(super) fn spawn_refreshing(inner: &Arc<Inner>) {
    tokio::spawn(keep_fresh(Arc::downgrade(inner), Arc::clone(&inner.replan)));
}

/// Requests paths whenever they are due, until the endhost is dropped. Requests run concurrently:
/// one without an answer does not delay the others.
async fn keep_fresh(inner: Weak<Inner>, replan: Arc<Notify>) {
    let mut asking = JoinSet::new();
    loop {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let (due, next) = lock(&inner.cache).plan();
        for (dst, freshness) in due {
            let inner = Arc::clone(&inner);
            asking.spawn(async move {
                if let Err(error) = inner.ask(dst, freshness).await {
                    tracing::debug!(%dst, %error, "paths not refreshed");
                }
                if lock(&inner.cache).done(dst) {
                    inner.replan.notify_one();
                }
            });
        }
        drop(inner);
        // The plan accounts for the requests in flight: they wake this if something is due when they end.
        while asking.try_join_next().is_some() {}
        let plan_again = sleep_until(next.unwrap_or_else(Instant::now).into());
        tokio::select! {
            () = plan_again, if next.is_some() => {}
            () = replan.notified() => {}
        }
    }
}
