//! One AS, as its own services see it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::IsdAsn;

/// One AS: its services, its border routers and their interfaces.
///
/// Its JSON form is scionproto's `topology.json`. Keys that are not used here (hidden segments,
/// gateways, time stamps) are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsTopology {
    /// The AS.
    pub isd_as: IsdAsn,
    /// Largest SCION packet inside the AS, in bytes.
    pub mtu: u16,
    /// Whether it is a core AS.
    pub core: bool,
    /// First and last UDP port that routers deliver to directly; `(0, 0)` where they deliver
    /// everything to the shim dispatcher.
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
    /// The address that the AS's hosts send their packets to.
    pub internal_addr: SocketAddr,
    /// Its interfaces by number.
    pub interfaces: BTreeMap<u16, Interface>,
}

/// An interface of a border router: this AS's end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Underlay address of this end. An unspecified one leaves the address to the system.
    pub local: SocketAddr,
    /// Underlay address of the neighbour's end; unspecified where the file leaves it out, which only
    /// the router itself needs.
    pub remote: SocketAddr,
    /// The neighbour AS.
    pub isd_as: IsdAsn,
    /// The interface's number in the neighbour AS; 0 where the file leaves it out, which only
    /// peering links need.
    pub remote_id: u16,
    /// The neighbour's role towards this AS.
    pub link_to: LinkTo,
    /// Largest SCION packet on the link, in bytes.
    pub mtu: u16,
    /// How the link is monitored.
    pub bfd: Bfd,
}

/// How the routers at a link's ends monitor it (BFD, RFC 5880).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bfd {
    /// Whether the link is not monitored, and always counts as up.
    pub disable: bool,
    /// The link counts as down when this many packets in a row are missing; at least 1.
    pub detect_mult: u8,
    /// Shortest interval at which this end sends.
    pub desired_min_tx: Duration,
    /// Shortest interval at which this end can receive.
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
