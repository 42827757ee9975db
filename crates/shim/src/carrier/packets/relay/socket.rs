//! The sockets of flows.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, recv,
    socket_with,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::holder::mark;

/// A socket for datagrams to and from `server`.
pub(super) fn udp(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket_with(family(server.ip()), SocketType::DGRAM, FLAGS, None)?;
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    bind(&socket, &any)?;
    connected(socket, server)
}

/// A socket for echo requests to `host` (icmp(7)).
pub(super) fn ping(host: IpAddr) -> io::Result<UdpSocket> {
    let protocol = match host {
        IpAddr::V4(_) => ipproto::ICMP,
        IpAddr::V6(_) => ipproto::ICMPV6,
    };
    let opened = socket_with(family(host), SocketType::DGRAM, FLAGS, Some(protocol));
    let socket = opened.map_err(|error| match error {
        Errno::ACCESS => io::Error::other(
            "not allowed to ping: have sysctl net.ipv4.ping_group_range include this group",
        ),
        error => error.into(),
    })?;
    connected(socket, SocketAddr::new(host, 0))
}

/// What a flow waits for: packets, and errors that ICMP has reported.
pub(super) const ARRIVED: Interest = Interest::READABLE.add(Interest::ERROR);

/// Receives a datagram without waiting.
pub(super) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    socket.try_io(ARRIVED, || {
        let (length, _) = recv(socket, &mut *buffer, RecvFlags::DONTWAIT)?;
        Ok(length)
    })
}

/// Sends a datagram without waiting, also by a socket that is so new that tokio does not know whether
/// it can be written to.
pub(super) fn send(socket: &UdpSocket, bytes: &[u8]) -> Result<(), Errno> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::send(socket, bytes, flags).map(drop)
}

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

fn family(ip: IpAddr) -> AddressFamily {
    match ip {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    }
}

/// Connects the socket, whose packets are not captured again.
fn connected(socket: OwnedFd, to: SocketAddr) -> io::Result<UdpSocket> {
    mark(&socket)?;
    connect(&socket, &to)?;
    // Receives and sends as one of UDP does.
    UdpSocket::from_std(socket.into())
}
