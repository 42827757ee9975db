//! Sockets for datagrams, over UDP or over SCION/UDP.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use hawser_address::PeerAddr;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

/// Longest datagram received, in bytes; longer ones are cut.
pub const MAX_DATAGRAM: usize = 2048;
/// Wait after a datagram could not be received.
pub(crate) const RECEIVE_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A socket for datagrams. [`UdpSocket`] is one; one over SCION makes trackers in a SCION network usable.
pub trait Datagrams: Send + Sync + 'static {
    /// Sends a datagram.
    fn send<'a>(&'a self, to: PeerAddr, payload: &'a [u8]) -> BoxFuture<'a, io::Result<()>>;

    /// Receives a datagram of at most [`MAX_DATAGRAM`] bytes, and where it comes from. Cancel safe.
    fn receive(&self) -> BoxFuture<'_, io::Result<(PeerAddr, Vec<u8>)>>;
}

impl Datagrams for UdpSocket {
    fn send<'a>(&'a self, to: PeerAddr, payload: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let to = to.ip().ok_or(io::ErrorKind::Unsupported)?;
            self.send_to(payload, to).await.map(|_| ())
        })
    }

    fn receive(&self) -> BoxFuture<'_, io::Result<(PeerAddr, Vec<u8>)>> {
        Box::pin(async move {
            let mut buffer = vec![0; MAX_DATAGRAM];
            let (length, from) = self.recv_from(&mut buffer).await?;
            buffer.truncate(length);
            Ok((PeerAddr::Ip(from), buffer))
        })
    }
}

/// Binds a UDP socket; one of IPv6 is for IPv6 alone.
pub(crate) fn bind_udp(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    UdpSocket::from_std(socket.into())
}
