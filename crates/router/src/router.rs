//! The router process: sockets around the forwarding step.

use crate::{
    engine::Engine,
    forward::{Face, Forwarder},
    io::{Interest, Poller, Signals, open, sharpen_timers},
    live::{Reply, Request},
    pace::{NAP, Pace},
    port::Port,
    server::Server,
};
use hawser_topology::{AsDir, AsDirError, AsTopology, BorderRouter, LinkState};
use std::{
    collections::BTreeMap,
    io::ErrorKind,
    net::SocketAddr,
    os::fd::RawFd,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// A router that cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The AS's folder is not usable.
    #[error(transparent)]
    Folder(#[from] AsDirError),
    /// `topology.json` has no border router at all.
    #[error("topology.json in {folder} has no border router: add one", folder = folder.display())]
    NoRouter {
        /// The AS's folder.
        folder: PathBuf,
    },
    /// The AS has several border routers, and none was named.
    #[error("topology.json in {folder} has several border routers: say which one of {}", names.join(", "), folder = folder.display())]
    Unnamed {
        /// The AS's folder.
        folder: PathBuf,
        /// Their names.
        names: Vec<String>,
    },
    /// The AS has no border router of that name.
    #[error("topology.json in {folder} has no border router {name}: it has {}", names.join(", "), folder = folder.display())]
    UnknownRouter {
        /// The AS's folder.
        folder: PathBuf,
        /// The name asked for.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// An interface numbered 0, which means the inside.
    #[error("topology.json in {folder} has an interface 0: interface numbers begin at 1", folder = folder.display())]
    InterfaceZero {
        /// The AS's folder.
        folder: PathBuf,
    },
    /// `links.json` names an interface that `topology.json` does not have.
    #[error("links.json in {folder} has interface {id}, which topology.json does not have: remove it there or add it here", folder = folder.display())]
    UnknownLink {
        /// The AS's folder.
        folder: PathBuf,
        /// The interface.
        id: u16,
    },
    /// A socket of an interface cannot be opened.
    #[error("cannot open interface {id} at {local}: {source}")]
    Interface {
        /// The interface; 0 is the inside.
        id: u16,
        /// Its underlay address.
        local: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another router serves this folder.
    #[error("a router runs on {socket} already: stop it first", socket = socket.display())]
    Running {
        /// The socket it answers at.
        socket: PathBuf,
    },
    /// The socket for live control cannot be opened.
    #[error("cannot listen at {socket}: {source}", socket = socket.display())]
    Control {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refused what a router cannot do without.
    #[error("cannot wait for packets: {0}")]
    Wait(std::io::Error),
}

/// After this long without a packet the router gives memory back, and from
/// then on does nothing until the next one.
const REST: Duration = Duration::from_secs(1);

/// The border router of one AS.
pub struct Router {
    engine: Engine,
    server: Server,
}

impl Router {
    /// Opens the border router `name` of the AS in `dir`: `topology.json`, the
    /// hop-field key, and `links.json`, without which every link is up and as
    /// fast as the machine. An AS's only router need not be named. All sockets
    /// are bound when it returns.
    ///
    /// # Errors
    /// When the folder is not usable, has no such border router, or an address
    /// is taken.
    pub fn open(dir: &AsDir, name: Option<&str>) -> Result<Router, RouterError> {
        Router::open_with_seed(dir, name, fastrand::u64(..))
    }

    /// As [`open`](Router::open), with jitter and loss drawn from `seed`.
    ///
    /// # Errors
    /// As [`open`](Router::open).
    pub fn open_with_seed(
        dir: &AsDir,
        name: Option<&str>,
        seed: u64,
    ) -> Result<Router, RouterError> {
        let topology = dir.topology()?;
        let folder = dir.path().to_owned();
        let (name, router) = choose(&topology, &folder, name)?;
        if router.interfaces.contains_key(&0) {
            return Err(RouterError::InterfaceZero { folder });
        }
        let links = links(dir)?;
        let routers = topology.border_routers.values();
        if let Some(id) = links
            .keys()
            .find(|id| !routers.clone().any(|r| r.interfaces.contains_key(id)))
        {
            return Err(RouterError::UnknownLink { folder, id: *id });
        }

        let host = router.internal_addr.ip();
        let mut forwarder = Forwarder::new(topology.isd_as, &dir.hop_key()?, host)
            .with_dispatched_ports(topology.dispatched_ports)
            .with_control_service(topology.control_service.values().next().copied());
        for (id, interface) in &router.interfaces {
            let face = Face {
                link_to: interface.link_to,
                mtu: interface.mtu,
                up: true,
            };
            forwarder = forwarder.with_interface(*id, face);
        }

        // The folder's socket first: it tells a second router of this AS, and
        // where the first one is, better than a taken address would.
        let socket = match topology.border_routers.len() {
            1 => dir.router_socket(),
            _ => dir.router_socket_of(name),
        };
        let server = Server::listen(&socket).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => RouterError::Running { socket },
            _ => RouterError::Control { socket, source },
        })?;
        let mut engine = Engine::new(forwarder, ports(router, seed)?);
        for (id, state) in &links {
            // An interface of another router of the AS is none of the engine's.
            engine.set_link(*id, state);
        }
        Ok(Router { engine, server })
    }

    /// Forwards packets until SIGTERM, SIGINT or [`Request::Stop`]. While it
    /// runs, the two signals do not reach this thread otherwise.
    ///
    /// # Errors
    /// When the system refuses to wait for packets at all.
    pub fn run(mut self) -> Result<(), RouterError> {
        let signals = Signals::hold().map_err(RouterError::Wait)?;
        sharpen_timers().map_err(RouterError::Wait)?;
        let mut wait = Waiting::new(&signals, &self.engine);
        let mut pace = Pace::default();
        let mut since = Instant::now();
        let mut has_worked = false;
        loop {
            wait.watch(self.server.descriptors());
            let due = self.engine.next_due();
            let until_due = due.map(|due| due.saturating_duration_since(since));
            let timeout = if pace.naps() {
                std::thread::sleep(until_due.map_or(NAP, |time| time.min(NAP)));
                Some(Duration::ZERO)
            } else {
                until_due.or(has_worked.then_some(REST))
            };
            wait.poller.wait(timeout).map_err(RouterError::Wait)?;
            let now = Instant::now();

            if wait.signalled() {
                tracing::info!("ended by a signal");
                return Ok(());
            }
            if wait.called() && self.serve() {
                tracing::info!("ended on request");
                return Ok(());
            }
            let packets = self.engine.receive(|port| wait.is_ready(port), now);
            self.engine.send_due(now);
            pace.note(packets, now - since);
            has_worked |= packets > 0;
            if packets == 0 && due.is_none() && now - since >= REST {
                self.engine.slim();
                has_worked = false;
            }
            since = Instant::now();
        }
    }

    /// Answers callers; says whether to end.
    fn serve(&mut self) -> bool {
        let mut end = false;
        let engine = &mut self.engine;
        self.server.serve(|request| match request {
            Request::Counters => Reply::Counters(engine.counters()),
            Request::SetLink { id, state } if engine.set_link(id, &state) => Reply::Done,
            Request::SetLink { id, .. } => Reply::Error {
                message: format!("there is no interface {id}"),
            },
            Request::Stop => {
                end = true;
                Reply::Done
            }
        });
        end
    }
}

/// What the router waits for: signals, its ports, then callers.
struct Waiting {
    poller: Poller,
    ports: usize,
    callers: usize,
}

impl Waiting {
    fn new(signals: &Signals, engine: &Engine) -> Waiting {
        let mut poller = Poller::default();
        poller.add(signals.descriptor(), Interest::Read);
        let mut ports = 0;
        for descriptor in engine.descriptors() {
            poller.add(descriptor, Interest::Read);
            ports += 1;
        }
        Waiting {
            poller,
            ports,
            callers: 0,
        }
    }

    fn watch(&mut self, callers: impl Iterator<Item = (RawFd, Interest)>) {
        self.poller.truncate(1 + self.ports);
        self.callers = 0;
        for (descriptor, interest) in callers {
            self.poller.add(descriptor, interest);
            self.callers += 1;
        }
    }

    fn signalled(&self) -> bool {
        self.poller.is_ready(0)
    }

    fn is_ready(&self, port: usize) -> bool {
        self.poller.is_ready(1 + port)
    }

    fn called(&self) -> bool {
        (0..self.callers).any(|caller| self.poller.is_ready(1 + self.ports + caller))
    }
}

/// The router asked for, and its name.
fn choose<'a>(
    topology: &'a AsTopology,
    folder: &Path,
    name: Option<&str>,
) -> Result<(&'a str, &'a BorderRouter), RouterError> {
    let mut routers = topology.border_routers.iter();
    let names = || topology.border_routers.keys().cloned().collect();
    let found = match (name, routers.next(), routers.next()) {
        (_, None, _) => {
            return Err(RouterError::NoRouter {
                folder: folder.to_owned(),
            });
        }
        (None, Some(only), None) => Some(only),
        (None, ..) => {
            return Err(RouterError::Unnamed {
                folder: folder.to_owned(),
                names: names(),
            });
        }
        (Some(name), ..) => topology.border_routers.get_key_value(name),
    };
    match found {
        Some((name, router)) => Ok((name, router)),
        None => Err(RouterError::UnknownRouter {
            folder: folder.to_owned(),
            name: name.unwrap_or_default().to_owned(),
            names: names(),
        }),
    }
}

/// The links' states; an AS's folder in scionproto's layout has none.
fn links(dir: &AsDir) -> Result<BTreeMap<u16, LinkState>, AsDirError> {
    match dir.links() {
        Err(AsDirError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Ok(BTreeMap::new())
        }
        links => links,
    }
}

/// Opens the inside, then the interfaces by number.
fn ports(router: &BorderRouter, seed: u64) -> Result<Vec<Port>, RouterError> {
    let now = Instant::now();
    let mut seeds = fastrand::Rng::with_seed(seed);
    let inside = (0, router.internal_addr, None);
    let outside = router
        .interfaces
        .iter()
        .map(|(id, interface)| (*id, interface.local, Some(interface.remote)));
    std::iter::once(inside)
        .chain(outside)
        .map(|(id, local, remote)| {
            let socket = open(local, remote).map_err(|source| RouterError::Interface {
                id,
                local,
                source,
            })?;
            Ok(Port::new(id, socket, seeds.u64(..), now))
        })
        .collect()
}
