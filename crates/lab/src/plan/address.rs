//! The addresses of a plan.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hawser_topology::{Side, Underlay};

use super::layout::Mac;

/// Last byte of a host's address.
const HOST: u8 = 1;
/// Last byte of the address of the first border router and of the control service. For each further
/// router it is smaller by one.
const SERVICE: u8 = 254;
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
    use crate::plan::{MAX_ASES, MAX_LINKS, MAX_ROUTERS};

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
            "10.127.255.2"
        );
        assert_eq!(host6(last).to_string(), "fd00:0:0:7fff::1");
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
