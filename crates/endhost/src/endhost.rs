//! The paths to other ASes: kept fresh, and without those that lead over dead links.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_path::Interface;
use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;
use tokio::sync::{Notify, broadcast, watch};

use crate::daemon::{Daemon, DaemonError, LocalAs};
use crate::outage::{HOLD_WITHOUT_DAEMON, Outage, Outages};
use crate::path::Path;

/// How often the daemon is asked about paths somebody watches, and while something is down.
const WATCHED: Duration = Duration::from_secs(1);
/// How often it is asked about other paths in use; and how old an answer may be that is given out.
const UNWATCHED: Duration = Duration::from_secs(60);
/// Paths nobody asked for in this time are forgotten.
const FORGET: Duration = Duration::from_secs(300);
/// New paths are fetched this long before the first of the old ones expires.
const BEFORE_EXPIRY: Duration = Duration::from_secs(120);
/// Outages a slow listener may fall behind by before it misses some.
const OUTAGES_KEPT: usize = 64;

/// A host in a SCION AS. Cloning shares it.
#[derive(Clone)]
pub struct Endhost(Arc<Inner>);

struct Inner {
    daemon: Daemon,
    local: LocalAs,
    ports: RangeInclusive<u16>,
    routers: BTreeMap<u16, SocketAddr>,
    state: Mutex<State>,
    outages: broadcast::Sender<Outage>,
    /// Tells the task that refreshes paths that its plan may have changed.
    replan: Arc<Notify>,
}

#[derive(Default)]
struct State {
    known: HashMap<IsdAsn, Known>,
    outages: Outages,
}

/// The paths to one AS.
struct Known {
    /// As the daemon offered them.
    offered: Vec<Path>,
    /// Those of them that can be used.
    usable: watch::Sender<Arc<Vec<Path>>>,
    /// When the daemon was last asked, whether or not it answered.
    asked: Option<Instant>,
    /// Whether its last answer was one.
    answered: bool,
    /// When somebody last wanted to know.
    wanted: Instant,
}

/// Why the endhost could not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndhostError {
    /// The daemon gave no usable answer.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
}

/// Why there are no paths.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathsError {
    /// The daemon gave no usable answer.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The daemon knows none.
    #[error(
        "no path to {dst}: the daemon at {daemon} knows none (does the AS exist, are its links up?)"
    )]
    None {
        /// Where to.
        dst: IsdAsn,
        /// Who was asked.
        daemon: String,
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
    /// tokio runtime.
    ///
    /// # Errors
    /// [`EndhostError`] when the daemon gives no usable answer.
    pub async fn new(daemon: Daemon) -> Result<Self, EndhostError> {
        let local = daemon.local_as().await?;
        let ports = daemon.port_range().await?;
        let routers = daemon.interfaces().await?;
        let replan = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            daemon,
            local,
            ports,
            routers,
            state: Mutex::default(),
            outages: broadcast::channel(OUTAGES_KEPT).0,
            replan: Arc::clone(&replan),
        });
        tokio::spawn(keep_fresh(Arc::downgrade(&inner), replan));
        Ok(Self(inner))
    }

    /// The AS this host is in.
    pub fn local_as(&self) -> IsdAsn {
        self.0.local.isd_as
    }

    /// The largest SCION packet inside this AS, in bytes.
    pub fn local_mtu(&self) -> u16 {
        self.0.local.mtu
    }

    /// The UDP ports routers deliver to; a socket must be bound to one of them.
    pub fn port_range(&self) -> RangeInclusive<u16> {
        self.0.ports.clone()
    }

    /// The underlay address of the border router at `interface` of this AS.
    pub fn router(&self, interface: u16) -> Option<SocketAddr> {
        self.0.routers.get(&interface).copied()
    }

    /// The underlay addresses of this AS's border routers by interface.
    pub fn routers(&self) -> &BTreeMap<u16, SocketAddr> {
        &self.0.routers
    }

    /// The paths to `dst` that can be used now, in the daemon's order, not older than a minute.
    ///
    /// # Errors
    /// [`PathsError`] when there is none, or the daemon gives no usable answer.
    pub async fn paths(&self, dst: IsdAsn) -> Result<Vec<Path>, PathsError> {
        if let Some(paths) = self.0.fresh(dst) {
            return Ok(paths);
        }
        let asked = self.0.ask(dst).await;
        let (usable, offered) = self.0.usable(dst);
        if !usable.is_empty() {
            // Paths keep working while the daemon is away.
            return Ok(usable);
        }
        asked?;
        Err(match offered {
            0 => PathsError::None {
                dst,
                daemon: self.0.daemon.address().into(),
            },
            count => PathsError::AllDown { dst, count },
        })
    }

    /// The paths to `dst` that can be used, as they change: empty until known and while there are
    /// none. Outages show at once, everything else within about a second.
    pub fn watch(&self, dst: IsdAsn) -> watch::Receiver<Arc<Vec<Path>>> {
        let mut state = self.0.lock();
        let receiver = self.0.known(&mut state, dst).usable.subscribe();
        self.0.replan.notify_one();
        receiver
    }

    /// Takes every path over `interface` out, until the daemon offers it again a second from now or
    /// later.
    pub fn report_down(&self, interface: Interface) {
        self.report(Outage::Interface(interface));
    }

    /// Takes every path that `outage` cuts out, until the daemon offers it again a second from now
    /// or later.
    pub fn report(&self, outage: Outage) {
        self.0.report(outage);
    }

    /// What is reported down from now on, by whoever on this host hears of it.
    pub fn outages(&self) -> broadcast::Receiver<Outage> {
        self.0.outages.subscribe()
    }
}

impl fmt::Debug for Endhost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endhost")
            .field("local", &self.0.local)
            .finish_non_exhaustive()
    }
}

fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens under the lock that would leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of `dst`, made if there is none.
    fn known<'a>(&self, state: &'a mut State, dst: IsdAsn) -> &'a mut Known {
        let now = Instant::now();
        let known = state.known.entry(dst).or_insert_with(|| {
            let here = (dst == self.local.isd_as).then(|| Path::within(dst, self.local.mtu));
            let offered = Vec::from_iter(here);
            Known {
                usable: watch::Sender::new(Arc::new(offered.clone())),
                offered,
                asked: None,
                answered: false,
                wanted: now,
            }
        });
        known.wanted = now;
        known
    }

    /// The usable paths to `dst`, if they need not be asked for.
    fn fresh(&self, dst: IsdAsn) -> Option<Vec<Path>> {
        let mut state = self.lock();
        let here = dst == self.local.isd_as;
        let known = self.known(&mut state, dst);
        let young = known.asked.is_some_and(|asked| asked.elapsed() < UNWATCHED);
        let known_well = known.answered && young;
        if !here && !known_well {
            return None;
        }
        let (usable, _) = state.usable(dst);
        (!usable.is_empty()).then_some(usable)
    }

    fn usable(&self, dst: IsdAsn) -> (Vec<Path>, usize) {
        self.lock().usable(dst)
    }

    /// Asks the daemon for the paths to `dst` and takes its answer in.
    async fn ask(&self, dst: IsdAsn) -> Result<(), DaemonError> {
        if dst == self.local.isd_as {
            return Ok(());
        }
        let asked = Instant::now();
        let answer = self.daemon.paths(dst, false).await;
        let mut state = self.lock();
        let State { known, outages } = &mut *state;
        let Some(known) = known.get_mut(&dst) else {
            return Ok(());
        };
        known.asked = Some(asked);
        known.answered = answer.is_ok();
        // The daemon's word counts from when it was asked; without it, old paths are tried again
        // some time after they were reported down.
        let (offered_at, answer) = match answer {
            Ok(paths) => {
                known.offered = paths;
                (Some(asked), Ok(()))
            }
            Err(error) => (asked.checked_sub(HOLD_WITHOUT_DAEMON), Err(error)),
        };
        for path in &known.offered {
            if let Some(at) = offered_at {
                outages.offered(&path.info().interfaces, at);
            }
        }
        state.publish();
        answer
    }

    fn report(&self, outage: Outage) {
        let mut state = self.lock();
        let cuts_known = state
            .known
            .values()
            .flat_map(|known| &known.offered)
            .any(|path| outage.cuts(&path.info().interfaces));
        // Only what cuts a path we know is remembered: anybody may send SCMP.
        if cuts_known && state.outages.report(outage, Instant::now()) {
            tracing::info!(%outage, "reported down");
            state.publish();
            self.replan.notify_one();
        }
        drop(state);
        // No receiver is no error.
        let _ = self.outages.send(outage);
    }
}

impl State {
    /// The usable paths to `dst`, and how many there are in all.
    fn usable(&self, dst: IsdAsn) -> (Vec<Path>, usize) {
        let Some(known) = self.known.get(&dst) else {
            return (Vec::new(), 0);
        };
        let now = unix_now();
        let alive = known.offered.iter().filter(|path| path.expiry() > now);
        let usable = alive.filter(|path| !self.outages.cut(&path.info().interfaces));
        (usable.cloned().collect(), known.offered.len())
    }

    /// Tells watchers what is usable now, where that changed.
    fn publish(&self) {
        for (dst, known) in &self.known {
            let (usable, _) = self.usable(*dst);
            known.usable.send_if_modified(|current| {
                let changed = **current != usable;
                if changed {
                    *current = Arc::new(usable);
                }
                changed
            });
        }
    }

    /// When the daemon is to be asked about a destination next.
    fn due(&self, known: &Known, now: Instant) -> Instant {
        let Some(asked) = known.asked else {
            return now;
        };
        let watched = known.usable.receiver_count() > 0;
        if watched || self.outages.any(now) || !known.answered {
            return asked + WATCHED;
        }
        let expiry = known.offered.iter().map(Path::expiry).min();
        let left = expiry.map_or(u64::MAX, |expiry| expiry.saturating_sub(unix_now()));
        let spare = Duration::from_secs(left).saturating_sub(BEFORE_EXPIRY);
        (asked + UNWATCHED).min((now + spare.min(UNWATCHED)).max(asked + WATCHED))
    }

    /// The destinations to ask about now, and when to look again.
    fn plan(&mut self, local: IsdAsn) -> (Vec<IsdAsn>, Option<Instant>) {
        let now = Instant::now();
        self.known
            .retain(|_, known| known.usable.receiver_count() > 0 || now < known.wanted + FORGET);
        let (mut due_now, mut next) = (Vec::new(), None);
        for (dst, known) in &self.known {
            if *dst == local {
                continue;
            }
            let due = self.due(known, now);
            if due <= now {
                due_now.push(*dst);
            } else if next.is_none_or(|next| due < next) {
                next = Some(due);
            }
        }
        (due_now, next)
    }
}

/// Asks the daemon whenever paths are due, as long as the endhost exists.
async fn keep_fresh(inner: Weak<Inner>, replan: Arc<Notify>) {
    loop {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let (due, next) = inner.lock().plan(inner.local.isd_as);
        for dst in &due {
            if let Err(error) = inner.ask(*dst).await {
                tracing::debug!(%dst, %error, "paths not refreshed");
                // Paths expire also while the daemon is away.
                inner.lock().publish();
            }
        }
        drop(inner);
        if !due.is_empty() {
            continue;
        }
        match next {
            Some(next) => {
                let sleep = tokio::time::sleep_until(next.into());
                tokio::select! {
                    () = sleep => {}
                    () = replan.notified() => {}
                }
            }
            None => replan.notified().await,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.replan.notify_one();
    }
}
