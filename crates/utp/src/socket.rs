//! A UDP socket for uTP.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;

use fastrand::Rng;
use hawser_kernel::socket::{allow_fragments, set_receive_buffer, set_send_buffer};
use noq_udp::UdpSocketState;

use crate::config::Config;
use crate::driver::Driver;
use crate::endpoint::Endpoint;
use crate::shared::{Shared, now};
use crate::stream::UtpStream;

/// Bytes of the kernel's buffers, as far as it allows: what several windows bring before the task runs.
const SOCKET_BUFFER: usize = 4 << 20;

/// A UDP socket for uTP: accepts connections, and opens them. When it is dropped, its streams end at once.
#[derive(Debug)]
pub struct UtpSocket {
    shared: Arc<Shared>,
    local: SocketAddr,
}

impl UtpSocket {
    /// Opens a socket at `addr`; port 0 means any free port. Must be called inside a tokio runtime, which runs
    /// the task of the socket.
    ///
    /// # Errors
    /// If the address is in use, does not belong to this host, or is not permitted.
    pub fn bind(addr: SocketAddr, config: Config) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(addr)?;
        socket.set_nonblocking(true)?;
        set_receive_buffer(&socket, SOCKET_BUFFER)?;
        set_send_buffer(&socket, SOCKET_BUFFER)?;
        let offload = UdpSocketState::new((&socket).into())?;
        allow_fragments(&socket, addr.ip())?;
        if addr.is_ipv6() {
            // For IPv4 peers, if the system gives those to sockets of IPv6. Where it does not, there are none.
            let _ = allow_fragments(&socket, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        }
        let local = socket.local_addr()?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let shared = Arc::new(Shared::new(Endpoint::new(config, Rng::new(), now())));
        tokio::spawn(Driver::new(Arc::clone(&shared), socket, offload).run());
        Ok(Self { shared, local })
    }

    /// The address of the socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts the next connection of a peer. A call that is given up takes none.
    ///
    /// # Errors
    /// If the socket has failed.
    pub async fn accept(&self) -> io::Result<UtpStream> {
        loop {
            let incoming = self.shared.incoming.notified();
            {
                let mut state = self.shared.lock();
                if let Some((handle, peer)) = state.endpoint.accept() {
                    drop(state);
                    // Others that accept may have slept through the event of another connection.
                    self.shared.incoming.notify_one();
                    return Ok(UtpStream::new(&self.shared, handle, peer));
                }
                if state.has_ended {
                    return Err(io::ErrorKind::NotConnected.into());
                }
            }
            incoming.await;
        }
    }

    /// Connects to a peer. A call that is given up closes the connection. It takes 15 s at most.
    ///
    /// # Errors
    /// If there are too many connections, the peer refuses, or it does not answer.
    pub async fn connect(&self, peer: SocketAddr) -> io::Result<UtpStream> {
        let handle = {
            let mut state = self.shared.lock();
            if state.has_ended {
                return Err(io::ErrorKind::NotConnected.into());
            }
            let handle = state.endpoint.connect(peer, now());
            let handle = handle.map_err(io::Error::other)?;
            self.shared.settle(state);
            handle
        };
        let stream = UtpStream::new(&self.shared, handle, peer);
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Some(reason) = state.endpoint.closed(handle) {
                return Poll::Ready(Err(crate::stream::error(reason)));
            }
            if state.endpoint.is_connected(handle) {
                return Poll::Ready(Ok(()));
            }
            state.wakers(handle).write = Some(cx.waker().clone());
            Poll::Pending
        })
        .await?;
        Ok(stream)
    }
}

impl Drop for UtpSocket {
    fn drop(&mut self) {
        self.shared.end();
    }
}
