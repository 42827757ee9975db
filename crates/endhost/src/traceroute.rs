//! SCMP traceroute: which border routers a path leads through, and how far away they are.
//!
//! A router answers a traceroute request when the alert flag of its hop field is set (SCMP
//! specification, "Traceroute Request"): on the way in for the interface a packet came by, on the
//! way out for the one it is to leave by.

mod alert;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;

pub(crate) use self::alert::Alerts;
use crate::addr::ScionAddr;
use crate::endhost::Endhost;
use crate::path::Path;
use crate::ping::{RequestError, Requests, What};
use crate::responder;
use crate::socket::BindError;
use crate::wire::{Route, RouteError, ScmpError, traceroute_request};

/// Asks the border routers of paths who they are.
pub struct Tracer(Requests);

/// A border router that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Router {
    /// Its AS, as it says.
    pub isd_as: IsdAsn,
    /// Its interface, as it says; 0 when a host answers instead of a router.
    pub interface: u16,
    /// Its address inside its AS.
    pub ip: IpAddr,
    /// How long it took.
    pub rtt: Duration,
}

/// Why no router answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Nothing came back.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A router or host tells why nothing comes back.
    #[error("{0}")]
    Scmp(ScmpError),
    /// There is no way there over this path.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The path has no such interface.
    #[error("the path crosses {count} interfaces: there is no number {index} to trace, from 0")]
    NoInterface {
        /// Which was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
}

impl Tracer {
    /// Binds a socket for traceroute requests at `local`, or else at this host's address towards
    /// `next_hop`, the first router of the path. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] when there is no address or port to use.
    pub fn bind(
        host: &Endhost,
        local: Option<IpAddr>,
        next_hop: SocketAddr,
    ) -> Result<Self, BindError> {
        Requests::bind(host, local, next_hop).map(Self)
    }

    /// Where answers come back to.
    pub fn local_addr(&self) -> ScionAddr {
        self.0.local_addr()
    }

    /// Asks the router at the `index`-th interface of `path`, from 0, on the way to `host`, and
    /// waits for its answer no longer than `timeout`.
    ///
    /// # Errors
    /// [`TraceError`] when none comes.
    pub async fn ask(
        &self,
        host: IpAddr,
        path: &Path,
        index: usize,
        timeout: Duration,
    ) -> Result<Router, TraceError> {
        let alerts = Alerts::of(path.raw());
        let alert = alerts.get(index).ok_or(TraceError::NoInterface {
            index,
            count: alerts.len(),
        })?;
        let peer = SocketAddr::new(host, responder::PORT);
        let peer = ScionAddr::new(path.info().dst, peer);
        let route = Route::new(self.0.local_addr(), peer, path)?;
        let request = |id, sequence| {
            let mut packet = route.scmp(&traceroute_request(id, sequence));
            alert.set(route.path_in(&mut packet));
            packet
        };
        let (answer, rtt) = self.0.ask(route.next_hop(), timeout, request).await?;
        match answer.what {
            What::Error(error) => Err(TraceError::Scmp(error)),
            What::Echo => Err(RequestError::TimedOut(timeout).into()),
            What::Traceroute { isd_as, interface } => Ok(Router {
                isd_as,
                interface,
                ip: answer.from.host.ip(),
                rtt,
            }),
        }
    }
}
