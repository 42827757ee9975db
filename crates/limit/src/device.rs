//! Which device leads to a far end.

use std::net::IpAddr;

use hawser_kernel::interface::{LOOPBACK, addresses};
use hawser_kernel::netlink::{Netlink, NetlinkError};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::error::LimitError;
use crate::wire::decode::{Link, Lists};

/// No device leads to a far end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no route.
    #[error("no device leads to {0}: name its device")]
    NoRoute(IpAddr),
    /// It is this host.
    #[error("{0} is an address of this host: name the link by the far end's address")]
    Own(IpAddr),
    /// A link-local address can be behind any device.
    #[error("{0} can be behind any of {1}: name its device")]
    Ambiguous(IpAddr, String),
    /// The kernel does not answer.
    #[error("cannot ask the kernel for the route to {0}: {1}")]
    Kernel(IpAddr, String),
}

/// The devices of this network namespace, and the kernel's routes.
#[derive(Debug)]
pub struct Routes {
    netlink: Netlink,
    links: Vec<Link>,
}

impl Routes {
    /// Reads the devices of the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn open() -> Result<Self, LimitError> {
        let netlink = Netlink::open();
        let mut netlink = netlink.map_err(|error| LimitError::Netlink(error.into()))?;
        let links = Lists::links(&mut netlink)?.links;
        Ok(Self { netlink, links })
    }

    /// The name of the device by which packets to `address` leave. For a link-local address that is the
    /// only device with link-local addresses.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub fn device_to(&mut self, address: IpAddr) -> Result<String, DeviceError> {
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let device = match is_link_local {
            true => return self.link_local_device(address),
            false => self.route(address)?,
        };
        let link = self.links.iter().find(|link| link.index == device);
        Ok(link.ok_or(DeviceError::NoRoute(address))?.name.clone())
    }

    /// The index of the device on the route to an address.
    fn route(&mut self, address: IpAddr) -> Result<u32, DeviceError> {
        let mut message = RouteMessage::default();
        let (family, bits, to) = match address {
            IpAddr::V4(to) => (AddressFamily::Inet, 32, RouteAddress::Inet(to)),
            IpAddr::V6(to) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(to)),
        };
        message.header.address_family = family;
        message.header.destination_prefix_length = bits;
        message.attributes = vec![RouteAttribute::Destination(to)];
        let question = RouteNetlinkMessage::GetRoute(message);
        let answer = self.netlink.request(question, 0);
        let answer = answer.map_err(|error| match error {
            NetlinkError::Refused(_) => DeviceError::NoRoute(address),
            other => DeviceError::Kernel(address, other.to_string()),
        })?;
        for message in answer {
            let RouteNetlinkMessage::NewRoute(route) = message else {
                continue;
            };
            if route.header.kind == RouteType::Local {
                return Err(DeviceError::Own(address));
            }
            let device = route
                .attributes
                .iter()
                .find_map(|attribute| match attribute {
                    RouteAttribute::Oif(index) => Some(*index),
                    _ => None,
                });
            if let Some(device) = device {
                return Ok(device);
            }
        }
        Err(DeviceError::NoRoute(address))
    }

    fn link_local_device(&self, address: IpAddr) -> Result<String, DeviceError> {
        let unknown = |error: NetlinkError| DeviceError::Kernel(address, error.to_string());
        let own = addresses().map_err(unknown)?;
        if own.iter().any(|(_, other)| *other == address) {
            return Err(DeviceError::Own(address));
        }
        let same_version = |index| {
            own.iter()
                .any(|(of, other)| *of == index && other.is_ipv4() == address.is_ipv4())
        };
        let candidates = self.links.iter().filter(|link| {
            link.is_up && link.index != LOOPBACK && link.ifb().is_none() && same_version(link.index)
        });
        let mut names: Vec<&str> = candidates.map(|link| link.name.as_str()).collect();
        names.sort_unstable();
        match names[..] {
            [] => Err(DeviceError::NoRoute(address)),
            [name] => Ok(name.to_owned()),
            _ => Err(DeviceError::Ambiguous(address, names.join(", "))),
        }
    }
}
