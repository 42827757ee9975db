//! The border routers of the AS, as seen from this host.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hawser_endhost::probe::{Status, probe_first};
use hawser_endhost::{Endhost, Path};
use hawser_kernel::socket::route_mtu;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::facts::{Router, RouterAnswer};

/// How long an error is waited for from the host of a router that no path leads through. Hosts report
/// closed ports at once.
const ERROR_WAIT: Duration = Duration::from_millis(200);

/// Looks at all routers at once, for at most `limit`. `paths` are those to ask them over.
pub(super) async fn gather(host: &Endhost, paths: &[Path], limit: Duration) -> Vec<Router> {
    let mut by_address: BTreeMap<SocketAddr, Vec<u16>> = BTreeMap::new();
    for (interface, address) in host.routers() {
        by_address.entry(*address).or_default().push(*interface);
    }
    let mut looking = JoinSet::new();
    for (address, interfaces) in by_address {
        let through = paths.iter().find(|path| path.next_hop() == Some(address));
        let (host, through) = (host.clone(), through.cloned());
        looking.spawn(look(host, address, interfaces, through, limit));
    }
    let mut routers = looking.join_all().await;
    routers.sort_by_key(|router| router.address);
    routers
}

async fn look(
    host: Endhost,
    address: SocketAddr,
    interfaces: Vec<u16>,
    through: Option<Path>,
    limit: Duration,
) -> Router {
    let (mtu, answer) = match connect(address).await {
        Err(error) => (None, RouterAnswer::NoRoute(error.to_string())),
        Ok(socket) => {
            let mtu = route_mtu(&socket, address.ip()).ok();
            (mtu, ask(&host, &socket, through, limit).await)
        }
    };
    Router {
        address,
        interfaces,
        mtu,
        answer,
    }
}

async fn connect(address: SocketAddr) -> io::Result<UdpSocket> {
    let any = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    // Sends nothing, and fails if there is no route.
    socket.connect(address).await?;
    Ok(socket)
}

/// Asks the router over a path, and if it does not answer, sends it an empty datagram, which every
/// router drops, to see whether its host reports an error.
async fn ask(
    host: &Endhost,
    socket: &UdpSocket,
    through: Option<Path>,
    limit: Duration,
) -> RouterAnswer {
    let third = limit / 3;
    let (silent, wait) = match &through {
        None => (RouterAnswer::NotAsked, ERROR_WAIT.min(limit)),
        Some(path) => {
            let probes = probe_first(host, std::slice::from_ref(path), third).await;
            match probes.first().map(|probe| &probe.status) {
                Some(Status::Alive(rtt)) => return RouterAnswer::Answered(*rtt),
                // It answers, though with an error: the path may have expired.
                Some(Status::Scmp(_)) => return RouterAnswer::Answered(Duration::ZERO),
                Some(Status::TimedOut) => (RouterAnswer::Silent(limit), limit - third),
                // It was not asked: this host has no address or port, which is a finding of its own.
                _ => (RouterAnswer::NotAsked, ERROR_WAIT.min(limit)),
            }
        }
    };
    let error = async {
        socket.send(&[]).await?;
        // Nothing is ever received: the wait ends with an error.
        socket.recv(&mut [0]).await
    };
    match timeout(wait, error).await {
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => RouterAnswer::Refused,
        Ok(Err(error)) => RouterAnswer::NoRoute(error.to_string()),
        Ok(Ok(_)) | Err(_) => silent,
    }
}
