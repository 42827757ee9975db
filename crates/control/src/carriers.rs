//! The MTU of what carries the links of this AS, as its routes have it: paths announce no more than fits.
//!
//! The MTU of a link in the AS's configuration is an upper bound, as a tunnel or a device that carries it may
//! take less. Routes may change at any time, as when a neighbour moves, so they are looked at again and again.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use hawser_kernel::socket::route_mtu;
use hawser_topology::{AsTopology, LinkAddresses, Underlay};

/// Time after which routes are looked at again, at the next request.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// What is announced at least: SCION's links take packets of that size. Through less they pass as fragments,
/// and forged reports of a smaller MTU have no further effect.
const MIN_MTU: u16 = 1280;

/// The underlay addresses of links, by interface.
pub(crate) type Underlays = BTreeMap<u16, LinkAddresses>;

/// The underlay addresses of the links of an AS.
pub(crate) fn underlays(topology: &AsTopology) -> Underlays {
    let routers = topology.border_routers.values();
    let interfaces = routers.flat_map(|router| &router.interfaces);
    let addresses = interfaces.map(|(id, interface)| (*id, interface.underlay));
    addresses.collect()
}

/// What is known of what carries the links.
#[derive(Debug)]
pub(crate) struct Carriers {
    links: Underlays,
    /// The largest SCION packet that fits, by interface.
    mtus: BTreeMap<u16, u16>,
    looked: Option<Instant>,
}

impl Carriers {
    pub fn new(links: Underlays) -> Self {
        Self {
            links,
            mtus: BTreeMap::new(),
            looked: None,
        }
    }

    /// Takes other addresses, which the next [`look`](Self::look) finds the routes of.
    pub fn set_links(&mut self, links: Underlays) {
        (self.links, self.looked) = (links, None);
    }

    /// The largest SCION packet that fits what carries the link at an interface; `None` if that is not
    /// known.
    pub fn mtu(&self, interface: u16) -> Option<u16> {
        self.mtus.get(&interface).copied()
    }

    /// Looks at the routes if that is due at `now`. `route` gives the MTU of the route between the ends of a
    /// link, in bytes of IP packets. Returns whether anything has changed.
    pub fn look(&mut self, now: Instant, route: impl Fn(&LinkAddresses) -> Option<u32>) -> bool {
        let is_fresh = |looked| now.saturating_duration_since(looked) < LOOK_AGAIN;
        if self.looked.is_some_and(is_fresh) {
            return false;
        }
        self.looked = Some(now);
        let found = self
            .links
            .iter()
            .filter_map(|(id, link)| Some((*id, fitting(link.remote.ip(), route(link)?))));
        let found: BTreeMap<u16, u16> = found.collect();
        let changed = found != self.mtus;
        self.mtus = found;
        changed
    }
}

/// The largest SCION packet in an IP packet of `mtu` bytes to `remote`.
fn fitting(remote: IpAddr, mtu: u32) -> u16 {
    let carrier = match remote {
        IpAddr::V4(_) => Underlay::Ipv4,
        IpAddr::V6(_) => Underlay::Ipv6,
    };
    let fitting = mtu.saturating_sub(carrier.headers().into());
    u16::try_from(fitting).unwrap_or(u16::MAX).max(MIN_MTU)
}

/// The largest SCION packet that fits what carries each link of an AS, by interface, as the kernel's routes say.
/// Links without a route are left out. Sends nothing.
pub fn link_mtus(topology: &AsTopology) -> BTreeMap<u16, u16> {
    let mut carriers = Carriers::new(underlays(topology));
    carriers.look(Instant::now(), route_of);
    carriers.mtus
}

/// The MTU of the kernel's route between the ends of a link; `None` if there is no route. Sends nothing.
pub(crate) fn route_of(link: &LinkAddresses) -> Option<u32> {
    if link.remote.ip().is_unspecified() {
        return None;
    }
    let any: IpAddr = match link.remote.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // The address of this end may choose the route, unless it is gone.
    let socket = UdpSocket::bind((link.local.ip(), 0)).or_else(|_| UdpSocket::bind((any, 0)));
    let socket = socket.ok()?;
    socket.connect(link.remote).ok()?;
    route_mtu(&socket, link.remote.ip()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link(remote: &str) -> LinkAddresses {
        LinkAddresses {
            local: "0.0.0.0:50000".parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }

    #[test]
    fn routes_are_looked_at_again_after_a_while() {
        let v4 = link("192.0.2.1:50000");
        let mut carriers = Carriers::new([(1, v4), (2, link("[fd00::1]:50000"))].into());
        let start = Instant::now();
        assert_eq!(carriers.mtu(1), None);
        assert!(carriers.look(start, |_| Some(1450)));
        assert_eq!((carriers.mtu(1), carriers.mtu(2)), (Some(1422), Some(1402)));
        let soon = start + LOOK_AGAIN - Duration::from_millis(1);
        assert!(!carriers.look(soon, |_| Some(1400)));
        assert_eq!(carriers.mtu(1), Some(1422));
        assert!(carriers.look(start + LOOK_AGAIN, |_| Some(1400)));
        assert_eq!(carriers.mtu(1), Some(1372));
        // A neighbour that moved is looked for at once; without a route nothing is known.
        carriers.set_links([(1, v4)].into());
        let only = |link: &LinkAddresses| (*link != v4).then_some(1400);
        assert!(carriers.look(start + LOOK_AGAIN, only));
        assert_eq!((carriers.mtu(1), carriers.mtu(2)), (None, None));
    }

    #[test]
    fn the_kernel_knows_the_route_to_this_host() {
        // The loopback device takes 64 KiB, and no less than any device on any machine.
        let mtu = route_of(&link("127.0.0.1:50000")).unwrap();
        assert!(mtu > 1500, "{mtu}");
        assert_eq!(route_of(&link("0.0.0.0:0")), None);
    }

    proptest! {
        #[test]
        fn what_is_announced_fits_or_is_the_least(mtu: u32, is_v6: bool) {
            let remote = if is_v6 { "[fd00::1]:1" } else { "192.0.2.1:1" };
            let mut carriers = Carriers::new([(7, link(remote))].into());
            carriers.look(Instant::now(), |_| Some(mtu));
            let found = carriers.mtu(7).unwrap();
            let headers = if is_v6 { 48 } else { 28 };
            prop_assert!(found == MIN_MTU || u32::from(found) + headers <= mtu);
            prop_assert!(found >= MIN_MTU);
        }
    }
}
