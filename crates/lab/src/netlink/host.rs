//! Routes between an AS and the hosts that are added to it.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAttribute, RouteScope};

use super::{Netlink, route};
use crate::plan::Inside;

impl Netlink {
    /// The index of the device with this name, if there is one.
    pub fn index_of(&mut self, device: &str) -> io::Result<Option<u32>> {
        let found = self.0.interface(device)?;
        Ok(found.map(|interface| interface.index))
    }

    /// Adds the route to a host at the other end of a device, with a source address.
    pub fn add_host_route(&mut self, index: u32, to: IpAddr, source: IpAddr) -> io::Result<()> {
        let mut message = route(to, source, index);
        if to.is_ipv4() {
            message.header.scope = RouteScope::Link;
        }
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewRoute(message), flags)
    }

    /// Adds the address of an added host to its device, and the routes to its gateway and to the network
    /// behind that.
    pub fn add_inside(&mut self, index: u32, inside: &Inside) -> io::Result<()> {
        let (address, gateway) = (inside.address, inside.gateway);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        self.add_address(index, address, bits)?;
        self.add_host_route(index, gateway, address)?;
        self.add_network_route(index, inside)
    }

    /// Adds the route to a network over the gateway of an added host.
    pub fn add_network_route(&mut self, index: u32, inside: &Inside) -> io::Result<()> {
        let (address, gateway) = (inside.address, inside.gateway);
        let mut message = route(inside.network(), address, index);
        message.header.destination_prefix_length = inside.prefix;
        message
            .attributes
            .push(RouteAttribute::Gateway(gateway.into()));
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewRoute(message), flags)
    }
}
