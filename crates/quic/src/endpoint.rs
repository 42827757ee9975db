//! An endpoint: one socket, many connections.

mod accept;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use hawser_endhost::socket::{self, DropCounters, Socket};
use hawser_endhost::wire::{Route, RouteError};
use hawser_endhost::{Endhost, Path, ScionAddr};
use noq::{ClientConfig, EndpointConfig, ServerConfig, TokioRuntime};
use noq_proto::RandomConnectionIdGenerator;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::config::Config;
use crate::congestion::{Congestion, Factory};
use crate::connection::{CloseReason, Connection, Parts, PeerKey, close_reason};
use crate::faults::{self, Fate, Fates};
use crate::quotes;
use crate::routes::{InUse, Routes};
use crate::socket::QuicSocket;
use crate::tls::{Identity, SERVER_NAME};
use crate::transport::{MIN_MTU, Mtu, transport};

/// How long closing waits for the last packets to leave.
const FAREWELL: Duration = Duration::from_secs(1);
/// QUIC's limit, and what a receive buffer of it holds: everything the kernel hands over in one
/// piece.
const MAX_PAYLOAD: u16 = 65527;

/// Bytes kept of what a peer sends before it is let in.
const EARLY: u64 = 16 << 10;

/// One socket, many connections, in and out. Cloning shares it.
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    accepted: tokio::sync::Mutex<mpsc::Receiver<Connection>>,
    tasks: Arc<Tasks>,
}

/// What connections in and out need.
struct Shared {
    quic: noq::Endpoint,
    socket: Arc<Socket>,
    routes: Arc<Routes>,
    fates: Arc<Fates>,
    identity: Identity,
    config: Config,
}

/// Tasks that end when nothing of the endpoint is left: neither itself nor a connection.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Vec<AbortHandle>>);

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handle = tokio::spawn(task).abort_handle();
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(handle);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let tasks = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Why an endpoint could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// There is no socket.
    #[error(transparent)]
    Socket(#[from] socket::BindError),
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// QUIC does not start.
    #[error("cannot start QUIC at {addr}: {source}")]
    Start {
        /// The socket's address.
        addr: ScionAddr,
        /// What is wrong.
        source: io::Error,
    },
}

/// Why a connection could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The path does not lead to the peer, or is too long.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The path takes no packets as large as QUIC needs.
    #[error(
        "the path to {peer} takes SCION packets of {mtu} bytes: QUIC needs {needed} ({MIN_MTU} after headers)"
    )]
    MtuTooSmall {
        /// Who was to be reached.
        peer: ScionAddr,
        /// The path's MTU, in bytes.
        mtu: u16,
        /// What QUIC needs on this path, in bytes.
        needed: usize,
    },
    /// Nobody answered.
    #[error("no answer from {peer} within {timeout:?}")]
    TimedOut {
        /// Who was to be reached.
        peer: ScionAddr,
        /// How long was waited.
        timeout: Duration,
    },
    /// The connection ended before it was set up.
    #[error("cannot connect to {peer}: {reason}")]
    Closed {
        /// Who was to be reached.
        peer: ScionAddr,
        /// Why.
        reason: CloseReason,
    },
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

impl Endpoint {
    /// Binds a socket, at a free dispatched port of this host's address unless `listen` says where.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] when the socket or the endpoint's certificate cannot be made.
    pub fn bind(
        host: Endhost,
        listen: Option<SocketAddr>,
        config: Config,
    ) -> Result<Self, BindError> {
        let socket = Arc::new(Socket::bind(&host, listen)?);
        let identity = Identity::new(&config.alpn).map_err(BindError::Certificate)?;
        let routes = Arc::new(Routes::default());
        let fates = Arc::new(Fates::new(host.clone()));
        let (faults, pending_faults) = mpsc::channel(faults::PENDING);
        let quic_socket = QuicSocket::new(Arc::clone(&socket), Arc::clone(&routes), faults);
        let start = |source| BindError::Start {
            addr: socket.local_addr(),
            source,
        };
        let mut quic_config = EndpointConfig::default();
        quic_config
            .max_udp_payload_size(MAX_PAYLOAD)
            .map_err(|error| start(io::Error::other(error)))?
            // noq's own ids are part random only, and SCMP errors are told from invented ones by
            // them.
            .cid_generator(Arc::new(|| {
                Box::new(RandomConnectionIdGenerator::new(quotes::ID))
            }));
        // Replaced for every connection by one that knows its path's MTU.
        let server = server_config(&identity, &config, Mtu::UpTo(MIN_MTU), Factory::default());
        let quic = noq::Endpoint::new_with_abstract_socket(
            quic_config,
            Some(server),
            Box::new(quic_socket),
            Arc::new(TokioRuntime),
        )
        .map_err(start)?;
        let shared = Arc::new(Shared {
            quic,
            socket: Arc::clone(&socket),
            routes,
            fates: Arc::clone(&fates),
            identity,
            config,
        });
        let tasks = Arc::new(Tasks::default());
        let watch_over = faults::watch_over(fates, host.outages(), pending_faults);
        tasks.spawn(watch_over);
        let (sender, accepted) = mpsc::channel(accept::WAITING);
        let weak = Arc::downgrade(&tasks);
        tasks.spawn(accept::run(Arc::clone(&shared), weak, sender));
        Ok(Self(Arc::new(Inner {
            shared,
            accepted: tokio::sync::Mutex::new(accepted),
            tasks,
        })))
    }

    /// Where peers reach this endpoint.
    pub fn local_addr(&self) -> ScionAddr {
        self.0.shared.socket.local_addr()
    }

    /// The key this endpoint shows to peers.
    pub fn key(&self) -> PeerKey {
        self.0.shared.identity.key
    }

    /// How many packets that arrived were dropped before QUIC saw them, by reason.
    pub fn drops(&self) -> DropCounters {
        self.0.shared.socket.drops()
    }

    /// Whether a connection to `peer` over `path` can be tried at all: whether the path leads there
    /// and takes packets as large as QUIC needs, 1200 bytes after all headers (RFC 9000, 14.1).
    ///
    /// # Errors
    /// [`ConnectError::Route`] and [`ConnectError::MtuTooSmall`], as [`Endpoint::connect`] would.
    pub fn fits(&self, peer: ScionAddr, path: &Path) -> Result<(), ConnectError> {
        self.route(peer, path).map(drop)
    }

    /// The way to `peer` over `path`, and what it leaves to QUIC of each packet.
    fn route(&self, peer: ScionAddr, path: &Path) -> Result<(Route, u16), ConnectError> {
        let route = Route::new(self.local_addr(), peer, path)?;
        match payload(path.mtu(), &route) {
            Some(mtu) => Ok((route, mtu)),
            None => Err(ConnectError::MtuTooSmall {
                peer,
                mtu: path.mtu(),
                needed: route.overhead() + usize::from(MIN_MTU),
            }),
        }
    }

    /// Connects to `peer` over `path`, and only over it. Fresher copies of the path take its place
    /// as they are offered, well before it expires.
    ///
    /// # Errors
    /// [`ConnectError`] when the path does not fit, nobody answers, or the path is down.
    pub async fn connect(&self, peer: ScionAddr, path: Path) -> Result<Connection, ConnectError> {
        let shared = &self.0.shared;
        let local = self.local_addr();
        let (route, quic_mtu) = self.route(peer, &path)?;
        let began = Instant::now();
        let ids: Vec<u16> = path.info().interfaces.iter().map(|one| one.id).collect();
        let congestion = Congestion::of(&path, quic_mtu);
        let way = shared.routes.take(route, &ids, path.expiry());
        let offers = shared.socket.host().watch(peer.isd_as);
        let fate = Arc::new(Fate::new(Arc::clone(way.way()), Some(path)));
        fate.follow(local, offers);
        shared.fates.add(&fate);
        let mut client = ClientConfig::new(Arc::clone(&shared.identity.client) as _);
        let congestion = fate.controllers(congestion);
        client.transport_config(transport(&shared.config, Mtu::Known(quic_mtu), congestion));
        let closed = |reason| ConnectError::Closed { peer, reason };
        let connecting = shared
            .quic
            .connect_with(client, way.way().addr(), SERVER_NAME)
            .map_err(|error| match error {
                noq::ConnectError::EndpointStopping => ConnectError::EndpointClosed,
                error => closed(CloseReason::Protocol(error.to_string())),
            })?;
        let timeout = shared.config.handshake_timeout;
        let timed_out = ConnectError::TimedOut { peer, timeout };
        let quic = tokio::select! {
            quic = connecting => quic.map_err(|error| match error {
                noq::ConnectionError::TimedOut => timed_out,
                error => closed(close_reason(&error, shared.config.idle_timeout)),
            })?,
            reason = fate.ended() => return Err(closed(reason)),
            () = tokio::time::sleep(timeout) => return Err(timed_out),
        };
        let tasks = Arc::clone(&self.0.tasks);
        shared
            .connection(quic, fate, way, tasks, began)
            .map_err(closed)
    }

    /// Waits for the next connection a peer has set up; `None` once the endpoint is closed.
    pub async fn accept(&self) -> Option<Connection> {
        self.0.accepted.lock().await.recv().await
    }

    /// Closes all connections, and waits until peers were told.
    pub async fn close(&self) {
        let quic = &self.0.shared.quic;
        quic.close(0u32.into(), b"the endpoint was closed");
        // What does not leave within this time will not leave at all.
        let _ = tokio::time::timeout(FAREWELL, quic.wait_all_draining()).await;
    }
}

impl Shared {
    /// A connection that QUIC has set up since `began`.
    fn connection(
        &self,
        quic: noq::Connection,
        fate: Arc<Fate>,
        way: InUse,
        tasks: Arc<Tasks>,
        began: Instant,
    ) -> Result<Connection, CloseReason> {
        // Both sides have answered each other.
        if let Some(path) = fate.path() {
            let interfaces = &path.info().interfaces;
            self.socket.host().report_alive(interfaces, began);
        }
        Connection::new(Parts {
            quic,
            fate,
            way,
            local: self.socket.local_addr(),
            idle_timeout: self.config.idle_timeout,
            tasks,
        })
    }
}

/// What a path of `mtu` leaves to QUIC, if that is enough.
fn payload(mtu: u16, route: &Route) -> Option<u16> {
    let payload = usize::from(mtu).checked_sub(route.overhead())?;
    u16::try_from(payload)
        .ok()
        .filter(|payload| *payload >= MIN_MTU)
}

fn server_config(
    identity: &Identity,
    config: &Config,
    mtu: Mtu,
    congestion: Factory,
) -> ServerConfig {
    let mut server = ServerConfig::with_crypto(Arc::clone(&identity.server) as _);
    server.transport_config(transport(config, mtu, congestion));
    // A connection stays on its path.
    server.migration(false);
    // What peers send before they are let in is theirs to send again.
    server
        .max_incoming(accept::HANDSHAKES * 2)
        .incoming_buffer_size(EARLY)
        .incoming_buffer_size_total(EARLY * accept::HANDSHAKES as u64);
    server
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local", &self.local_addr())
            .finish_non_exhaustive()
    }
}
