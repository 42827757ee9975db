//! Hosts that are added to an AS while the lab runs: guests, and hosts that the lab makes.
//!
//! Each is a network namespace, joined with that of the AS by a pair of devices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_topology::IsdAsn;

use super::address;
use super::layout::{AsPlan, Mac};

/// The name of the device in the host.
const DEVICE: &str = "hawser0";
/// Lowest index of the devices at the AS: above those of all interfaces, and of what plain IP is diverted
/// to.
const MIN_INDEX: u32 = 300_000;
/// TCP port of the daemon API, at the address of the control service.
const DAEMON_PORT: u16 = 30255;
/// TCP port of the bootstrap server, there too.
const BOOTSTRAP_PORT: u16 = 8041;

/// Prefix lengths of the network inside an AS.
pub(crate) const NETWORK: u8 = 24;
const NETWORK6: u8 = 64;
/// Prefix length of the range of all addresses of a lab, `10.0.0.0/8`.
const LAB: u8 = 8;

/// A host that is added to an AS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddedPlan {
    pub isd_as: IsdAsn,
    /// The device at the AS, its index, and its Ethernet address.
    pub near: (String, u32, Mac),
    /// The device in the host, and its Ethernet address.
    pub far: (&'static str, Mac),
    pub address: Ipv4Addr,
    /// If the AS's underlay is IPv6.
    pub address6: Option<Ipv6Addr>,
    /// The addresses of the AS's own host, over which the added one reaches the others of its AS.
    pub gateway: Ipv4Addr,
    pub gateway6: Option<Ipv6Addr>,
    /// Bytes.
    pub mtu: u32,
}

impl AddedPlan {
    /// The host with the number `number`, from 0, of those added to an AS.
    pub fn new(as_: &AsPlan, number: u32) -> Self {
        let (address, address6) = address::added(as_.number, number);
        let [near, far] = address::added_macs(as_.number, number);
        Self {
            isd_as: as_.isd_as,
            near: (format!("host{number}"), MIN_INDEX + number, near),
            far: (DEVICE, far),
            address,
            address6: as_.host6.map(|_| address6),
            gateway: as_.host,
            gateway6: as_.host6,
            mtu: as_.inner_mtu,
        }
    }

    /// The SCION address.
    pub fn scion_host(&self) -> IpAddr {
        self.address6.map_or(self.address.into(), IpAddr::from)
    }

    /// The networks inside the AS, each as an address and the length of its prefix, with the host's
    /// address and its gateway there.
    pub fn networks(&self) -> Vec<Inside> {
        let inside = Inside {
            prefix: NETWORK,
            address: self.address.into(),
            gateway: self.gateway.into(),
        };
        let inside6 = self.address6.zip(self.gateway6);
        let inside6 = inside6.map(|(address, gateway)| Inside {
            prefix: NETWORK6,
            address: address.into(),
            gateway: gateway.into(),
        });
        [Some(inside), inside6].into_iter().flatten().collect()
    }

    /// The range of all IPv4 addresses of a lab, which a host that the lab has made reaches over its AS.
    pub fn lab(&self) -> Inside {
        Inside {
            prefix: LAB,
            address: self.address.into(),
            gateway: self.gateway.into(),
        }
    }

    /// Where the daemon of an AS answers the hosts that are added to it.
    pub fn daemon_of(as_: &AsPlan) -> SocketAddr {
        (as_.control, DAEMON_PORT).into()
    }

    /// Where the bootstrap server of an AS answers them.
    pub fn bootstrap_of(as_: &AsPlan) -> SocketAddr {
        (as_.control, BOOTSTRAP_PORT).into()
    }
}

/// An address of an added host in a network inside its AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Length of the network's prefix, in bits.
    pub prefix: u8,
    pub address: IpAddr,
    pub gateway: IpAddr,
}

impl Inside {
    /// Whether an address is in the network.
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.prefix);
                u32::from(own) >> shift == u32::from(other) >> shift
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.prefix);
                u128::from(own) >> shift == u128::from(other) >> shift
            }
            _ => false,
        }
    }

    /// The address of the network: that of the host without the bits after the prefix.
    pub fn network(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(own) => {
                let shift = 32 - u32::from(self.prefix);
                Ipv4Addr::from(u32::from(own) >> shift << shift).into()
            }
            IpAddr::V6(own) => {
                let shift = 128 - u32::from(self.prefix);
                Ipv6Addr::from(u128::from(own) >> shift << shift).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hawser_topology::Network;

    use super::*;
    use crate::plan::Plan;

    #[test]
    fn an_added_host_is_in_the_network_of_its_as() {
        let plan = Plan::of(&Network::ready("fig7a").unwrap()).unwrap();
        let host = AddedPlan::new(&plan.ases[1], 3);
        assert_eq!(host.scion_host().to_string(), "10.0.2.5");
        assert_eq!(
            AddedPlan::daemon_of(&plan.ases[1]).to_string(),
            "10.0.2.254:30255"
        );
        let networks = host.networks();
        let [inside] = &networks[..] else {
            panic!("{networks:?}");
        };
        assert_eq!(inside.network().to_string(), "10.0.2.0");
        for (address, is_inside) in [
            ("10.0.2.254", true),
            ("10.0.3.1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(inside.contains(address.parse().unwrap()), is_inside);
        }
        assert_eq!(inside.gateway, IpAddr::from(plan.ases[1].host));
    }
}
