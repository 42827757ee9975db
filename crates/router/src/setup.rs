//! Opening of a border router from the folder of its AS.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use hawser_topology::{AsDir, AsTopology, Bfd, BorderRouter, Interface, LinkAddresses, LinkState};

use crate::bfd::{Frame, Neighbour, Neighbours, Session};
use crate::error::RouterError;
use crate::forwarder::{ExternalInterface, Forwarder, Service};
use crate::io::open;
use crate::port::Port;
use crate::shared::Shared;
use crate::switch::{Switch, Thread};
use crate::verdict::Origin;

/// Maximum number of other routers of the AS: their numbers have one byte.
const MAX_SIBLINGS: usize = 256;

/// A border router as the folder of its AS describes it.
pub(crate) struct Setup<'a> {
    dir: &'a AsDir,
    topology: &'a AsTopology,
    name: &'a str,
    pub router: &'a BorderRouter,
    pub links: BTreeMap<u16, LinkState>,
    enforce_mtu: bool,
}

impl<'a> Setup<'a> {
    /// The router `name`, or the only one, of the AS in `dir`, whose `topology.json` is `topology`.
    pub fn new(
        dir: &'a AsDir,
        topology: &'a AsTopology,
        name: Option<&str>,
    ) -> Result<Self, RouterError> {
        let invalid = |file, what| RouterError::Invalid {
            file,
            folder: dir.path().to_owned(),
            what,
        };
        let (name, router) =
            choose(topology, name).map_err(|what| invalid("topology.json", what))?;
        let links = dir.links()?;
        if let Some(id) = links.keys().find(|id| !has_interface(topology, **id)) {
            let what = format!(
                "interface {id}, which topology.json does not have: remove it there or add it here"
            );
            return Err(invalid("links.json", what));
        }
        Ok(Self {
            dir,
            topology,
            name,
            router,
            links,
            enforce_mtu: false,
        })
    }

    /// Sets whether packets above the announced MTU of a link are refused.
    pub fn with_enforced_mtu(mut self, enforce: bool) -> Self {
        self.enforce_mtu = enforce;
        self
    }

    /// The AS's other routers and their names.
    pub fn siblings(&self) -> impl Iterator<Item = (&'a String, &'a BorderRouter)> {
        let routers = self.topology.border_routers.iter();
        routers.filter(|(name, _)| *name != self.name)
    }

    /// The path of the router's control socket.
    pub fn control_socket(&self) -> PathBuf {
        match self.topology.border_routers.len() {
            1 => self.dir.router_socket(),
            _ => self.dir.router_socket_of(self.name),
        }
    }

    /// Opens the switch of each of `threads` threads; jitter and loss are drawn from `seed`.
    pub fn open(self, threads: usize, seed: u64) -> Result<Vec<Switch>, RouterError> {
        let mut forwarder = self.forwarder()?;
        let ports = self.ports(threads, seed)?;
        let mut neighbours = Some(Neighbours::new(self.neighbours(&ports[0])));
        // The neighbours are down until BFD finds them up.
        for origin in neighbours.iter().flat_map(Neighbours::origins) {
            forwarder.set_bfd_up(origin, false);
        }
        let mut switches = Vec::new();
        for (number, ports) in ports.into_iter().enumerate() {
            let neighbours = neighbours.take();
            let neighbours = neighbours.unwrap_or_else(|| Neighbours::new(Vec::new()));
            let thread = Thread {
                number,
                count: threads,
            };
            let mut switch = Switch::new(forwarder.clone(), ports, neighbours, thread);
            for (id, state) in &self.links {
                // Returns `false` for the links of the AS's other routers, which are skipped.
                switch.set_link(*id, state);
            }
            switches.push(switch);
        }
        Ok(switches)
    }

    pub fn forwarder(&self) -> Result<Forwarder, RouterError> {
        let (topology, host) = (self.topology, self.router.internal_addr.ip());
        let mut forwarder = Forwarder::new(topology.isd_as, &self.dir.hop_key()?, host);
        forwarder.dispatched_ports = topology.dispatched_ports;
        for (service, instances) in [
            (Service::Discovery, &topology.discovery_service),
            (Service::Control, &topology.control_service),
        ] {
            forwarder = forwarder.with_service(service, instances.values().copied());
        }
        for (id, interface) in &self.router.interfaces {
            forwarder = forwarder.with_interface(*id, self.external(interface));
        }
        for (_, sibling) in self.siblings() {
            let interfaces = sibling.interfaces.iter();
            let interfaces = interfaces.map(|(id, interface)| (*id, self.external(interface)));
            forwarder = forwarder.with_sibling(sibling.internal_addr, interfaces);
        }
        Ok(forwarder)
    }

    fn external(&self, interface: &Interface) -> ExternalInterface {
        ExternalInterface {
            neighbour: interface.isd_as,
            link_to: interface.link_to,
            max_packet: self.enforce_mtu.then_some(interface.mtu),
            up: true,
        }
    }

    /// Opens the ports of each thread: the internal one, then the external ones by interface.
    fn ports(&self, threads: usize, seed: u64) -> Result<Vec<Vec<Port>>, RouterError> {
        let mut seeds = fastrand::Rng::with_seed(seed);
        let mut all: Vec<Vec<Port>> = (0..threads).map(|_| Vec::new()).collect();
        let mut add = |id, local, remote| {
            let sockets = open(local, threads).map_err(|source| RouterError::Interface {
                id,
                local,
                source,
            })?;
            let shared = Arc::new(Shared::new(Instant::now()));
            for (ports, socket) in all.iter_mut().zip(sockets) {
                let shared = shared.clone();
                ports.push(Port::new(id, (socket, remote), seeds.u64(..), shared));
            }
            Ok::<_, RouterError>(())
        };
        add(0, self.router.internal_addr, None)?;
        for (id, link) in &self.router.interfaces {
            let LinkAddresses { local, remote } = link.underlay;
            add(*id, local, Some(remote))?;
        }
        for port in all[0].iter().skip(1) {
            if let (Some(remote), Err(error)) = (port.remote, port.probe()) {
                tracing::warn!(
                    interface = port.id, %remote, %error,
                    "no route to the neighbour: is the link down?"
                );
            }
        }
        Ok(all)
    }

    /// The BFD sessions with the AS's other routers, with scionproto's default intervals, and with
    /// the neighbour ASes.
    pub fn neighbours(&self, ports: &[Port]) -> Vec<Neighbour> {
        let now = Instant::now();
        // Does not use the seed of the links: a session's discriminator must differ from that of
        // the previous run.
        let session = |config| Session::new(config, fastrand::u64(..), now);
        let isd_as = self.topology.isd_as;
        let siblings = self.siblings().zip(0..).map(|((name, sibling), number)| {
            let (local, remote) = (self.router.internal_addr, sibling.internal_addr);
            let [src, dst] = [local, remote].map(|address| (isd_as, address.ip()));
            Neighbour {
                session: session(Bfd::default()),
                frame: Frame::new(src, dst, None),
                name: name.clone(),
                origin: Origin::Sibling(number),
                address: Some(remote),
            }
        });
        let interfaces = self.router.interfaces.iter();
        let links = interfaces.filter(|(_, interface)| !interface.bfd.disable);
        let links = links.map(|(id, interface)| {
            // The local address in the file may be unspecified; the system then chooses one.
            let port = ports.iter().find(|port| port.id == *id);
            let probed = port.and_then(|port| port.probe().ok());
            let local = probed.unwrap_or(interface.underlay.local.ip());
            let src = (isd_as, local);
            let dst = (interface.isd_as, interface.underlay.remote.ip());
            Neighbour {
                session: session(interface.bfd),
                frame: Frame::new(src, dst, Some(*id)),
                name: id.to_string(),
                origin: Origin::Interface(*id),
                address: None,
            }
        });
        siblings.chain(links).collect()
    }
}

/// The router `name`, or the only one, with its name. The error says what in `topology.json` is
/// unsuitable.
fn choose<'a>(
    topology: &'a AsTopology,
    name: Option<&str>,
) -> Result<(&'a String, &'a BorderRouter), String> {
    let routers = &topology.border_routers;
    let names = || {
        routers
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (name, router) = match (name, routers.first_key_value()) {
        (_, None) => return Err("no border router: add one".to_owned()),
        (None, Some(only)) if routers.len() == 1 => only,
        (None, _) => {
            let names = names();
            return Err(format!("several border routers: say which one of {names}"));
        }
        (Some(name), _) => routers
            .get_key_value(name)
            .ok_or_else(|| format!("no border router {name}: it has {}", names()))?,
    };
    if routers.len() > 1 + MAX_SIBLINGS {
        return Err(format!("more than {MAX_SIBLINGS} border routers"));
    }
    if router.interfaces.contains_key(&0) {
        return Err("an interface 0: interface numbers begin at 1".to_owned());
    }
    let mut interfaces = router.interfaces.iter();
    match interfaces.find(|(_, interface)| interface.underlay.remote.port() == 0) {
        Some((id, _)) => Err(format!(
            "no underlay addresses for interface {id}: add `local` and `remote`"
        )),
        None => Ok((name, router)),
    }
}

/// Whether any router of the AS has interface `id`.
fn has_interface(topology: &AsTopology, id: u16) -> bool {
    let mut routers = topology.border_routers.values();
    routers.any(|router| router.interfaces.contains_key(&id))
}
