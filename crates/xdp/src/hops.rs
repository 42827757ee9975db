//! Where datagrams go: the kernel's routes and neighbours, looked up by netlink.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use hawser_kernel::netlink::{Netlink, NetlinkError};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::device::Device;
use crate::frame::{Mac, Template};

/// How long a look-up counts, so how late changes of routes and neighbours are followed.
const MAX_AGE: Duration = Duration::from_secs(1);
/// How long it counts that a host cannot be reached by the device, or its neighbour is not known.
const UNKNOWN: Duration = Duration::from_millis(20);
/// Hosts kept. A port sends to few: its routers, and hosts of its own network.
const MAX_HOSTS: usize = 1024;

/// Where datagrams of one port go.
#[derive(Debug)]
pub(crate) struct Hops {
    netlink: Netlink,
    index: u32,
    mac: Mac,
    local: SocketAddr,
    all: HashMap<IpAddr, Hop>,
}

#[derive(Debug)]
struct Hop {
    /// `None` when the kernel must send.
    template: Option<Template>,
    looked_up: Instant,
}

/// A neighbour's address, as the kernel has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Neighbour {
    mac: Mac,
    /// The kernel has not verified it for a while, and does so only when it sends to it.
    is_stale: bool,
}

impl Hops {
    pub(crate) fn new(netlink: Netlink, device: &Device, local: SocketAddr) -> Self {
        Self {
            netlink,
            index: device.index,
            mac: device.mac,
            local,
            all: HashMap::new(),
        }
    }

    /// The headers of datagrams to `remote`; `None` when the kernel must send them: they leave by
    /// another device, or the neighbour is not known or not verified, which the kernel changes when
    /// it sends to it.
    pub(crate) fn template(&mut self, remote: SocketAddr, now: Instant) -> Option<&Template> {
        let kept = self.all.get(&remote.ip()).is_some_and(|hop| {
            let kept = if hop.template.is_some() {
                MAX_AGE
            } else {
                UNKNOWN
            };
            now.saturating_duration_since(hop.looked_up) < kept
        });
        if !kept && self.look_up(remote, now) {
            return None;
        }
        self.all.get(&remote.ip())?.template.as_ref()
    }

    /// Looks up where `remote` is. Returns whether the kernel must send once to verify that.
    #[cold]
    fn look_up(&mut self, remote: SocketAddr, now: Instant) -> bool {
        let neighbour = self.neighbour_towards(remote).unwrap_or_else(|error| {
            // The kernel, which is to send then, meets the same.
            tracing::debug!(%remote, %error, "no route");
            None
        });
        let template = |to: Neighbour| Template::new(self.mac, to.mac, self.local, remote.ip());
        let hop = Hop {
            template: neighbour.map(template),
            looked_up: now,
        };
        if self.all.len() >= MAX_HOSTS {
            self.all.clear();
        }
        self.all.insert(remote.ip(), hop);
        neighbour.is_some_and(|neighbour| neighbour.is_stale)
    }

    /// The neighbour that packets to `remote` go to, if they leave by this device.
    fn neighbour_towards(&mut self, remote: SocketAddr) -> Result<Option<Neighbour>, NetlinkError> {
        if remote.is_ipv4() != self.local.is_ipv4() {
            return Ok(None);
        }
        let request = RouteNetlinkMessage::GetRoute(route_request(self.local.ip(), remote));
        let answers = self.netlink.request(request, 0)?;
        let via = answers.iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => via(route, self.index, remote.ip()),
            _ => None,
        });
        let Some(via) = via else {
            return Ok(None);
        };
        let request = RouteNetlinkMessage::GetNeighbour(neighbour_request(self.index, via));
        let answers = self.netlink.request(request, 0)?;
        Ok(answers.iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewNeighbour(found) => neighbour(found),
            _ => None,
        }))
    }
}

fn family(ip: IpAddr) -> AddressFamily {
    match ip {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// A request for the route from `local` to `remote`.
fn route_request(local: IpAddr, remote: SocketAddr) -> RouteMessage {
    let mut request = RouteMessage::default();
    let whole = if local.is_ipv4() { 32 } else { 128 };
    request.header.address_family = family(local);
    request.header.destination_prefix_length = whole;
    request.header.source_prefix_length = whole;
    request.attributes = vec![
        RouteAttribute::Destination(remote.ip().into()),
        RouteAttribute::Source(local.into()),
    ];
    if let SocketAddr::V6(remote) = remote
        && remote.scope_id() != 0
    {
        request
            .attributes
            .push(RouteAttribute::Oif(remote.scope_id()));
    }
    request
}

/// The neighbour's address by which `route` leads to `remote`; `None` when it does not lead by the
/// device with this `index`, or not directly.
fn via(route: &RouteMessage, index: u32, remote: IpAddr) -> Option<IpAddr> {
    if route.header.kind != RouteType::Unicast {
        return None;
    }
    let mut by_device = false;
    let mut via = remote;
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(by) => by_device = *by == index,
            RouteAttribute::Gateway(RouteAddress::Inet(ip)) => via = (*ip).into(),
            RouteAttribute::Gateway(RouteAddress::Inet6(ip)) => via = (*ip).into(),
            RouteAttribute::Via(RouteVia::Inet(ip)) => via = (*ip).into(),
            RouteAttribute::Via(RouteVia::Inet6(ip)) => via = (*ip).into(),
            // A tunnel.
            RouteAttribute::Encap(_) | RouteAttribute::EncapType(_) => return None,
            _ => {}
        }
    }
    by_device.then_some(via)
}

fn neighbour_request(index: u32, ip: IpAddr) -> NeighbourMessage {
    let mut request = NeighbourMessage::default();
    request.header.family = family(ip);
    request.header.ifindex = index;
    let destination = match ip {
        IpAddr::V4(ip) => NeighbourAddress::Inet(ip),
        IpAddr::V6(ip) => NeighbourAddress::Inet6(ip),
    };
    request.attributes = vec![NeighbourAttribute::Destination(destination)];
    request
}

/// A neighbour that can be sent to.
fn neighbour(found: &NeighbourMessage) -> Option<Neighbour> {
    let is_stale = match found.header.state {
        NeighbourState::Stale => true,
        NeighbourState::Reachable
        | NeighbourState::Permanent
        | NeighbourState::Noarp
        // Being verified.
        | NeighbourState::Delay
        | NeighbourState::Probe => false,
        _ => return None,
    };
    let mac = found.attributes.iter().find_map(|one| match one {
        NeighbourAttribute::LinkLayerAddress(bytes) => Mac::try_from(&bytes[..]).ok(),
        _ => None,
    })?;
    Some(Neighbour { mac, is_stale })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(kind: RouteType, attributes: Vec<RouteAttribute>) -> RouteMessage {
        let mut route = RouteMessage::default();
        route.header.kind = kind;
        route.attributes = attributes;
        route
    }

    #[test]
    fn routes_lead_by_the_device_or_not_at_all() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let remote = ip("10.0.1.254");
        let gateway = || RouteAttribute::Gateway(RouteAddress::Inet("10.0.0.1".parse().unwrap()));
        let unicast = |attributes| via(&route(RouteType::Unicast, attributes), 7, remote);
        assert_eq!(unicast(vec![RouteAttribute::Oif(7)]), Some(remote));
        let by_gateway = unicast(vec![gateway(), RouteAttribute::Oif(7)]);
        assert_eq!(by_gateway, Some(ip("10.0.0.1")));
        let six = RouteVia::Inet6("fe80::1".parse().unwrap());
        let by_six = unicast(vec![RouteAttribute::Oif(7), RouteAttribute::Via(six)]);
        assert_eq!(by_six, Some(ip("fe80::1")));
        assert_eq!(unicast(vec![gateway(), RouteAttribute::Oif(8)]), None);
        assert_eq!(unicast(vec![gateway()]), None);
        let local = route(RouteType::Local, vec![RouteAttribute::Oif(7)]);
        assert_eq!(via(&local, 7, remote), None);
    }

    #[test]
    fn neighbours_that_are_not_resolved_do_not_count() {
        let found = |state: NeighbourState, mac: &[u8]| {
            let mut found = NeighbourMessage::default();
            found.header.state = state;
            found.attributes = vec![NeighbourAttribute::LinkLayerAddress(mac.to_vec())];
            neighbour(&found).map(|one| one.is_stale)
        };
        let mac = [2, 0, 0, 0, 0, 1];
        assert_eq!(found(NeighbourState::Reachable, &mac), Some(false));
        assert_eq!(found(NeighbourState::Permanent, &mac), Some(false));
        assert_eq!(found(NeighbourState::Stale, &mac), Some(true));
        assert_eq!(found(NeighbourState::Incomplete, &mac), None);
        assert_eq!(found(NeighbourState::Failed, &mac), None);
        assert_eq!(found(NeighbourState::Reachable, &mac[..4]), None);
    }
}
