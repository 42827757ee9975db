//! An endpoint: one socket, many connections.

pub(crate) mod accept;
mod places;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hawser_endhost::lanes::{Lanes, TOKEN};
use hawser_endhost::patience::{elapse, wait};
use hawser_endhost::socket::{self, DropCounters, Socket};
use hawser_endhost::{Endhost, Headers, HeadersError, Path, ScionAddr};
use hawser_keys::{Identity, KeyError, PeerKey};
use noq_proto::{ClientConfig, ConnectionError, EndpointConfig, RandomConnectionIdGenerator};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::accept::{HANDSHAKES, Shared, server_config};
use crate::close::{CloseReason, ENDPOINT_CLOSED, NO_CODE};
use crate::congestion::Factory;
use crate::connection::Connection;
use crate::connection::inner::{self, AcceptTask};
use crate::connection_id;
use crate::driver::{self, Driver, Workers};
use crate::reset::reset_key;
use crate::tls::{SERVER_NAME, Tls};
use crate::transport::{Config, MIN_MTU, Mtu, transport};

/// How long closing waits for the last packets to leave.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Size of QUIC's receive buffers, the largest that it allows: every buffer from the kernel fits.
const MAX_PAYLOAD: u16 = 65527;

/// One socket, many connections, in and out. Cloning shares it.
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    accepted: tokio::sync::Mutex<mpsc::Receiver<Connection>>,
    task: Arc<AcceptTask>,
}

/// Why an endpoint could not be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The socket could not be bound.
    #[error(transparent)]
    Socket(#[from] socket::BindError),
    /// No key could be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The endpoint's certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// QUIC could not be started.
    #[error("cannot start QUIC at {addr}: {source}")]
    Start {
        /// The socket's address.
        addr: ScionAddr,
        /// The error.
        source: io::Error,
    },
}

/// Why a connection could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The path does not lead to the peer, or is too long.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// The peer did not answer.
    #[error("no answer from {peer} within {timeout:?}")]
    TimedOut {
        /// The peer's address.
        peer: ScionAddr,
        /// The handshake timeout.
        timeout: Duration,
    },
    /// The connection ended before it was set up.
    #[error("cannot connect to {peer}: {reason}")]
    Closed {
        /// The peer's address.
        peer: ScionAddr,
        /// Why the connection ended.
        reason: CloseReason,
    },
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

impl Endpoint {
    /// Binds a socket at `listen`, or at a free dispatched port of this host's address.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] when the socket or the endpoint's certificate cannot be made.
    pub fn bind(
        host: Endhost,
        listen: Option<SocketAddr>,
        config: Config,
    ) -> Result<Self, BindError> {
        let socket = Socket::bind_blocking(&host, listen)?;
        let identity = match &config.identity {
            Some(identity) => identity.clone(),
            None => Identity::generate()?,
        };
        let tls = Tls::new(&identity, &config.alpn)
            .map_err(|error| BindError::Certificate(error.to_string()))?;
        let addr = socket.local_addr();
        let start = |source| BindError::Start { addr, source };
        let (lanes, receiver) = Lanes::new(socket, connection_id::FORMAT);
        let mut quic_config = EndpointConfig::new(Arc::new(reset_key(&identity, &addr)));
        quic_config
            .max_udp_payload_size(MAX_PAYLOAD)
            .map_err(|error| start(io::Error::other(error)))?
            // All bits are random, unlike in noq's default ids: forged SCMP errors are recognised
            // by them.
            .cid_generator(Arc::new(|| {
                Box::new(RandomConnectionIdGenerator::new(TOKEN))
            }));
        // Replaced for every connection by a configuration with its path's MTU.
        let server = server_config(&tls, &config, Mtu::UpTo(MIN_MTU), Factory::default());
        let driver = Driver::new(lanes, quic_config, server, config.least_send_window);
        let driver = driver.map_err(start)?;
        let shared = Arc::new(Shared {
            driver: Arc::clone(&driver),
            tls,
            config,
        });
        let (sender, accepted) = mpsc::channel(accept::WAITING);
        let (begun, incoming) = mpsc::channel(HANDSHAKES);
        let workers = Workers::start(shared.config.workers, &driver).map_err(start)?;
        let (driver_of_thread, runtime) = (Arc::clone(&driver), Handle::current());
        let busy_poll = shared.config.busy_poll.clone();
        thread::Builder::new()
            .name("quic".into())
            .spawn(move || {
                let _runtime = runtime.enter();
                driver::run(driver_of_thread, receiver, workers, begun, busy_poll);
            })
            .map_err(start)?;
        let task = Arc::new_cyclic(|task| {
            let accept = accept::run(Arc::clone(&shared), task.clone(), incoming, sender);
            AcceptTask {
                driver,
                task: JoinSet::from_iter([accept]),
            }
        });
        Ok(Self(Arc::new(Inner {
            shared,
            accepted: tokio::sync::Mutex::new(accepted),
            task,
        })))
    }

    /// The address of this endpoint.
    pub fn local_addr(&self) -> ScionAddr {
        self.0.shared.driver.lanes().socket().local_addr()
    }

    /// The key this endpoint shows to peers.
    pub fn key(&self) -> PeerKey {
        self.0.shared.tls.key
    }

    /// The number of packets that arrived and were dropped before QUIC saw them, by reason.
    pub fn drops(&self) -> DropCounters {
        self.0.shared.driver.lanes().socket().drops()
    }

    /// Checks that `path` leads to `peer`.
    ///
    /// # Errors
    /// [`ConnectError::Headers`], as from [`Endpoint::connect`].
    pub fn fits(&self, peer: ScionAddr, path: &Path) -> Result<(), ConnectError> {
        self.mtu(peer, path).map(drop)
    }

    /// The largest QUIC packet to `peer` over `path`, in bytes. It is at least what QUIC needs, also
    /// where that exceeds the path's MTU.
    fn mtu(&self, peer: ScionAddr, path: &Path) -> Result<u16, ConnectError> {
        let headers = Headers::new(self.local_addr(), peer, path)?;
        Ok(headers.max_payload(path.mtu()).max(MIN_MTU))
    }

    /// Connects to `peer` over `path`, and only over it. Fresher copies of the path replace it as
    /// they are offered, well before it expires.
    ///
    /// # Errors
    /// [`ConnectError`] when the path does not fit or is down, or the peer does not answer.
    pub async fn connect(&self, peer: ScionAddr, path: Path) -> Result<Connection, ConnectError> {
        let shared = &self.0.shared;
        let mtu = self.mtu(peer, &path)?;
        let began = Instant::now();
        let lane = shared.driver.lanes().open(peer, path)?;
        let controllers = Factory::of(&lane, mtu, shared.config.congestion);
        let records = controllers.records.clone();
        let mut client = ClientConfig::new(Arc::clone(&shared.tls.client) as _);
        client.transport_config(transport(&shared.config, Mtu::Known(mtu), controllers));
        let closed = |reason| ConnectError::Closed { peer, reason };
        let begun = (shared.driver).connect(client, lane.flow().id, SERVER_NAME);
        let quic = begun
            .ok_or(ConnectError::EndpointClosed)?
            .map_err(|error| closed(CloseReason::Protocol(error)))?;
        let timeout = shared.config.handshake_timeout;
        let timed_out = ConnectError::TimedOut { peer, timeout };
        tokio::select! {
            // What is there already counts more than the end of the wait.
            biased;
            connected = poll_fn(|cx| quic.poll_connected(cx)) => {
                connected.map_err(|error| match error {
                    ConnectionError::TimedOut => timed_out,
                    error => closed(CloseReason::of(&error, shared.config.idle_timeout)),
                })?;
            }
            end = lane.ended() => return Err(closed(end.into())),
            () = elapse(timeout) => return Err(timed_out),
        }
        let (idle, task) = (shared.config.idle_timeout, Arc::clone(&self.0.task));
        let inner = inner::Inner::new(quic, lane, records, idle, task, began);
        inner.map(Connection).map_err(closed)
    }

    /// Waits for the next connection that a peer sets up; `None` once the endpoint is closed. Those that
    /// have been closed since are left out.
    ///
    /// The application should soon check the peer's identity and call [`Connection::set_known`].
    pub async fn accept(&self) -> Option<Connection> {
        let mut accepted = self.0.accepted.lock().await;
        loop {
            let connection = accepted.recv().await?;
            if connection.close_reason().is_none() {
                return Some(connection);
            }
        }
    }

    /// Closes all connections, and waits up to a second until the peers are informed.
    pub async fn close(&self) {
        let driver = &self.0.shared.driver;
        driver.close(NO_CODE, ENDPOINT_CLOSED);
        let _ = wait(CLOSE_TIMEOUT, driver.wait_draining()).await;
    }
}

#[cfg(test)]
#[path = "../../endhost/tests/hosts/toy.rs"]
pub(crate) mod toy;

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use tokio::io::AsyncReadExt;

    use super::toy::{ToyDaemon, isd_as, own_ip};
    use super::*;

    /// Longest wait for what must happen, far longer than it takes.
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread")]
    async fn connections_end_when_nothing_is_received_any_more() {
        let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
        let host = daemon.endhost().await;
        let bind = |last| {
            let listen = Some((own_ip(last), 0).into());
            Endpoint::bind(host.clone(), listen, Config::default()).unwrap()
        };
        let (client, server) = (bind(1), bind(2));
        let path = host.paths(host.local_as()).await.unwrap().remove(0);
        let again = path.clone();
        let peer = server.local_addr();
        let (there, _here) = tokio::join!(client.connect(peer, path), server.accept());
        let there = there.unwrap();
        client.0.shared.driver.abandon("this host cannot receive");
        let reason = there.closed().await;
        assert!(
            reason.to_string().ends_with("this host cannot receive"),
            "{reason}"
        );
        let refused = client.connect(peer, again).await;
        assert_eq!(refused.err(), Some(ConnectError::EndpointClosed));
        client.close().await;
    }

    /// Panics when it is woken, once.
    struct Bomb(AtomicBool);

    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            assert!(!self.0.swap(false, Ordering::SeqCst), "as this test wants");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_ends_only_the_connection_that_it_happens_in() {
        let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
        let host = daemon.endhost().await;
        let config = Config {
            workers: 1,
            ..Config::default()
        };
        let bind = |last| {
            let listen = Some((own_ip(last), 0).into());
            Endpoint::bind(host.clone(), listen, config.clone()).unwrap()
        };
        let (client, server) = (bind(1), bind(2));
        let mut pairs = Vec::new();
        for _ in 0..4 {
            let path = host.paths(host.local_as()).await.unwrap().remove(0);
            let connecting = client.connect(server.local_addr(), path);
            let (there, here) = tokio::join!(connecting, server.accept());
            pairs.push((there.unwrap(), here.unwrap()));
        }
        // Two of them are the worker's. One panics as the first packet with a stream comes.
        let (there, here) = pairs.remove(1);
        let bomb = Waker::from(Arc::new(Bomb(AtomicBool::new(true))));
        let mut closed = pin!(here.closed());
        let waits = closed.as_mut().poll(&mut Context::from_waker(&bomb));
        assert_eq!(waits, Poll::Pending);
        let (mut stream, _keep) = there.open_bi().await.unwrap();
        stream.write_all(b"now").await.unwrap();
        let others = async {
            // Far more than a worker's queue holds.
            let content = vec![7; 4 << 20];
            for (there, here) in &pairs {
                let (mut stream, _keep) = there.open_bi().await.unwrap();
                let send = async {
                    stream.write_all(&content).await.unwrap();
                    stream.finish().unwrap();
                };
                let receive = async {
                    let (_keep, mut stream) = here.accept_bi().await.unwrap();
                    let mut received = Vec::new();
                    stream.read_to_end(&mut received).await.unwrap();
                    received
                };
                assert!(tokio::join!(send, receive).1 == content);
            }
            here.closed().await
        };
        let reason = tokio::time::timeout(TEST_TIMEOUT, others).await;
        let reason = reason.expect("the other connections go on").to_string();
        assert!(reason.contains("panicked"), "{reason}");
        let closing = tokio::time::timeout(TEST_TIMEOUT, server.close());
        closing.await.expect("nothing waits for it any more");
        assert!(server.accept().await.is_none());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_thread_that_panics_ends_its_endpoint() {
        let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
        let host = daemon.endhost().await;
        let listen = Some((own_ip(1), 0).into());
        let endpoint = Endpoint::bind(host, listen, Config::default()).unwrap();
        let driver = Arc::clone(&endpoint.0.shared.driver);
        let died = thread::spawn(move || {
            let _thread = driver::workers::WorkerThread::new(driver);
            panic!("as this test wants");
        });
        assert!(died.join().is_err());
        let accepted = tokio::time::timeout(TEST_TIMEOUT, endpoint.accept()).await;
        assert!(accepted.expect("the endpoint has ended").is_none());
    }
}
