//! ASes of a lab that run on other machines.
//!
//! An invited AS is in the network of the lab, with a namespace and a link to its parent, but the lab runs no
//! services of it. They run on another machine, by `hawser as join`, from an archive with the keys of this AS
//! alone and the segments of the network. A [`Relay`] carries the packets of the link between the AS's
//! namespace and that machine: rate and queue of the link hold in the namespace, delay, jitter and loss are
//! made by the border router at each end.

mod relay;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_bundle::{Bundle, Manifest, Role};
use hawser_control::{MAX_LIFETIME, Publication, announced};
use hawser_kernel::namespace::NetNs;
use hawser_topology::{
    AsTopology, IsdAsn, LinkAddresses, LinkKind, LinkState, Network, NewAs, NewLink, Shape, Side,
    Underlay,
};

pub use self::relay::{Relay, RelayEnd, Relayed};
use crate::Lab;
use crate::apply::ApplyError;
use crate::change::LabStep;
use crate::error::LabError;
use crate::protocol::{self, Request};

/// Longest wait for the supervisor.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Ports of the services on the other machine, at its loopback address, as of other ASes that join.
const ROUTER_PORT: u16 = 30042;
const CONTROL_PORT: u16 = 30252;
/// UDP port of both ends of a lab's link, and of the invited end on its machine.
const LINK_PORT: u16 = 50000;
/// What another machine gets of the folder of its AS: its keys and certificates, and the TRCs.
const PARTS: [&str; 3] = ["keys/", "certs/", "crypto/as/"];

/// An AS that is to join a running lab from another machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Invite {
    /// The AS: a new one, or one that was invited before.
    pub isd_as: IsdAsn,
    /// The AS of the lab that it gets a link to, as its child.
    pub parent: IsdAsn,
    /// Rate, delay, jitter, loss and queue of a new link, in both directions.
    pub shape: Shape,
    /// Largest SCION packet on a new link, in bytes; `None` for the default.
    pub mtu: Option<u16>,
    /// Where the other machine reaches this one.
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
    /// What carries the packets of the link, once it runs.
    pub relay: Relay,
}

impl Lab {
    /// Adds an AS that runs on another machine, and makes what that needs. For one that was invited before
    /// its link stays as it is, and the segments are new. Calls `progress` before each step.
    ///
    /// # Errors
    /// When the lab runs the AS itself, has no such parent, runs without root, or the socket cannot be bound
    /// at [`Invite::at`].
    pub fn invite(
        &self,
        invite: &Invite,
        progress: impl FnMut(&LabStep),
    ) -> Result<Invitation, ApplyError> {
        let is_new = self.check_invite(invite)?;
        // Bound before anything changes.
        let outer = UdpSocket::bind(invite.at).map_err(|error| {
            ApplyError::Refused(format!(
                "cannot listen at UDP {}: {error}: give an address of this machine, and a free port",
                invite.at
            ))
        })?;
        if is_new {
            // What a lab cannot take is refused before it learns of the AS.
            let mut network = self.network()?;
            add(&mut network, invite).map_err(ApplyError::Refused)?;
            self.plan(&network)?;
            let isd_as = invite.isd_as;
            let request = Request::RunElsewhere { isd_as };
            protocol::call(&self.dir.socket(), &request, TIMEOUT)?;
            self.edit(|network| add(network, invite), progress)?;
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
        state.require(invite.parent)?;
        let Some(at) = state.find(invite.isd_as) else {
            return Ok(true);
        };
        let as_ = &state.ases[at];
        if !as_.no_router || !as_.no_control {
            return failed(format!(
                "{} is an AS whose services the lab runs: invite another one",
                invite.isd_as
            ));
        }
        let network = self.dir.read_network()?;
        let links: Vec<_> = network.links_of(invite.isd_as).collect();
        match &links[..] {
            [(link, Side::B)] if link.a.isd_as == invite.parent => Ok(false),
            _ => failed(format!(
                "{} has other links than one to {}: `hawser lab remove as {}`, and invite it again",
                invite.isd_as, invite.parent, invite.isd_as
            )),
        }
    }

    fn invitation(&self, invite: &Invite, outer: UdpSocket) -> Result<Invitation, LabError> {
        let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
        let (isd_as, network) = (invite.isd_as, self.dir.read_network()?);
        let as_dir = self.dir.as_dir(isd_as);
        let topology = topology(&network, invite)
            .ok_or_else(|| LabError::Failed(format!("the lab has no AS {isd_as}")))?;
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
        let inner = self.link_socket(isd_as).map_err(|error| failed(&error))?;
        let relay = Relay::new(self.clone(), isd_as, [inner, outer], invite.from);
        Ok(Invitation {
            archive: bundle.pack(),
            segments: publication.to_json(),
            expiry: publication.expiry(),
            relay: relay.map_err(|error| failed(&error))?,
        })
    }

    /// A socket at the end of the link in the namespace of an invited AS, which exchanges packets with the
    /// border router at the other end.
    fn link_socket(&self, isd_as: IsdAsn) -> Result<UdpSocket, LabError> {
        let state = self.dir.read_state()?;
        let link = state.links.iter().find(|link| link.b.isd_as == isd_as);
        let link = link.ok_or_else(|| LabError::Failed(format!("{isd_as} has no link")))?;
        let [near, far] = [link.b.underlay(), link.a.underlay()];
        let (net, _) = self.namespaces(isd_as, None)?;
        let bind = || {
            let socket = UdpSocket::bind((near, LINK_PORT))?;
            socket.connect((far, LINK_PORT))?;
            Ok::<_, std::io::Error>(socket)
        };
        let bound = NetNs::from_fd(net).and_then(|net| net.run(bind)).flatten();
        bound.map_err(|error| {
            LabError::Failed(format!(
                "cannot take the link of {isd_as} at {near}: {error}: is it invited by another command?"
            ))
        })
    }
}

/// Adds an invited AS to a network.
fn add(network: &mut Network, invite: &Invite) -> Result<(), String> {
    network.add_as(NewAs {
        isd_as: invite.isd_as,
        core: false,
        mtu: None,
        underlay: Underlay::default(),
        note: Some("on another machine".to_owned()),
    })?;
    network.add_link(&NewLink {
        a: invite.parent.to_string(),
        b: invite.isd_as.to_string(),
        kind: Some(LinkKind::Child),
        mtu: invite.mtu,
        underlay: Underlay::default(),
        shape: invite.shape,
    })
}

/// The topology of an invited AS, on its machine.
fn topology(network: &Network, invite: &Invite) -> Option<AsTopology> {
    let inside = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let names = network.router_names(invite.isd_as).into_iter();
    let routers: Vec<_> = names.map(|name| (name, inside(ROUTER_PORT))).collect();
    let any = match invite.at {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let underlay = LinkAddresses {
        local: SocketAddr::new(any, LINK_PORT),
        remote: invite.at,
    };
    network.topology_of(invite.isd_as, &routers, inside(CONTROL_PORT), |_, _| {
        underlay
    })
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
            parent: "1-ff00:0:110".parse().unwrap(),
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
        add(&mut network, &invite).unwrap();
        assert!(add(&mut network, &invite).is_err());
        let topology = topology(&network, &invite).unwrap();
        let routers: Vec<_> = topology.border_routers.values().collect();
        let [router] = &routers[..] else {
            panic!("{routers:?}");
        };
        let interface = router.interfaces.values().next().unwrap();
        assert_eq!(interface.underlay.remote, invite.at);
        assert_eq!(interface.underlay.local.to_string(), "0.0.0.0:50000");
        assert_eq!((interface.isd_as, interface.mtu), (invite.parent, 1400));
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
}
