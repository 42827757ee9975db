//! Where a captured connection was to go.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use hawser_kernel::socket::option;

/// `SO_ORIGINAL_DST` and `IP6T_SO_ORIGINAL_DST` (`linux/netfilter_ipv4.h`,
/// `linux/netfilter_ipv6/ip6_tables.h`).
const ORIGINAL_DESTINATION: i32 = 80;

/// Length in bytes of `struct sockaddr_in` and `struct sockaddr_in6`.
const ADDRESS: usize = 16;
const ADDRESS6: usize = 28;

/// The destination of an accepted TCP connection before it was redirected, or of one that was brought
/// to a transparent listener, in canonical form: an IPv4 address is never mapped to IPv6, and there is
/// no scope. `None` if the client connected to the listener itself, which a proxy must refuse: it would
/// connect to itself again and again.
///
/// The peer's port may differ from the client's: if two connections from one port to several
/// destinations are redirected to one listener, the kernel gives one of them another source port.
///
/// # Errors
/// When the socket is no TCP connection over IP.
pub fn original_destination(socket: impl AsFd) -> io::Result<Option<SocketAddr>> {
    let local = rustix::net::getsockname(&socket)?;
    let local = canonical(SocketAddr::try_from(local)?);
    if option(&socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT).map(i32::from_ne_bytes)? != 0 {
        return Ok(Some(local));
    }
    let original = match local.is_ipv4() {
        true => option(&socket, libc::IPPROTO_IP, ORIGINAL_DESTINATION).map(v4),
        false => option(&socket, libc::IPPROTO_IPV6, ORIGINAL_DESTINATION).map(v6),
    };
    match original.map(canonical) {
        Ok(original) => Ok(Some(original).filter(|original| *original != local)),
        // The kernel does not track the connection, so nothing has redirected it.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Without what differs between two forms of one address: a socket of both families has an IPv4
/// address mapped, and only one of the forms of a link-local address has a scope.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `struct sockaddr_in`: family, port, address.
fn v4(raw: [u8; ADDRESS]) -> SocketAddr {
    let ip = Ipv4Addr::new(raw[4], raw[5], raw[6], raw[7]);
    SocketAddr::from((ip, u16::from_be_bytes([raw[2], raw[3]])))
}

/// `struct sockaddr_in6`: family, port, flow information, address, scope.
fn v6(raw: [u8; ADDRESS6]) -> SocketAddr {
    let mut ip = [0; 16];
    ip.copy_from_slice(&raw[8..24]);
    SocketAddr::from((Ipv6Addr::from(ip), u16::from_be_bytes([raw[2], raw[3]])))
}
