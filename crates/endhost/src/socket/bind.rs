//! Which address and port a socket gets.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::ops::RangeInclusive;

use hawser_packet::ScionAddr;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{setsockopt, sockopt};
use noq_udp::UdpSocketState;
use thiserror::Error;
use tokio::net::UdpSocket;

use super::errors::{self, Io};
use super::{Drops, Socket};
use crate::endhost::Endhost;

/// What the kernel keeps for us while we do something else, in bytes: some milliseconds of a 10
/// Gbit/s link. It gives less where `net.core.rmem_max` says so.
const BUFFER: usize = 8 << 20;

/// What an AS without dispatched ports announces.
const NONE: RangeInclusive<u16> = 0..=0;

/// Why there is no socket.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The port asked for is outside what routers deliver to.
    #[error(
        "port {port} is outside the ports routers of this AS deliver to ({}-{}): take one of those, or 0",
        range.start(), range.end()
    )]
    OutsideRange {
        /// The port asked for.
        port: u16,
        /// The dispatched ports.
        range: RangeInclusive<u16>,
    },
    /// All dispatched ports are taken.
    #[error("no free port among {}-{} at {ip}", range.start(), range.end())]
    NoFreePort {
        /// The address.
        ip: IpAddr,
        /// The dispatched ports.
        range: RangeInclusive<u16>,
    },
    /// No address was asked for, and none could be found.
    #[error(
        "cannot tell this host's address in its AS ({reason}): say where to listen, or set \
         SCION_LOCAL_ADDR"
    )]
    NoAddress {
        /// Why.
        reason: String,
    },
    /// An address for all interfaces was asked for; SCION packets carry a real one.
    #[error("{0} is no address peers can send to: say which of this host's addresses to listen at")]
    Unspecified(IpAddr),
    /// The system refuses.
    #[error("cannot bind {addr}: {source}")]
    Refused {
        /// The address.
        addr: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

impl Socket {
    /// Binds a socket of `host` at `local`, or at [`Endhost::address`], or at this host's address
    /// towards its border routers. Port 0, and no address at all, stand for the first free port
    /// routers deliver to, or any where they deliver to none. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`BindError`] when the address cannot be used.
    pub fn bind(host: &Endhost, local: Option<SocketAddr>) -> Result<Self, BindError> {
        let range = host.port_range();
        let wanted = match local {
            Some(addr) if addr.ip().is_unspecified() => {
                return Err(BindError::Unspecified(addr.ip()));
            }
            Some(addr) => addr,
            None => SocketAddr::new(own_address(host)?, 0),
        };
        let (socket, addr) = match wanted.port() {
            _ if range == NONE => any_port(wanted)?,
            0 => first_free(wanted.ip(), &range)?,
            port if range.contains(&port) => (bind(wanted)?, wanted),
            port => return Err(BindError::OutsideRange { port, range }),
        };
        let refused = |source| BindError::Refused { addr, source };
        errors::keep(&socket, addr.is_ipv4()).map_err(|error| refused(error.into()))?;
        let offload = UdpSocketState::new((&socket).into()).map_err(refused)?;
        enlarge(&socket);
        Ok(Self {
            io: Io::new(UdpSocket::from_std(socket).map_err(refused)?, host.clone()),
            offload,
            local: ScionAddr::new(host.local_as(), addr),
            host: host.clone(),
            drops: Drops::default(),
        })
    }
}

fn bind(addr: SocketAddr) -> Result<StdSocket, BindError> {
    let refused = |source| BindError::Refused { addr, source };
    let socket = StdSocket::bind(addr).map_err(refused)?;
    socket.set_nonblocking(true).map_err(refused)?;
    Ok(socket)
}

/// Where routers deliver everything to the shim dispatcher, which knows every port.
fn any_port(wanted: SocketAddr) -> Result<(StdSocket, SocketAddr), BindError> {
    let socket = bind(wanted)?;
    let addr = socket.local_addr().map_err(|source| BindError::Refused {
        addr: wanted,
        source,
    })?;
    Ok((socket, addr))
}

fn first_free(
    ip: IpAddr,
    range: &RangeInclusive<u16>,
) -> Result<(StdSocket, SocketAddr), BindError> {
    // Port 0 would mean any to the system.
    for port in range.clone().filter(|port| *port != 0) {
        let addr = SocketAddr::new(ip, port);
        match bind(addr) {
            Ok(socket) => return Ok((socket, addr)),
            Err(BindError::Refused { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
            }
            Err(error) => return Err(error),
        }
    }
    let range = range.clone();
    Err(BindError::NoFreePort { ip, range })
}

/// Asks for large buffers: past the system's limit where we may, up to it where not. Small buffers
/// cost speed, not correctness.
fn enlarge(socket: &StdSocket) {
    let forced = setsockopt(socket, sockopt::RcvBufForce, &BUFFER)
        .and_then(|()| setsockopt(socket, sockopt::SndBufForce, &BUFFER));
    if forced.is_err() {
        let asked = setsockopt(socket, sockopt::RcvBuf, &BUFFER)
            .and_then(|()| setsockopt(socket, sockopt::SndBuf, &BUFFER));
        if let Err(error) = asked {
            tracing::debug!(%error, "socket buffers stay small");
        }
    }
}

/// This host's address: the one it was told, or else the one towards the first of its border
/// routers that it has a way to.
fn own_address(host: &Endhost) -> Result<IpAddr, BindError> {
    let no_address = |reason: String| BindError::NoAddress { reason };
    if let Some(told) = host.address() {
        return Ok(told);
    }
    let routers: BTreeSet<SocketAddr> = host.routers().values().copied().collect();
    let mut reason = "the AS has no border router".to_owned();
    // The router at the lowest interface first.
    for router in host.routers().values() {
        match towards(*router, &routers) {
            Ok(own) => return Ok(own),
            Err(error) => reason = format!("router {router}: {error}"),
        }
    }
    Err(no_address(reason))
}

/// This host's address towards `router`: what the system would send from, or, where that is the
/// router's own address because it runs on this very host, another of the same interface.
fn towards(router: SocketAddr, routers: &BTreeSet<SocketAddr>) -> io::Result<IpAddr> {
    let any: IpAddr = if router.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    // Connecting a UDP socket sends nothing; it only makes the system choose.
    let socket = StdSocket::bind((any, 0))?;
    socket.connect(router)?;
    let source = socket.local_addr()?.ip();
    if source != router.ip() {
        return Ok(source);
    }
    let routers: Vec<IpAddr> = routers.iter().map(SocketAddr::ip).collect();
    // A host whose only address is its router's shares it; ports keep them apart.
    Ok(beside(source, &routers)?.unwrap_or(source))
}

/// The first address on the interface that has `addr` which is neither loopback nor one of `taken`.
fn beside(addr: IpAddr, taken: &[IpAddr]) -> nix::Result<Option<IpAddr>> {
    let all: Vec<(String, IpAddr)> = getifaddrs()?
        .filter_map(|interface| {
            let storage = interface.address?;
            let ip = match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
                (Some(v4), _) => IpAddr::V4(v4.ip()),
                (_, Some(v6)) => IpAddr::V6(v6.ip()),
                _ => return None,
            };
            Some((interface.interface_name, ip))
        })
        .collect();
    let Some((interface, _)) = all.iter().find(|(_, ip)| *ip == addr) else {
        return Ok(None);
    };
    let link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let mut others: Vec<IpAddr> = all
        .iter()
        .filter(|(name, ip)| name == interface && ip.is_ipv4() == addr.is_ipv4())
        .map(|(_, ip)| *ip)
        .filter(|ip| !ip.is_loopback() && !link_local(ip) && !taken.contains(ip))
        .collect();
    others.sort();
    Ok(others.first().copied())
}
