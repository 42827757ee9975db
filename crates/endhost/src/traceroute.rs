//! SCMP traceroute: the border routers on a path, and their round-trip times.
//!
//! A router answers a traceroute request when the alert flag of its hop field is set (SCMP
//! specification, "Traceroute Request"): on ingress for the interface that the packet arrived by,
//! on egress for the interface that it leaves by.

use std::net::IpAddr;
use std::time::Duration;

use hawser_address::IsdAsn;
use hawser_packet::path::{Crossing, crossings};
use hawser_packet::{Body, Scmp};

use crate::headers::Headers;
use crate::path::Path;
use crate::requests::{RequestError, Requests};

/// A border router that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Router {
    /// The router's AS, as in its answer.
    pub isd_as: IsdAsn,
    /// The router's interface, as in its answer; 0 when a host answers instead of a router.
    pub interface: u16,
    /// The router's address inside its AS.
    pub ip: IpAddr,
    /// The round-trip time.
    pub rtt: Duration,
}

impl Requests {
    /// Sends a request to the router at the interface `index` of `path` to `host`, counted from 0,
    /// and waits for its answer no longer than `timeout`.
    ///
    /// # Errors
    /// [`RequestError`] when no answer arrives.
    pub async fn trace(
        &self,
        host: IpAddr,
        path: &Path,
        index: usize,
        timeout: Duration,
    ) -> Result<Router, RequestError> {
        let crossings = crossings(path.raw()).unwrap_or_default();
        let count = crossings.len();
        let crossing = crossings.get(index);
        let crossing = crossing.ok_or(RequestError::NoInterface { index, count })?;
        let headers = self.headers(host, path)?;
        let packet = |id, sequence| request(&headers, crossing, id, sequence);
        let (answer, rtt) = self.ask(headers.next_hop, timeout, packet).await?;
        // An echo reply does not answer this request.
        let (isd_as, interface) = answer.router.ok_or(RequestError::TimedOut(timeout))?;
        Ok(Router {
            isd_as,
            interface,
            ip: answer.from.host.ip(),
            rtt,
        })
    }
}

/// A packet that requests the AS and interface of the router at `crossing`.
pub(crate) fn request(headers: &Headers, crossing: &Crossing, id: u16, sequence: u16) -> Vec<u8> {
    let request = Scmp::Query {
        reply: false,
        id,
        sequence,
        body: Body::Traceroute {
            isd_as: IsdAsn::WILDCARD,
            interface: 0,
        },
    };
    let mut packet = headers.scmp(&request.to_bytes());
    crossing.set_alert(headers.template.path_in(&mut packet));
    packet
}
