//! IP peers: the same wire protocol, over plain TCP (BEP 3).

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{self, Context, Poll};
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_endhost::IsdAsn;
use hawser_kernel::bind::Refused;
use hawser_kernel::socket::tcp_rtt;
use hawser_path::Fingerprint;
use rustix::net::{Shutdown, shutdown, sockopt};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::close::{CloseCode, Closed};
use crate::transport::{Connection, Output, Stream};

/// Longest time in milliseconds that sent data may stay unacknowledged before the connection is
/// closed (tcp(7), `TCP_USER_TIMEOUT`): the system itself would wait much longer.
const USER_TIMEOUT: u32 = 60_000;

/// Silence after which the system probes whether the peer still answers.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Backoff after an error that is likely to occur again at once, such as too many open files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// The address that IP peers connect to.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    local: SocketAddr,
}

/// Why a listener cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot listen for IP peers at {addr}: {why}")]
pub struct ListenError {
    addr: SocketAddr,
    why: String,
}

impl Listener {
    /// Listens at `addr`; port 0 means any free port.
    ///
    /// # Errors
    /// If the address is in use, does not belong to this host, or is not permitted.
    pub async fn bind(addr: SocketAddr) -> Result<Self, ListenError> {
        let bound = TcpListener::bind(addr).await;
        let bound = bound.and_then(|tcp| tcp.local_addr().map(|local| Self { tcp, local }));
        bound.map_err(|error| ListenError {
            addr,
            why: Refused::tcp(addr, &error).to_string(),
        })
    }

    /// The address it listens at.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts the next connection of a peer.
    pub(crate) async fn accept(&self) -> TcpConnection {
        loop {
            match self.tcp.accept().await {
                Ok((stream, from)) => return TcpConnection::new(stream, from),
                Err(error) => {
                    tracing::debug!(%error, "an IP peer could not connect");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
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
    /// Connects to a peer. The error is the reason for a failure.
    pub async fn dial(peer: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(peer).await.map_err(|e| why(&e))?;
        if stream.local_addr().is_ok_and(|local| local == peer) {
            // The system chose the very port that is dialed for this end: where nothing listens, a
            // connection then opens to itself (RFC 9293, simultaneous open).
            return Err("nothing listens there".into());
        }
        Ok(Self::new(stream, peer))
    }

    fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        let set = || -> io::Result<()> {
            // Requests must not wait until a segment is full.
            stream.set_nodelay(true)?;
            sockopt::set_socket_keepalive(&stream, true)?;
            sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE)?;
            sockopt::set_tcp_user_timeout(&stream, USER_TIMEOUT)?;
            Ok(())
        };
        if let Err(error) = set() {
            tracing::debug!(%peer, %error, "TCP options are not as wanted");
        }
        Self {
            stream: Arc::new(stream),
            // A socket for both IPv4 and IPv6 reports IPv4 peers as mapped addresses.
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            closed: OnceLock::new(),
        }
    }
}

impl Connection for TcpConnection {
    fn stream(&self) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send + '_>> {
        let half = || Box::new(Half(Arc::clone(&self.stream)));
        Box::pin(ready(Ok((half() as _, half() as _))))
    }

    fn peer(&self) -> PeerAddr {
        PeerAddr::Ip(self.peer)
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::local(IsdAsn(0))
    }

    /// A hash of the address, as an IP peer has no certificate. The hashed text cannot be that of a
    /// certificate.
    fn key(&self) -> [u8; 32] {
        Sha256::digest(format!("hawser IP peer {}", self.peer)).into()
    }

    fn rtt(&self) -> Duration {
        // `None` once the connection is closed.
        tcp_rtt(&*self.stream).unwrap_or_default()
    }

    fn close(&self, _code: CloseCode, text: &str) {
        if self.closed.set(Closed::plain(text)).is_ok() {
            // Fails if the peer has closed it before.
            let _ = shutdown(&*self.stream, Shutdown::Both);
        }
    }

    fn close_reason(&self) -> Option<Closed> {
        self.closed.get().cloned()
    }
}

/// One direction of a stream, used by one task. Another task can close it meanwhile.
struct Half(Arc<TcpStream>);

impl AsyncRead for Half {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            task::ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buffer) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Half {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            task::ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = shutdown(&*self.0, Shutdown::Write);
        Poll::Ready(shut.map_err(io::Error::from))
    }
}

impl Output for Half {}

/// The text of a system error without its number.
fn why(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text.to_owned(),
    }
}
