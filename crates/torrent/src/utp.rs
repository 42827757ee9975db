//! uTP (BEP 29): streams over UDP, for IP peers.
//!
//! One UDP socket carries the connections that peers open, at the port where they connect over TCP, and those
//! that are dialed.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hawser_utp::{Config, UtpSocket, UtpStream};
use tokio::sync::OnceCell;

/// Longest wait for a peer to accept a connection.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(6);

/// Connects to a peer.
///
/// # Errors
/// If it refuses, or does not answer within [`CONNECT_TIMEOUT`].
async fn connect(socket: &UtpSocket, peer: SocketAddr) -> io::Result<UtpStream> {
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, socket.connect(peer)).await;
    connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The sockets over which peers are dialed: the one at which they connect, where that has their kind of
/// address, and others that are opened with the first dial.
#[derive(Debug, Default)]
pub(crate) struct UtpDialer {
    listening: Option<Arc<UtpSocket>>,
    v4: OnceCell<UtpSocket>,
    v6: OnceCell<UtpSocket>,
}

impl UtpDialer {
    /// Dials over `listening` where that is possible.
    pub fn new(listening: Option<Arc<UtpSocket>>) -> Self {
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
        let is_of_kind = |it: &&Arc<UtpSocket>| it.local_addr().is_ipv4() == peer.is_ipv4();
        if let Some(listening) = self.listening.as_ref().filter(is_of_kind) {
            return connect(listening, peer).await;
        }
        let (cell, any) = match peer {
            SocketAddr::V4(_) => (&self.v4, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (&self.v6, Ipv6Addr::UNSPECIFIED.into()),
        };
        // No peer knows its address.
        let config = Config::default().with_backlog(0);
        let open = async || UtpSocket::bind(SocketAddr::new(any, 0), config);
        connect(cell.get_or_try_init(open).await?, peer).await
    }
}
