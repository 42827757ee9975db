//! The sockets of a control plane.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use hawser_http::Listener;
use hawser_kernel::rpc::{self, Lines, SocketFile};
use hawser_rpc::serve;
use hawser_topology::{AsDir, IsdAsn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::error::{ControlError, LookupError};
use crate::live::{Reply, Request, Status};
use crate::segment::{MAX_LIFETIME, MIN_LIFETIME};
use crate::shared::{Methods, Shared};
use crate::{bootstrap, control_service, daemon, endhost_api, source};

/// Time for open requests to complete when the service stops.
const GRACE: Duration = Duration::from_secs(1);

/// The default address of the daemon in SCION programs.
const DAEMON_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 30255));

/// Default lifetime of segments: 64 units of a hop field's `ExpTime`, as in scionproto.
const LIFETIME: Duration = Duration::from_secs(6 * 3600);

/// The control service and the daemon of an AS, with bound sockets but not serving yet.
pub struct Control {
    shared: Shared,
    /// The listeners of the daemon API.
    daemons: Vec<TcpListener>,
    services: Vec<TcpListener>,
    pub(crate) bootstrap: Vec<Listener>,
    dir: AsDir,
    live: UnixListener,
    pub(crate) status: Status,
    /// The AS and the addresses of its control services in `topology.json`.
    fixed: Fixed,
    /// Removes the live socket when dropped.
    socket: SocketFile,
}

/// What of `topology.json` cannot change while a control service runs.
type Fixed = (IsdAsn, Vec<SocketAddr>);

fn fixed(dir: &AsDir) -> Result<Fixed, ControlError> {
    let topology = dir.topology()?;
    let services = topology.control_service.into_values().collect();
    Ok((topology.isd_as, services))
}

/// Has a [`Control`] that runs read its files again.
#[derive(Clone)]
pub struct Reloader {
    shared: Shared,
    dir: AsDir,
    fixed: Fixed,
}

impl Reloader {
    /// Reads the files again: requests from then on are answered from them.
    ///
    /// # Errors
    /// When they cannot be used, or `topology.json` has another AS or other addresses of its control
    /// services, which takes a restart. Then nothing has changed.
    pub async fn reload(&self) -> Result<(), ControlError> {
        if fixed(&self.dir)? != self.fixed {
            return Err(ControlError::Restart(self.dir.path().join("topology.json")));
        }
        self.shared.reload().await
    }
}

impl Control {
    /// Opens the control plane of the AS whose folder is `dir`, inside its lab's folder. Binds
    /// 127.0.0.1:30255 for the daemon API, the addresses in `topology.json` for the control
    /// service, and the live socket.
    ///
    /// Segments expire after `lifetime`, in whole seconds; the default is 6 hours. They are renewed
    /// after half of it, so the paths in an answer are valid for at least the other half.
    ///
    /// Reads only `topology.json`. The first request that needs the other files of the lab reads
    /// them, and fails if that is not possible, so the cost of starting does not grow with the
    /// network.
    ///
    /// # Errors
    /// When `topology.json` is missing or not valid, `dir` has no parent folder, `lifetime` is
    /// shorter than 2 s or longer than 24 h, or an address cannot be bound.
    pub async fn bind(dir: &AsDir, lifetime: Option<Duration>) -> Result<Self, ControlError> {
        let services = dir.topology()?.control_service.into_values().collect();
        Self::bind_at(dir, lifetime, DAEMON_ADDRESS, services).await
    }

    /// Like [`Self::bind`] for an AS that knows only its own keys: its segments are those that the
    /// [`Publication`] in the file `segments` has, and that the TRCs of the AS verify. The file may
    /// be replaced at any time, and need not exist yet; until it does, requests fail.
    ///
    /// [`Publication`]: crate::Publication
    ///
    /// # Errors
    /// When `topology.json` is missing or not valid, or an address cannot be bound.
    pub async fn bind_published(dir: &AsDir, segments: &Path) -> Result<Self, ControlError> {
        let services = dir.topology()?.control_service.into_values().collect();
        let shared = Shared::published(dir.clone(), segments.to_owned());
        Self::open(dir, shared, DAEMON_ADDRESS, services).await
    }

    /// Like [`Self::bind`], on other addresses; with port 0 the system chooses a port.
    pub(crate) async fn bind_at(
        dir: &AsDir,
        lifetime: Option<Duration>,
        daemon: SocketAddr,
        services: Vec<SocketAddr>,
    ) -> Result<Self, ControlError> {
        source::lab_of(dir)?;
        let lifetime = lifetime.unwrap_or(LIFETIME);
        if !(MIN_LIFETIME..=MAX_LIFETIME).contains(&lifetime) {
            return Err(ControlError::Lifetime(lifetime));
        }
        let shared = Shared::new(dir.clone(), lifetime);
        Self::open(dir, shared, daemon, services).await
    }

    pub(crate) async fn open(
        dir: &AsDir,
        shared: Shared,
        daemon: SocketAddr,
        services: Vec<SocketAddr>,
    ) -> Result<Self, ControlError> {
        let fixed = fixed(dir)?;
        let (daemon, daemon_at) = listen("the daemon API", daemon).await?;
        let mut listeners = Vec::new();
        for service in services {
            listeners.push(listen("segment lookups", service).await?);
        }
        let (services, control) = listeners.into_iter().unzip();
        let socket = dir.control_socket();
        let listen = || {
            let (live, file) = rpc::listen(&socket)?;
            Ok((UnixListener::from_std(live)?, file))
        };
        let (live, file) = listen().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ControlError::Runs(socket.clone()),
            _ => ControlError::Socket {
                socket: socket.clone(),
                source,
            },
        })?;
        Ok(Self {
            shared,
            daemons: vec![daemon],
            services,
            bootstrap: Vec::new(),
            dir: dir.clone(),
            live,
            status: Status {
                isd_as: fixed.0,
                daemon: daemon_at,
                control,
                bootstrap: Vec::new(),
                down: Vec::new(),
            },
            fixed,
            socket: file,
        })
    }

    /// Serves the daemon API at `address` too, for hosts of the AS that are not this one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn with_daemon_at(mut self, address: SocketAddr) -> Result<Self, ControlError> {
        let (daemon, _) = listen("the daemon API", address).await?;
        self.daemons.push(daemon);
        Ok(self)
    }

    /// What has this read its files again while it runs.
    pub fn reloader(&self) -> Reloader {
        Reloader {
            shared: self.shared.clone(),
            dir: self.dir.clone(),
            fixed: self.fixed.clone(),
        }
    }

    /// Serves until `shutdown` completes or [`Request::Stop`] arrives.
    ///
    /// # Errors
    /// When a server fails.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ControlError> {
        let reloader = self.reloader();
        let shared = self.shared;
        let (stop, stopped) = watch::channel(false);
        let mut servers = JoinSet::new();
        for daemon in self.daemons {
            let methods = daemon::add(Methods::new(&shared));
            servers.spawn(serve(daemon, methods.router, stopped.clone()));
        }
        for service in self.services {
            let methods = endhost_api::add(control_service::add(Methods::new(&shared)));
            servers.spawn(serve(service, methods.router, stopped.clone()));
        }
        let bootstrap = bootstrap::router(self.dir);
        for listener in self.bootstrap {
            let (served, mut stopped) = (listener.serve(bootstrap.clone()), stopped.clone());
            let ended = async move {
                let _ = stopped.wait_for(|&stop| stop).await;
            };
            servers.spawn(async move {
                tokio::select! {
                    () = served => {}
                    () = ended => {}
                }
            });
        }
        let (end, mut ended) = mpsc::channel(1);
        let live = serve_live(self.live, reloader, self.status, end);
        let result = tokio::select! {
            () = shutdown => Ok(()),
            _ = ended.recv() => Ok(()),
            never = live => never,
            Some(joined) = servers.join_next() => Err(ControlError::Server(match joined {
                Ok(()) => "it ended by itself".to_owned(),
                Err(panic) => panic.to_string(),
            })),
        };
        drop(self.socket);
        // Servers end when this is sent, or when the sender is dropped.
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
) -> Result<(TcpListener, SocketAddr), ControlError> {
    let failed = |source| ControlError::Address {
        what,
        address,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    Ok((listener, at))
}

/// Answers requests on the live socket; notifies `end` on a request to stop.
async fn serve_live(
    listener: UnixListener,
    reloader: Reloader,
    status: Status,
    end: mpsc::Sender<()>,
) -> ! {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(reason) => {
                // The likely cause is a lack of file descriptors: wait for some to be closed.
                tracing::warn!("cannot accept on the live socket: {reason}");
                tokio::time::sleep(GRACE).await;
                continue;
            }
        };
        let (reloader, status, end) = (reloader.clone(), status.clone(), end.clone());
        tokio::spawn(async move {
            match converse(stream, &reloader, status).await {
                Ok(true) => {
                    let _ = end.send(()).await;
                }
                Ok(false) => {}
                Err(reason) => tracing::debug!("live socket: {reason}"),
            }
        });
    }
}

/// Answers the requests of one connection. Returns whether the service must stop.
async fn converse(mut stream: UnixStream, reloader: &Reloader, status: Status) -> io::Result<bool> {
    let mut lines = Lines::default();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).await?;
        lines.push(&chunk[..read]);
        while let Some(line) = lines.next()? {
            let request = rpc::request(&line);
            let stop = matches!(request, Ok(Request::Stop));
            let reply = match request {
                Ok(request) => answer(request, reloader, &status).await,
                Err(message) => Reply::Error { message },
            };
            stream.write_all(&rpc::line(&reply)?).await?;
            if stop {
                return Ok(true);
            }
        }
        if read == 0 {
            return Ok(false);
        }
    }
}

async fn answer(request: Request, reloader: &Reloader, status: &Status) -> Reply {
    let shared = &reloader.shared;
    let answer = match request {
        Request::SetLink { a, up, shape } => match shared.set_link(a, up, shape).await {
            true => Ok(Reply::Done),
            false => Err(format!(
                "the network has no interface {}#{} whose segments are made here",
                a.0, a.1
            )),
        },
        Request::Reload => match reloader.reload().await {
            Ok(()) => Ok(Reply::Done),
            Err(error) => Err(error.to_string()),
        },
        Request::Links { folder } => match shared.read_links(folder).await {
            Ok(()) => Ok(Reply::Done),
            Err(error) => Err(error.to_string()),
        },
        Request::Stop => Ok(Reply::Done),
        Request::Status => {
            let status = status.clone();
            let read = shared.with(move |plane| {
                let down = plane.beacons.graph.down();
                Ok(Reply::Status(Status {
                    down: down.map(|link| (link.a.isd_as, link.a.id)).collect(),
                    ..status
                }))
            });
            read.await.map_err(|error: LookupError| error.to_string())
        }
    };
    answer.unwrap_or_else(|message| Reply::Error { message })
}

#[cfg(test)]
mod tests;
