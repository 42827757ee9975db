//! The router process: sockets around the forwarding step.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hawser_topology::{
    AsDir, AsDirError, AsTopology, Bfd, BorderRouter, Interface, IsdAsn, LinkState,
};

use crate::bfd::{Frame, Session};
use crate::engine::{Engine, Watched, WatchedPlace};
use crate::forwarder::Forwarder;
use crate::interface::ExternalInterface;
use crate::io::{Interest, Poller, Signals, open, sharpen_timers};
use crate::live::{Reply, Request};
use crate::pace::{NAP, Pace};
use crate::port::Port;
use crate::server::Server;
use crate::services::Service;

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
    /// An interface of which only other services of the AS can make use.
    #[error("topology.json in {folder} has no underlay addresses for interface {id}: add `local` and `remote`", folder = folder.display())]
    NoUnderlay {
        /// The AS's folder.
        folder: PathBuf,
        /// The interface.
        id: u16,
    },
    /// An AS with more routers than can be told apart.
    #[error("topology.json in {folder} has more than 256 border routers", folder = folder.display())]
    TooManyRouters {
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

/// After this long without a packet the router gives memory back, and from then on does nothing
/// until the next one.
const REST: Duration = Duration::from_secs(1);

/// A border router of an AS.
pub struct Router {
    engine: Engine,
    server: Server,
}

impl Router {
    /// Opens the border router `name` of the AS in `dir`: `topology.json`, the hop-field key, and
    /// `links.json`, without which every link is up and as fast as the machine. An AS's only router
    /// need not be named. All sockets are bound when it returns.
    ///
    /// # Errors
    /// When the folder is not usable, has no such border router, or an address is taken.
    pub fn open(dir: &AsDir, name: Option<&str>) -> Result<Self, RouterError> {
        Self::open_with_seed(dir, name, fastrand::u64(..))
    }

    /// As [`open`](Router::open), with jitter and loss drawn from `seed`.
    ///
    /// # Errors
    /// As [`open`](Router::open).
    pub fn open_with_seed(dir: &AsDir, name: Option<&str>, seed: u64) -> Result<Self, RouterError> {
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

        let mut unreachable = router.interfaces.iter();
        if let Some((id, _)) = unreachable.find(|(_, interface)| interface.remote.port() == 0) {
            return Err(RouterError::NoUnderlay { folder, id: *id });
        }
        let siblings: Vec<_> = topology
            .border_routers
            .iter()
            .filter(|(other, _)| *other != name)
            .collect();
        if siblings.len() > 256 {
            return Err(RouterError::TooManyRouters { folder });
        }

        let host = router.internal_addr.ip();
        let mut forwarder = Forwarder::new(topology.isd_as, &dir.hop_key()?, host)
            .with_dispatched_ports(topology.dispatched_ports)
            .with_service(
                Service::Discovery,
                topology.discovery_service.values().copied(),
            )
            .with_service(Service::Control, topology.control_service.values().copied());
        for (id, interface) in &router.interfaces {
            forwarder = forwarder.with_interface(*id, external(interface));
        }
        for (_, sibling) in &siblings {
            let interfaces = sibling.interfaces.iter();
            forwarder = forwarder.with_sibling(
                sibling.internal_addr,
                interfaces.map(|(id, interface)| (*id, external(interface))),
            );
        }

        // The folder's socket first: it tells a second router of this AS, and where the first one
        // is, better than a taken address would.
        let socket = match topology.border_routers.len() {
            1 => dir.router_socket(),
            _ => dir.router_socket_of(name),
        };
        let server = Server::listen(&socket).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => RouterError::Running { socket },
            _ => RouterError::Control { socket, source },
        })?;
        let ports = ports(router, seed)?;
        let watched = watched(topology.isd_as, router, &siblings, &ports);
        let mut engine = Engine::new(forwarder, ports, watched);
        for (id, state) in &links {
            // An interface of another router of the AS is none of the engine's.
            engine.set_link(*id, state);
        }
        Ok(Self { engine, server })
    }

    /// Forwards packets until SIGTERM, SIGINT or [`Request::Stop`]. While it runs, the two signals
    /// do not reach this thread otherwise.
    ///
    /// # Errors
    /// When the system refuses to wait for packets at all.
    pub fn run(mut self) -> Result<(), RouterError> {
        let signals = Signals::hold().map_err(RouterError::Wait)?;
        sharpen_timers().map_err(RouterError::Wait)?;
        let mut wait = Waiting::new(&signals, &self.engine);
        let mut pace = Pace::default();
        let mut since = Instant::now();
        // Since when there has been nothing to do; none: for long.
        let mut idle_since = None;
        loop {
            wait.watch(self.server.descriptors());
            let due = self.engine.next_due();
            let until_due = due.map(|due| due.saturating_duration_since(since));
            let timeout = if pace.naps() {
                std::thread::sleep(until_due.map_or(NAP, |time| time.min(NAP)));
                Some(Duration::ZERO)
            } else {
                let rest = idle_since.map(|idle: Instant| REST.saturating_sub(since - idle));
                until_due.into_iter().chain(rest).min()
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
            if packets > 0 || self.engine.holds() {
                idle_since = Some(now);
            } else if idle_since.is_some_and(|idle| now - idle >= REST) {
                self.engine.slim();
                idle_since = None;
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
                message: format!("this router has no interface {id}"),
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
    fn new(signals: &Signals, engine: &Engine) -> Self {
        let mut poller = Poller::default();
        poller.add(signals.descriptor(), Interest::Read);
        let mut ports = 0;
        for descriptor in engine.descriptors() {
            poller.add(descriptor, Interest::Read);
            ports += 1;
        }
        Self {
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

fn external(interface: &Interface) -> ExternalInterface {
    ExternalInterface {
        neighbour: interface.isd_as,
        link_to: interface.link_to,
        mtu: interface.mtu,
        up: true,
    }
}

/// The BFD sessions of `router`: with its neighbours and with its AS's other routers, the latter
/// always as scionproto has it when nothing is said.
fn watched(
    isd_as: IsdAsn,
    router: &BorderRouter,
    siblings: &[(&String, &BorderRouter)],
    ports: &[Port],
) -> Vec<Watched> {
    let now = Instant::now();
    // Another seed than that of the links, which must not depend on who is watched: a session's
    // discriminator is to be unlike the one before.
    let session = |config| Session::new(config, fastrand::u64(..), now);
    let inside = siblings.iter().zip(0..).map(|((name, sibling), number)| {
        let (local, remote) = (router.internal_addr.ip(), sibling.internal_addr);
        Watched {
            session: session(Bfd::default()),
            frame: Frame::internal(isd_as, local, remote.ip()),
            name: (*name).clone(),
            place: WatchedPlace::Sibling(number, remote),
        }
    });
    let outside = router
        .interfaces
        .iter()
        .filter(|(_, interface)| !interface.bfd.disable)
        .map(|(id, interface)| {
            // The file may leave the address to the system.
            let port = ports.iter().find(|port| port.id == *id);
            let local = port
                .and_then(|port| port.socket.local_addr().ok())
                .unwrap_or(interface.local);
            Watched {
                session: session(interface.bfd),
                frame: Frame::external(
                    (isd_as, local.ip()),
                    (interface.isd_as, interface.remote.ip()),
                    *id,
                ),
                name: id.to_string(),
                place: WatchedPlace::Interface(*id),
            }
        });
    inside.chain(outside).collect()
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
            let (socket, pending) =
                open(local, remote).map_err(|source| RouterError::Interface {
                    id,
                    local,
                    source,
                })?;
            if let Some(remote) = pending {
                tracing::warn!(interface = id, %remote, "no way to the neighbour: is the link down?");
            }
            Ok(Port::new(id, socket, seeds.u64(..), now).with_pending(pending))
        })
        .collect()
}
