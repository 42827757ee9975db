//! IP peers: the same wire protocol, over TCP (BEP 3) or uTP (BEP 29), plain or encrypted (MSE).
//!
//! A connection that a peer opens shows by its first bytes whether it is encrypted. One that is
//! dialed begins as the policy says; if the peer closes it without an answer, or answers in another
//! way, the next one begins in the other way, if the policy allows that.

mod attempts;
mod begin;
mod dial;
mod encrypted;
mod half;
mod transports;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_endhost::IsdAsn;
use hawser_kernel::bind::Refused;
use hawser_mse::Policy;
use hawser_path::Fingerprint;
use hawser_utp::{Config as UtpConfig, UtpSocket};
use rustix::net::sockopt;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use self::attempts::Attempt;
pub(crate) use self::attempts::Attempts;
use self::half::Half;
pub use self::transports::{IpTransports, IpTransportsParseError};
use crate::close::{CloseCode, Closed};
use crate::metainfo::InfoHash;
use crate::transport::{Connection, Stream};
use crate::utp::UtpDialer;

/// Longest time in milliseconds that sent data may stay unacknowledged before the connection is
/// closed (tcp(7), `TCP_USER_TIMEOUT`): the system itself would wait much longer.
const USER_TIMEOUT: u32 = 60_000;

/// Silence after which the system probes whether the peer still answers.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Backoff after an error that is likely to occur again at once, such as too many open files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// How often a free port is looked for that is free for both TCP and UDP.
const PORT_ATTEMPTS: usize = 16;

/// Connections over TCP that may wait to be accepted.
const TCP_BACKLOG: u32 = 1024;

/// The address that IP peers connect to, over TCP, uTP or both at the same port. Over which may change.
#[derive(Debug)]
pub struct Listener {
    sockets: watch::Sender<Sockets>,
    local: SocketAddr,
}

/// The sockets of a [`Listener`].
#[derive(Debug, Clone)]
struct Sockets {
    tcp: Option<Arc<TcpListener>>,
    /// Once open it stays so, as connections would end with it.
    utp: Option<Arc<UtpSocket>>,
    /// Whether peers may connect by uTP.
    accepts_utp: bool,
}

/// Why a listener cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot listen for IP peers at {addr}: {why}")]
pub struct ListenError {
    addr: SocketAddr,
    why: String,
}

impl Listener {
    /// Listens at `addr` over TCP; port 0 means any free port.
    ///
    /// # Errors
    /// If the address is in use, does not belong to this host, or is not permitted.
    pub async fn bind(addr: SocketAddr) -> Result<Self, ListenError> {
        Self::bind_over(addr, IpTransports::TCP).await
    }

    /// Listens at `addr` over these transports, at the same port over each; port 0 means any that is free.
    ///
    /// # Errors
    /// If the address is in use over one of them, does not belong to this host, or is not permitted.
    pub async fn bind_over(
        addr: SocketAddr,
        transports: IpTransports,
    ) -> Result<Self, ListenError> {
        let mut attempts = PORT_ATTEMPTS;
        loop {
            attempts -= 1;
            let tcp = match transports.tcp {
                true => Some(bind_tcp(addr)?),
                false => None,
            };
            let port = tcp.as_ref().map_or(addr, |(_, local)| *local);
            let utp = match transports.utp {
                true => Some(UtpSocket::bind(port, UtpConfig::default())),
                false => None,
            };
            let utp = match utp.transpose() {
                // Another program has the port of UDP.
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && addr.port() == 0
                        && attempts > 0 =>
                {
                    continue;
                }
                utp => utp.map_err(|error| without_utp(port, &error))?,
            };
            let of_utp = utp.as_ref().map(UtpSocket::local_addr);
            let (tcp, of_tcp) = tcp.unzip();
            let sockets = Sockets {
                tcp: tcp.map(Arc::new),
                utp: utp.map(Arc::new),
                accepts_utp: transports.utp,
            };
            return Ok(Self {
                local: of_tcp.or(of_utp).unwrap_or(addr),
                sockets: watch::Sender::new(sockets),
            });
        }
    }

    /// Listens over these transports from now on, at the same address. Connections that are open stay so.
    ///
    /// # Errors
    /// If the address is in use over one of them; nothing is changed then.
    pub(crate) fn listen_over(&self, transports: IpTransports) -> Result<(), ListenError> {
        let Sockets { tcp, utp, .. } = self.sockets.borrow().clone();
        let tcp = match (transports.tcp, tcp) {
            (false, _) => None,
            (true, Some(tcp)) => Some(tcp),
            (true, None) => Some(Arc::new(bind_tcp(self.local)?.0)),
        };
        let utp = match (transports.utp, utp) {
            (true, None) => {
                let utp = UtpSocket::bind(self.local, UtpConfig::default());
                let utp = utp.map_err(|error| without_utp(self.local, &error))?;
                Some(Arc::new(utp))
            }
            (_, utp) => utp,
        };
        let accepts_utp = transports.utp;
        self.sockets.send_replace(Sockets {
            tcp,
            utp,
            accepts_utp,
        });
        Ok(())
    }

    /// The address it listens at.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The socket of uTP, once there is one.
    pub(crate) fn utp(&self) -> Option<Arc<UtpSocket>> {
        self.sockets.borrow().utp.clone()
    }

    /// Whether peers may connect over the transport of this stream now.
    fn accepts(&self, stream: &Half) -> bool {
        let sockets = self.sockets.borrow();
        match stream {
            Half::Tcp(_) => sockets.tcp.is_some(),
            Half::Utp(_) => sockets.accepts_utp,
        }
    }

    /// Accepts the next connection of a peer, encrypted or not as `policy` then says.
    pub(crate) async fn accept(&self, policy: impl Fn() -> Policy) -> IpConnection {
        let mut sockets = self.sockets.subscribe();
        loop {
            let Sockets { tcp, utp, .. } = sockets.borrow_and_update().clone();
            let over_tcp = async {
                match &tcp {
                    Some(tcp) => {
                        let (stream, from) = tcp.accept().await?;
                        Ok::<_, io::Error>((Half::tcp(stream), from))
                    }
                    None => pending().await,
                }
            };
            let over_utp = async {
                match &utp {
                    Some(utp) => {
                        let stream = utp.accept().await?;
                        let from = stream.remote_addr();
                        Ok((Half::utp(stream), from))
                    }
                    None => pending().await,
                }
            };
            let accepted = tokio::select! {
                accepted = over_tcp => accepted,
                accepted = over_utp => accepted,
                _ = sockets.changed() => continue,
            };
            match accepted {
                Ok((stream, from)) if self.accepts(&stream) => {
                    return IpConnection::new(stream, from, Begin::Accepted(policy()));
                }
                // It is closed.
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "an IP peer could not connect");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }
}

/// Listens over TCP. Returns the address, too.
fn bind_tcp(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), ListenError> {
    let bind = || {
        let socket = match addr {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // The port may be used again at once after a restart.
        socket.set_reuseaddr(true)?;
        socket.bind(addr)?;
        let tcp = socket.listen(TCP_BACKLOG)?;
        let local = tcp.local_addr()?;
        Ok((tcp, local))
    };
    bind().map_err(|error: io::Error| ListenError {
        addr,
        why: Refused::tcp(addr, &error).to_string(),
    })
}

/// The error of an address that uTP cannot be had at.
fn without_utp(addr: SocketAddr, error: &io::Error) -> ListenError {
    ListenError {
        addr,
        why: format!(
            "{}, or do without uTP: --transport tcp",
            Refused::udp(addr, error)
        ),
    }
}

/// How IP peers are dialed. Clones share what is known of peers, and the sockets.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    pub attempts: Arc<Attempts>,
    pub transports: IpTransports,
    pub utp: Arc<UtpDialer>,
}

/// How a connection begins.
enum Begin {
    /// It was dialed; `None` once the stream was taken.
    Dialed(Mutex<Option<Attempt>>),
    /// A peer opened it.
    Accepted(Policy),
}

/// A connection to an IP peer, over TCP or uTP.
pub(crate) struct IpConnection {
    stream: Half,
    peer: SocketAddr,
    begin: Begin,
    /// The torrents that it may be for: both sides of an encrypted connection must know which.
    torrents: OnceLock<Arc<[InfoHash]>>,
    closed: OnceLock<Closed>,
}

impl IpConnection {
    /// Connects to a peer. The error is the reason for a failure.
    pub async fn dial(peer: SocketAddr, dialer: &Dialer) -> Result<Self, String> {
        let utp = dialer.transports.utp.then_some(&*dialer.utp);
        let stream = dial::connect(peer, dialer.transports.tcp, utp).await?;
        let attempt = Mutex::new(Some(dialer.attempts.begin(peer)));
        Ok(Self::new(stream, peer, Begin::Dialed(attempt)))
    }

    fn new(stream: Half, peer: SocketAddr, begin: Begin) -> Self {
        if let Half::Tcp(tcp) = &stream
            && let Err(error) = set_options(tcp)
        {
            tracing::debug!(%peer, %error, "TCP options are not as wanted");
        }
        Self {
            stream,
            // A socket for both IPv4 and IPv6 reports IPv4 peers as mapped addresses.
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
            begin,
            torrents: OnceLock::new(),
            closed: OnceLock::new(),
        }
    }
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    // Requests must not wait until a segment is full.
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE)?;
    sockopt::set_tcp_user_timeout(stream, USER_TIMEOUT)?;
    Ok(())
}

impl Connection for IpConnection {
    fn stream(&self) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send + '_>> {
        Box::pin(async {
            let half = self.stream.clone();
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
        // It is asked for with every block.
        static PLAIN_IP: LazyLock<Fingerprint> = LazyLock::new(|| Fingerprint::local(IsdAsn(0)));
        *PLAIN_IP
    }

    /// A hash of the address, as an IP peer has no certificate. The hashed text cannot be that of a
    /// certificate.
    fn key(&self) -> [u8; 32] {
        Sha256::digest(format!("hawser IP peer {}", self.peer)).into()
    }

    fn rtt(&self) -> Duration {
        self.stream.rtt()
    }

    fn close(&self, _code: CloseCode, text: &str) {
        if self.closed.set(Closed::plain(text)).is_ok() {
            self.stream.close();
        }
    }

    fn close_reason(&self) -> Option<Closed> {
        self.closed.get().cloned()
    }
}
