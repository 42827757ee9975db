//! The configuration of one AS's services: `topology.json`, in scionproto's layout.

mod address;
mod duration;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{IsdAsn, ports};

/// One AS: its services, its border routers and their interfaces.
///
/// Its JSON form is scionproto's `topology.json`. Keys that are not used here (hidden segments,
/// gateways, time stamps) are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsTopology {
    /// The AS.
    #[serde(deserialize_with = "read_one_as")]
    pub isd_as: IsdAsn,
    /// Largest SCION packet inside the AS, in bytes.
    #[serde(default)]
    pub mtu: u16,
    /// Whether it is a core AS.
    #[serde(
        default,
        rename = "attributes",
        serialize_with = "write_core",
        deserialize_with = "read_core"
    )]
    pub core: bool,
    /// First and last UDP port that routers deliver to directly; `(0, 0)` if they deliver all
    /// packets to the shim dispatcher.
    #[serde(default, with = "ports")]
    pub dispatched_ports: (u16, u16),
    /// Control services by name.
    #[serde(
        default,
        serialize_with = "write_services",
        deserialize_with = "read_services"
    )]
    pub control_service: BTreeMap<String, SocketAddr>,
    /// Discovery services by name; usually the control services.
    #[serde(
        default,
        serialize_with = "write_services",
        deserialize_with = "read_services"
    )]
    pub discovery_service: BTreeMap<String, SocketAddr>,
    /// Border routers by name. Interface numbers are unique within the AS.
    #[serde(default, deserialize_with = "read_routers")]
    pub border_routers: BTreeMap<String, BorderRouter>,
}

/// A border router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BorderRouter {
    /// The address that the AS's hosts send their packets to.
    #[serde(deserialize_with = "read_address")]
    pub internal_addr: SocketAddr,
    /// Its interfaces by number.
    #[serde(default, deserialize_with = "read_interfaces")]
    pub interfaces: BTreeMap<u16, Interface>,
}

/// An interface of a border router: this AS's end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The addresses of both ends of the link.
    #[serde(default)]
    pub underlay: LinkAddresses,
    /// The neighbour AS.
    #[serde(deserialize_with = "read_one_as")]
    pub isd_as: IsdAsn,
    /// The interface's number in the neighbour AS; 0 if the file omits it, as only peering links
    /// need it.
    #[serde(
        default,
        rename = "remote_interface_id",
        skip_serializing_if = "is_default"
    )]
    pub remote_id: u16,
    /// The neighbour's role towards this AS.
    #[serde(deserialize_with = "read_link_to")]
    pub link_to: LinkTo,
    /// Largest SCION packet on the link, in bytes.
    #[serde(default)]
    pub mtu: u16,
    /// The configuration of BFD on the link.
    #[serde(
        default,
        deserialize_with = "read_bfd",
        skip_serializing_if = "is_default"
    )]
    pub bfd: Bfd,
}

/// The underlay addresses of a link's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UnderlayFile")]
pub struct LinkAddresses {
    /// The address of this end. If it is unspecified, the system chooses one.
    pub local: SocketAddr,
    /// The address of the neighbour's end; unspecified if the file omits it, as only the router
    /// needs it.
    pub remote: SocketAddr,
}

/// Both addresses are unspecified.
impl Default for LinkAddresses {
    fn default() -> Self {
        let unspecified = SocketAddr::from(([0; 4], 0));
        Self {
            local: unspecified,
            remote: unspecified,
        }
    }
}

/// [`LinkAddresses`] as in the file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UnderlayFile {
    // scionproto called it `public` until v0.12.
    #[serde(alias = "public")]
    local: String,
    remote: String,
    provider: String,
}

impl TryFrom<UnderlayFile> for LinkAddresses {
    type Error = String;

    fn try_from(file: UnderlayFile) -> Result<Self, String> {
        if !matches!(file.provider.as_str(), "" | "udpip") {
            return Err(format!(
                "underlay {:?} is not supported: only udpip is",
                file.provider
            ));
        }
        let remote = match file.remote.as_str() {
            "" => Self::default().remote,
            text => address::parse(text)?,
        };
        let local = address::parse_local(&file.local, remote)?;
        Ok(Self { local, remote })
    }
}

/// The BFD configuration of a link (RFC 5880).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bfd {
    /// Whether BFD is disabled, so that the link always counts as up.
    #[serde(skip_serializing_if = "is_default")]
    pub disable: bool,
    /// Detection multiplier: the link counts as down after this many missing packets in a row; at
    /// least 1.
    pub detect_mult: u8,
    /// Shortest interval at which this end sends.
    #[serde(rename = "desired_min_tx_interval", with = "duration")]
    pub desired_min_tx: Duration,
    /// Shortest interval at which this end can receive.
    #[serde(rename = "required_min_rx_interval", with = "duration")]
    pub required_min_rx: Duration,
}

/// The defaults of scionproto's router.
impl Default for Bfd {
    fn default() -> Self {
        Self {
            disable: false,
            detect_mult: 3,
            desired_min_tx: Duration::from_millis(200),
            required_min_rx: Duration::from_millis(200),
        }
    }
}

/// The role of a neighbour towards an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn write_core<S: Serializer>(core: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(core.then_some("core"))
}

fn read_core<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let attributes = Vec::<String>::deserialize(from)?;
    Ok(attributes.iter().any(|attribute| attribute == "core"))
}

/// Reads a mapping. Errors name the entry by `what` and its key.
fn read_entries<'de, D, K, V>(from: D, what: &str) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + Display,
    V: DeserializeOwned,
{
    let entries = BTreeMap::<K, serde_json::Value>::deserialize(from)?;
    let read = |(key, value)| match V::deserialize(value) {
        Ok(value) => Ok((key, value)),
        Err(error) => Err(D::Error::custom(format!("{what} {key}: {error}"))),
    };
    entries.into_iter().map(read).collect()
}

/// A service in the file.
#[derive(Serialize, Deserialize)]
struct ServiceFile {
    #[serde(deserialize_with = "read_address")]
    addr: SocketAddr,
}

fn write_services<S: Serializer>(
    services: &BTreeMap<String, SocketAddr>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(
        services
            .iter()
            .map(|(name, &addr)| (name, ServiceFile { addr })),
    )
}

fn read_services<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, SocketAddr>, D::Error> {
    let services: BTreeMap<String, ServiceFile> = read_entries(from, "service")?;
    Ok(services
        .into_iter()
        .map(|(name, file)| (name, file.addr))
        .collect())
}

fn read_routers<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, BorderRouter>, D::Error> {
    let routers: BTreeMap<String, BorderRouter> = read_entries(from, "border router")?;
    let mut seen = BTreeSet::new();
    for (name, router) in &routers {
        if let Some(id) = router.interfaces.keys().find(|id| !seen.insert(**id)) {
            return Err(D::Error::custom(format!(
                "interface {id} is in border router {name} and in another: give one of them another number"
            )));
        }
    }
    Ok(routers)
}

fn read_interfaces<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<u16, Interface>, D::Error> {
    read_entries(from, "interface")
}

fn read_address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    address::parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

/// Reads an AS. Wildcards, which stand for several, are refused.
fn read_one_as<'de, D: Deserializer<'de>>(from: D) -> Result<IsdAsn, D::Error> {
    let isd_as = IsdAsn::deserialize(from)?;
    match isd_as.is_wildcard() {
        true => Err(D::Error::custom(format!(
            "isd_as {isd_as} is not one AS: write for example 1-ff00:0:110"
        ))),
        false => Ok(isd_as),
    }
}

fn read_link_to<'de, D: Deserializer<'de>>(from: D) -> Result<LinkTo, D::Error> {
    let text = String::deserialize(from)?;
    match text.to_ascii_lowercase().as_str() {
        "core" => Ok(LinkTo::Core),
        "parent" => Ok(LinkTo::Parent),
        "child" => Ok(LinkTo::Child),
        "peer" => Ok(LinkTo::Peer),
        _ => Err(D::Error::custom(format!(
            "link_to {text:?} is unknown: write CORE, PARENT, CHILD or PEER"
        ))),
    }
}

/// Reads a BFD configuration. Values that are missing or 0 get their defaults, as in scionproto.
fn read_bfd<'de, D: Deserializer<'de>>(from: D) -> Result<Bfd, D::Error> {
    let (mut bfd, default) = (Bfd::deserialize(from)?, Bfd::default());
    if bfd.detect_mult == 0 {
        bfd.detect_mult = default.detect_mult;
    }
    if bfd.desired_min_tx.is_zero() {
        bfd.desired_min_tx = default.desired_min_tx;
    }
    if bfd.required_min_rx.is_zero() {
        bfd.required_min_rx = default.required_min_rx;
    }
    Ok(bfd)
}

#[cfg(test)]
mod tests;
