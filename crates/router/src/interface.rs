//! What a router knows of the AS's interfaces, its own and those of the AS's other routers.

use std::net::SocketAddr;

use hawser_topology::{IsdAsn, LinkTo};

/// An external interface, as forwarding needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalInterface {
    /// The neighbour AS.
    pub neighbour: IsdAsn,
    /// What the neighbour is to this AS.
    pub link_to: LinkTo,
    /// The largest SCION packet that passes, in bytes.
    pub mtu: u16,
    /// Whether packets pass.
    pub up: bool,
}

/// An external interface of the AS, and its state.
#[derive(Debug, Clone)]
pub(crate) struct InterfaceEntry {
    pub external: ExternalInterface,
    /// Whether BFD finds the link up; `true` where BFD does not watch it.
    pub bfd_up: bool,
    /// The other router of the AS that has it; `None` if this one does.
    pub sibling: Option<u8>,
}

/// Another router of the AS.
#[derive(Debug, Clone)]
pub(crate) struct Sibling {
    pub address: SocketAddr,
    /// Whether BFD finds it up; `true` where BFD does not watch it.
    pub bfd_up: bool,
}
