//! uTP (BEP 29): streams over UDP, for IP peers, by `librqbit-utp`.
//!
//! One UDP socket carries the connections that peers open, at the port where they connect over TCP, and those
//! that are dialed. Its congestion control is CUBIC, not LEDBAT: it shares a bottleneck with TCP as TCP does.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use librqbit_utp::{SocketOpts, UtpSocketUdp, UtpStream};
use tokio::sync::OnceCell;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Time without a packet of the peer after which a connection counts as lost: peers that have nothing to say
/// send a message every two minutes (BEP 3).
const INACTIVITY_TIMEOUT: Duration = Duration::from_secs(180);

/// Most connections over one socket, those that are dialed included.
const MAX_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(600).expect("not zero");

/// Bytes of a connection that wait to be read: what 40 Mbit/s bring in 200 ms. Each connection may hold as many.
const RECEIVE_BUFFER: NonZeroUsize = NonZeroUsize::new(1 << 20).expect("not zero");

/// Longest wait for a peer to accept a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(6);

/// A UDP socket for uTP. Its tasks end when it is dropped.
pub(crate) struct UtpEndpoint {
    socket: Arc<UtpSocketUdp>,
    _end: DropGuard,
}

impl std::fmt::Debug for UtpEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UtpEndpoint")
            .field(&self.socket.bind_addr())
            .finish()
    }
}

impl UtpEndpoint {
    /// Opens a socket at `addr`; port 0 means any free port.
    ///
    /// # Errors
    /// If the address is in use, does not belong to this host, or is not permitted.
    pub async fn bind(addr: SocketAddr) -> io::Result<Self> {
        // The library does not tell why it cannot bind.
        drop(tokio::net::UdpSocket::bind(addr).await?);
        let end = CancellationToken::new();
        let options = SocketOpts {
            vsock_rx_bufsize_bytes: Some(RECEIVE_BUFFER),
            // Requests must not wait until a packet is full.
            disable_nagle: true,
            cancellation_token: end.clone(),
            remote_inactivity_timeout: Some(INACTIVITY_TIMEOUT),
            max_live_vsocks: Some(MAX_CONNECTIONS),
            ..SocketOpts::default()
        };
        let socket = UtpSocketUdp::new_udp_with_opts(addr, options, Default::default()).await;
        Ok(Self {
            socket: socket.map_err(io::Error::other)?,
            _end: end.drop_guard(),
        })
    }

    /// The address of the socket.
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.bind_addr()
    }

    /// Accepts the next connection of a peer.
    ///
    /// # Errors
    /// If the socket has failed.
    pub async fn accept(&self) -> io::Result<UtpStream> {
        self.socket.accept().await.map_err(io::Error::other)
    }

    /// Connects to a peer.
    ///
    /// # Errors
    /// If it does not answer within [`CONNECT_TIMEOUT`].
    pub async fn connect(&self, peer: SocketAddr) -> io::Result<UtpStream> {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.socket.connect(peer)).await;
        let connected = connected.map_err(|_| io::ErrorKind::TimedOut)?;
        connected.map_err(io::Error::other)
    }
}

/// The sockets over which peers are dialed: the one at which they connect, where that has their kind of
/// address, and others that are opened with the first dial.
#[derive(Debug, Default)]
pub(crate) struct UtpDialer {
    listening: Option<Arc<UtpEndpoint>>,
    v4: OnceCell<UtpEndpoint>,
    v6: OnceCell<UtpEndpoint>,
}

impl UtpDialer {
    /// Dials over `listening` where that is possible.
    pub fn new(listening: Option<Arc<UtpEndpoint>>) -> Self {
        Self {
            listening,
            ..Self::default()
        }
    }

    /// Connects to a peer.
    ///
    /// # Errors
    /// If there is no socket for it, or it does not answer.
    pub async fn connect(&self, peer: SocketAddr) -> io::Result<UtpStream> {
        let is_of_kind = |it: &&Arc<UtpEndpoint>| it.local_addr().is_ipv4() == peer.is_ipv4();
        if let Some(listening) = self.listening.as_ref().filter(is_of_kind) {
            return listening.connect(peer).await;
        }
        let (cell, any) = match peer {
            SocketAddr::V4(_) => (&self.v4, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (&self.v6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let opened = cell.get_or_try_init(|| UtpEndpoint::bind(SocketAddr::new(any, 0)));
        opened.await?.connect(peer).await
    }
}
