//! The way to a peer as a finished header: written once, copied before every packet.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;

use super::{COMMON_HEADER, MAX_HEADER, Packet, Quote, SCMP, Sum, UDP, UDP_HEADER};
use crate::addr::ScionAddr;
use crate::dataplane;
use crate::path::Path;

/// The headers of packets from this host to one peer over one path, and where to hand them to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    peer: ScionAddr,
    next_hop: SocketAddr,
    /// SCION header, then UDP header; lengths and checksum zero.
    header: Box<[u8]>,
    /// Where the path begins in `header`.
    path_at: usize,
    /// Checksum over what no packet changes: pseudo-header addresses, protocol and ports.
    base: Sum,
}

/// Why there is no way to a peer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The path begins or ends in another AS.
    #[error("the path leads from {src} to {dst}, not from {local} to {peer}")]
    OtherEnds {
        /// Where the path begins.
        src: IsdAsn,
        /// Where the path ends.
        dst: IsdAsn,
        /// This host.
        local: ScionAddr,
        /// The peer.
        peer: ScionAddr,
    },
    /// The first hop has an address of the other family.
    #[error(
        "{next_hop} cannot be sent to from {local}, which is of another family: \
         say which address to send from"
    )]
    Family {
        /// The router, or the peer itself inside one AS.
        next_hop: SocketAddr,
        /// This host.
        local: ScionAddr,
    },
    /// The path is too long for a SCION header (1020 bytes).
    #[error("the path to {peer} makes a header of {bytes} bytes: at most {MAX_HEADER} fit")]
    HeaderTooLong {
        /// The peer.
        peer: ScionAddr,
        /// How long the header would be.
        bytes: usize,
    },
    /// Nothing can be sent back to where a packet came from.
    #[error("cannot answer {peer}: {reason}")]
    NoWayBack {
        /// The packet's sender.
        peer: ScionAddr,
        /// Why.
        reason: String,
    },
}

impl Route {
    /// The way from `local` to `peer` over `path`.
    ///
    /// # Errors
    /// [`RouteError`] when the path has other ends, is too long, or begins at a router that `local`
    /// has no address for.
    pub fn new(local: ScionAddr, peer: ScionAddr, path: &Path) -> Result<Self, RouteError> {
        let (src, dst) = (path.info().src, path.info().dst);
        if src != local.isd_as || dst != peer.isd_as {
            return Err(RouteError::OtherEnds {
                src,
                dst,
                local,
                peer,
            });
        }
        let next_hop = path.next_hop().unwrap_or(peer.host);
        if next_hop.is_ipv4() != local.host.is_ipv4() {
            return Err(RouteError::Family { next_hop, local });
        }
        Self::over(local, peer, path.raw(), next_hop)
    }

    /// The way back to the sender of `packet`, whose port is `port`, through `next_hop`.
    ///
    /// # Errors
    /// [`RouteError::NoWayBack`] when the packet's path cannot be turned round.
    pub fn back(
        local: ScionAddr,
        packet: &Packet<'_>,
        port: u16,
        next_hop: SocketAddr,
    ) -> Result<Self, RouteError> {
        let host = packet.src_host().unwrap_or(next_hop.ip());
        let peer = ScionAddr::new(packet.src_as(), SocketAddr::new(host, port));
        let no_way_back = |reason: String| RouteError::NoWayBack { peer, reason };
        packet
            .src_host()
            .map_err(|error| no_way_back(error.to_string()))?;
        let mut path = packet.path().to_vec();
        match packet.path_type() {
            0 if path.is_empty() => {}
            1 => dataplane::reverse(&mut path).map_err(|error| no_way_back(error.to_string()))?,
            kind => return Err(no_way_back(format!("path type {kind} has no way back"))),
        }
        Self::over(local, peer, &path, next_hop)
    }

    fn over(
        local: ScionAddr,
        peer: ScionAddr,
        path: &[u8],
        next_hop: SocketAddr,
    ) -> Result<Self, RouteError> {
        let mut header = Vec::with_capacity(MAX_HEADER + UDP_HEADER);
        let kind = |ip: IpAddr| if ip.is_ipv4() { 0b0000 } else { 0b0011 };
        // One flow per route, so that routers that spread work keep its packets in order; never
        // zero, which means none.
        let flow = flow(local, peer, path);
        header.extend_from_slice(&flow.to_be_bytes());
        header.extend_from_slice(&[UDP, 0, 0, 0]);
        let path_type = u8::from(!path.is_empty());
        let kinds = kind(peer.host.ip()) << 4 | kind(local.host.ip());
        header.extend_from_slice(&[path_type, kinds, 0, 0]);
        header.extend_from_slice(&peer.isd_as.to_be_bytes());
        header.extend_from_slice(&local.isd_as.to_be_bytes());
        for host in [peer.host.ip(), local.host.ip()] {
            match host {
                IpAddr::V4(ip) => header.extend_from_slice(&ip.octets()),
                IpAddr::V6(ip) => header.extend_from_slice(&ip.octets()),
            }
        }
        let path_at = header.len();
        header.extend_from_slice(path);
        let bytes = header.len();
        if bytes > MAX_HEADER || bytes % 4 != 0 {
            return Err(RouteError::HeaderTooLong { peer, bytes });
        }
        header[5] = (bytes / 4) as u8;
        header.extend_from_slice(&local.host.port().to_be_bytes());
        header.extend_from_slice(&peer.host.port().to_be_bytes());
        header.extend_from_slice(&[0; 4]);
        let base = Sum::default()
            .add(&header[COMMON_HEADER..path_at])
            .add_upper(0, UDP)
            .add_u16(local.host.port())
            .add_u16(peer.host.port());
        Ok(Self {
            peer,
            next_hop,
            header: header.into(),
            path_at,
            base,
        })
    }

    /// Who is at the end of the way.
    pub fn peer(&self) -> ScionAddr {
        self.peer
    }

    /// The underlay address packets are handed to.
    pub fn next_hop(&self) -> SocketAddr {
        self.next_hop
    }

    /// The data-plane path, as it leaves this host.
    pub fn path(&self) -> &[u8] {
        &self.header[self.path_at..self.scion_header_len()]
    }

    /// The path in a packet that [`Route::scmp`] made.
    pub(crate) fn path_in<'a>(&self, packet: &'a mut [u8]) -> &'a mut [u8] {
        &mut packet[self.path_at..self.scion_header_len()]
    }

    /// Whether the packet that `quote` is of went to this route's peer and over the very path of
    /// this route, not over an older or newer one with the same interfaces.
    pub fn leads(&self, quote: &Quote<'_>) -> bool {
        quote.dst == self.peer && dataplane::same_path(self.path(), quote.path())
    }

    /// Bytes each packet has before its payload: SCION and UDP headers.
    pub fn overhead(&self) -> usize {
        self.header.len()
    }

    /// The largest payload of packets of `mtu` bytes, headers included.
    pub fn max_payload(&self, mtu: u16) -> u16 {
        let overhead = u16::try_from(self.overhead()).unwrap_or(u16::MAX);
        mtu.saturating_sub(overhead)
    }

    fn scion_header_len(&self) -> usize {
        self.header.len() - UDP_HEADER
    }

    /// Appends a packet with `payload` and the congestion mark `ecn` (two bits) to `out`.
    ///
    /// `payload` must fit a packet: SCION's length field counts to 65535.
    #[inline]
    pub fn write(&self, payload: &[u8], ecn: u8, out: &mut Vec<u8>) {
        let at = out.len();
        let udp_at = at + self.scion_header_len();
        let length = (UDP_HEADER + payload.len()) as u16;
        // The length counts twice: in the pseudo-header and in the UDP header.
        let checksum = self
            .base
            .add_u16(length)
            .add_u16(length)
            .add(payload)
            .checksum();
        out.extend_from_slice(&self.header);
        out[at + 1] |= (ecn & 0b11) << 4;
        out[at + 6..at + 8].copy_from_slice(&length.to_be_bytes());
        out[udp_at + 4..udp_at + 6].copy_from_slice(&length.to_be_bytes());
        out[udp_at + 6..udp_at + 8].copy_from_slice(&checksum);
        out.extend_from_slice(payload);
    }

    /// A packet with the SCMP `message`, whose checksum field (bytes 2 and 3) is filled in.
    pub fn scmp(&self, message: &[u8]) -> Vec<u8> {
        let header_len = self.scion_header_len();
        let mut packet = self.header[..header_len].to_vec();
        packet[4] = SCMP;
        packet[6..8].copy_from_slice(&(message.len() as u16).to_be_bytes());
        packet.extend_from_slice(message);
        packet[header_len + 2..header_len + 4].fill(0);
        let checksum = Sum::default()
            .add(&packet[COMMON_HEADER..self.path_at])
            .add_upper(message.len() as u16, SCMP)
            .add(&packet[header_len..])
            .checksum();
        packet[header_len + 2..header_len + 4].copy_from_slice(&checksum);
        packet
    }
}

/// 20 bits that tell this route's packets from others'. Not secret, only spread out.
fn flow(local: ScionAddr, peer: ScionAddr, path: &[u8]) -> u32 {
    let mut hasher = DefaultHasher::new();
    (local, peer, path).hash(&mut hasher);
    ((hasher.finish() & 0xf_ffff) as u32).max(1)
}

#[cfg(test)]
pub(super) mod tests;
