//! What goes wrong on the way to peers, and which connections that ends.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use hawser_endhost::wire::{Route, ScmpError};
use hawser_endhost::{Endhost, Outage, Path, ScionAddr};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::AbortHandle;

use crate::congestion::{Congestion, Factory};
use crate::connection::CloseReason;
use crate::doubt::{self, Doubt, Verdict};
use crate::progress::Progress;
use crate::routes::Way;

/// Faults that wait to be handled. When there are more, they come again with the next packets.
pub(crate) const PENDING: usize = 256;

/// Something that goes wrong on the way to a peer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// A router or host says that a packet sent over this way did not get through.
    Report { way: Arc<Way>, error: ScmpError },
    /// The system does not take packets to that way.
    Send { addr: SocketAddr, error: io::Error },
}

/// What becomes of a connection, from before it is set up to its end.
pub(crate) struct Fate {
    way: Arc<Way>,
    path: Mutex<Option<Path>>,
    reason: watch::Sender<Option<CloseReason>>,
    connection: OnceLock<noq::WeakConnectionHandle>,
    /// What keeps the path fresh, if this side has to.
    follower: OnceLock<AbortHandle>,
    progress: Progress,
    /// Whether pings are finding out if the path works.
    doubted: AtomicBool,
}

impl Fate {
    pub(crate) fn new(way: Arc<Way>, path: Option<Path>) -> Self {
        Self {
            way,
            path: Mutex::new(path),
            reason: watch::Sender::new(None),
            connection: OnceLock::new(),
            follower: OnceLock::new(),
            progress: Progress::default(),
            doubted: AtomicBool::new(false),
        }
    }

    /// What makes congestion controllers for the connection.
    pub(crate) fn controllers(&self, congestion: Congestion) -> Factory {
        let progress = self.progress.clone();
        Factory {
            congestion,
            progress,
        }
    }

    /// Replaces the path by every fresher copy that is offered, as long as the fate exists. For the
    /// side that chose the path: the other one answers the way it was asked.
    pub(crate) fn follow(self: &Arc<Self>, local: ScionAddr, offers: Offers) {
        let task = tokio::spawn(follow(Arc::downgrade(self), local, offers));
        // Called once, before the connection is set up.
        let _ = self.follower.set(task.abort_handle());
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

    /// Goes on with the copy of its path among `paths`, unless it expires sooner.
    fn freshen(&self, local: ScionAddr, paths: &[Path]) {
        let Some(old) = self.path() else { return };
        let mut paths = paths.iter();
        let fresh = paths.find(|path| path.fingerprint() == old.fingerprint());
        let Some(fresh) = fresh.filter(|fresh| **fresh != old) else {
            return;
        };
        if fresh.expiry() < self.way.expiry() {
            return;
        }
        match Route::new(local, self.way.peer(), fresh) {
            Ok(route) => {
                self.way.refresh(route, fresh.expiry());
                *self.lock_path() = Some(fresh.clone());
            }
            Err(error) => tracing::warn!(%error, "a refreshed path does not fit"),
        }
    }

    /// Whether `outage` cuts the path; `None` when the path is unknown.
    fn is_cut_by(&self, outage: &Outage) -> Option<bool> {
        let path = self.lock_path();
        path.as_ref()
            .map(|path| outage.cuts(&path.info().interfaces))
    }

    fn is_doubted(&self) -> bool {
        self.doubted.load(Ordering::Acquire)
    }

    /// Ends the connection if `doubt` is true.
    fn doubt(self: &Arc<Self>, doubt: Doubt, host: &Endhost) {
        let Some(connection) = self.connection.get() else {
            return self.fail(doubt, host);
        };
        if self.doubted.swap(true, Ordering::AcqRel) {
            return;
        }
        let (fate, host, connection) = (Arc::clone(self), host.clone(), connection.clone());
        // It ends by itself after some round trips.
        tokio::spawn(async move {
            let verdict = doubt::decide(&connection, &fate.progress, &doubt).await;
            let (peer, reason) = (fate.way.peer(), &doubt.reason);
            tracing::debug!(%peer, %reason, ?verdict, "a path was doubtful");
            match verdict {
                Verdict::Alive(since) => {
                    if let Some(path) = fate.path() {
                        host.report_alive(&path.info().interfaces, since);
                    }
                }
                Verdict::Dead => fate.fail(doubt, &host),
                Verdict::Unknown => {}
            }
            fate.doubted.store(false, Ordering::Release);
        });
    }

    fn fail(&self, doubt: Doubt, host: &Endhost) {
        self.end(doubt.reason);
        if let Some(outage) = doubt.outage {
            host.report(outage);
        }
    }
}

impl Drop for Fate {
    fn drop(&mut self) {
        if let Some(follower) = self.follower.get() {
            follower.abort();
        }
    }
}

/// The paths to where a connection leads, as they change.
type Offers = watch::Receiver<Arc<Vec<Path>>>;

async fn follow(fate: Weak<Fate>, local: ScionAddr, mut offers: Offers) {
    loop {
        let paths = Arc::clone(&offers.borrow_and_update());
        match fate.upgrade() {
            Some(fate) => fate.freshen(local, &paths),
            None => return,
        }
        if offers.changed().await.is_err() {
            return;
        }
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
pub(crate) struct Fates {
    host: Endhost,
    fates: Mutex<Vec<Weak<Fate>>>,
}

impl Fates {
    pub(crate) fn new(host: Endhost) -> Self {
        let fates = Mutex::default();
        Self { host, fates }
    }

    pub(crate) fn add(&self, fate: &Arc<Fate>) {
        let mut fates = self.lock();
        fates.retain(|fate| fate.strong_count() > 0);
        fates.push(Arc::downgrade(fate));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Fate>>> {
        self.fates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> Vec<Arc<Fate>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Ends every connection over a path that `outage` cuts, unless it goes on all the same.
    fn cut(&self, outage: Outage) {
        for fate in self.all() {
            if fate.is_cut_by(&outage) == Some(true) {
                let doubt = Doubt {
                    reason: CloseReason::PathDown(outage),
                    outage: None,
                    mtu: None,
                };
                fate.doubt(doubt, &self.host);
            }
        }
    }

    fn handle(&self, fault: Fault) {
        match fault {
            Fault::Report { way, error } => self.reported(&way, error),
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

    /// Ends the connections over `way`, unless they go on in spite of `error`.
    fn reported(&self, way: &Arc<Way>, error: ScmpError) {
        let outage = Outage::of(&error);
        let mtu = match error {
            ScmpError::PacketTooBig { mtu } => {
                let headers = way.route().overhead();
                Some(usize::from(mtu).saturating_sub(headers) as u64)
            }
            _ => None,
        };
        for fate in self.all() {
            // Of what is said to be down only the ids were compared so far.
            let elsewhere = outage.and_then(|outage| fate.is_cut_by(&outage)) == Some(false);
            if elsewhere || !Arc::ptr_eq(&fate.way, way) || fate.is_doubted() {
                continue;
            }
            if !way.takes_report(Instant::now()) {
                return;
            }
            let reason = match outage {
                Some(outage) => CloseReason::PathDown(outage),
                None => CloseReason::Unreachable(error.to_string()),
            };
            let doubt = Doubt {
                reason,
                outage,
                mtu,
            };
            fate.doubt(doubt, &self.host);
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
