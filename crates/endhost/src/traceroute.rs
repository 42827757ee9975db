//! SCMP traceroute: the border routers on a path, and their round-trip times.
//!
//! A router answers a traceroute request when the alert flag of its hop field is set (SCMP
//! specification, "Traceroute Request"): on the way in for the interface a packet came by, on the
//! way out for the one it is to leave by.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hawser_packet::path::crossings;
use hawser_packet::{ScionAddr, Scmp, ScmpError};
use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;

use crate::endhost::Endhost;
use crate::headers::{Headers, HeadersError};
use crate::path::Path;
use crate::ping::{RequestError, Requests, What};
use crate::responder;
use crate::socket::BindError;

/// Sends traceroute requests to the border routers of paths.
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
    /// The round-trip time.
    pub rtt: Duration,
}

/// Why no router answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The request could not be sent, or nothing came back.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A router or host reported why nothing comes back.
    #[error("{0}")]
    Scmp(ScmpError),
    /// The path does not lead there.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// The path has no such interface.
    #[error("the path crosses {count} interfaces: it has no interface {index}, counted from 0")]
    NoInterface {
        /// The one asked for, counted from 0.
        index: usize,
        /// The number of interfaces.
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

    /// The address that answers are sent to.
    pub fn local_addr(&self) -> ScionAddr {
        self.0.local_addr()
    }

    /// Asks the router at the interface `index` of `path` to `host`, counted from 0, and waits for its
    /// answer no longer than `timeout`.
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
        let crossings = crossings(path.raw()).unwrap_or_default();
        let crossing = crossings.get(index).ok_or(TraceError::NoInterface {
            index,
            count: crossings.len(),
        })?;
        let host = SocketAddr::new(host, responder::PORT);
        let remote = ScionAddr::new(path.info().dst, host);
        let headers = Headers::new(self.0.local_addr(), remote, path)?;
        let packet = |id, sequence| {
            let mut packet = headers.scmp(&request(id, sequence).to_bytes());
            crossing.set_alert(headers.path_in(&mut packet));
            packet
        };
        let (answer, rtt) = self.0.ask(headers.next_hop(), timeout, packet).await?;
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

/// Asks the router, whose alert is set in the path's hop field, for its AS and interface.
pub(crate) fn request(id: u16, sequence: u16) -> Scmp<'static> {
    Scmp::Traceroute {
        reply: false,
        id,
        sequence,
        isd_as: IsdAsn::WILDCARD,
        interface: 0,
    }
}
