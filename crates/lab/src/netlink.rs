//! The rtnetlink(7) requests that create a lab.

mod divert;
mod host;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use hawser_kernel::interface::LOOPBACK;
use hawser_kernel::namespace::NetNs;
use hawser_kernel::netlink;
pub(crate) use hawser_kernel::veth::VethEnd;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InetDevConf, LinkAttribute, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::io::Errno;

pub(crate) use self::divert::Exempt;
use crate::plan::{Mac, NETWORK, Route};

/// Name of the loopback device in every namespace.
pub(crate) const LOOPBACK_NAME: &str = "lo";
/// `RT_TABLE_LOCAL` of rtnetlink(7): the routing table of local addresses.
const TABLE_LOCAL: u8 = 255;

/// Polling interval for the route that the kernel adds for a new address, and the longest wait for
/// it.
const ROUTE_POLL: Duration = Duration::from_millis(1);
const ROUTE_TIMEOUT: Duration = Duration::from_secs(5);

/// A socket to the network namespace in which it was opened.
pub(crate) struct Netlink(netlink::Netlink);

impl Netlink {
    /// Opens a socket to the namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        Ok(Self(netlink::Netlink::open()?))
    }

    /// Creates a veth pair: `near` in this namespace, `far` directly in another one.
    pub fn add_veth(
        &mut self,
        near: &VethEnd<'_>,
        far: &VethEnd<'_>,
        far_ns: &NetNs,
        mtu: u32,
    ) -> io::Result<()> {
        Ok(self.0.add_veth(near, far, far_ns, mtu)?)
    }

    /// Makes a device forward IPv4, and send no IPv6 packets by itself.
    ///
    /// This uses netlink instead of sysctl, since containers often mount `/proc/sys` read-only.
    pub fn configure(&mut self, index: u32) -> io::Result<()> {
        // Without a link-local address there are no router solicitations: an idle lab sends only
        // BFD packets.
        let quiet = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)]);
        match self.set(index, vec![quiet]) {
            // A kernel without IPv6 sends no IPv6 packets.
            Err(e) if Errno::from_io_error(&e) == Some(Errno::AFNOSUPPORT) => {}
            other => other?,
        }
        let mut conf = InetDevConf::default();
        conf.forwarding = 1;
        let forwarding = AfSpecUnspec::Inet(vec![AfSpecInet::DevConfRequest(conf)]);
        self.set(index, vec![forwarding])
    }

    fn set(&mut self, index: u32, spec: Vec<AfSpecUnspec>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::AfSpecUnspec(spec)];
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sets the MTU of a device, in bytes.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> io::Result<()> {
        Ok(self.0.set_mtu(index, mtu)?)
    }

    /// Sets a device up or down. A device that goes down keeps its IPv4 addresses and loses its IPv6
    /// addresses, neighbours and routes.
    pub fn set_up(&mut self, index: u32, up: bool) -> io::Result<()> {
        Ok(self.0.set_up(index, up)?)
    }

    /// Adds an address to a device.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        Ok(self.0.add_address(index, address, prefix)?)
    }

    /// Adds a local address to which the host's programs send from the address `source`. To the
    /// address of a device they would send from `address` itself.
    pub fn add_local(&mut self, address: Ipv4Addr, source: Ipv4Addr) -> io::Result<()> {
        let message = local_route(address.into(), source.into());
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    /// Like [`Netlink::add_local`], for IPv6. There programs can bind only addresses of a device,
    /// so this adds one, and replaces the route that the kernel adds by one with the source
    /// `source`.
    pub fn add_local6(&mut self, address: Ipv6Addr, source: Ipv6Addr) -> io::Result<()> {
        self.add_address(LOOPBACK, address.into(), 128)?;
        let mut message = local_route(address.into(), source.into());
        self.create(RouteNetlinkMessage::NewRoute(message.clone()))?;
        message.header.protocol = RouteProtocol::Kernel;
        message
            .attributes
            .retain(|a| !matches!(a, RouteAttribute::PrefSource(_)));
        // The kernel adds its route shortly after the address.
        let deadline = Instant::now() + ROUTE_TIMEOUT;
        loop {
            let removed = self.request(RouteNetlinkMessage::DelRoute(message.clone()), 0);
            match removed {
                Err(e)
                    if Errno::from_io_error(&e) == Some(Errno::SRCH)
                        && Instant::now() < deadline =>
                {
                    std::thread::sleep(ROUTE_POLL);
                }
                other => return other,
            }
        }
    }

    /// Adds the Ethernet address of a neighbour, until the device goes down.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: Mac) -> io::Result<()> {
        Ok(self.0.add_neighbour(index, address, mac)?)
    }

    /// Adds routes with one source address, and replaces existing ones. TCP over them always uses
    /// CUBIC instead of the host's default, so that measurements are comparable: BBR mistakes the
    /// burst that a limit passes for the link's rate. A kernel without CUBIC uses its default.
    pub fn add_routes(&mut self, routes: &[Route], source: Ipv4Addr) -> io::Result<()> {
        let cubic = RouteMetric::CcAlgo("cubic".to_owned());
        let cubic = RouteAttribute::Metrics(vec![cubic]);
        match self.add_routes_with(routes, source, Some(&cubic)) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.add_routes_with(routes, source, None)
            }
            made => made,
        }
    }

    fn add_routes_with(
        &mut self,
        routes: &[Route],
        source: Ipv4Addr,
        metrics: Option<&RouteAttribute>,
    ) -> io::Result<()> {
        let message = |to: &Route| {
            let mut message = route_to_as(to, source);
            message.attributes.extend(metrics.cloned());
            RouteNetlinkMessage::NewRoute(message)
        };
        let requests = routes.iter().map(message);
        Ok(self.0.batch(requests, NLM_F_CREATE | NLM_F_REPLACE)?)
    }

    /// Removes an address that [`Netlink::add_local`] or [`Netlink::add_local6`] added, if it is there;
    /// `source` is the IPv4 address of the host.
    pub fn remove_local(&mut self, address: IpAddr, source: Ipv4Addr) -> io::Result<()> {
        let removed = match address {
            IpAddr::V4(_) => {
                let message = local_route(address, source.into());
                self.request(RouteNetlinkMessage::DelRoute(message), 0)
            }
            // The kernel removes the routes of an address with it.
            IpAddr::V6(_) => self
                .0
                .remove_address(LOOPBACK, address, 128)
                .map_err(Into::into),
        };
        unless(removed, &[Errno::SRCH, Errno::ADDRNOTAVAIL])
    }

    /// Removes a route, if it is there.
    pub fn remove_route(&mut self, of: &Route, source: Ipv4Addr) -> io::Result<()> {
        let message = route_to_as(of, source);
        let removed = self.request(RouteNetlinkMessage::DelRoute(message), 0);
        // It goes with its device.
        unless(removed, &[Errno::SRCH, Errno::NODEV])
    }

    /// Removes a device, if it is there; of a pair the other one, too.
    pub fn remove_device(&mut self, index: u32) -> io::Result<()> {
        let removed = self.0.remove_interface(index).map_err(Into::into);
        unless(removed, &[Errno::NODEV])
    }

    fn create(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.request(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.0.request(message, flags)?;
        Ok(())
    }
}

/// Ignores these errors.
fn unless(result: io::Result<()>, ignored: &[Errno]) -> io::Result<()> {
    match result {
        Err(error) if Errno::from_io_error(&error).is_some_and(|e| ignored.contains(&e)) => Ok(()),
        other => other,
    }
}

/// A route to the network of another AS, in which its host and those that are added to it are.
fn route_to_as(to: &Route, source: Ipv4Addr) -> RouteMessage {
    let network = u32::from(to.to) >> (32 - NETWORK) << (32 - NETWORK);
    let mut message = route(Ipv4Addr::from(network).into(), source.into(), to.index);
    message.header.destination_prefix_length = NETWORK;
    let via = RouteAttribute::Gateway(RouteAddress::Inet(to.via));
    message.attributes.push(via);
    message
}

/// A route that makes an address local to the host.
fn local_route(to: IpAddr, source: IpAddr) -> RouteMessage {
    let mut message = route(to, source, LOOPBACK);
    message.header.table = TABLE_LOCAL;
    message.header.scope = RouteScope::Host;
    message.header.kind = RouteType::Local;
    message
}

/// The family of an address, and its full length in bits, the prefix length of this one address.
fn host_prefix(address: IpAddr) -> (AddressFamily, u8) {
    match address {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    }
}

fn route(to: IpAddr, source: IpAddr, index: u32) -> RouteMessage {
    let (address_family, destination_prefix_length) = host_prefix(to);
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family,
        destination_prefix_length,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: RouteScope::Universe,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![
        RouteAttribute::Destination(to.into()),
        RouteAttribute::PrefSource(source.into()),
        RouteAttribute::Oif(index),
    ];
    message
}

#[cfg(test)]
mod tests;
