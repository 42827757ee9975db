//! Compact addresses: the fixed-length binary forms that BitTorrent's messages hold.

use std::net::{IpAddr, SocketAddr};

use crate::{IsdAsn, PeerAddr, ScionAddr};

impl ScionAddr {
    /// The compact form, 14 bytes with an IPv4 host and 26 with an IPv6 host, all big-endian: ISD-AS
    /// (8 bytes), IP (4 or 16), port (2).
    pub fn compact(self) -> Vec<u8> {
        let mut out = self.isd_as.to_u64().to_be_bytes().to_vec();
        out.extend(compact_ip(self.host));
        out
    }

    /// Reads a compact address that fills `bytes`; `None` if the length is that of no such address.
    pub fn from_compact(bytes: &[u8]) -> Option<Self> {
        let (isd_as, host) = bytes.split_first_chunk::<8>()?;
        let isd_as = IsdAsn(u64::from_be_bytes(*isd_as));
        Some(Self::new(isd_as, ip_from_compact(host)?))
    }
}

/// The compact form of an IP socket address (BEP 23; BEP 7 for IPv6), 6 or 18 bytes, all big-endian:
/// IP (4 or 16 bytes), port (2).
pub fn compact_ip(addr: SocketAddr) -> Vec<u8> {
    let mut out = match addr.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    out.extend_from_slice(&addr.port().to_be_bytes());
    out
}

/// Reads a compact IP socket address that fills `bytes`; `None` if the length is that of no such
/// address.
pub fn ip_from_compact(bytes: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = bytes.split_last_chunk::<2>()?;
    let ip = match ip.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(ip).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(ip).ok()?),
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

impl PeerAddr {
    /// Whether a peer could be reached there: one host, a port other than 0, and for a SCION peer an
    /// AS that is not a wildcard.
    pub fn is_reachable(self) -> bool {
        let (host, one_as) = match self {
            Self::Scion(addr) => (addr.host, !addr.isd_as.is_wildcard()),
            Self::Ip(addr) => (addr, true),
        };
        let broadcast = matches!(host.ip(), IpAddr::V4(ip) if ip.is_broadcast());
        let one_host = !host.ip().is_unspecified() && !host.ip().is_multicast() && !broadcast;
        one_as && one_host && host.port() != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_compact_is_read_back(isd_as: u64, ip: IpAddr, port: u16) {
            let host = SocketAddr::new(ip, port);
            prop_assert_eq!(ip_from_compact(&compact_ip(host)), Some(host));
            let addr = ScionAddr::new(IsdAsn(isd_as), host);
            prop_assert_eq!(ScionAddr::from_compact(&addr.compact()), Some(addr));
        }

        #[test]
        fn only_the_lengths_of_addresses_are_read(
            bytes in proptest::collection::vec(any::<u8>(), 0..40)
        ) {
            let length = bytes.len();
            prop_assert_eq!(ip_from_compact(&bytes).is_some(), [6, 18].contains(&length));
            let scion = ScionAddr::from_compact(&bytes);
            prop_assert_eq!(scion.is_some(), [14, 26].contains(&length));
        }
    }

    #[test]
    fn no_peer_is_reachable_at_an_address_of_no_host() {
        let reachable = |text: &str| {
            let host: SocketAddr = text.parse().expect("an address");
            let ip = PeerAddr::Ip(host).is_reachable();
            let isd_as = "1-ff00:0:110".parse().expect("an AS");
            let scion = PeerAddr::Scion(ScionAddr::new(isd_as, host)).is_reachable();
            assert_eq!(ip, scion);
            ip
        };
        assert!(reachable("10.0.0.1:6881") && reachable("[fd00::1]:1"));
        for none in [
            "10.0.0.1:0",
            "0.0.0.0:6881",
            "255.255.255.255:6881",
            "224.0.0.1:6881",
            "[::]:6881",
            "[ff02::1]:6881",
        ] {
            assert!(!reachable(none), "{none}");
        }
        let host = "10.0.0.1:6881".parse().expect("an address");
        let wildcard = PeerAddr::Scion(ScionAddr::new(IsdAsn(0), host));
        assert!(!wildcard.is_reachable());
    }
}
