//! `topology.json`: one AS as its own services see it, in scionproto's layout.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::IsdAsn;

mod address;
mod duration;
mod file;

/// One AS: its services, its border routers and their interfaces.
///
/// Every `topology.json` of scionproto can be read. Keys that are not used here (hidden segments,
/// gateways, time stamps) are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "file::File", into = "file::File")]
pub struct AsTopology {
    /// The AS.
    pub isd_as: IsdAsn,
    /// Largest SCION packet inside the AS, in bytes.
    pub mtu: u16,
    /// Whether it is a core AS.
    pub core: bool,
    /// First and last UDP port that routers deliver to directly; `(0, 0)`: none, all goes to the
    /// shim dispatcher.
    pub dispatched_ports: (u16, u16),
    /// Control services by name.
    pub control_service: BTreeMap<String, SocketAddr>,
    /// Discovery services by name; usually the control services.
    pub discovery_service: BTreeMap<String, SocketAddr>,
    /// Border routers by name. No interface number occurs twice.
    pub border_routers: BTreeMap<String, BorderRouter>,
}

/// A border router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BorderRouter {
    /// Where the AS's hosts send their packets.
    pub internal_addr: SocketAddr,
    /// Its interfaces by number.
    pub interfaces: BTreeMap<u16, Interface>,
}

/// An interface of a border router: this AS's end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Underlay address of this end. An unspecified one leaves the address to the system.
    pub local: SocketAddr,
    /// Underlay address of the neighbour's end; unspecified where the file leaves it out, as it may
    /// for everybody but the router itself.
    pub remote: SocketAddr,
    /// The neighbour AS.
    pub isd_as: IsdAsn,
    /// The interface's number in the neighbour AS; 0 where the file leaves it out, as it may for
    /// links other than peering ones.
    pub remote_id: u16,
    /// What the neighbour is to this AS.
    pub link_to: LinkTo,
    /// Largest SCION packet on the link, in bytes.
    pub mtu: u16,
    /// How the link is watched.
    pub bfd: Bfd,
}

/// How the routers at a link's ends watch it (BFD, RFC 5880).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bfd {
    /// Whether the link is not watched at all, and always counts as up.
    pub disable: bool,
    /// The link counts as down when this many packets in a row are missing; at least 1.
    pub detect_mult: u8,
    /// How often this end wants to send.
    pub desired_min_tx: Duration,
    /// How often this end can receive.
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

/// What a neighbour is to this AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

#[cfg(test)]
mod tests;
