//! The paths to other ASes: kept fresh, without those over dead links.

mod cache;
mod inner;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use hawser_address::IsdAsn;
use hawser_path::Interface;
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

pub use self::inner::PathsError;
use self::inner::{Inner, Query};
use crate::daemon::Daemon;
use crate::outage::Outage;
use crate::path::Path;
use crate::plain_ip;
use crate::rates::PathRates;
use crate::service::{Freshness, SourceError};
use crate::source::Source;
use crate::sync::lock;

/// Longest wait for fresh paths while cached ones still work.
const FRESH_WAIT: Duration = Duration::from_secs(1);

/// A host in a SCION AS. Cloning shares it.
#[derive(Clone)]
pub struct Endhost(Arc<Inner>);

impl Endhost {
    /// A host in the AS of `daemon`, whose paths are kept fresh. Must be called inside a tokio
    /// runtime. [`Endhost::bootstrap`] finds a daemon, or works without one.
    ///
    /// # Errors
    /// [`SourceError`] when the daemon gives no usable answer.
    pub async fn new(daemon: Daemon) -> Result<Self, SourceError> {
        Self::start(Source::Daemon(daemon.into()), None).await
    }

    /// A host on plain IP, which reaches other such hosts without SCION. Its sockets' packets have
    /// this `mark` (`SO_MARK` of socket(7)), if any: then binding them needs CAP_NET_ADMIN.
    pub fn on_plain_ip(mark: Option<u32>) -> Self {
        let mut inner = Inner::new(Source::PlainIp, plain_ip::topology(), None);
        inner.mark = mark;
        Self(Arc::new(inner))
    }

    /// A host in the AS of `source`, with this `address`, whose paths are kept fresh.
    pub(crate) async fn start(
        source: Source,
        address: Option<IpAddr>,
    ) -> Result<Self, SourceError> {
        let topology = source.local_topology().await?;
        let inner = Arc::new(Inner::new(source, topology, address));
        inner::spawn_refreshing(&inner);
        Ok(Self(inner))
    }

    /// The AS this host is in.
    pub fn local_as(&self) -> IsdAsn {
        self.0.topology.local.isd_as
    }

    /// Whether its AS is a core AS.
    pub fn is_core(&self) -> bool {
        self.0.topology.local.core
    }

    /// The largest SCION packet inside this AS, in bytes.
    pub fn local_mtu(&self) -> u16 {
        self.0.topology.local.mtu
    }

    /// This host's address, if it is configured; otherwise sockets determine it.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.address
    }

    /// The mark of its sockets' packets.
    pub(crate) fn mark(&self) -> Option<u32> {
        self.0.mark
    }

    /// What the paths from this host have carried.
    pub(crate) fn rates(&self) -> &PathRates {
        &self.0.rates
    }

    /// The UDP ports that routers deliver to; a socket must be bound to one of them.
    pub fn port_range(&self) -> RangeInclusive<u16> {
        self.0.topology.ports.clone()
    }

    /// The underlay addresses of this AS's border routers by interface.
    pub fn routers(&self) -> &BTreeMap<u16, SocketAddr> {
        &self.0.topology.routers
    }

    /// The usable paths to `dst`, in the order of their source, at most a minute old. If the source
    /// takes longer than a second, older paths that still work are returned.
    ///
    /// # Errors
    /// [`PathsError`] when there is none, or the source gives no usable answer.
    pub async fn paths(&self, dst: IsdAsn) -> Result<Vec<Path>, PathsError> {
        if let Some(paths) = self.0.fresh(dst) {
            return Ok(paths);
        }
        let _query = Query::new(&self.0, dst);
        let ask = self.0.ask(dst, Freshness::Cached);
        let none = lock(&self.0.cache).usable(dst).0.is_empty();
        let asked = match none {
            true => ask.await,
            // After a timeout the refreshing task sends the next request.
            false => timeout(FRESH_WAIT, ask).await.unwrap_or(Ok(())),
        };
        self.0.outcome(dst, asked)
    }

    /// What the source offers to `dst` now, in its order, whether or not it is usable: also paths
    /// that have expired, and those over links that are reported down. An ISD without an AS (`1-0`)
    /// stands for each of its core ASes. Changes nothing of what this host knows.
    ///
    /// # Errors
    /// [`SourceError`] when the source gives no usable answer.
    pub async fn offered_paths(&self, dst: IsdAsn) -> Result<Vec<Path>, SourceError> {
        self.0.source.paths(dst, Freshness::Cached).await
    }

    /// Where its paths come from, for people: `the SCION daemon at 127.0.0.1:30255`.
    pub fn source_name(&self) -> String {
        self.0.source.to_string()
    }

    /// The usable paths to `dst`, after the source has looked for new ones.
    ///
    /// # Errors
    /// [`PathsError`] when there is none, or the source gives no usable answer.
    pub async fn refresh_paths(&self, dst: IsdAsn) -> Result<Vec<Path>, PathsError> {
        let _query = Query::new(&self.0, dst);
        let asked = self.0.ask(dst, Freshness::New).await;
        self.0.outcome(dst, asked)
    }

    /// The usable paths to `dst` as they change; empty until they are known and while there are
    /// none. Outages show at once, refreshed paths well before the old ones expire.
    pub fn watch(&self, dst: IsdAsn) -> watch::Receiver<Arc<Vec<Path>>> {
        let receiver = lock(&self.0.cache).want(dst).usable.subscribe();
        self.0.replan.notify_one();
        receiver
    }

    /// Withholds every path that `outage` cuts until the path is offered again at least a second
    /// later, or [works](Endhost::report_alive). For an SCMP error, call this only if the packet it
    /// quotes was sent.
    pub fn report(&self, outage: Outage) {
        self.0.report(outage);
    }

    /// Takes back all reports from before `sent` about a path over `interfaces`, because a packet
    /// sent then over that path was acknowledged: the path is usable again at once.
    pub fn report_alive(&self, interfaces: &[Interface], sent: Instant) {
        lock(&self.0.cache).clear(interfaces, sent);
    }

    /// Withholds every path through the border router at `router`, if it is one, because packets to
    /// it end with `error`. Like every outage, it is tried again after a second, and less often
    /// while it stays down.
    pub(crate) fn report_router(&self, router: SocketAddr, error: &io::Error) {
        let behind = self.routers().iter().filter(|(_, at)| **at == router);
        for (id, _) in behind {
            let interface = Interface {
                isd_as: self.local_as(),
                id: *id,
            };
            tracing::debug!(%router, %interface, %error, "the border router does not answer");
            self.report(Outage::Interface(interface));
        }
    }

    /// The outages that any user of this host reports after this call.
    pub fn outages(&self) -> broadcast::Receiver<Outage> {
        self.0.outages.subscribe()
    }
}

impl fmt::Debug for Endhost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endhost")
            .field("local", &self.0.topology.local)
            .finish_non_exhaustive()
    }
}
