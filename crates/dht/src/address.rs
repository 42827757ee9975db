//! The kinds of addresses that a DHT can have.

use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use hawser_address::{PeerAddr, ScionAddr, compact_ip, ip_from_compact};

/// The address of a node: IP address (and AS, for SCION) and UDP port.
pub trait Address: Copy + Ord + Hash + fmt::Debug + fmt::Display {
    /// The key of the list of nodes in an answer.
    const NODES_KEY: &'static str;
    /// Most nodes of one [`network`](Self::network) in a bucket of the routing table.
    const MAX_PER_BUCKET: usize;

    /// The compact form, which `values` and `ip` hold.
    fn compact(self) -> Vec<u8>;

    /// Reads a compact address that fills `bytes`; `None` if they are not one.
    fn from_compact(bytes: &[u8]) -> Option<Self>;

    /// Appends the address as the list of nodes holds it.
    fn append_to(self, out: &mut Vec<u8>);

    /// Reads an address from the front of a list of nodes: the address, and the bytes after it.
    fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])>;

    /// The same host, with this port.
    fn with_port(self, port: u16) -> Self;

    /// The addresses that one host can be assumed to have all of, as an address with port 0; of a
    /// [local](Self::is_local) address itself, since limits do not apply to these.
    fn host(self) -> Self;

    /// The addresses that count as one against limits, as an address with port 0; of a
    /// [local](Self::is_local) address itself.
    ///
    /// As in libtorrent, this is the /24 of an IPv4 and the /64 of an IPv6 address.
    fn network(self) -> Self;

    /// Whether the address has a meaning only near to its host: no limit and no rule for ids
    /// applies to it, and only nodes with such addresses may name others.
    fn is_local(self) -> bool;

    /// Whether a node or a peer could be reached there.
    fn is_reachable(self) -> bool;

    /// The CRC from which the first 21 bits of a node's id follow (BEP 42); of `random`, only the
    /// low 3 bits count. `None` if any id may be used.
    ///
    /// It is the CRC32-C of the masked IP address (IPv4: all 4 bytes, masked with `03 0f 3f ff`;
    /// IPv6: the first 8 bytes, masked with `01 03 07 0f 1f 3f 7f ff`), with `random` in the upper
    /// 3 bits of its first byte. A SCION address has its ISD-AS (8 bytes, big-endian) before that.
    fn id_hash(self, random: u8) -> Option<u32>;

    /// The address as that of a peer.
    fn to_peer(self) -> PeerAddr;

    /// The address of a peer, if it is of this kind.
    fn from_peer(peer: PeerAddr) -> Option<Self>;
}

impl Address for SocketAddrV4 {
    const NODES_KEY: &'static str = "nodes";
    const MAX_PER_BUCKET: usize = 1;

    fn compact(self) -> Vec<u8> {
        compact_ip(self.into())
    }

    fn from_compact(bytes: &[u8]) -> Option<Self> {
        match ip_from_compact(bytes)? {
            SocketAddr::V4(addr) => Some(addr),
            SocketAddr::V6(_) => None,
        }
    }

    fn append_to(self, out: &mut Vec<u8>) {
        out.extend(self.compact());
    }

    fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (addr, rest) = bytes.split_at_checked(6)?;
        Some((Self::from_compact(addr)?, rest))
    }

    fn with_port(self, port: u16) -> Self {
        Self::new(*self.ip(), port)
    }

    fn host(self) -> Self {
        if self.is_local() {
            return self;
        }
        self.with_port(0)
    }

    fn network(self) -> Self {
        if self.is_local() {
            return self;
        }
        Self::new(network_v4(*self.ip()), 0)
    }

    fn is_local(self) -> bool {
        let ip = self.ip();
        ip.is_private() || ip.is_loopback() || ip.is_link_local()
    }

    fn is_reachable(self) -> bool {
        PeerAddr::Ip(self.into()).is_reachable()
    }

    fn id_hash(self, random: u8) -> Option<u32> {
        let masked = masked_v4(*self.ip(), random);
        (!self.is_local()).then(|| crc32c(&[&masked]))
    }

    fn to_peer(self) -> PeerAddr {
        PeerAddr::Ip(self.into())
    }

    fn from_peer(peer: PeerAddr) -> Option<Self> {
        let addr = peer.ip()?;
        match addr.ip().to_canonical() {
            IpAddr::V4(ip) => Some(Self::new(ip, addr.port())),
            IpAddr::V6(_) => None,
        }
    }
}

impl Address for SocketAddrV6 {
    const NODES_KEY: &'static str = "nodes6";
    const MAX_PER_BUCKET: usize = 1;

    fn compact(self) -> Vec<u8> {
        compact_ip(self.into())
    }

    fn from_compact(bytes: &[u8]) -> Option<Self> {
        match ip_from_compact(bytes)? {
            SocketAddr::V6(addr) => Some(addr),
            SocketAddr::V4(_) => None,
        }
    }

    fn append_to(self, out: &mut Vec<u8>) {
        out.extend(self.compact());
    }

    fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (addr, rest) = bytes.split_at_checked(18)?;
        Some((Self::from_compact(addr)?, rest))
    }

    fn with_port(self, port: u16) -> Self {
        Self::new(*self.ip(), port, 0, self.scope_id())
    }

    fn host(self) -> Self {
        self.network()
    }

    fn network(self) -> Self {
        if self.is_local() {
            return self;
        }
        Self::new(network_v6(*self.ip()), 0, 0, 0)
    }

    fn is_local(self) -> bool {
        let ip = self.ip();
        ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
    }

    fn is_reachable(self) -> bool {
        let mapped = self.ip().to_ipv4_mapped().is_some();
        !mapped && PeerAddr::Ip(self.into()).is_reachable()
    }

    fn id_hash(self, random: u8) -> Option<u32> {
        let masked = masked_v6(*self.ip(), random);
        (!self.is_local()).then(|| crc32c(&[&masked]))
    }

    fn to_peer(self) -> PeerAddr {
        PeerAddr::Ip(self.into())
    }

    fn from_peer(peer: PeerAddr) -> Option<Self> {
        match peer.ip()? {
            SocketAddr::V6(addr) if addr.ip().to_ipv4_mapped().is_none() => Some(addr),
            _ => None,
        }
    }
}

impl Address for ScionAddr {
    const NODES_KEY: &'static str = "nodes_scion";
    /// Hosts of an AS are often numbered from one /24.
    const MAX_PER_BUCKET: usize = 2;

    fn compact(self) -> Vec<u8> {
        self.compact()
    }

    fn from_compact(bytes: &[u8]) -> Option<Self> {
        Self::from_compact(bytes)
    }

    fn append_to(self, out: &mut Vec<u8>) {
        let compact = self.compact();
        out.push(compact.len() as u8);
        out.extend(compact);
    }

    fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = bytes.split_first()?;
        let (addr, rest) = rest.split_at_checked(usize::from(*length))?;
        Some((Self::from_compact(addr)?, rest))
    }

    fn with_port(self, port: u16) -> Self {
        Self::new(self.isd_as, SocketAddr::new(self.host.ip(), port))
    }

    fn host(self) -> Self {
        if self.is_local() {
            return self;
        }
        Self::network(self)
    }

    /// The AS, and the /24 or /64 of the host in it.
    fn network(self) -> Self {
        if self.is_local() {
            return self;
        }
        let ip = match self.host.ip().to_canonical() {
            IpAddr::V4(ip) => IpAddr::V4(network_v4(ip)),
            IpAddr::V6(ip) => IpAddr::V6(network_v6(ip)),
        };
        Self::new(self.isd_as, SocketAddr::new(ip, 0))
    }

    /// Loopback and link-local hosts. A host with a private IP address is reachable from every AS,
    /// so it is not local.
    fn is_local(self) -> bool {
        match self.host.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
        }
    }

    fn is_reachable(self) -> bool {
        let mapped = matches!(self.host.ip(), IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
        !mapped && PeerAddr::Scion(self).is_reachable()
    }

    fn id_hash(self, random: u8) -> Option<u32> {
        if self.is_local() {
            return None;
        }
        let isd_as = self.isd_as.to_be_bytes();
        Some(match self.host.ip().to_canonical() {
            IpAddr::V4(ip) => crc32c(&[&isd_as, &masked_v4(ip, random)]),
            IpAddr::V6(ip) => crc32c(&[&isd_as, &masked_v6(ip, random)]),
        })
    }

    fn to_peer(self) -> PeerAddr {
        PeerAddr::Scion(self)
    }

    fn from_peer(peer: PeerAddr) -> Option<Self> {
        peer.scion()
    }
}

fn network_v4(ip: Ipv4Addr) -> Ipv4Addr {
    (u32::from(ip) & 0xffff_ff00).into()
}

fn network_v6(ip: Ipv6Addr) -> Ipv6Addr {
    (u128::from(ip) >> 64 << 64).into()
}

fn masked_v4(ip: Ipv4Addr, random: u8) -> [u8; 4] {
    let masked = u32::from(ip) & 0x030f_3fff | u32::from(random & 7) << 29;
    masked.to_be_bytes()
}

fn masked_v6(ip: Ipv6Addr, random: u8) -> [u8; 8] {
    let upper = (u128::from(ip) >> 64) as u64;
    let masked = upper & 0x0103_070f_1f3f_7fff | u64::from(random & 7) << 61;
    masked.to_be_bytes()
}

/// CRC32-C (Castagnoli), the bits of each byte from the lowest.
fn crc32c(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().copied().flatten();
    !bytes.fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let polynomial = if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            crc >> 1 ^ polynomial
        })
    })
}

#[cfg(test)]
mod tests {
    use hawser_address::IsdAsn;
    use proptest::prelude::*;

    use super::*;

    fn check<A: Address>(addr: A) {
        assert_eq!(A::from_compact(&addr.compact()), Some(addr));
        let mut list = Vec::new();
        addr.append_to(&mut list);
        list.push(7);
        assert_eq!(A::split_from(&list), Some((addr, &[7][..])));
        for same in [addr.host(), addr.network()] {
            assert_eq!(
                (same.host().network(), same.network()),
                (addr.network(), addr.network())
            );
        }
        assert_eq!(addr.is_local(), addr.id_hash(0).is_none());
        assert_eq!(addr.id_hash(1), addr.id_hash(9));
        let is_mapped = matches!(addr.to_peer(), PeerAddr::Ip(SocketAddr::V6(addr))
            if addr.ip().to_ipv4_mapped().is_some());
        assert_eq!(A::from_peer(addr.to_peer()).is_some(), !is_mapped);
        assert!(A::from_peer(addr.to_peer()).is_none_or(|same| same == addr));
    }

    proptest! {
        #[test]
        fn what_is_compact_is_read_back(isd_as: u64, v4: Ipv4Addr, v6: Ipv6Addr, port: u16) {
            check(SocketAddrV4::new(v4, port));
            check(SocketAddrV6::new(v6, port, 0, 0));
            for ip in [v4.into(), v6.into()] {
                check(ScionAddr::new(IsdAsn(isd_as), SocketAddr::new(ip, port)));
            }
        }

        #[test]
        fn any_bytes_are_addresses_or_not(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(SocketAddrV4::split_from(&bytes).is_some(), bytes.len() >= 6);
            prop_assert_eq!(SocketAddrV6::split_from(&bytes).is_some(), bytes.len() >= 18);
            if let Some((_, rest)) = ScionAddr::split_from(&bytes) {
                prop_assert!([15, 27].contains(&(bytes.len() - rest.len())));
            }
        }
    }

    #[test]
    fn the_crc_is_castagnolis() {
        // The check value of CRC-32/ISCSI.
        assert_eq!(crc32c(&[b"1234", b"56789"]), 0xe306_9283);
    }

    #[test]
    fn networks_are_counted_as_in_libtorrent() {
        let v4 = |text: &str| text.parse::<SocketAddrV4>().unwrap();
        assert_eq!(v4("93.184.216.34:1").network(), v4("93.184.216.0:0"));
        assert_eq!(v4("93.184.216.34:1").host(), v4("93.184.216.34:0"));
        assert_eq!(v4("192.168.1.7:1").network(), v4("192.168.1.7:1"));
        let v6 = |text: &str| text.parse::<SocketAddrV6>().unwrap();
        assert_eq!(v6("[2001:db8::1:2]:1").network(), v6("[2001:db8::]:0"));
        assert_eq!(v6("[fd00::1]:1").network(), v6("[fd00::1]:1"));
        let scion = |text: &str| text.parse::<ScionAddr>().unwrap();
        let [a, b, c] = ["110,10.0.0.1:1", "110,10.0.0.2:2", "111,10.0.0.1:1"]
            .map(|text| scion(&format!("1-ff00:0:{text}")));
        assert_eq!(Address::network(a), Address::network(b));
        assert_ne!(Address::network(a), Address::network(c));
        assert_ne!(a.host(), b.host());
        assert!(!a.is_local() && scion("1-ff00:0:110,127.0.0.1:1").is_local());
    }

    #[test]
    fn mapped_addresses_are_not_reachable() {
        let mapped: SocketAddrV6 = "[::ffff:1.2.3.4]:1".parse().unwrap();
        assert!(!mapped.is_reachable());
        let peer = PeerAddr::Ip(mapped.into());
        assert_eq!(SocketAddrV6::from_peer(peer), None);
        assert_eq!(SocketAddrV4::from_peer(peer), "1.2.3.4:1".parse().ok());
        let isd_as = "1-ff00:0:110".parse().unwrap();
        assert!(!ScionAddr::new(isd_as, mapped.into()).is_reachable());
    }
}
