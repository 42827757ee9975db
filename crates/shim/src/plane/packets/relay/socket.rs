//! The sockets of flows.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, recv,
    socket_with, sockopt,
};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::mark::mark;

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
    let mut receive = || {
        let (length, _) = recv(socket, &mut *buffer, RecvFlags::DONTWAIT)?;
        Ok(length)
    };
    // `try_io` takes one interest only: for several, it never calls what it is given.
    match socket.try_io(Interest::READABLE, &mut receive) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            socket.try_io(Interest::ERROR, receive)
        }
        received => received,
    }
}

/// Sends a datagram without waiting, also by a socket that is so new that tokio does not know whether
/// it can be written to.
pub(super) fn send(socket: &UdpSocket, bytes: &[u8]) -> Result<(), Errno> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::send(socket, bytes, flags).map(drop)
}

/// Bytes of the largest packet to `host`, to which the socket is connected, as far as the kernel knows.
pub(super) fn mtu(socket: &UdpSocket, host: IpAddr) -> Option<u16> {
    let mtu = match host {
        IpAddr::V4(_) => sockopt::ip_mtu(socket),
        IpAddr::V6(_) => sockopt::ipv6_mtu(socket),
    };
    Some(u16::try_from(mtu.ok()?).unwrap_or(u16::MAX))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// What arrives first.
    async fn next(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
        let received = async {
            loop {
                socket.ready(ARRIVED).await?;
                match receive(socket, buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    received => return received,
                }
            }
        };
        let received = timeout(Duration::from_secs(60), received).await;
        received.expect("something arrives")
    }

    #[tokio::test]
    async fn datagrams_and_errors_are_received_and_then_there_are_none() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let flow = udp(server.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 100];
        send(&flow, b"request").unwrap();
        let (length, from) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"request");
        server.send_to(b"answer", from).await.unwrap();
        let length = next(&flow, &mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"answer");

        drop(server);
        send(&flow, b"request").unwrap();
        let error = next(&flow, &mut buffer).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);

        // A flow at rest waits, and takes no processor time.
        let error = receive(&flow, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let rest = timeout(Duration::from_millis(10), flow.ready(ARRIVED)).await;
        assert!(rest.is_err());
    }
}
