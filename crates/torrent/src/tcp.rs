//! IP peers: the same wire protocol, over TCP (BEP 3), plain or encrypted (MSE).
//!
//! A connection that a peer opens shows by its first bytes whether it is encrypted. One that is
//! dialed begins as the policy says; if the peer closes it without an answer, the next one begins in
//! the other way, if the policy allows that.

mod attempts;
mod begin;
mod encrypted;
mod half;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_endhost::IsdAsn;
use hawser_kernel::bind::Refused;
use hawser_kernel::socket::tcp_rtt;
use hawser_mse::Policy;
use hawser_path::Fingerprint;
use rustix::net::{Shutdown, shutdown, sockopt};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};

use self::attempts::Attempt;
pub(crate) use self::attempts::Attempts;
use self::half::{Half, why};
use crate::close::{CloseCode, Closed};
use crate::metainfo::InfoHash;
use crate::transport::{Connection, Stream};

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

    /// Accepts the next connection of a peer, encrypted or not as `policy` says.
    pub(crate) async fn accept(&self, policy: Policy) -> TcpConnection {
        loop {
            match self.tcp.accept().await {
                Ok((stream, from)) => {
                    return TcpConnection::new(stream, from, Begin::Accepted(policy));
                }
                Err(error) => {
                    tracing::debug!(%error, "an IP peer could not connect");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }
}

/// How a connection begins.
enum Begin {
    /// It was dialed; `None` once the stream was taken.
    Dialed(Mutex<Option<Attempt>>),
    /// A peer opened it.
    Accepted(Policy),
}

/// A TCP connection to an IP peer.
pub(crate) struct TcpConnection {
    stream: Arc<TcpStream>,
    peer: SocketAddr,
    begin: Begin,
    /// The torrents that it may be for: both sides of an encrypted connection must know which.
    torrents: OnceLock<Arc<[InfoHash]>>,
    closed: OnceLock<Closed>,
}

impl TcpConnection {
    /// Connects to a peer. The error is the reason for a failure.
    pub async fn dial(peer: SocketAddr, attempts: &Arc<Attempts>) -> Result<Self, String> {
        let stream = TcpStream::connect(peer).await.map_err(|e| why(&e))?;
        if stream.local_addr().is_ok_and(|local| local == peer) {
            // The system chose the very port that is dialed for this end: where nothing listens, a
            // connection then opens to itself (RFC 9293, simultaneous open).
            return Err("nothing listens there".into());
        }
        let attempt = Mutex::new(Some(attempts.begin(peer)));
        Ok(Self::new(stream, peer, Begin::Dialed(attempt)))
    }

    fn new(stream: TcpStream, peer: SocketAddr, begin: Begin) -> Self {
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
            begin,
            torrents: OnceLock::new(),
            closed: OnceLock::new(),
        }
    }
}

impl Connection for TcpConnection {
    fn stream(&self) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send + '_>> {
        Box::pin(async {
            let half = Half(Arc::clone(&self.stream));
            let torrents = self.torrents.get().ok_or("of no torrent")?;
            let begun = match &self.begin {
                Begin::Accepted(policy) => begin::accepted(half, *policy, torrents).await,
                Begin::Dialed(attempt) => {
                    let attempt = attempt
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .take();
                    let attempt = attempt.ok_or("the stream was taken")?;
                    let info_hash = *torrents.first().ok_or("of no torrent")?;
                    begin::dialed(half, attempt, info_hash).await
                }
            };
            begun.map_err(|error| error.to_string())
        })
    }

    fn set_torrents(&self, torrents: Arc<[InfoHash]>) {
        // They are set once.
        let _ = self.torrents.set(torrents);
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
