//! ASes of a lab that run on other machines.
//!
//! An invited AS is in the network of the lab, with a namespace and links, but the lab runs no services of it.
//! They run on another machine, by `hawser as join`, from an archive with the keys of this AS alone and the
//! segments of the network. A [`Relay`] carries the packets of the links between the AS's namespace and that
//! machine, those of each link at a UDP port of its own: rate and queue of a link hold in the namespace, delay,
//! jitter and loss are made by the border router at each end.

mod relay;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_bundle::{Bundle, Manifest, Role};
use hawser_control::{MAX_LIFETIME, Publication, announced};
use hawser_kernel::namespace::NetNs;
use hawser_topology::{
    AsTopology, IsdAsn, LinkAddresses, LinkKind, LinkState, Network, NewAs, NewLink, Shape,
    Underlay,
};

use self::relay::Carried;
pub use self::relay::{Relay, RelayEnd, Relayed};
use crate::Lab;
use crate::apply::ApplyError;
use crate::change::LabStep;
use crate::error::LabError;
use crate::protocol::{self, Request};

/// Longest wait for the supervisor.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Ports of the services on the other machine, at its loopback address, as of other ASes that join: of the
/// first border router, those of the others follow.
const ROUTER_PORT: u16 = 30042;
const CONTROL_PORT: u16 = 30252;
/// UDP port of both ends of a lab's link.
const LINK_PORT: u16 = 50000;
/// UDP port of the interface 1 on the other machine; those of the others follow.
const FIRST_PORT: u16 = 50000;
/// What another machine gets of the folder of its AS: its keys and certificates, and the TRCs.
const PARTS: [&str; 3] = ["keys/", "certs/", "crypto/as/"];

/// An AS that is to join a running lab from another machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Invite {
    /// The AS: a new one, or one that was invited before.
    pub isd_as: IsdAsn,
    /// The ASes of the lab that it gets links to, as their child: as many to each as it is named here.
    /// Links that are there already are not made again.
    pub parents: Vec<IsdAsn>,
    /// Rate, delay, jitter, loss and queue of the new links, in both directions.
    pub shape: Shape,
    /// Largest SCION packet on the new links, in bytes; `None` for the default.
    pub mtu: Option<u16>,
    /// Where the other machine reaches this one for the interface 1 of the AS; the ports of its other
    /// interfaces follow.
    pub at: SocketAddr,
    /// The address of the other machine; `None` for any.
    pub from: Option<IpAddr>,
}

/// What the other machine needs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Invitation {
    /// The archive for `hawser as join`, which has private keys in it.
    pub archive: Vec<u8>,
    /// The segments of the network for `hawser as join --segments`.
    pub segments: Vec<u8>,
    /// When these expire, in Unix seconds.
    pub expiry: u64,
    /// What carries the packets of the links, once it runs.
    pub relay: Relay,
}

impl Lab {
    /// Adds an AS that runs on another machine, and makes what that needs. For one that was invited before
    /// its links stay as they are, parents that it has no link to get one, and the segments are new. Calls
    /// `progress` before each step.
    ///
    /// # Errors
    /// When the lab runs the AS itself, has no such parent, runs without root, or a socket cannot be bound
    /// at [`Invite::at`] or a port after it.
    pub fn invite(
        &self,
        invite: &Invite,
        progress: impl FnMut(&LabStep),
    ) -> Result<Invitation, ApplyError> {
        let is_new = self.check_invite(invite)?;
        let mut network = self.network()?;
        let changes = add(&mut network, invite).map_err(ApplyError::Refused)?;
        // Bound before anything changes.
        let outer = bind(&network, invite).map_err(ApplyError::Refused)?;
        if changes {
            // What a lab cannot take is refused before it learns of the AS.
            self.plan(&network)?;
            if is_new {
                let isd_as = invite.isd_as;
                let request = Request::RunElsewhere { isd_as };
                protocol::call(&self.dir.socket(), &request, TIMEOUT)?;
            }
            self.edit(|network| add(network, invite).map(drop), progress)?;
        }
        Ok(self.invitation(invite, outer)?)
    }

    /// Whether the AS is new.
    fn check_invite(&self, invite: &Invite) -> Result<bool, LabError> {
        let _lock = self.lock_running()?;
        let state = self.dir.read_state()?;
        let failed = |message: String| Err(LabError::Failed(message));
        if state.rootless {
            return failed(
                "a lab without root invites no AS: this is not supported yet, bring it up as root"
                    .to_owned(),
            );
        }
        for parent in &invite.parents {
            state.require(*parent)?;
        }
        let Some(at) = state.find(invite.isd_as) else {
            return Ok(true);
        };
        let as_ = &state.ases[at];
        match as_.no_router && as_.no_control {
            true => Ok(false),
            false => failed(format!(
                "{} is an AS whose services the lab runs: invite another one",
                invite.isd_as
            )),
        }
    }

    fn invitation(
        &self,
        invite: &Invite,
        mut outer: BTreeMap<u16, UdpSocket>,
    ) -> Result<Invitation, LabError> {
        let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
        let (isd_as, network) = (invite.isd_as, self.dir.read_network()?);
        let as_dir = self.dir.as_dir(isd_as);
        let topology = topology(&network, invite)
            .ok_or_else(|| LabError::Failed(format!("the lab has no AS {isd_as}")))?;
        let mut links = Vec::new();
        for interface in interfaces(&network, isd_as) {
            let outer = outer.remove(&interface).ok_or_else(|| {
                LabError::Failed(format!(
                    "the links of {isd_as} were changed by another command meanwhile: give this one again"
                ))
            })?;
            let inner = self.link_socket(isd_as, interface)?;
            let link = Carried::new(interface, [inner, outer], invite.from);
            links.push(link.map_err(|error| failed(&error))?);
        }
        let all = Bundle::read(as_dir.path()).map_err(|error| failed(&error))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let bundle = bundle(&all, &topology, &network, (isd_as, now)).map_err(|e| failed(&e))?;
        let services = |isd_as| {
            let known = self.dir.as_dir(isd_as).topology();
            known.map_or_else(|_| Default::default(), |topology| announced(&topology))
        };
        let made = Publication::make(network, self.dir.path(), services, MAX_LIFETIME, now);
        let publication = made.map_err(|error| failed(&error))?;
        Ok(Invitation {
            archive: bundle.pack(),
            segments: publication.to_json(),
            expiry: publication.expiry(),
            relay: Relay::new(self.clone(), isd_as, links),
        })
    }

    /// A socket at the end of a link in the namespace of an invited AS, which exchanges packets with the
    /// border router at the other end.
    fn link_socket(&self, isd_as: IsdAsn, interface: u16) -> Result<UdpSocket, LabError> {
        let state = self.dir.read_state()?;
        let link = state.link_at(isd_as, interface);
        let (link, side) =
            link.ok_or_else(|| LabError::Failed(format!("{isd_as} has no link {interface}")))?;
        let [near, far] = [side, side.other()].map(|side| link.end(side).underlay());
        let (net, _) = self.namespaces(isd_as, None)?;
        let bind = || {
            let socket = UdpSocket::bind((near, LINK_PORT))?;
            socket.connect((far, LINK_PORT))?;
            Ok::<_, std::io::Error>(socket)
        };
        let bound = NetNs::from_fd(net).and_then(|net| net.run(bind)).flatten();
        bound.map_err(|error| {
            LabError::Failed(format!(
                "cannot take the link of {isd_as}#{interface} at {near}: {error}: is it invited by another command?"
            ))
        })
    }
}

/// Adds an invited AS to a network, and the links to its parents, as far as they are not there. Returns
/// whether that changes it.
fn add(network: &mut Network, invite: &Invite) -> Result<bool, String> {
    let isd_as = invite.isd_as;
    let before = (network.ases.len(), network.links.len());
    if network.find(isd_as).is_none() {
        network.add_as(NewAs {
            isd_as,
            core: false,
            mtu: None,
            underlay: Underlay::default(),
            note: Some("on another machine".to_owned()),
        })?;
    }
    let links = network.links_of(isd_as);
    let mut there: Vec<IsdAsn> = links
        .map(|(link, side)| link.end(side.other()).isd_as)
        .collect();
    for parent in &invite.parents {
        if let Some(at) = there.iter().position(|one| one == parent) {
            there.swap_remove(at);
            continue;
        }
        network.add_link(&NewLink {
            a: parent.to_string(),
            b: isd_as.to_string(),
            kind: Some(LinkKind::Child),
            mtu: invite.mtu,
            underlay: Underlay::default(),
            shape: invite.shape,
        })?;
    }
    Ok(before != (network.ases.len(), network.links.len()))
}

/// The interfaces of an AS.
fn interfaces(network: &Network, isd_as: IsdAsn) -> impl Iterator<Item = u16> {
    network
        .links_of(isd_as)
        .map(|(link, side)| link.end(side).id)
}

/// The port of an interface, where `first` is that of the interface 1.
fn port_of(first: u16, interface: u16) -> Option<u16> {
    first.checked_add(interface.checked_sub(1)?)
}

/// Where the other machine reaches this one for an interface of the AS.
fn address_of(invite: &Invite, interface: u16) -> Result<SocketAddr, String> {
    let port = port_of(invite.at.port(), interface);
    let at = port.map(|port| SocketAddr::new(invite.at.ip(), port));
    at.filter(|_| port_of(FIRST_PORT, interface).is_some())
        .ok_or_else(|| {
            format!(
                "there is no UDP port for the interface {}#{interface}, as the one of the interface 1 is {}, and here {}: give a lower port, or links with lower numbers",
                invite.isd_as, FIRST_PORT, invite.at.port()
            )
        })
}

/// The sockets that the other machine sends to, by interfaces of the AS.
fn bind(network: &Network, invite: &Invite) -> Result<BTreeMap<u16, UdpSocket>, String> {
    let bind = |interface| {
        let at = address_of(invite, interface)?;
        let socket = UdpSocket::bind(at).map_err(|error| {
            format!(
                "cannot listen at UDP {at}: {error}: give an address of this machine, and free ports"
            )
        });
        Ok((interface, socket?))
    };
    interfaces(network, invite.isd_as).map(bind).collect()
}

/// The topology of an invited AS, on its machine.
fn topology(network: &Network, invite: &Invite) -> Option<AsTopology> {
    let inside = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let names = network.router_names(invite.isd_as).into_iter();
    let routers: Vec<_> = names.zip((ROUTER_PORT..).map(inside)).collect();
    let any = match invite.at {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let underlay = |link: usize, side| {
        let interface = network.links[link].end(side).id;
        // Interfaces without a port are refused before.
        let port = |first| port_of(first, interface).unwrap_or(first);
        LinkAddresses {
            local: SocketAddr::new(any, port(FIRST_PORT)),
            remote: SocketAddr::new(invite.at.ip(), port(invite.at.port())),
        }
    };
    network.topology_of(invite.isd_as, &routers, inside(CONTROL_PORT), underlay)
}

/// The files for another machine, of all that are in the folder of the AS.
fn bundle(
    all: &Bundle,
    topology: &AsTopology,
    network: &Network,
    (isd_as, now): (IsdAsn, u64),
) -> Result<Bundle, hawser_bundle::NameError> {
    let mut bundle = Bundle::default();
    for (name, bytes) in all.files() {
        if PARTS.iter().any(|part| name.starts_with(part)) {
            bundle.insert(name, bytes)?;
        }
    }
    bundle.set_topology(topology);
    let states = network.links_of(isd_as).map(|(link, side)| {
        let shape = link.shape;
        (link.end(side).id, LinkState { up: true, shape })
    });
    let states: std::collections::BTreeMap<u16, LinkState> = states.collect();
    // Plain data with text keys can always be written as JSON.
    bundle.insert(
        "links.json",
        serde_json::to_vec_pretty(&states).unwrap_or_default(),
    )?;
    // Each invitation is newer than those before. The lab limits the link in both directions.
    bundle.set_manifest(&Manifest::new(isd_as, Role::User, now));
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invite() -> Invite {
        Invite {
            isd_as: "1-ff00:0:200".parse().unwrap(),
            parents: vec!["1-ff00:0:110".parse().unwrap()],
            shape: Shape {
                delay: Duration::from_millis(7),
                ..Shape::default()
            },
            mtu: Some(1400),
            at: "192.0.2.1:50200".parse().unwrap(),
            from: None,
        }
    }

    #[test]
    fn another_machine_gets_its_link_and_its_own_keys_alone() {
        let (mut network, invite) = (Network::ready("fig4").unwrap(), invite());
        assert!(add(&mut network, &invite).unwrap());
        let topology = topology(&network, &invite).unwrap();
        let routers: Vec<_> = topology.border_routers.values().collect();
        let [router] = &routers[..] else {
            panic!("{routers:?}");
        };
        let interface = router.interfaces.values().next().unwrap();
        assert_eq!(interface.underlay.remote, invite.at);
        assert_eq!(interface.underlay.local.to_string(), "0.0.0.0:50000");
        let parent = invite.parents[0];
        assert_eq!((interface.isd_as, interface.mtu), (parent, 1400));
        let mut all = Bundle::default();
        for name in [
            "keys/master0.key",
            "certs/ISD1-B1-S1.trc",
            "crypto/as/cp-as.key",
            "crypto/ca/cp-ca.key",
            "router.log",
        ] {
            all.insert(name, name).unwrap();
        }
        let bundle = bundle(&all, &topology, &network, (invite.isd_as, 7)).unwrap();
        let names: Vec<&str> = bundle.files().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "certs/ISD1-B1-S1.trc",
                "crypto/as/cp-as.key",
                "hawser.json",
                "keys/master0.key",
                "links.json",
                "topology.json"
            ]
        );
        let (manifest, _) = bundle.check().unwrap();
        assert_eq!((manifest.isd_as, manifest.version), (invite.isd_as, 7));
        let links = String::from_utf8(bundle.get("links.json").unwrap().to_vec()).unwrap();
        assert!(links.contains("delay"), "{links}");
    }

    #[test]
    fn each_interface_has_ports_of_its_own_which_stay() {
        let (mut network, mut invite) = (Network::ready("fig4").unwrap(), invite());
        assert!(add(&mut network, &invite).unwrap());
        assert!(!add(&mut network, &invite).unwrap(), "it has the link");
        // Another parent, and a second link to the first.
        let parent = invite.parents[0];
        invite.parents = vec![parent, "1-ff00:0:111".parse().unwrap(), parent];
        assert!(add(&mut network, &invite).unwrap());
        assert!(!add(&mut network, &invite).unwrap());
        network.remove_link(invite.isd_as, 1).unwrap();
        let far: Vec<_> = network
            .links_of(invite.isd_as)
            .map(|(l, _)| l.a.isd_as)
            .collect();
        assert_eq!(far, [invite.parents[1], parent]);
        let topology = topology(&network, &invite).unwrap();
        let routers = topology.border_routers.values();
        let ports: Vec<_> = routers
            .flat_map(|router| &router.interfaces)
            .map(|(id, one)| (*id, one.underlay.local.port(), one.underlay.remote.port()))
            .collect();
        assert_eq!(ports, [(2, 50001, 50201), (3, 50002, 50202)]);
        invite.at.set_port(u16::MAX);
        assert!(address_of(&invite, 1).is_ok());
        let error = bind(&network, &invite).unwrap_err();
        assert!(error.contains("no UDP port for the interface"), "{error}");
    }

    #[test]
    fn only_an_as_of_the_lab_is_a_parent() {
        let (mut network, mut invite) = (Network::ready("fig4").unwrap(), invite());
        invite.parents = vec![invite.isd_as];
        assert!(add(&mut network, &invite).is_err());
    }
}
