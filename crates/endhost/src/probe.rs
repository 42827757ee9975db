//! Which of several paths work: sends a request to the last router of each, all at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use hawser_address::ScionAddr;
use hawser_packet::ScmpError;
use hawser_packet::path::crossings;

use crate::endhost::Endhost;
use crate::headers::Headers;
use crate::path::Path;
use crate::requests::{RequestError, Requests};
use crate::traceroute;

/// The host part of a probe's destination: the service address "none" (0xffff and two bytes of
/// padding) in the place of an IP address (SCION header specification, "Service addresses").
const NO_HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(0xff, 0xff, 0, 0));
/// Type and length of a service address, in the upper half of its byte of the common header.
const SERVICE: (usize, u8) = (9, 0x40);

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Whether the path works.
    pub status: Status,
    /// The address the probe was sent from; `None` when none was sent.
    pub local: Option<IpAddr>,
}

/// Whether a path works.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The router answered, after this time.
    Alive(Duration),
    /// No answer arrived in time.
    TimedOut,
    /// A router reported why there is no answer.
    Scmp(ScmpError),
    /// The probe could not be sent, or another router answered.
    Unknown(String),
}

/// Probes `paths` to other ASes, all at once, and waits for answers no longer than `timeout`. What is not
/// answered within a second is sent again. The results are in the order of the paths. A path inside an AS
/// has no router and counts as alive.
///
/// Must be called inside a tokio runtime. Source: scionproto's `showpaths` sends the same request.
pub async fn probe(host: &Endhost, paths: &[Path], timeout: Duration) -> Vec<Probe> {
    probe_at(host, paths, End::Last, timeout).await
}

/// Probes as [`probe`] does, but the first router of each path, which is in this AS, in place of the
/// last.
pub async fn probe_first(host: &Endhost, paths: &[Path], timeout: Duration) -> Vec<Probe> {
    probe_at(host, paths, End::First, timeout).await
}

/// Which router of a path is to answer.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

async fn probe_at(host: &Endhost, paths: &[Path], end: End, timeout: Duration) -> Vec<Probe> {
    let mut sockets = HashMap::new();
    for next_hop in paths.iter().filter_map(Path::next_hop) {
        let family = sockets.entry(next_hop.is_ipv4());
        family.or_insert_with(|| Requests::bind(host, None, next_hop));
    }
    let sockets = &sockets;
    let probes = paths.iter().map(|path| async move {
        let socket = path.next_hop().map(|hop| &sockets[&hop.is_ipv4()]);
        let status = match socket {
            None => Status::Alive(Duration::ZERO),
            Some(Ok(requests)) => status(requests, path, end, timeout).await,
            Some(Err(error)) => Status::Unknown(error.to_string()),
        };
        let bound = socket.and_then(|socket| socket.as_ref().ok());
        let local = bound.map(|requests| requests.local_addr().host.ip());
        Probe { status, local }
    });
    join_all(probes).await
}

async fn status(requests: &Requests, path: &Path, end: End, timeout: Duration) -> Status {
    let crossings = crossings(path.raw()).unwrap_or_default();
    let (crossing, expected) = match end {
        End::First => (crossings.first(), path.info().src),
        End::Last => (crossings.last(), path.info().dst),
    };
    let Some(crossing) = crossing else {
        return Status::Unknown("the path crosses no interface".into());
    };
    let remote = ScionAddr::new(path.info().dst, SocketAddr::new(NO_HOST, 0));
    let headers = match Headers::new(requests.local_addr(), remote, path) {
        Ok(headers) => headers,
        Err(error) => return Status::Unknown(error.to_string()),
    };
    let request = |id, sequence| {
        let mut packet = traceroute::request(&headers, crossing, id, sequence);
        // A service address, so that no host receives the request if no router answers it.
        packet[SERVICE.0] = packet[SERVICE.0] & 0x0f | SERVICE.1;
        packet
    };
    let answered = requests.ask_until_answered(headers.next_hop, timeout, request);
    match answered.await {
        Ok((answer, rtt)) => match answer.router {
            Some((isd_as, _)) if isd_as == expected => Status::Alive(rtt),
            Some((isd_as, interface)) => {
                Status::Unknown(format!("{isd_as}#{interface} answered instead"))
            }
            None => Status::Unknown("an echo came back".into()),
        },
        Err(RequestError::Scmp(error)) => Status::Scmp(error),
        Err(RequestError::TimedOut(_)) => Status::TimedOut,
        Err(error) => Status::Unknown(error.to_string()),
    }
}
