//! The AS's services and their addresses.

use std::net::SocketAddr;

/// A service of an AS that packets can be addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Service {
    /// DS, the discovery service.
    Discovery,
    /// CS, the control service.
    Control,
}

/// Service addresses (SCION header specification, "Service addresses"). The top bit means
/// multicast; such packets also go to a single instance.
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

    /// An instance of the service; the same one for all packets of `flow`.
    pub fn find(&self, service: u16, flow: u64) -> Option<SocketAddr> {
        let addresses = match service & !MULTICAST {
            DISCOVERY => &self.discovery,
            CONTROL => &self.control,
            _ => return None,
        };
        let at = flow.checked_rem(addresses.len() as u64)?;
        addresses.get(at as usize).copied()
    }

    /// Whether an instance of a service is at `address`.
    pub fn has(&self, address: SocketAddr) -> bool {
        self.control.contains(&address) || self.discovery.contains(&address)
    }
}
