//! A lane: a path in use by a socket.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use hawser_address::{IsdAsn, ScionAddr};
use hawser_packet::ScmpError;
use hawser_path::Fingerprint;
use tokio::sync::{SetOnce, watch};
use tokio::task::JoinSet;

use super::doubt::{Doubt, Evidence, LaneEnd, LaneUser};
use super::flow::Flow;
use super::shared::Shared;
use super::table::FlowUse;
use crate::headers::Headers;
use crate::outage::Outage;
use crate::path::{Path, interfaces};
use crate::rates::RateRecord;
use crate::sync::lock;

/// Longest wait for the source of paths to return a remote's path.
const LOOK_UP: Duration = Duration::from_secs(2);

/// A path in use by a socket, to one remote: kept fresh, watched for faults, until its end. Cloning
/// shares it.
#[derive(Clone)]
pub struct Lane(pub(super) Arc<Inner>);

pub(super) struct Inner {
    shared: Arc<Shared>,
    used: FlowUse,
    path: Mutex<Option<Path>>,
    end: SetOnce<LaneEnd>,
    user: OnceLock<Arc<dyn LaneUser>>,
    /// Whether the user is checking if the path works.
    doubted: AtomicBool,
    /// The task that keeps the path fresh, if this side chose the path.
    follower: OnceLock<JoinSet<()>>,
}

impl Lane {
    pub(super) fn new(shared: Arc<Shared>, used: FlowUse, path: Option<Path>) -> Self {
        Self(Arc::new(Inner {
            shared,
            used,
            path: Mutex::new(path),
            end: SetOnce::new(),
            user: OnceLock::new(),
            doubted: AtomicBool::new(false),
            follower: OnceLock::new(),
        }))
    }

    /// Replaces the path by every fresher copy that is offered, until the lane is dropped. Used by
    /// the side that chose the path: the other side takes a fresher one from packets that open
    /// ([`Lanes::adopt`](super::Lanes::adopt)).
    pub(super) fn follow(&self) {
        let offers = self.0.shared.socket.host().watch(self.remote().isd_as);
        let task = follow(Arc::downgrade(&self.0), offers);
        // A lane is opened only once.
        let _ = self.0.follower.set(JoinSet::from_iter([task]));
    }

    /// Lets `user` decide whether the lane works, and informs it of the lane's end. Only the first
    /// user counts.
    pub fn attach(&self, user: Arc<dyn LaneUser>) {
        let _ = self.0.user.set(user);
        if let (Some(end), Some(user)) = (self.end(), self.0.user.get()) {
            user.on_end(&end);
        }
    }

    /// The flow of the lane's packets; datagrams that arrive over the lane carry its number.
    pub fn flow(&self) -> &Arc<Flow> {
        &self.0.used.flow
    }

    /// The address that packets are sent to.
    pub fn remote(&self) -> ScionAddr {
        self.flow().remote
    }

    /// The current copy of the path; `None` when the remote opened the lane and the path is unknown
    /// here.
    pub fn path(&self) -> Option<Path> {
        lock(&self.0.path).clone()
    }

    /// Looks up the path of the remote's packets where it is unknown. The host's source of paths
    /// may know what packets do not show: the ASes between, and the MTU.
    pub async fn look_up(&self) -> Option<Path> {
        let known = self.path();
        if known.is_some() {
            return known;
        }
        let paths = self.0.shared.socket.host().paths(self.remote().isd_as);
        let paths = tokio::time::timeout(LOOK_UP, paths).await.ok()?;
        let paths = paths.inspect_err(|error| {
            tracing::debug!(remote = %self.remote(), %error, "the remote's path is unknown");
        });
        let paths = paths.ok()?;
        let found = paths.into_iter().find(|path| {
            let ids = path.info().interfaces.iter().map(|interface| &interface.id);
            ids.eq(&*self.flow().interfaces)
        });
        lock(&self.0.path).clone_from(&found);
        found
    }

    /// The identity of the path, seen from here.
    ///
    /// A remote that sends packets shows the interface ids of its path, not the ASes between. If
    /// the path is known, this is still its fingerprint; otherwise it is computed from the ids and
    /// the ASes at both ends, and is the fingerprint of no path.
    pub fn fingerprint(&self) -> Fingerprint {
        if let Some(path) = &*lock(&self.0.path) {
            return path.fingerprint();
        }
        let ids = &self.flow().interfaces;
        let local = self.0.shared.socket.local_addr().isd_as;
        match ids.is_empty() {
            true => Fingerprint::local(local),
            false => {
                let remote = self.remote().isd_as;
                Fingerprint::of(&interfaces(local, remote, ids, IsdAsn::WILDCARD))
            }
        }
    }

    /// The record of what the path carries, and has carried before, to the lane's host.
    pub fn rate_record(&self) -> RateRecord {
        let rates = self.0.shared.socket.host().rates();
        rates.record(self.fingerprint(), self.remote())
    }

    /// The largest payload that fits the path's packets, in bytes. If the path is unknown, an upper
    /// bound: the largest that fits packets inside this AS.
    pub fn max_payload(&self) -> u16 {
        let path = lock(&self.0.path).as_ref().map(Path::mtu);
        let mtu = path.unwrap_or_else(|| self.0.shared.socket.host().local_mtu());
        self.flow().headers().max_payload(mtu)
    }

    /// Why the lane has ended; `None` while it has not.
    pub fn end(&self) -> Option<LaneEnd> {
        self.0.end.get().cloned()
    }

    /// Waits for the end of the lane.
    pub async fn ended(&self) -> LaneEnd {
        self.0.end.wait().await.clone()
    }

    /// Records that a packet sent at `sent` was acknowledged: no part of the path was down then.
    pub fn report_alive(&self, sent: Instant) {
        if let Some(path) = self.path() {
            let host = self.0.shared.socket.host();
            host.report_alive(&path.info().interfaces, sent);
        }
    }

    /// Whether `outage` cuts the path; `None` when the path is unknown.
    pub(super) fn is_cut_by(&self, outage: &Outage) -> Option<bool> {
        let path = lock(&self.0.path);
        path.as_ref()
            .map(|path| outage.cuts(&path.info().interfaces))
    }

    pub(super) fn is_doubted(&self) -> bool {
        self.0.doubted.load(Ordering::Acquire)
    }

    /// Ends the lane if `doubt` is true.
    pub(super) fn doubt(&self, doubt: Doubt) {
        let Some(user) = self.0.user.get() else {
            // Routers refuse copies of packets that somebody has damaged, too.
            if !matches!(
                doubt.end,
                LaneEnd::Unreachable(ScmpError::ParameterProblem { .. })
            ) {
                self.fail(doubt);
            }
            return;
        };
        if self.0.doubted.swap(true, Ordering::AcqRel) {
            return;
        }
        let (lane, user) = (self.clone(), Arc::clone(user));
        // The probe ends without being aborted.
        tokio::spawn(async move {
            let verdict = user.probe(&doubt).await;
            let (remote, end) = (lane.remote(), &doubt.end);
            tracing::debug!(%remote, %end, ?verdict, "a path was doubtful");
            match verdict {
                Evidence::Alive(since) => lane.report_alive(since),
                Evidence::Dead => lane.fail(doubt),
                Evidence::Unknown => {}
            }
            lane.0.doubted.store(false, Ordering::Release);
        });
    }

    fn fail(&self, doubt: Doubt) {
        self.finish(doubt.end);
        if let Some(outage) = doubt.outage {
            self.0.shared.socket.host().report(outage);
        }
    }

    /// Ends the lane; the first reason counts.
    pub(super) fn finish(&self, end: LaneEnd) {
        if self.0.end.set(end.clone()).is_ok()
            && let Some(user) = self.0.user.get()
        {
            user.on_end(&end);
        }
    }
}

impl Inner {
    /// Replaces the path by its copy among `paths`, unless that expires sooner.
    fn freshen(&self, paths: &[Path]) {
        let Some(old) = lock(&self.path).clone() else {
            return;
        };
        let mut paths = paths.iter();
        let fresh = paths.find(|path| path.fingerprint() == old.fingerprint());
        let Some(fresh) = fresh.filter(|fresh| **fresh != old) else {
            return;
        };
        let flow = &self.used.flow;
        if fresh.expiry() < flow.expiry() {
            return;
        }
        match Headers::new(self.shared.socket.local_addr(), flow.remote, fresh) {
            Ok(headers) => {
                flow.refresh(headers, fresh.expiry());
                *lock(&self.path) = Some(fresh.clone());
            }
            Err(error) => tracing::warn!(%error, "a refreshed path does not fit"),
        }
    }
}

async fn follow(lane: Weak<Inner>, mut offers: watch::Receiver<Arc<Vec<Path>>>) {
    while let Some(lane) = lane.upgrade() {
        lane.freshen(&offers.borrow_and_update().clone());
        drop(lane);
        if offers.changed().await.is_err() {
            return;
        }
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("remote", &self.remote())
            .field("flow", &self.flow().id)
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}
