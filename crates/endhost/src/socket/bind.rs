//! The choice of a socket's address and port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::ops::RangeInclusive;

use hawser_kernel::bind::Refused;
use hawser_kernel::{error_queue, interface, socket};
use thiserror::Error;

use crate::endhost::Endhost;

/// Size of the socket's buffers, in bytes: some milliseconds of a 10 Gbit/s link. The kernel limits
/// them to `net.core.rmem_max` and `wmem_max`.
const BUFFER: usize = 8 << 20;

/// The range of an AS without dispatched ports.
const NONE: RangeInclusive<u16> = 0..=0;

/// Why a socket could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// Routers do not deliver to the requested port.
    #[error(
        "port {port} is outside the ports routers of this AS deliver to ({}-{}): take one of those, or 0",
        range.start(), range.end()
    )]
    OutsideRange {
        /// The requested port.
        port: u16,
        /// The dispatched ports.
        range: RangeInclusive<u16>,
    },
    /// All dispatched ports are in use.
    #[error(
        "no free port among {}-{} at {ip}: end programs that hold many (`ss -ulnp` shows them), or \
         widen `dispatched_ports` in topology.json",
        range.start(), range.end()
    )]
    NoFreePort {
        /// The address.
        ip: IpAddr,
        /// The dispatched ports.
        range: RangeInclusive<u16>,
    },
    /// No address was requested, and none could be determined.
    #[error(
        "cannot determine this host's address in its AS ({0}): name one to listen at, or set \
         SCION_LOCAL_ADDR"
    )]
    NoAddress(String),
    /// The requested address stands for all interfaces, but SCION packets carry that of one.
    #[error("{0} is not an address to send to: name one of this host's addresses to listen at")]
    Unspecified(IpAddr),
    /// The system refused.
    #[error("cannot bind {addr}: {}", Refused::udp(*.addr, source))]
    Refused {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The socket was bound, but does not do what is needed of it.
    #[error("cannot set up the socket at {addr}: {source}")]
    SetUp {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// A non-blocking socket of `host` that keeps the errors of packets it sends.
pub(super) fn bind(
    host: &Endhost,
    local: Option<SocketAddr>,
) -> Result<(StdSocket, SocketAddr), BindError> {
    let range = host.port_range();
    let wanted = match local {
        Some(addr) if addr.ip().is_unspecified() => {
            return Err(BindError::Unspecified(addr.ip()));
        }
        Some(addr) => addr,
        None => SocketAddr::new(own_address(host)?, 0),
    };
    let socket = match wanted.port() {
        // The routers of an AS without dispatched ports deliver all packets to the shim dispatcher,
        // which serves every port.
        _ if range == NONE => bind_to(wanted)?,
        0 => first_free(wanted.ip(), &range)?,
        port if range.contains(&port) => bind_to(wanted)?,
        port => return Err(BindError::OutsideRange { port, range }),
    };
    let failed = |source| BindError::SetUp {
        addr: wanted,
        source,
    };
    error_queue::enable(&socket).map_err(failed)?;
    if let Some(mark) = host.mark() {
        socket::set_mark(&socket, mark).map_err(failed)?;
    }
    enlarge(&socket);
    let addr = socket.local_addr().map_err(failed)?;
    Ok((socket, addr))
}

fn bind_to(addr: SocketAddr) -> Result<StdSocket, BindError> {
    let refused = |source| BindError::Refused { addr, source };
    let socket = StdSocket::bind(addr).map_err(refused)?;
    let failed = |source| BindError::SetUp { addr, source };
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(socket)
}

fn first_free(ip: IpAddr, range: &RangeInclusive<u16>) -> Result<StdSocket, BindError> {
    // Port 0 would mean any port to the system.
    for port in range.clone().filter(|port| *port != 0) {
        match bind_to(SocketAddr::new(ip, port)) {
            Err(BindError::Refused { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {
            }
            bound => return bound,
        }
    }
    let range = range.clone();
    Err(BindError::NoFreePort { ip, range })
}

/// Requests large buffers. Small ones cost speed, not correctness.
fn enlarge(socket: &StdSocket) {
    let asked = socket::set_receive_buffer(socket, BUFFER)
        .and_then(|()| socket::set_send_buffer(socket, BUFFER));
    if let Err(error) = asked {
        tracing::debug!(%error, "socket buffers stay small");
    }
}

/// This host's address: the configured one, or the source address towards the first border router
/// that is reachable.
fn own_address(host: &Endhost) -> Result<IpAddr, BindError> {
    if let Some(configured) = host.address() {
        return Ok(configured);
    }
    let routers: Vec<IpAddr> = host.routers().values().map(SocketAddr::ip).collect();
    let mut reason = "the AS has no border router".to_owned();
    // The router at the lowest interface comes first.
    for router in host.routers().values() {
        match address_towards(*router, &routers) {
            Ok(own) => return Ok(own),
            Err(error) => reason = format!("router {router}: {error}"),
        }
    }
    Err(BindError::NoAddress(reason))
}

/// This host's address towards `router`: the system's source address, or, if that is the router's
/// own because the router runs on this host, another address of the same interface.
fn address_towards(router: SocketAddr, routers: &[IpAddr]) -> io::Result<IpAddr> {
    let source = source_address(router)?;
    if source != router.ip() {
        return Ok(source);
    }
    // A host whose only address is its router's shares it: their ports differ.
    Ok(beside(source, routers)?.unwrap_or(source))
}

/// The system's source address for packets to `target`.
pub(crate) fn source_address(target: SocketAddr) -> io::Result<IpAddr> {
    let any = match target {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing; it only makes the system choose a source address.
    let socket = StdSocket::bind((any, 0))?;
    socket.connect(target)?;
    Ok(socket.local_addr()?.ip())
}

/// The first address on the interface that has `addr` which is neither loopback nor one of `taken`.
fn beside(addr: IpAddr, taken: &[IpAddr]) -> io::Result<Option<IpAddr>> {
    let all = interface::addresses()?;
    let Some((interface, _)) = all.iter().find(|(_, ip)| *ip == addr) else {
        return Ok(None);
    };
    let link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let others = all
        .iter()
        .filter(|(other, ip)| other == interface && ip.is_ipv4() == addr.is_ipv4())
        .map(|(_, ip)| *ip)
        .filter(|ip| !ip.is_loopback() && !link_local(ip) && !taken.contains(ip));
    Ok(others.min())
}
