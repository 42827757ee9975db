//! Which of several paths are alive: a question to the last router of each, all at once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::join_all;
use hawser_packet::path::crossings;
use hawser_packet::{ScionAddr, ScmpError};

use crate::endhost::Endhost;
use crate::path::Path;
use crate::ping::{RequestError, Requests, What};
use crate::route::Route;
use crate::traceroute;

/// The host part of a probe's destination: as an IP address, what the service address "none"
/// (0xffff, two bytes of padding) has in its place (SCION header specification, "Service
/// addresses").
const NO_HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(0xff, 0xff, 0, 0));
/// Type and length of a service address, in the upper half of its byte of the common header.
const SERVICE: (usize, u8) = (9, 0x40);

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// How the path is.
    pub status: Status,
    /// The address the probe was sent from; none when none was sent.
    pub local: Option<IpAddr>,
}

/// How a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Its last router answered, after this time.
    Alive(Duration),
    /// Nothing came back in time.
    TimedOut,
    /// A router tells why nothing comes back.
    Scmp(ScmpError),
    /// It could not be told.
    Unknown(String),
}

/// Probes `paths` to other ASes, all at once, waiting for the last no longer than `timeout`; one
/// result a path, in their order. A path inside an AS has no router to ask: it is alive.
///
/// Must be called inside a tokio runtime. Source: scionproto's `showpaths` asks the same router the
/// same way.
pub async fn probe(host: &Endhost, paths: &[Path], timeout: Duration) -> Vec<Probe> {
    let mut sockets: HashMap<bool, Result<Requests, String>> = HashMap::new();
    for next_hop in paths.iter().filter_map(Path::next_hop) {
        sockets.entry(next_hop.is_ipv4()).or_insert_with(|| {
            Requests::bind(host, None, next_hop).map_err(|error| error.to_string())
        });
    }
    let probes = paths.iter().map(|path| {
        let socket = path.next_hop().map(|hop| sockets.get(&hop.is_ipv4()));
        async move {
            match socket {
                None => Probe {
                    status: Status::Alive(Duration::ZERO),
                    local: None,
                },
                Some(Some(Ok(requests))) => Probe {
                    status: status(requests, path, timeout).await,
                    local: Some(requests.local_addr().host.ip()),
                },
                Some(socket) => Probe {
                    status: Status::Unknown(
                        socket
                            .and_then(|socket| socket.as_ref().err())
                            .cloned()
                            .unwrap_or_default(),
                    ),
                    local: None,
                },
            }
        }
    });
    join_all(probes).await
}

async fn status(requests: &Requests, path: &Path, timeout: Duration) -> Status {
    let Some(last) = crossings(path.raw()).unwrap_or_default().pop() else {
        return Status::Unknown("the path crosses no interface".into());
    };
    let peer = ScionAddr::new(path.info().dst, SocketAddr::new(NO_HOST, 0));
    let route = match Route::new(requests.local_addr(), peer, path) {
        Ok(route) => route,
        Err(error) => return Status::Unknown(error.to_string()),
    };
    let request = |id, sequence| {
        let mut packet = route.scmp(&traceroute::request(id, sequence).to_bytes());
        // Whatever happens on the way, no host is bothered.
        packet[SERVICE.0] = packet[SERVICE.0] & 0x0f | SERVICE.1;
        last.set_alert(route.path_in(&mut packet));
        packet
    };
    match requests.ask(route.next_hop(), timeout, request).await {
        Ok((answer, rtt)) => match answer.what {
            What::Traceroute { isd_as, .. } if isd_as == path.info().dst => Status::Alive(rtt),
            What::Traceroute { isd_as, interface } => {
                Status::Unknown(format!("{isd_as}#{interface} answered instead"))
            }
            What::Echo => Status::Unknown("an echo came back".into()),
            What::Error(error) => Status::Scmp(error),
        },
        Err(RequestError::TimedOut(_)) => Status::TimedOut,
        Err(error) => Status::Unknown(error.to_string()),
    }
}
