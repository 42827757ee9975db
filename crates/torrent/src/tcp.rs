//! IP peers: the same wire protocol, over plain TCP (BEP 3).

mod half;
mod info;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hawser_endhost::IsdAsn;
use hawser_path::Fingerprint;
use rustix::net::{Shutdown, shutdown, sockopt};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};

pub(crate) use self::half::Half;
use crate::address::PeerAddr;
use crate::close::{CloseCode, Closed};
use crate::transport::Connection;

/// What is sent has to be acknowledged within this time, in milliseconds, or the connection is
/// over: a peer that is gone without a word is not waited for until the system gives up.
const UNANSWERED: u32 = 60_000;

/// With nothing to send the system asks after so long whether the peer is still there.
const ALIVE_AFTER: Duration = Duration::from_secs(30);

/// After an error that the next try will likely meet too, such as no more files to be opened.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where IP peers connect to.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    local: SocketAddr,
}

/// An address cannot be listened at.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot listen for IP peers at {addr}: {why}")]
pub struct ListenError {
    addr: SocketAddr,
    why: String,
}

impl Listener {
    /// Listens at `addr`; port 0 is any that is free.
    ///
    /// # Errors
    /// When the address is in use, not of this host, or not allowed.
    pub async fn bind(addr: SocketAddr) -> Result<Self, ListenError> {
        let bound = TcpListener::bind(addr).await;
        let bound = bound.and_then(|tcp| tcp.local_addr().map(|local| Self { tcp, local }));
        bound.map_err(|error| ListenError {
            addr,
            why: match error.kind() {
                io::ErrorKind::AddrInUse => "another program does: choose another port".into(),
                io::ErrorKind::AddrNotAvailable => "it is no address of this host".into(),
                io::ErrorKind::PermissionDenied => {
                    "not allowed: choose a port of at least 1024".into()
                }
                _ => why(&error),
            },
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The next peer that connects.
    pub(crate) async fn accept(&self) -> TcpConnection {
        loop {
            match self.tcp.accept().await {
                Ok((stream, from)) => return TcpConnection::new(stream, from),
                Err(error) => {
                    tracing::debug!(%error, "an IP peer could not connect");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// A TCP connection to an IP peer.
pub(crate) struct TcpConnection {
    stream: Arc<TcpStream>,
    peer: SocketAddr,
    closed: OnceLock<Closed>,
}

impl TcpConnection {
    /// Connects to a peer; the reason if that fails.
    pub async fn dial(peer: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(peer).await.map_err(|e| why(&e))?;
        Ok(Self::new(stream, peer))
    }

    fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        let set = || -> io::Result<()> {
            // Requests must not wait for one another.
            stream.set_nodelay(true)?;
            sockopt::set_socket_keepalive(&stream, true)?;
            sockopt::set_tcp_keepidle(&stream, ALIVE_AFTER)?;
            sockopt::set_tcp_user_timeout(&stream, UNANSWERED)?;
            Ok(())
        };
        if let Err(error) = set() {
            tracing::debug!(%peer, %error, "TCP options are not as wanted");
        }
        Self {
            stream: Arc::new(stream),
            // An IPv4 peer at a socket that serves both is still that.
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            closed: OnceLock::new(),
        }
    }
}

impl Connection for TcpConnection {
    type Read = Half;
    type Write = Half;

    async fn stream(&self) -> Result<(Half, Half), String> {
        let half = || Half::new(Arc::clone(&self.stream));
        Ok((half(), half()))
    }

    fn peer(&self) -> PeerAddr {
        PeerAddr::Ip(self.peer)
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::local(IsdAsn(0))
    }

    /// An IP peer has no certificate: it is known by its address, here as text of a form that no
    /// certificate hashes to.
    fn key(&self) -> [u8; 32] {
        Sha256::digest(format!("hawser IP peer {}", self.peer)).into()
    }

    fn rtt(&self) -> Duration {
        info::rtt(&self.stream)
    }

    fn close(&self, _code: CloseCode, text: &str) {
        if self.closed.set(Closed::plain(text)).is_ok() {
            // It fails where the peer closed before.
            let _ = shutdown(&*self.stream, Shutdown::Both);
        }
    }

    fn close_reason(&self) -> Option<Closed> {
        self.closed.get().cloned()
    }
}

/// What the system says, without its numbers.
fn why(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text.to_owned(),
    }
}
