//! `topology.json`: one AS as its own services see it, in scionproto's layout.

use crate::{IsdAsn, isd_as_text};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::SocketAddr};

/// One AS: its services, its border routers and their interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "File", into = "File")]
pub struct AsTopology {
    /// The AS.
    pub isd_as: IsdAsn,
    /// Largest SCION packet inside the AS, in bytes.
    pub mtu: u16,
    /// Whether it is a core AS.
    pub core: bool,
    /// First and last UDP port that the router delivers to directly.
    pub dispatched_ports: (u16, u16),
    /// Control services by name.
    pub control_service: BTreeMap<String, SocketAddr>,
    /// Border routers by name.
    pub border_routers: BTreeMap<String, BorderRouter>,
}

/// A border router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BorderRouter {
    /// Where the AS's hosts send their packets.
    pub internal_addr: SocketAddr,
    /// Its interfaces by number.
    pub interfaces: BTreeMap<u16, Interface>,
}

/// An interface of a border router: this AS's end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "InterfaceFile", into = "InterfaceFile")]
pub struct Interface {
    /// Underlay address of this end.
    pub local: SocketAddr,
    /// Underlay address of the neighbour's end.
    pub remote: SocketAddr,
    /// The neighbour AS.
    pub isd_as: IsdAsn,
    /// The interface's number in the neighbour AS; 0 where the file leaves it
    /// out, as it may for links other than peering ones.
    pub remote_id: u16,
    /// What the neighbour is to this AS.
    pub link_to: LinkTo,
    /// Largest SCION packet on the link, in bytes.
    pub mtu: u16,
}

/// What a neighbour is to this AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LinkTo {
    /// Both are core ASes.
    Core,
    /// The neighbour is this AS's parent.
    Parent,
    /// The neighbour is this AS's child.
    Child,
    /// The neighbour is a peer.
    Peer,
}

/// Port range of scionproto when the file says nothing (design of the
/// dispatcher-less data plane).
const DISPATCHED_PORTS: (u16, u16) = (31000, 32767);

#[derive(Serialize, Deserialize)]
struct File {
    #[serde(default)]
    attributes: Vec<String>,
    #[serde(with = "isd_as_text")]
    isd_as: IsdAsn,
    mtu: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dispatched_ports: Option<String>,
    #[serde(default)]
    border_routers: BTreeMap<String, BorderRouter>,
    #[serde(default)]
    control_service: BTreeMap<String, Service>,
    #[serde(default)]
    discovery_service: BTreeMap<String, Service>,
}

#[derive(Serialize, Deserialize, Clone)]
struct Service {
    addr: SocketAddr,
}

#[derive(Serialize, Deserialize)]
struct InterfaceFile {
    underlay: Underlay,
    #[serde(with = "isd_as_text")]
    isd_as: IsdAsn,
    link_to: LinkTo,
    mtu: u16,
    #[serde(default, skip_serializing_if = "is_zero")]
    remote_interface_id: u16,
}

fn is_zero(id: &u16) -> bool {
    *id == 0
}

#[derive(Serialize, Deserialize)]
struct Underlay {
    // scionproto called these `public` and `remote` until v0.12.
    #[serde(alias = "public")]
    local: SocketAddr,
    remote: SocketAddr,
}

impl From<File> for AsTopology {
    fn from(file: File) -> Self {
        let ports = file.dispatched_ports.as_deref().and_then(|text| {
            let (first, last) = text.split_once('-')?;
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        });
        AsTopology {
            isd_as: file.isd_as,
            mtu: file.mtu,
            core: file.attributes.iter().any(|a| a == "core"),
            dispatched_ports: ports.unwrap_or(DISPATCHED_PORTS),
            control_service: file
                .control_service
                .into_iter()
                .map(|(name, service)| (name, service.addr))
                .collect(),
            border_routers: file.border_routers,
        }
    }
}

impl From<AsTopology> for File {
    fn from(topology: AsTopology) -> Self {
        let services: BTreeMap<String, Service> = topology
            .control_service
            .into_iter()
            .map(|(name, addr)| (name, Service { addr }))
            .collect();
        let (first, last) = topology.dispatched_ports;
        File {
            attributes: if topology.core {
                vec!["core".to_owned()]
            } else {
                Vec::new()
            },
            isd_as: topology.isd_as,
            mtu: topology.mtu,
            dispatched_ports: Some(format!("{first}-{last}")),
            border_routers: topology.border_routers,
            // scionproto looks up the discovery service at the control service.
            discovery_service: services.clone(),
            control_service: services,
        }
    }
}

impl From<InterfaceFile> for Interface {
    fn from(file: InterfaceFile) -> Self {
        Interface {
            local: file.underlay.local,
            remote: file.underlay.remote,
            isd_as: file.isd_as,
            remote_id: file.remote_interface_id,
            link_to: file.link_to,
            mtu: file.mtu,
        }
    }
}

impl From<Interface> for InterfaceFile {
    fn from(interface: Interface) -> Self {
        InterfaceFile {
            underlay: Underlay {
                local: interface.local,
                remote: interface.remote,
            },
            isd_as: interface.isd_as,
            link_to: interface.link_to,
            mtu: interface.mtu,
            remote_interface_id: interface.remote_id,
        }
    }
}
