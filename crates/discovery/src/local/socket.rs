//! A socket of a multicast group.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::UdpSocket;

use crate::datagrams::RECEIVE_RETRY_INTERVAL;

/// The groups of local discovery (BEP 14).
pub(super) const GROUP_V4: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 192, 152, 143)), 6771);
pub(super) const GROUP_V6: SocketAddr = SocketAddr::new(
    IpAddr::V6(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0xefc0, 0x988f)),
    6771,
);

/// An interface: its number, and an address of it.
type Interface = (u32, IpAddr);

/// A socket that receives what is sent to a group, and sends to it, over several interfaces.
#[derive(Debug)]
pub(super) struct GroupSocket {
    group: SocketAddr,
    socket: UdpSocket,
    /// Those of the group's kind.
    interfaces: Vec<Interface>,
}

impl GroupSocket {
    /// Joins a group on each of `interfaces` that has its kind of address and multicast. `None` if there
    /// is none of that kind.
    ///
    /// # Errors
    /// If no socket can be opened, or no interface joins.
    pub fn open(group: SocketAddr, interfaces: &[Interface]) -> io::Result<Option<Self>> {
        let is_of_kind = |(_, ip): &Interface| ip.is_ipv4() == group.is_ipv4();
        let mut interfaces: Vec<_> = interfaces.iter().copied().filter(is_of_kind).collect();
        // One address of each is enough.
        interfaces.sort_by_key(|(index, _)| *index);
        interfaces.dedup_by_key(|(index, _)| *index);
        if interfaces.is_empty() {
            return Ok(None);
        }
        let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
        // Several programs of a host take part, each with its socket.
        socket.set_reuse_address(true)?;
        if group.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        // At the address of the group: what is sent to the port otherwise does not arrive.
        socket.bind(&group.into())?;
        let mut failed = None;
        interfaces.retain(|(index, ip)| {
            let joined = match (group.ip(), *ip) {
                (IpAddr::V4(group), IpAddr::V4(ip)) => socket.join_multicast_v4(&group, &ip),
                (IpAddr::V6(group), _) => socket.join_multicast_v6(&group, *index),
                (IpAddr::V4(_), IpAddr::V6(_)) => return false,
            };
            let is_joined = joined.is_ok();
            failed = joined.err().or(failed.take());
            is_joined
        });
        if let Some(error) = failed.filter(|_| interfaces.is_empty()) {
            return Err(error);
        }
        // Other programs of this host are peers as well.
        match group.is_ipv4() {
            true => socket.set_multicast_loop_v4(true)?,
            false => socket.set_multicast_loop_v6(true)?,
        }
        Ok(Some(Self {
            group,
            socket: UdpSocket::from_std(socket.into())?,
            interfaces,
        }))
    }

    /// The address of the group.
    pub fn group(&self) -> SocketAddr {
        self.group
    }

    /// Sends a datagram to the group over each interface. Where that fails it is lost.
    pub async fn send(&self, bytes: &[u8]) {
        let socket = SockRef::from(&self.socket);
        for (index, ip) in &self.interfaces {
            let over = match ip {
                IpAddr::V4(ip) => socket.set_multicast_if_v4(ip),
                IpAddr::V6(_) => socket.set_multicast_if_v6(*index),
            };
            let sent = match over {
                Ok(()) => self.socket.send_to(bytes, self.group).await,
                Err(error) => Err(error),
            };
            if let Err(error) = sent {
                tracing::debug!(%ip, %error, "a torrent is not announced over this interface");
            }
        }
    }

    /// Waits for a datagram. Returns its length, cut to that of `buffer`, and its sender. Cancel safe.
    pub async fn receive(&self, buffer: &mut [u8]) -> (usize, SocketAddr) {
        loop {
            match self.socket.recv_from(buffer).await {
                Ok(received) => return received,
                // One that persists costs little.
                Err(_) => tokio::time::sleep(RECEIVE_RETRY_INTERVAL).await,
            }
        }
    }
}
