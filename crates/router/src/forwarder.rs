//! The forwarding state of a border router.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hawser_packet::path::HopKey;
use hawser_topology::{IsdAsn, LinkTo};

use crate::verdict::Origin;

/// A service of an AS, by its service address (SCION header specification, "Service addresses").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u16)]
pub enum Service {
    /// DS, the discovery service.
    Discovery = 1,
    /// CS, the control service.
    Control = 2,
}

/// The top bit of a service address means multicast; such packets also go to a single instance.
const MULTICAST: u16 = 0x8000;

/// The properties of an external interface that forwarding depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalInterface {
    /// The neighbour AS.
    pub neighbour: IsdAsn,
    /// The type of the link to the neighbour.
    pub link_to: LinkTo,
    /// The largest SCION packet that is forwarded over the link, in bytes; `None` for any that fits
    /// a UDP datagram.
    pub max_packet: Option<u16>,
    /// Whether the interface is up.
    pub up: bool,
}

impl ExternalInterface {
    /// The MTU that a packet of `length` bytes exceeds, if it is too large for the link.
    #[inline]
    pub(crate) fn exceeded_mtu(&self, length: usize) -> Option<u16> {
        self.max_packet.filter(|max| length > usize::from(*max))
    }
}

/// An external interface of the AS, and its state.
#[derive(Debug, Clone)]
pub(crate) struct InterfaceEntry {
    pub external: ExternalInterface,
    /// Whether BFD finds the link up; `true` where BFD does not watch it.
    pub bfd_up: bool,
    /// The other router of the AS that has this interface; `None` if this router has it.
    pub sibling: Option<u8>,
}

/// Another router of the AS.
#[derive(Debug, Clone)]
pub(crate) struct Sibling {
    pub address: SocketAddr,
    /// Whether BFD finds it up; `true` where BFD does not watch it.
    pub bfd_up: bool,
}

/// The forwarding state of one border router. [`process`](Self::process) applies it to a packet.
#[derive(Debug, Clone)]
pub struct Forwarder {
    pub(crate) isd_as: IsdAsn,
    pub(crate) host: IpAddr,
    pub(crate) key: HopKey,
    /// The first and last UDP port that packets are delivered to directly; `(0, 0)` means no port.
    pub dispatched_ports: (u16, u16),
    /// The instances of each service, by its address.
    services: BTreeMap<u16, Vec<SocketAddr>>,
    interfaces: BTreeMap<u16, InterfaceEntry>,
    siblings: Vec<Sibling>,
}

impl Forwarder {
    /// The router of `isd_as` with the hop-field key `key`, reachable for the AS's hosts at `host`,
    /// without interfaces.
    pub fn new(isd_as: IsdAsn, key: &[u8; 16], host: IpAddr) -> Self {
        Self {
            isd_as,
            host,
            key: HopKey::new(key),
            dispatched_ports: (31000, 32767),
            services: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            siblings: Vec::new(),
        }
    }

    /// Sets the instances that packets to `service` are delivered to.
    #[must_use]
    pub fn with_service(
        mut self,
        service: Service,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Self {
        let addresses = addresses.into_iter().collect();
        self.services.insert(service as u16, addresses);
        self
    }

    /// Adds or replaces the external interface `id`.
    #[must_use]
    pub fn with_interface(mut self, id: u16, external: ExternalInterface) -> Self {
        self.insert(id, external, None);
        self
    }

    /// Adds another router of the AS, at the internal address `address`, and its external
    /// interfaces. The packets of the first such router have the origin [`Origin::Sibling`]`(0)`,
    /// and so on. At most 256 can be added.
    #[must_use]
    pub fn with_sibling(
        mut self,
        address: SocketAddr,
        interfaces: impl IntoIterator<Item = (u16, ExternalInterface)>,
    ) -> Self {
        let number = self.siblings.len() as u8;
        self.siblings.push(Sibling {
            address,
            bfd_up: true,
        });
        for (id, external) in interfaces {
            self.insert(id, external, Some(number));
        }
        self
    }

    fn insert(&mut self, id: u16, external: ExternalInterface, sibling: Option<u8>) {
        let entry = InterfaceEntry {
            external,
            bfd_up: true,
            sibling,
        };
        self.interfaces.insert(id, entry);
    }

    /// Takes interface `id` up or down; returns whether it exists.
    pub fn set_up(&mut self, id: u16, up: bool) -> bool {
        let entry = self.interfaces.get_mut(&id);
        entry.map(|entry| entry.external.up = up).is_some()
    }

    /// Sets whether BFD finds the router at `origin` up; until the first call it counts as up. No
    /// packets are sent to a router that is down.
    pub fn set_bfd_up(&mut self, origin: Origin, up: bool) {
        match origin {
            Origin::Host => {}
            Origin::Sibling(number) => {
                if let Some(sibling) = self.siblings.get_mut(usize::from(number)) {
                    sibling.bfd_up = up;
                }
            }
            Origin::Interface(id) => {
                if let Some(entry) = self.interfaces.get_mut(&id) {
                    entry.bfd_up = up;
                }
            }
        }
    }

    /// The external interface `id` of any router of the AS.
    #[inline]
    pub(crate) fn interface(&self, id: u16) -> Option<&InterfaceEntry> {
        self.interfaces.get(&id)
    }

    /// The other router of the AS with this number.
    #[inline]
    pub(crate) fn sibling(&self, number: u8) -> &Sibling {
        &self.siblings[usize::from(number)]
    }

    /// The origin of a packet that came in by the internal interface, by its underlay source.
    #[inline]
    pub(crate) fn internal_origin(&self, from: Option<SocketAddr>) -> Origin {
        let mut siblings = self.siblings.iter();
        match siblings.position(|sibling| Some(sibling.address) == from) {
            Some(number) => Origin::Sibling(number as u8),
            None => Origin::Host,
        }
    }

    /// An instance of the service with the address `service`; the same one for all packets of
    /// `flow`. `None` if the AS has no such service.
    pub(crate) fn service(&self, service: u16, flow: u64) -> Option<SocketAddr> {
        let addresses = self.services.get(&(service & !MULTICAST))?;
        let at = flow.checked_rem(addresses.len() as u64)?;
        addresses.get(at as usize).copied()
    }

    /// Whether an instance of any service has this address.
    pub(crate) fn has_service_at(&self, address: SocketAddr) -> bool {
        let mut services = self.services.values();
        services.any(|addresses| addresses.contains(&address))
    }
}
