//! The paths to other ASes: kept fresh, and without those that lead over dead links.

mod known;
mod refresh;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hawser_path::Interface;
use nix::errno::Errno;
use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;
use tokio::sync::{Notify, broadcast, watch};

use self::known::State;
use crate::daemon::Daemon;
use crate::outage::Outage;
use crate::path::Path;
use crate::service::SourceError;
use crate::source::{Age, Facts, Source};

/// Outages a slow listener may fall behind by before it misses some.
const OUTAGES_KEPT: usize = 64;
/// Who has paths that still work waits no longer than this for newer ones.
const PATIENCE: Duration = Duration::from_secs(1);

/// A host in a SCION AS. Cloning shares it.
#[derive(Clone)]
pub struct Endhost(Arc<Inner>);

struct Inner {
    source: Source,
    facts: Facts,
    address: Option<IpAddr>,
    state: Mutex<State>,
    outages: broadcast::Sender<Outage>,
    /// Tells the task that refreshes paths that its plan may have changed.
    replan: Arc<Notify>,
}

/// Why there are no paths.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathsError {
    /// Whoever was asked gave no usable answer.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Whoever was asked knows none.
    #[error("no path to {dst}: {source_name} knows none (does the AS exist, are its links up?)")]
    None {
        /// Where to.
        dst: IsdAsn,
        /// Who was asked.
        source_name: String,
    },
    /// All that it knows lead over something that was just reported down.
    #[error("no path to {dst}: all {count} lead over links that are reported down")]
    AllDown {
        /// Where to.
        dst: IsdAsn,
        /// How many there are.
        count: usize,
    },
}

impl Endhost {
    /// Asks `daemon` where this host is, and starts keeping paths fresh. Must be called inside a
    /// tokio runtime. [`Endhost::bootstrap`] finds a daemon, or does without.
    ///
    /// # Errors
    /// [`SourceError`] when the daemon gives no usable answer.
    pub async fn new(daemon: Daemon) -> Result<Self, SourceError> {
        Self::start(Source::Daemon(daemon.into()), None).await
    }

    /// Asks `source` where this host is, and starts keeping paths fresh; `address` is the host's.
    pub(crate) async fn start(
        source: Source,
        address: Option<IpAddr>,
    ) -> Result<Self, SourceError> {
        let facts = source.facts().await?;
        let replan = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            state: Mutex::new(State::new(facts.local)),
            source,
            facts,
            address,
            outages: broadcast::channel(OUTAGES_KEPT).0,
            replan: Arc::clone(&replan),
        });
        tokio::spawn(refresh::keep_fresh(Arc::downgrade(&inner), replan));
        Ok(Self(inner))
    }

    /// The AS this host is in.
    pub fn local_as(&self) -> IsdAsn {
        self.0.facts.local.isd_as
    }

    /// The largest SCION packet inside this AS, in bytes.
    pub fn local_mtu(&self) -> u16 {
        self.0.facts.local.mtu
    }

    /// This host's address, if it was told; else it is found out where it is needed.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.address
    }

    /// The UDP ports routers deliver to; a socket must be bound to one of them.
    pub fn port_range(&self) -> RangeInclusive<u16> {
        self.0.facts.ports.clone()
    }

    /// The underlay address of the border router at `interface` of this AS.
    pub fn router(&self, interface: u16) -> Option<SocketAddr> {
        self.0.facts.routers.get(&interface).copied()
    }

    /// The underlay addresses of this AS's border routers by interface.
    pub fn routers(&self) -> &BTreeMap<u16, SocketAddr> {
        &self.0.facts.routers
    }

    /// The paths to `dst` that can be used now, in the order of who offers them, not older than a
    /// minute; older ones that still work where newer ones do not come within a second.
    ///
    /// # Errors
    /// [`PathsError`] when there is none, or no usable answer about them.
    pub async fn paths(&self, dst: IsdAsn) -> Result<Vec<Path>, PathsError> {
        if let Some(paths) = self.0.fresh(dst) {
            return Ok(paths);
        }
        let _asking = Asking::new(&self.0, dst);
        let ask = self.0.ask(dst, Age::Known);
        if self.0.usable(dst).0.is_empty() {
            let asked = ask.await;
            return self.0.outcome(dst, asked);
        }
        match tokio::time::timeout(PATIENCE, ask).await {
            Ok(asked) => self.0.outcome(dst, asked),
            // Its refreshing goes on without us.
            Err(_) => self.0.outcome(dst, Ok(())),
        }
    }

    /// The paths to `dst` that can be used now, asked for anew by all that are asked.
    ///
    /// # Errors
    /// [`PathsError`] when there is none, or no usable answer about them.
    pub async fn refresh_paths(&self, dst: IsdAsn) -> Result<Vec<Path>, PathsError> {
        let _asking = Asking::new(&self.0, dst);
        let asked = self.0.ask(dst, Age::New).await;
        self.0.outcome(dst, asked)
    }

    /// The paths to `dst` that can be used, as they change: empty until known and while there are
    /// none. Outages show at once; refreshed paths well before the old ones expire.
    pub fn watch(&self, dst: IsdAsn) -> watch::Receiver<Arc<Vec<Path>>> {
        let mut state = self.0.lock();
        let receiver = state.known(dst).usable.subscribe();
        self.0.replan.notify_one();
        receiver
    }

    /// Takes every path over `interface` out, until it is offered again a second from now or later.
    pub fn report_down(&self, interface: Interface) {
        self.report(Outage::Interface(interface));
    }

    /// Takes every path that `outage` cuts out, until it is offered again a second from now or
    /// later, or [works](Endhost::report_alive). An SCMP error is no reason to call this before its
    /// quote was found to be of a packet that was sent.
    pub fn report(&self, outage: Outage) {
        self.0.report(outage);
    }

    /// Ends the hold of everything on a path over `interfaces` that was reported down before
    /// `sent`, because a packet sent then over that path was acknowledged: it can be used again at
    /// once.
    pub fn report_alive(&self, interfaces: &[Interface], sent: Instant) {
        self.0.lock().refute(interfaces, sent);
    }

    /// Takes every path through the border router at `router` out, if it is one, because packets to
    /// it end with `error`. As with everything reported down, it is tried again after a second, and
    /// less often when it stays away.
    pub(crate) fn report_router(&self, router: SocketAddr, error: Errno) {
        let behind = self.routers().iter().filter(|(_, at)| **at == router);
        for (id, _) in behind {
            let interface = Interface {
                isd_as: self.local_as(),
                id: *id,
            };
            tracing::debug!(%router, %interface, %error, "the border router does not answer");
            self.report_down(interface);
        }
    }

    /// What is reported down from now on, by whoever on this host hears of it.
    pub fn outages(&self) -> broadcast::Receiver<Outage> {
        self.0.outages.subscribe()
    }
}

impl fmt::Debug for Endhost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endhost")
            .field("local", &self.0.facts.local)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens under the lock that would leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The usable paths to `dst`, if they need not be asked for.
    fn fresh(&self, dst: IsdAsn) -> Option<Vec<Path>> {
        let mut state = self.lock();
        let here = dst == self.facts.local.isd_as;
        let fresh = state.known(dst).is_fresh();
        if !here && !fresh {
            return None;
        }
        let (usable, _) = state.usable(dst);
        (!usable.is_empty()).then_some(usable)
    }

    fn usable(&self, dst: IsdAsn) -> (Vec<Path>, usize) {
        self.lock().usable(dst)
    }

    /// What to say about the paths to `dst` after asking for them.
    fn outcome(
        &self,
        dst: IsdAsn,
        asked: Result<(), SourceError>,
    ) -> Result<Vec<Path>, PathsError> {
        let (usable, offered) = self.usable(dst);
        if !usable.is_empty() {
            // Paths keep working while nobody answers.
            return Ok(usable);
        }
        asked?;
        Err(match offered {
            0 => PathsError::None {
                dst,
                source_name: self.source.to_string(),
            },
            count => PathsError::AllDown { dst, count },
        })
    }

    /// Asks for the paths to `dst` and takes the answer in.
    async fn ask(&self, dst: IsdAsn, age: Age) -> Result<(), SourceError> {
        if dst == self.facts.local.isd_as {
            return Ok(());
        }
        let asked = Instant::now();
        let answer = self.source.paths(dst, age).await;
        self.lock().take_in(dst, asked, age, answer)
    }

    fn report(&self, outage: Outage) {
        if self.lock().report(outage) {
            tracing::info!(%outage, "reported down");
            self.replan.notify_one();
        }
        // No receiver is no error.
        let _ = self.outages.send(outage);
    }
}

/// Somebody who asks about an AS, so that the refreshing task does not do so as well.
struct Asking<'a>(&'a Inner, IsdAsn);

impl<'a> Asking<'a> {
    fn new(inner: &'a Inner, dst: IsdAsn) -> Self {
        inner.lock().begin(dst);
        Self(inner, dst)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.lock().done(self.1);
        self.0.replan.notify_one();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.replan.notify_one();
    }
}
