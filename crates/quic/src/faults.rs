//! What goes wrong on the way to peers, and which connections that ends.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_endhost::socket::{Report, Socket};
use hawser_endhost::wire::{Route, ScmpError};
use hawser_endhost::{Outage, Path, ScionAddr};
use tokio::sync::{broadcast, mpsc, watch};

use crate::connection::CloseReason;
use crate::routes::Way;

/// Faults that wait to be handled. When there are more, they come again with the next packets.
pub(crate) const PENDING: usize = 256;
/// How often paths are looked at for being about to expire.
const REFRESH: Duration = Duration::from_secs(30);
/// A path is replaced by a fresh one when it has less than this left, in seconds.
const BEFORE_EXPIRY: u64 = 180;

/// Something that goes wrong on the way to a peer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A router or host says that a packet did not get through.
    Report(Reported),
    /// The system does not take packets to that way.
    Send { addr: SocketAddr, error: io::Error },
}

/// A report, kept.
#[derive(Debug)]
pub(crate) struct Reported {
    error: ScmpError,
    peer: ScionAddr,
    interfaces: Vec<u16>,
    path: Vec<u8>,
}

impl From<Report<'_>> for Reported {
    fn from(report: Report<'_>) -> Self {
        Self {
            error: report.error,
            peer: report.quote.dst,
            interfaces: report.quote.interfaces,
            path: report.quote.path.to_vec(),
        }
    }
}

/// What becomes of a connection, from before it is set up to its end.
pub(crate) struct Fate {
    way: Arc<Way>,
    path: Mutex<Option<Path>>,
    /// Whether this side chose the path, so has to replace it before it expires.
    chosen: bool,
    reason: watch::Sender<Option<CloseReason>>,
    connection: OnceLock<noq::WeakConnectionHandle>,
}

impl Fate {
    pub(crate) fn new(way: Arc<Way>, path: Option<Path>, chosen: bool) -> Self {
        Self {
            way,
            path: Mutex::new(path),
            chosen,
            reason: watch::Sender::new(None),
            connection: OnceLock::new(),
        }
    }

    /// Binds the fate to the connection, now that it is set up. If the fate came first, the
    /// connection is closed.
    pub(crate) fn bind(&self, connection: &noq::Connection) {
        // A connection has one fate and is set up once.
        let _ = self.connection.set(connection.weak_handle());
        if let Some(reason) = self.reason() {
            close(connection, &reason);
        }
    }

    /// Ends the connection; what counts is the first reason.
    pub(crate) fn end(&self, reason: CloseReason) {
        let first = self.reason.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason.clone());
            }
            first
        });
        if first && let Some(connection) = self.connection.get().and_then(|weak| weak.upgrade()) {
            close(&connection, &reason);
        }
    }

    pub(crate) fn reason(&self) -> Option<CloseReason> {
        self.reason.borrow().clone()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> CloseReason {
        let mut reason = self.reason.subscribe();
        loop {
            if let Some(reason) = reason.borrow_and_update().clone() {
                return reason;
            }
            if reason.changed().await.is_err() {
                // The sender is part of `self`.
                std::future::pending::<()>().await;
            }
        }
    }

    pub(crate) fn path(&self) -> Option<Path> {
        self.lock_path().clone()
    }

    fn lock_path(&self) -> MutexGuard<'_, Option<Path>> {
        self.path.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with `path`, a refresh of the connection's own.
    pub(crate) fn refresh(&self, path: Path, route: Route) {
        self.way.refresh(route, path.expiry());
        *self.lock_path() = Some(path);
    }

    fn cut_by(&self, outage: &Outage) -> bool {
        let path = self.lock_path();
        path.as_ref()
            .is_some_and(|path| outage.cuts(&path.info().interfaces))
    }
}

/// Tells the peer, too, in case only the other direction is broken.
fn close(connection: &noq::Connection, reason: &CloseReason) {
    let text = match reason {
        CloseReason::Local(text) => text.clone(),
        other => other.to_string(),
    };
    connection.close(0u32.into(), text.as_bytes());
}

/// The fates of all connections of an endpoint.
#[derive(Default)]
pub(crate) struct Fates(Mutex<Vec<Weak<Fate>>>);

impl Fates {
    pub(crate) fn add(&self, fate: &Arc<Fate>) {
        let mut fates = self.lock();
        fates.retain(|fate| fate.strong_count() > 0);
        fates.push(Arc::downgrade(fate));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Fate>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<Fate>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Ends every connection over a path that `outage` cuts.
    fn cut(&self, outage: Outage) {
        for fate in self.all() {
            if fate.cut_by(&outage) {
                fate.end(CloseReason::PathDown(outage));
            }
        }
    }

    fn handle(&self, fault: Fault) {
        match fault {
            Fault::Report(report) => self.reported(&report),
            Fault::Send { addr, error } => {
                for fate in self.all() {
                    if fate.way.addr() == addr {
                        fate.end(CloseReason::Socket {
                            peer: fate.way.peer(),
                            message: error.to_string(),
                        });
                    }
                }
            }
        }
    }

    /// Ends the connections a report is about.
    fn reported(&self, report: &Reported) {
        let reason = match Outage::of(&report.error) {
            Some(outage) => CloseReason::PathDown(outage),
            None => CloseReason::Unreachable(report.error.to_string()),
        };
        for fate in self.all() {
            let way = &fate.way;
            if way.peer() != report.peer || way.interfaces() != report.interfaces {
                continue;
            }
            let stale = matches!(report.error, ScmpError::ParameterProblem { .. })
                && !way.route().is_over(&report.path);
            // Packets with the path from before a refresh may still be under way.
            if !stale {
                fate.end(reason.clone());
            }
        }
    }

    /// Replaces paths that are about to expire.
    async fn refresh(&self, socket: &Socket) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let soon = now.map_or(0, |now| now.as_secs()) + BEFORE_EXPIRY;
        for fate in self.all() {
            if !fate.chosen || fate.way.expiry() > soon || fate.reason().is_some() {
                continue;
            }
            let Some(old) = fate.path() else { continue };
            let paths = socket.host().paths(old.info().dst).await;
            let fresh = paths.into_iter().flatten().find(|path| {
                path.fingerprint() == old.fingerprint() && path.expiry() > fate.way.expiry()
            });
            let Some(fresh) = fresh else { continue };
            match Route::new(socket.local_addr(), fate.way.peer(), &fresh) {
                Ok(route) => fate.refresh(fresh, route),
                Err(error) => tracing::warn!(%error, "a refreshed path does not fit"),
            }
        }
    }
}

/// Ends connections when something goes wrong on their way.
pub(crate) async fn watch_over(
    fates: Arc<Fates>,
    mut outages: broadcast::Receiver<Outage>,
    mut faults: mpsc::Receiver<Fault>,
) {
    loop {
        tokio::select! {
            fault = faults.recv() => match fault {
                Some(fault) => fates.handle(fault),
                None => return,
            },
            outage = outages.recv() => match outage {
                Ok(outage) => fates.cut(outage),
                // Those missed are reported again with the next packets that meet them.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
        }
    }
}

/// Replaces the paths of connections before they expire.
pub(crate) async fn keep_fresh(fates: Arc<Fates>, socket: Arc<Socket>) {
    let mut tick = tokio::time::interval(REFRESH);
    loop {
        tick.tick().await;
        fates.refresh(&socket).await;
    }
}
