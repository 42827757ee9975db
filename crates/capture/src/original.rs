//! Where a captured connection was to go.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd;

use hawser_kernel::socket::option;

/// `SO_ORIGINAL_DST` and `IP6T_SO_ORIGINAL_DST` (`linux/netfilter_ipv4.h`,
/// `linux/netfilter_ipv6/ip6_tables.h`).
const ORIGINAL_DESTINATION: i32 = 80;

/// Length in bytes of `struct sockaddr_in` and `struct sockaddr_in6`.
const ADDRESS: usize = 16;
const ADDRESS6: usize = 28;

/// The destination of an accepted TCP connection before it was redirected. It is the connection's
/// local address if the client connected to the listener itself, which a proxy must refuse, or if it
/// was not redirected but brought to a transparent listener.
///
/// The peer's port may differ from the client's: if two connections from one port to several
/// destinations are redirected to one listener, the kernel gives one of them another source port.
///
/// # Errors
/// When the socket is no TCP connection over IP, or the kernel has no entry of the connection
/// (`ENOENT`): then no rule of this network namespace translates addresses.
pub fn original_destination(socket: impl AsFd) -> io::Result<SocketAddr> {
    let local = rustix::net::getsockname(&socket)?;
    let local = SocketAddr::try_from(local)?;
    if option(&socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT).map(i32::from_ne_bytes)? != 0 {
        return Ok(local);
    }
    // A socket of both families has an IPv4 connection's address mapped.
    match local.ip().to_canonical().is_ipv4() {
        true => option(&socket, libc::IPPROTO_IP, ORIGINAL_DESTINATION).map(v4),
        false => option(&socket, libc::IPPROTO_IPV6, ORIGINAL_DESTINATION).map(v6),
    }
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
    let scope = u32::from_ne_bytes([raw[24], raw[25], raw[26], raw[27]]);
    let port = u16::from_be_bytes([raw[2], raw[3]]);
    SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into()
}
