//! The files of an AS that follow from the state.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hawser_bundle::{Bundle, Coordinator as Follow, LimitedLink, LinkInfo, Manifest, Role};
use hawser_topology::{
    AsTopology, Bfd, BorderRouter, Interface, IsdAsn, LinkAddresses, LinkState, Side, as_folder,
};

use super::ConfigurationError;
use super::network::{self, DISPATCHED_PORTS, KnownEnd, KnownLink, MTU};
use crate::host::HostKind;
use crate::state::State;

/// The address of an AS's services: the hosts of such an AS are the programs of its machine.
const INSIDE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// UDP port of a border router inside its AS.
const ROUTER_PORT: u16 = 30042;
/// TCP port of a control service.
const CONTROL_PORT: u16 = 30252;

/// The configuration of an AS, without its keys and certificates.
pub(super) fn configuration(
    state: &State,
    isd_as: IsdAsn,
    kind: HostKind,
    follow: Follow,
) -> Result<Bundle, ConfigurationError> {
    let unknown = || ConfigurationError::Unknown(isd_as);
    let host = state.host(isd_as).ok_or_else(unknown)?;
    let (role, label) = match kind {
        HostKind::AttachmentPoint => {
            let one = state.attachment_points.get(&isd_as).ok_or_else(unknown)?;
            (Role::AttachmentPoint, &one.label)
        }
        HostKind::UserAs => {
            let one = state.user_ases.get(&isd_as).ok_or_else(unknown)?;
            (Role::User, &one.label)
        }
    };
    let mut bundle = Bundle::default();
    bundle.set_topology(&topology(state, isd_as, role == Role::AttachmentPoint));
    let states = link_states(state, isd_as);
    if !states.is_empty() {
        bundle.set_link_states(&states);
    }
    let mut manifest = Manifest::new(isd_as, role, host.version);
    manifest.label.clone_from(label);
    manifest.coordinator = Some(follow);
    bundle.set_manifest(&manifest);
    let limits = limits(state, isd_as);
    if role == Role::AttachmentPoint || !limits.0.is_empty() {
        bundle.set_link_info(&limits);
    }
    Ok(bundle)
}

pub(super) fn topology(state: &State, isd_as: IsdAsn, core: bool) -> AsTopology {
    let interfaces = network::links(state).flat_map(|link| {
        let [near, far] = [link.a, link.b];
        let ends = [(near, far, true), (far, near, false)].into_iter();
        ends.filter(|(near, ..)| near.isd_as == isd_as)
            .map(move |(near, far, first)| (near.interface, interface(&link, near, far, first)))
    });
    let router = BorderRouter {
        internal_addr: SocketAddr::new(INSIDE, ROUTER_PORT),
        interfaces: interfaces.collect(),
    };
    let name = as_folder(isd_as);
    let control = SocketAddr::new(INSIDE, CONTROL_PORT);
    let control_service: BTreeMap<_, _> = [(format!("cs{name}-1"), control)].into();
    AsTopology {
        isd_as,
        mtu: MTU,
        core,
        dispatched_ports: DISPATCHED_PORTS,
        discovery_service: control_service.clone(),
        control_service,
        border_routers: [(format!("br{name}-1"), router)].into(),
    }
}

fn interface(link: &KnownLink, near: KnownEnd, far: KnownEnd, first: bool) -> Interface {
    Interface {
        underlay: LinkAddresses {
            local: near.underlay,
            remote: far.underlay,
        },
        isd_as: far.isd_as,
        remote_id: far.interface,
        link_to: link.kind.link_to(if first { Side::A } else { Side::B }),
        mtu: link.mtu(),
        bfd: Bfd::default(),
    }
}

/// The delay, jitter and loss of links that have any, by their interfaces in an AS.
fn link_states(state: &State, isd_as: IsdAsn) -> BTreeMap<u16, LinkState> {
    let emulated = network::links(state).filter(|link| !link.emulation.is_none());
    let states = emulated.flat_map(|link| {
        let ends = [link.a, link.b].into_iter();
        let here = ends.filter(|end| end.isd_as == isd_as);
        here.map(move |end| {
            let shape = link.emulation.shape();
            (end.interface, LinkState { up: true, shape })
        })
    });
    states.collect()
}

/// The limits that are to be in force at an AS, by the numbers of the links.
fn limits(state: &State, isd_as: IsdAsn) -> LinkInfo {
    let links = state.enforced(isd_as).into_iter().filter_map(|link| {
        let (egress, ingress) = (link.limits.egress, link.limits.ingress);
        let asn = link.user_as.asn().to_u64();
        let mut limited = LimitedLink::new(asn, link.ip, link.port, egress, ingress)?;
        (limited.device, limited.queue) = (link.device, link.queue);
        Some((link.link.to_string(), limited))
    });
    LinkInfo(links.collect())
}
