//! `topology.json`: the JSON form of an [`AsTopology`], in scionproto's layout.

mod address;
mod duration;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::as_topology::{AsTopology, Bfd, BorderRouter, Interface, LinkTo};
use crate::{IsdAsn, isd_as_text, ports};

#[derive(Serialize, Deserialize)]
struct File {
    #[serde(default)]
    attributes: Vec<String>,
    #[serde(with = "isd_as_text")]
    isd_as: IsdAsn,
    #[serde(default)]
    mtu: u16,
    #[serde(default)]
    dispatched_ports: String,
    #[serde(default)]
    border_routers: BTreeMap<String, RouterFile>,
    #[serde(default)]
    control_service: BTreeMap<String, ServiceFile>,
    #[serde(default)]
    discovery_service: BTreeMap<String, ServiceFile>,
}

#[derive(Clone, Serialize, Deserialize)]
struct ServiceFile {
    addr: String,
}

#[derive(Clone, Serialize, Deserialize)]
struct RouterFile {
    internal_addr: String,
    #[serde(default)]
    interfaces: BTreeMap<u16, InterfaceFile>,
}

#[derive(Clone, Serialize, Deserialize)]
struct InterfaceFile {
    #[serde(default)]
    underlay: UnderlayFile,
    #[serde(with = "isd_as_text")]
    isd_as: IsdAsn,
    link_to: String,
    #[serde(default)]
    mtu: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bfd: Option<BfdFile>,
    #[serde(default, skip_serializing_if = "is_zero")]
    remote_interface_id: u16,
}

fn is_zero(id: &u16) -> bool {
    *id == 0
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct UnderlayFile {
    // scionproto called it `public` until v0.12.
    #[serde(default, alias = "public")]
    local: String,
    #[serde(default)]
    remote: String,
    #[serde(default, skip_serializing)]
    provider: String,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct BfdFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detect_mult: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    desired_min_tx_interval: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    required_min_rx_interval: Option<String>,
}

impl<'de> Deserialize<'de> for AsTopology {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        File::deserialize(from)?.read().map_err(D::Error::custom)
    }
}

impl Serialize for AsTopology {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        File::from(self.clone()).serialize(to)
    }
}

impl File {
    fn read(self) -> Result<AsTopology, String> {
        let file = self;
        let mut seen = BTreeSet::new();
        let mut border_routers = BTreeMap::new();
        for (name, router) in file.border_routers {
            let router = read_router(router).map_err(|e| format!("border router {name}: {e}"))?;
            if let Some(id) = router.interfaces.keys().find(|id| !seen.insert(**id)) {
                return Err(format!(
                    "interface {id} is in border router {name} and in another: give one of them another number"
                ));
            }
            border_routers.insert(name, router);
        }
        Ok(AsTopology {
            isd_as: file.isd_as,
            mtu: file.mtu,
            core: file.attributes.iter().any(|a| a == "core"),
            dispatched_ports: ports::parse(&file.dispatched_ports).ok_or_else(|| {
                format!(
                    "dispatched_ports {:?} is not a range of ports: write \"first-last\", \"all\" or \"-\"",
                    file.dispatched_ports
                )
            })?,
            control_service: read_services(file.control_service)?,
            discovery_service: read_services(file.discovery_service)?,
            border_routers,
        })
    }
}

fn read_services(
    files: BTreeMap<String, ServiceFile>,
) -> Result<BTreeMap<String, SocketAddr>, String> {
    files
        .into_iter()
        .map(|(name, service)| match address::parse(&service.addr) {
            Ok(address) => Ok((name, address)),
            Err(error) => Err(format!("service {name}: {error}")),
        })
        .collect()
}

fn read_router(file: RouterFile) -> Result<BorderRouter, String> {
    let interfaces = file.interfaces.into_iter().map(|(id, interface)| {
        let interface = read_interface(interface).map_err(|e| format!("interface {id}: {e}"))?;
        Ok((id, interface))
    });
    Ok(BorderRouter {
        internal_addr: address::parse(&file.internal_addr)?,
        interfaces: interfaces.collect::<Result<_, String>>()?,
    })
}

fn read_interface(file: InterfaceFile) -> Result<Interface, String> {
    let underlay = file.underlay;
    if !matches!(underlay.provider.as_str(), "" | "udpip") {
        return Err(format!(
            "underlay {:?} is not supported: only udpip is",
            underlay.provider
        ));
    }
    let remote = match underlay.remote.as_str() {
        "" => (Ipv4Addr::UNSPECIFIED, 0).into(),
        text => address::parse(text)?,
    };
    Ok(Interface {
        local: address::parse_local(&underlay.local, remote)?,
        remote,
        isd_as: file.isd_as,
        remote_id: file.remote_interface_id,
        link_to: read_link(&file.link_to)?,
        mtu: file.mtu,
        bfd: read_bfd(file.bfd.unwrap_or_default())?,
    })
}

fn read_link(text: &str) -> Result<LinkTo, String> {
    match text.to_ascii_lowercase().as_str() {
        "core" => Ok(LinkTo::Core),
        "parent" => Ok(LinkTo::Parent),
        "child" => Ok(LinkTo::Child),
        "peer" => Ok(LinkTo::Peer),
        _ => Err(format!(
            "link_to {text:?} is unknown: write CORE, PARENT, CHILD or PEER"
        )),
    }
}

/// Values that are missing or 0 are the defaults, as in scionproto.
fn read_bfd(file: BfdFile) -> Result<Bfd, String> {
    let default = Bfd::default();
    let time = |text: Option<String>, default| match text {
        None => Ok(default),
        Some(text) => duration::parse(&text).map(|time| match time.is_zero() {
            true => default,
            false => time,
        }),
    };
    Ok(Bfd {
        disable: file.disable.unwrap_or(default.disable),
        detect_mult: file
            .detect_mult
            .filter(|mult| *mult > 0)
            .unwrap_or(default.detect_mult),
        desired_min_tx: time(file.desired_min_tx_interval, default.desired_min_tx)?,
        required_min_rx: time(file.required_min_rx_interval, default.required_min_rx)?,
    })
}

impl From<AsTopology> for File {
    fn from(topology: AsTopology) -> Self {
        Self {
            attributes: if topology.core {
                vec!["core".to_owned()]
            } else {
                Vec::new()
            },
            isd_as: topology.isd_as,
            mtu: topology.mtu,
            dispatched_ports: match topology.dispatched_ports {
                (0, 0) => "-".to_owned(),
                (1, u16::MAX) => "all".to_owned(),
                (first, last) => format!("{first}-{last}"),
            },
            border_routers: topology
                .border_routers
                .into_iter()
                .map(|(name, router)| (name, write_router(router)))
                .collect(),
            control_service: write_services(topology.control_service),
            discovery_service: write_services(topology.discovery_service),
        }
    }
}

fn write_services(services: BTreeMap<String, SocketAddr>) -> BTreeMap<String, ServiceFile> {
    services
        .into_iter()
        .map(|(name, address)| {
            let addr = address.to_string();
            (name, ServiceFile { addr })
        })
        .collect()
}

fn write_router(router: BorderRouter) -> RouterFile {
    RouterFile {
        internal_addr: router.internal_addr.to_string(),
        interfaces: router
            .interfaces
            .into_iter()
            .map(|(id, interface)| (id, write_interface(interface)))
            .collect(),
    }
}

fn write_interface(interface: Interface) -> InterfaceFile {
    let link_to = match interface.link_to {
        LinkTo::Core => "CORE",
        LinkTo::Parent => "PARENT",
        LinkTo::Child => "CHILD",
        LinkTo::Peer => "PEER",
    };
    InterfaceFile {
        underlay: UnderlayFile {
            local: interface.local.to_string(),
            remote: interface.remote.to_string(),
            provider: String::new(),
        },
        isd_as: interface.isd_as,
        link_to: link_to.to_owned(),
        mtu: interface.mtu,
        bfd: (interface.bfd != Bfd::default()).then(|| write_bfd(interface.bfd)),
        remote_interface_id: interface.remote_id,
    }
}

fn write_bfd(bfd: Bfd) -> BfdFile {
    BfdFile {
        disable: bfd.disable.then_some(true),
        detect_mult: Some(bfd.detect_mult),
        desired_min_tx_interval: Some(duration::format(bfd.desired_min_tx)),
        required_min_rx_interval: Some(duration::format(bfd.required_min_rx)),
    }
}

#[cfg(test)]
mod tests;
