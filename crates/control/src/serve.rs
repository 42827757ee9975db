//! The sockets of a control service.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use connectrpc::{CompressionRegistry, ConnectRpcService, Router, Server};
use hawser_kernel::rpc::{self, Lines, SocketFile};
use hawser_topology::IsdAsn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::daemon::Daemon;
use crate::endhost_api;
use crate::live::{Reply, Request, Status};
use crate::lookup::Lookup;
use crate::shared::Shared;
use crate::trust::Material;

/// Why a control service cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A TCP address cannot be taken.
    #[error("cannot serve {what} on {address}: {source}")]
    Address {
        /// What would be served there.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The live socket cannot be taken.
    #[error("cannot listen on {socket}: {source}", socket = socket.display())]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another control service of the same AS runs.
    #[error("a control service runs already on {socket}: stop it first", socket = socket.display())]
    Runs {
        /// Its live socket.
        socket: PathBuf,
    },
    /// A server ended by itself.
    #[error("a server of the control service failed: {0}")]
    Server(String),
}

/// Time that open requests have to end when the service stops.
const GRACE: Duration = Duration::from_secs(1);

/// A control service that has its addresses and does not serve yet.
pub struct Bound {
    shared: Shared,
    daemon: TcpListener,
    services: Vec<TcpListener>,
    live: UnixListener,
    status: Status,
    /// Removed when this is dropped.
    socket: SocketFile,
}

impl Bound {
    pub(crate) async fn new(
        shared: Shared,
        isd_as: IsdAsn,
        daemon: SocketAddr,
        services: &[SocketAddr],
        socket: PathBuf,
    ) -> Result<Self, RunError> {
        let (daemon, daemon_at) = listen("the daemon API", daemon).await?;
        let mut listeners = Vec::new();
        let mut control = Vec::new();
        for &service in services {
            let (listener, at) = listen("segment lookups", service).await?;
            listeners.push(listener);
            control.push(at);
        }
        let listen = || {
            let (live, file) = rpc::listen(&socket)?;
            Ok((UnixListener::from_std(live)?, file))
        };
        let (live, file) = listen().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => RunError::Runs {
                socket: socket.clone(),
            },
            _ => RunError::Socket {
                socket: socket.clone(),
                source,
            },
        })?;
        Ok(Self {
            shared,
            daemon,
            services: listeners,
            live,
            status: Status {
                isd_as,
                daemon: daemon_at,
                control,
                down: Vec::new(),
            },
            socket: file,
        })
    }

    /// Where the daemon API is served.
    pub fn daemon_address(&self) -> SocketAddr {
        self.status.daemon
    }

    /// Where segment lookups are served.
    pub fn service_addresses(&self) -> &[SocketAddr] {
        &self.status.control
    }

    /// Serves until `shutdown` is ready or a request to stop comes.
    ///
    /// # Errors
    /// When a server fails.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let Self {
            shared,
            daemon,
            services,
            live,
            status,
            socket,
        } = self;
        let (stop, stopped) = watch::channel(false);
        let mut servers = JoinSet::new();
        let router = Router::new().add_service(Arc::new(Daemon(shared.clone())));
        servers.spawn(serve(daemon, router, stopped.clone()));
        for service in services {
            let router = Router::new()
                .add_service(Arc::new(Lookup(shared.clone())))
                .add_service(Arc::new(Material(shared.clone())));
            let router = endhost_api::add(router, &shared);
            servers.spawn(serve(service, router, stopped.clone()));
        }
        let (end, mut ended) = mpsc::channel(1);
        let live = serve_live(live, shared, status, end);
        let result = tokio::select! {
            () = shutdown => Ok(()),
            _ = ended.recv() => Ok(()),
            never = live => never,
            Some(joined) = servers.join_next() => Err(RunError::Server(match joined {
                Ok(Ok(())) => "it ended by itself".to_owned(),
                Ok(Err(reason)) => reason,
                Err(panic) => panic.to_string(),
            })),
        };
        drop(socket);
        // Servers end when they are told to, or when the sender is gone.
        let _ = stop.send(true);
        let rest = async { while servers.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, rest).await.is_err() {
            tracing::debug!("a request was cut short");
        }
        result
    }
}

async fn listen(
    what: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), RunError> {
    let failed = |source| RunError::Address {
        what,
        address,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    Ok((listener, at))
}

async fn serve(
    listener: TcpListener,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), String> {
    // Answers are a few KiB and cross no network: compressing them would only cost time and memory.
    let service = ConnectRpcService::new(router).with_compression(CompressionRegistry::new());
    Server::from_listener(listener)
        .with_http2_adaptive_window(false)
        .serve_with_service_and_shutdown(service, async move {
            let _ = stopped.wait_for(|&stop| stop).await;
        })
        .await
        .map_err(|e| e.to_string())
}

/// Answers on the live socket; tells `end` when asked to stop.
async fn serve_live(
    listener: UnixListener,
    shared: Shared,
    status: Status,
    end: mpsc::Sender<()>,
) -> ! {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(reason) => {
                // Out of file descriptors, most likely: wait for some.
                tracing::warn!("cannot accept on the live socket: {reason}");
                tokio::time::sleep(GRACE).await;
                continue;
            }
        };
        let (shared, status, end) = (shared.clone(), status.clone(), end.clone());
        tokio::spawn(async move {
            match converse(stream, &shared, status).await {
                Ok(true) => {
                    let _ = end.send(()).await;
                }
                Ok(false) => {}
                Err(reason) => tracing::debug!("live socket: {reason}"),
            }
        });
    }
}

/// Answers the requests of one connection. Returns whether to stop.
async fn converse(mut stream: UnixStream, shared: &Shared, status: Status) -> io::Result<bool> {
    let mut lines = Lines::default();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).await?;
        lines.push(&chunk[..read]);
        while let Some(line) = lines.next()? {
            let mut stop = false;
            let answer = |request| {
                stop = matches!(request, Request::Stop);
                answer(request, shared, &status)
            };
            let reply = rpc::answer(&line, answer, |message| Reply::Error { message })?;
            stream.write_all(&reply).await?;
            if stop {
                return Ok(true);
            }
        }
        if read == 0 {
            return Ok(false);
        }
    }
}

fn answer(request: Request, shared: &Shared, status: &Status) -> Reply {
    match request {
        Request::SetLink { a, up, shape } => match shared.set_link(a, up, shape) {
            true => Reply::Done,
            false => Reply::Error {
                message: format!("the network has no interface {}#{}", a.0, a.1),
            },
        },
        Request::Status => match shared.lock() {
            Ok(plane) => Reply::Status(Status {
                down: plane
                    .graph
                    .down()
                    .map(|link| (link.a.isd_as, link.a.id))
                    .collect(),
                ..status.clone()
            }),
            Err(error) => Reply::Error {
                message: error.to_string(),
            },
        },
        Request::Stop => Reply::Done,
    }
}

#[cfg(test)]
mod tests;
