//! The addresses of a plan.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_topology::{Side, Underlay};

use super::layout::Mac;

/// Last byte of a host's address.
const HOST: u8 = 1;
/// Last byte of the address of the first border router and of the control service. For each further
/// router it is smaller by one.
const SERVICE: u8 = 254;
/// Last byte of the address of the first host that is added to an AS. For each further one it is larger
/// by one.
const ADDED: u8 = 2;
/// `10.128.0.0/9`, the range of the links.
const LINKS: u32 = 0x0a80_0000;
/// `fd00::/64`, the first prefix of the ASes, which have a /64 each (RFC 4193; the global ID is
/// zero, since a lab's namespaces have no connection to other networks).
const ASES6: u128 = 0xfd00 << 112;
/// `fd00:0:1::/48`, the range of the links.
const LINKS6: u128 = ASES6 + (1 << 80);

/// The IPv4 address of the host of the AS with this number, from 0: `10.n>>8.n.1` with n counted from
/// 1.
pub(super) fn host(number: u32) -> Ipv4Addr {
    inside(number, HOST)
}

/// The IPv6 address of that host: `fd00:0:0:n::1`.
pub(super) fn host6(number: u32) -> Ipv6Addr {
    inside6(number, HOST)
}

/// The address of the border router with the number `router`, from 0, of the AS with the number
/// `number`.
pub(super) fn service(number: u32, router: u32, underlay: Underlay) -> IpAddr {
    // The plan has at most `MAX_ROUTERS` routers per AS.
    let last = SERVICE - router as u8;
    match underlay {
        Underlay::Ipv4 => inside(number, last).into(),
        Underlay::Ipv6 => inside6(number, last).into(),
    }
}

/// The IPv4 and the IPv6 address of an added host, with the number `added`, from 0, of the AS with the
/// number `number`.
pub(super) fn added(number: u32, added: u32) -> (Ipv4Addr, Ipv6Addr) {
    // There are at most `MAX_ADDED` of them.
    let last = ADDED + added as u8;
    (inside(number, last), inside6(number, last))
}

/// The Ethernet addresses at both ends of what joins an added host with its AS: at the AS, and at the host.
pub(super) fn added_macs(number: u32, added: u32) -> [Mac; 2] {
    let [_, _, high, low] = (number + 1).to_be_bytes();
    [0x6b, 0x6c].map(|kind| [0x02, kind, high, low, 0, added as u8])
}

fn inside(number: u32, last: u8) -> Ipv4Addr {
    let n = number + 1;
    Ipv4Addr::new(10, (n >> 8) as u8, n as u8, last)
}

fn inside6(number: u32, last: u8) -> Ipv6Addr {
    let n = u128::from(number) + 1;
    Ipv6Addr::from(ASES6 + (n << 64) + u128::from(last))
}

/// The IPv4 address of one end of the link with this number.
pub(super) fn link(number: u32, side: Side) -> Ipv4Addr {
    Ipv4Addr::from(LINKS + of_pair(number, side))
}

/// The IPv6 address of that end, in `fd00:0:1::/48`.
pub(super) fn link6(number: u32, side: Side) -> Ipv6Addr {
    Ipv6Addr::from(LINKS6 + u128::from(of_pair(number, side)))
}

/// The Ethernet address of one end of the link with this number: locally administered (IEEE 802, 8.4), so
/// that no network card has it.
pub(super) fn mac(number: u32, side: Side) -> Mac {
    let [a, b, c, d] = of_pair(number, side).to_be_bytes();
    [0x02, 0x68, a, b, c, d]
}

fn of_pair(number: u32, side: Side) -> u32 {
    2 * number
        + match side {
            Side::A => 0,
            Side::B => 1,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{MAX_ADDED, MAX_ASES, MAX_LINKS, MAX_ROUTERS};

    #[test]
    fn addresses_of_ases() {
        assert_eq!(host(0).to_string(), "10.0.1.1");
        assert_eq!(host(255).to_string(), "10.1.0.1");
        assert_eq!(host6(0).to_string(), "fd00:0:0:1::1");
        let service = |index, router, underlay| service(index, router, underlay).to_string();
        assert_eq!(service(1, 0, Underlay::Ipv4), "10.0.2.254");
        assert_eq!(service(1, 1, Underlay::Ipv6), "fd00:0:0:2::fd");
        let last = MAX_ASES as u32 - 1;
        assert_eq!(service(last, 0, Underlay::Ipv4), "10.127.255.254");
        assert_eq!(
            service(last, MAX_ROUTERS as u32 - 1, Underlay::Ipv4),
            "10.127.255.101"
        );
        assert_eq!(host6(last).to_string(), "fd00:0:0:7fff::1");
    }

    #[test]
    fn added_hosts_are_between_the_host_and_the_routers() {
        assert_eq!(added(0, 0).0.to_string(), "10.0.1.2");
        assert_eq!(added(0, 1).1.to_string(), "fd00:0:0:1::3");
        let last = added(0, MAX_ADDED as u32 - 1);
        assert_eq!(last.0.to_string(), "10.0.1.100");
        let router = service(0, MAX_ROUTERS as u32 - 1, Underlay::Ipv4);
        assert!(IpAddr::from(last.0) < router, "{router}");
        let [near, far] = added_macs(0, 1);
        assert_ne!(near, far);
        assert_ne!(near, added_macs(0, 2)[0]);
        assert_ne!(near, added_macs(1, 1)[0]);
    }

    #[test]
    fn addresses_of_links() {
        assert_eq!(link(0, Side::A).to_string(), "10.128.0.0");
        assert_eq!(link(2, Side::B).to_string(), "10.128.0.5");
        assert_eq!(link6(2, Side::B).to_string(), "fd00:0:1::5");
        let last = (MAX_LINKS - 1) as u32;
        assert_eq!(link(last, Side::B).to_string(), "10.255.255.255");
    }
}
