//! Addresses by number.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use hawser_address::{IsdAsn, ScionAddr};

use crate::address::Address;

/// An address that follows from a number.
pub(crate) trait Numbered: Address {
    /// The address with this number, which no other number has. It is not local.
    fn numbered(number: u32) -> Self;
}

impl Numbered for SocketAddrV4 {
    fn numbered(number: u32) -> Self {
        let numbers = (0..).map(|step| number + (step << 24));
        let addrs = numbers.map(|number| Self::new(number.wrapping_mul(0x9e37_79b1).into(), 6881));
        let usable = |addr: &Self| addr.is_reachable() && !addr.is_local();
        addrs.into_iter().find(usable).unwrap()
    }
}

impl Numbered for SocketAddrV6 {
    fn numbered(number: u32) -> Self {
        let mixed = u128::from(number.wrapping_mul(0x9e37_79b1));
        Self::new((0x2001_0db8 << 96 | mixed << 64 | 1).into(), 6881, 0, 0)
    }
}

impl Numbered for ScionAddr {
    /// Hosts of 16 ASes, 4 in a /24.
    fn numbered(number: u32) -> Self {
        let isd_as = IsdAsn(0x0001_ff00_0000_0100 + u64::from(number % 16));
        let host = number / 16;
        let ip = Ipv4Addr::from(0x0a00_0001 + ((host / 4) << 8) + host % 4);
        Self::new(isd_as, SocketAddr::new(IpAddr::V4(ip), 31000))
    }
}
