//! What a router knows of the AS around it: interfaces, its own and those of the AS's other
//! routers, and services.

use std::net::SocketAddr;

use hawser_topology::{IsdAsn, LinkTo};

/// An external interface, as forwarding sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Face {
    /// The neighbour AS.
    pub neighbour: IsdAsn,
    /// What the neighbour is to this AS.
    pub link_to: LinkTo,
    /// Largest SCION packet that passes, in bytes.
    pub mtu: u16,
    /// Whether packets pass.
    pub up: bool,
}

/// An external interface of the AS.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub face: Face,
    /// Whether the routers at both ends hear each other.
    pub heard: bool,
    /// The other router of the AS that has it, unless this one does.
    pub sibling: Option<u8>,
}

/// Another router of the AS.
#[derive(Debug, Clone)]
pub(crate) struct Sibling {
    pub address: SocketAddr,
    /// Whether it hears this one, and is heard.
    pub heard: bool,
}

/// A service that an AS offers under an address of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Service {
    /// DS, the discovery service.
    Discovery,
    /// CS, the control service.
    Control,
}

/// Service addresses; the top bit means multicast, which goes to one, too.
const DISCOVERY: u16 = 0x0001;
const CONTROL: u16 = 0x0002;
const MULTICAST: u16 = 0x8000;

/// Where the AS's services are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Services {
    discovery: Vec<SocketAddr>,
    control: Vec<SocketAddr>,
}

impl Services {
    pub fn set(&mut self, service: Service, addresses: Vec<SocketAddr>) {
        match service {
            Service::Discovery => self.discovery = addresses,
            Service::Control => self.control = addresses,
        }
    }

    /// One that offers the service; the same for all packets of `flow`.
    pub fn find(&self, service: u16, flow: u64) -> Option<SocketAddr> {
        let addresses = match service & !MULTICAST {
            DISCOVERY => &self.discovery,
            CONTROL => &self.control,
            _ => return None,
        };
        let at = flow.checked_rem(addresses.len() as u64)?;
        addresses.get(at as usize).copied()
    }

    /// Whether a service is at `address`.
    pub fn has(&self, address: SocketAddr) -> bool {
        self.control.contains(&address) || self.discovery.contains(&address)
    }
}
