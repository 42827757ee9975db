//! A border router as the folder of its AS describes it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hawser_topology::{
    AsDir, AsDirError, AsTopology, Bfd, BorderRouter, Interface, IsdAsn, LinkState,
};

use crate::bfd::{Frame, Location, Neighbour, Neighbours, Session};
use crate::engine::Engine;
use crate::error::RouterError;
use crate::forwarder::Forwarder;
use crate::interface::ExternalInterface;
use crate::io::open;
use crate::port::Port;
use crate::services::Service;

/// An AS has at most this many routers besides this one: their numbers are a byte.
const MAX_SIBLINGS: usize = 256;

/// A border router as the folder of its AS describes it.
pub(crate) struct Setup<'a> {
    name: &'a str,
    router: &'a BorderRouter,
    isd_as: IsdAsn,
    /// The AS's other routers and their names.
    siblings: Vec<(&'a String, &'a BorderRouter)>,
    forwarder: Forwarder,
    links: BTreeMap<u16, LinkState>,
}

impl<'a> Setup<'a> {
    /// The router `name`, or the only one, of the AS in `dir`, whose `topology.json` is `topology`.
    pub fn new(
        dir: &AsDir,
        topology: &'a AsTopology,
        name: Option<&str>,
    ) -> Result<Self, RouterError> {
        let folder = dir.path().to_owned();
        let (name, router) = choose(topology, &folder, name)?;
        let links = links(dir)?;
        check_interfaces(topology, router, &links, folder.clone())?;
        let others = topology.border_routers.iter();
        let siblings: Vec<_> = others.filter(|(other, _)| *other != name).collect();
        if siblings.len() > MAX_SIBLINGS {
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
        Ok(Self {
            name,
            router,
            isd_as: topology.isd_as,
            siblings,
            forwarder,
            links,
        })
    }

    /// The path of the router's control socket.
    pub fn control_socket(&self, dir: &AsDir) -> PathBuf {
        match self.siblings.is_empty() {
            true => dir.router_socket(),
            false => dir.router_socket_of(self.name),
        }
    }

    /// Opens the router's ports; jitter and loss are drawn from `seed`.
    pub fn engine(self, seed: u64) -> Result<Engine, RouterError> {
        let ports = self.ports(seed)?;
        let neighbours = self.neighbours(&ports);
        let mut engine = Engine::new(self.forwarder, ports, neighbours);
        for (id, state) in &self.links {
            // The links of other routers of the AS are not the engine's.
            engine.set_link(*id, state);
        }
        Ok(engine)
    }

    /// Opens the internal port, then the external ones by interface.
    fn ports(&self, seed: u64) -> Result<Vec<Port>, RouterError> {
        let now = Instant::now();
        let mut seeds = fastrand::Rng::with_seed(seed);
        let internal = (0, self.router.internal_addr, None);
        let external = self
            .router
            .interfaces
            .iter()
            .map(|(id, interface)| (*id, interface.local, Some(interface.remote)));
        std::iter::once(internal)
            .chain(external)
            .map(|(id, local, remote)| {
                let (socket, pending) = open(local, remote)
                    .map_err(|source| RouterError::Interface { id, local, source })?;
                if let Some(remote) = pending {
                    tracing::warn!(
                        interface = id, %remote, "no route to the neighbour: is the link down?"
                    );
                }
                Ok(Port::new(id, socket, seeds.u64(..), now).with_pending(pending))
            })
            .collect()
    }

    /// The BFD sessions with the AS's other routers, with scionproto's default intervals, and with
    /// the neighbour ASes.
    fn neighbours(&self, ports: &[Port]) -> Neighbours {
        let now = Instant::now();
        // Not seeded as the links are: a session's discriminator must differ from the previous one.
        let session = |config| Session::new(config, fastrand::u64(..), now);
        let siblings = self.siblings.iter().zip(0..);
        let siblings = siblings.map(|((name, sibling), number)| {
            let (local, remote) = (self.router.internal_addr.ip(), sibling.internal_addr);
            Neighbour {
                session: session(Bfd::default()),
                frame: Frame::internal(self.isd_as, local, remote.ip()),
                name: (*name).clone(),
                location: Location::Sibling(number, remote),
            }
        });
        let interfaces = self.router.interfaces.iter();
        let links = interfaces.filter(|(_, interface)| !interface.bfd.disable);
        let links = links.map(|(id, interface)| {
            // The file may leave the address to the system.
            let port = ports.iter().find(|port| port.id == *id);
            let local = port
                .and_then(|port| port.socket.local_addr().ok())
                .unwrap_or(interface.local);
            Neighbour {
                session: session(interface.bfd),
                frame: Frame::external(
                    (self.isd_as, local.ip()),
                    (interface.isd_as, interface.remote.ip()),
                    *id,
                ),
                name: id.to_string(),
                location: Location::Interface(*id),
            }
        });
        Neighbours::new(siblings.chain(links).collect())
    }
}

/// Checks that the interfaces of `router` can be used, and that those of `links` exist.
fn check_interfaces(
    topology: &AsTopology,
    router: &BorderRouter,
    links: &BTreeMap<u16, LinkState>,
    folder: PathBuf,
) -> Result<(), RouterError> {
    if router.interfaces.contains_key(&0) {
        return Err(RouterError::InterfaceZero { folder });
    }
    let exists = |id: &u16| {
        let mut routers = topology.border_routers.values();
        routers.any(|router| router.interfaces.contains_key(id))
    };
    if let Some(id) = links.keys().find(|id| !exists(id)) {
        return Err(RouterError::UnknownLink { folder, id: *id });
    }
    let mut interfaces = router.interfaces.iter();
    match interfaces.find(|(_, interface)| interface.remote.port() == 0) {
        Some((id, _)) => Err(RouterError::NoUnderlay { folder, id: *id }),
        None => Ok(()),
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

/// The router `name`, or the only one, with its name.
fn choose<'a>(
    topology: &'a AsTopology,
    folder: &Path,
    name: Option<&str>,
) -> Result<(&'a String, &'a BorderRouter), RouterError> {
    let routers = &topology.border_routers;
    let (folder, names) = (folder.to_owned(), routers.keys().cloned().collect());
    match (name, routers.first_key_value()) {
        (_, None) => Err(RouterError::NoRouter { folder }),
        (None, Some(only)) if routers.len() == 1 => Ok(only),
        (None, _) => Err(RouterError::Unnamed { folder, names }),
        (Some(name), _) => {
            let unknown = || RouterError::UnknownRouter {
                folder,
                name: name.to_owned(),
                names,
            };
            routers.get_key_value(name).ok_or_else(unknown)
        }
    }
}

/// The states of the links, empty where `links.json` is missing, as in scionproto's layout.
fn links(dir: &AsDir) -> Result<BTreeMap<u16, LinkState>, AsDirError> {
    match dir.links() {
        Err(AsDirError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Ok(BTreeMap::new())
        }
        links => links,
    }
}
