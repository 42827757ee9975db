//! The best goodput that limits and headers allow over a set of paths.
//!
//! Each link's limit counts Ethernet frames, once for all paths over it, so the ceiling is a linear
//! program: it maximises file bits per second over the wire rates of the paths, with no link above
//! its limit.

use hawser_lab::ip_route;
use hawser_path::Interface;
use hawser_path::simplex::maximize;
use hawser_topology::{IsdAsn, Network};

use crate::error::{During, ExperimentError};
use crate::transfer::{BulkPath, TransferPath};

/// Bytes around the SCION packet in a frame on a link: Ethernet, IPv4 and UDP headers. HTB does not
/// count preamble, checksum and gap.
pub const UNDERLAY: f64 = 14.0 + 20.0 + 8.0;

/// Bytes of the SCION headers without the path: the common header, addresses with IPv4 hosts, and
/// the SCION/UDP header.
pub const SCION_HEADERS: usize = 12 + 24 + 8;

/// Bytes of a full QUIC packet that are not stream data: flags, connection id, packet number,
/// STREAM frame (type, id, offset; one that fills its packet has no length), and the AEAD tag (RFC
/// 9000, 17.3.1 and 19.8).
pub const QUIC_HEADERS: usize = 1 + 8 + 2 + (1 + 1 + 4) + 16;

/// Bytes of a data packet of bulk transfer that are not content: its header, the position, and the
/// AEAD tag (docs/bulk-protocol.md, Datagrams).
const BULK_HEADERS: usize = 13 + 8 + 16;

/// Bytes around the TCP segment in a datagram of the shim: the sealed packet's header, slot and epoch,
/// and the AEAD tag.
pub const SHIM_HEADERS: usize = 13 + 2 + 16;

/// Bytes of the TCP header of a full MPTCP segment in the shim's compact form: flags, port, sequence
/// number, acknowledgement, window, data acknowledgement; the mapping's data sequence number, subflow
/// sequence number and length (docs/shim-protocol.md, Compact headers).
pub const MPTCP_HEADER: usize = 1 + 2 + 4 + 4 + 2 + 4 + (8 + 4 + 2);

/// Bytes of a link's MTU around the SCION packet.
const UNDERLAY_MTU: f64 = 20.0 + 8.0;

/// Bytes of a full TCP packet that are not stream data: IPv4, TCP and its timestamps (RFC 7323),
/// padded. The frame adds the Ethernet header.
pub const TCP_HEADERS: f64 = 20.0 + 20.0 + 12.0;

/// Bytes of an Ethernet header.
pub const ETHERNET: f64 = 14.0;

/// Bytes of a block, and of the header of its message (BEP 3).
const BLOCK: f64 = 16384.0;
const PIECE_HEADER: f64 = 13.0;

/// The cost of one path in the linear program.
pub struct PathCost {
    /// The interfaces that the path crosses, in pairs of link ends.
    pub interfaces: Vec<Interface>,
    /// Bytes of a full packet's frame.
    pub frame: f64,
    /// Bytes of the file in a full packet.
    pub payload: f64,
}

impl PathCost {
    /// The cost of a path that a download used.
    pub fn of(path: &TransferPath) -> Result<Self, ExperimentError> {
        let (Some(mtu), Some(path_bytes)) = (path.mtu, path.path_bytes) else {
            return Err(gone(&path.fingerprint));
        };
        let interfaces = parse(&path.interfaces)?;
        Ok(Self::blocks(interfaces, mtu, path_bytes))
    }

    /// The cost of a path that a bulk transfer used.
    pub fn bulk(path: &BulkPath) -> Result<Self, ExperimentError> {
        let (Some(mtu), Some(path_bytes)) = (path.mtu, path.path_bytes) else {
            return Err(gone(&path.fingerprint));
        };
        Ok(Self {
            interfaces: parse(&path.interfaces)?,
            ..Self::packet(mtu, path_bytes + BULK_HEADERS)
        })
    }

    /// The cost of a QUIC stream over a path, without its interfaces.
    pub fn quic(mtu: u16, path_bytes: usize) -> Self {
        Self::packet(mtu, path_bytes + QUIC_HEADERS)
    }

    /// The cost of an MPTCP connection through the shim over a path, without its interfaces.
    pub fn mptcp(mtu: u16, path_bytes: usize) -> Self {
        Self::packet(mtu, path_bytes + SHIM_HEADERS + MPTCP_HEADER)
    }

    /// The cost of SCION packets of `mtu` bytes with `headers` bytes besides the common ones.
    fn packet(mtu: u16, headers: usize) -> Self {
        Self {
            interfaces: Vec::new(),
            frame: f64::from(mtu) + UNDERLAY,
            payload: usize::from(mtu).saturating_sub(SCION_HEADERS + headers) as f64,
        }
    }

    /// The cost of BitTorrent's blocks by the same means.
    fn in_blocks(self) -> Self {
        Self {
            payload: self.payload * BLOCK / (BLOCK + PIECE_HEADER),
            ..self
        }
    }

    /// The cost of blocks over QUIC on a path with these interfaces, of this MTU and length in bytes.
    pub fn blocks(interfaces: Vec<Interface>, mtu: u16, path_bytes: usize) -> Self {
        Self {
            interfaces,
            ..Self::quic(mtu, path_bytes).in_blocks()
        }
    }

    /// The cost of blocks over plain TCP: see [`PathCost::tcp`].
    pub fn plain_tcp(network: &Network, from: IsdAsn, to: IsdAsn) -> Option<Self> {
        Self::tcp(network, from, to).map(Self::in_blocks)
    }

    /// The cost of plain TCP from one AS to another, over the links that IP takes in a lab; `None`
    /// if IP has no route.
    pub fn tcp(network: &Network, from: IsdAsn, to: IsdAsn) -> Option<Self> {
        let links = ip_route(network, from, to)?;
        let links = links.iter().filter_map(|&link| network.links.get(link));
        let mtu = links.clone().map(|link| link.mtu).min()?;
        let packet = f64::from(mtu) + UNDERLAY_MTU;
        Some(Self {
            interfaces: links
                .flat_map(|link| [&link.a, &link.b])
                .map(|end| Interface {
                    isd_as: end.isd_as,
                    id: end.id,
                })
                .collect(),
            frame: packet + ETHERNET,
            payload: packet - TCP_HEADERS,
        })
    }

    /// File bits per bit on the wire.
    pub fn efficiency(&self) -> f64 {
        self.payload / self.frame
    }
}

fn gone(fingerprint: &str) -> ExperimentError {
    let text = format!("path {fingerprint} is gone: no ceiling for it");
    ExperimentError::Step(text)
}

fn parse(interfaces: &[String]) -> Result<Vec<Interface>, ExperimentError> {
    let interfaces: Result<_, _> = interfaces.iter().map(|text| text.parse()).collect();
    interfaces.during("reading the report of a transfer")
}

/// The ceiling in bit/s of file data; `None` when some path has no limit at all.
pub fn ceiling(network: &Network, paths: &[PathCost]) -> Option<f64> {
    let mut limits: Vec<(usize, f64)> = Vec::new();
    let mut crossings: Vec<Vec<usize>> = Vec::new();
    for path in paths {
        let mut links: Vec<usize> = path
            .interfaces
            .iter()
            .filter_map(|i| network.link_at(i.isd_as, i.id).map(|(index, _)| index))
            .filter(|&index| network.links[index].shape.rate.is_some())
            .collect();
        links.sort_unstable();
        links.dedup();
        if links.is_empty() {
            return None;
        }
        for &link in &links {
            if limits.iter().all(|&(index, _)| index != link) {
                limits.push((link, network.links[link].shape.rate? as f64));
            }
        }
        crossings.push(links);
    }
    let rows: Vec<(Vec<f64>, f64)> = limits
        .iter()
        .map(|&(link, limit)| {
            let row = crossings
                .iter()
                .map(|links| f64::from(u8::from(links.contains(&link))))
                .collect();
            (row, limit)
        })
        .collect();
    let gain: Vec<f64> = paths.iter().map(PathCost::efficiency).collect();
    maximize(&gain, &rows).map(|(_, most)| most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(interfaces: &[&str]) -> PathCost {
        PathCost {
            interfaces: interfaces.iter().map(|i| i.parse().unwrap()).collect(),
            frame: 1472.0 + UNDERLAY,
            payload: 1316.0,
        }
    }

    const SHORT: [&str; 4] = [
        "1-ff00:0:4#1",
        "1-ff00:0:2#2",
        "1-ff00:0:2#1",
        "1-ff00:0:1#1",
    ];
    const OVER_C: [&str; 6] = [
        "1-ff00:0:4#2",
        "1-ff00:0:3#2",
        "1-ff00:0:3#1",
        "1-ff00:0:2#3",
        "1-ff00:0:2#1",
        "1-ff00:0:1#1",
    ];
    const LONG: [&str; 8] = [
        "1-ff00:0:4#3",
        "1-ff00:0:7#2",
        "1-ff00:0:7#1",
        "1-ff00:0:6#2",
        "1-ff00:0:6#1",
        "1-ff00:0:5#2",
        "1-ff00:0:5#1",
        "1-ff00:0:1#2",
    ];

    #[test]
    fn a_shared_link_counts_once() {
        let network = Network::ready("fig7a").unwrap();
        let share = 1316.0 / (1472.0 + UNDERLAY);
        let shared = ceiling(&network, &[path(&SHORT), path(&OVER_C)]).unwrap();
        assert!((shared - 10e6 * share).abs() < 1.0, "{shared}");
        let disjoint = ceiling(&network, &[path(&SHORT), path(&LONG)]).unwrap();
        assert!((disjoint - 30e6 * share).abs() < 1.0, "{disjoint}");
    }

    #[test]
    fn no_limit_has_no_ceiling() {
        let mut network = Network::ready("fig4").unwrap();
        let both = [
            path(&["1-ff00:0:110#1", "1-ff00:0:111#1"]),
            path(&["1-ff00:0:110#2", "1-ff00:0:111#2"]),
        ];
        assert!(ceiling(&network, &both).is_some());
        network.links[1].shape.rate = None;
        assert_eq!(ceiling(&network, &both), None);
    }

    #[test]
    fn plain_tcp_takes_one_route_and_counts_tcp_headers() {
        let goodput = |network: &str, from: &str, to: &str| {
            let network = Network::ready(network).unwrap();
            let ends = [from, to].map(|text| text.parse().unwrap());
            let cost = PathCost::plain_tcp(&network, ends[0], ends[1])?;
            ceiling(&network, &[cost])
        };
        // 1500 bytes of IP in a frame of 1514.
        let share = 1448.0 / 1514.0 * 16384.0 / 16397.0;
        let neighbours = goodput("fig4", "1-ff00:0:110", "1-ff00:0:111").unwrap();
        assert!((neighbours - 300e6 * share).abs() < 1.0, "{neighbours}");
        let over_b = goodput("fig7a", "1-ff00:0:4", "1-ff00:0:1").unwrap();
        assert!((over_b - 10e6 * share).abs() < 1.0, "{over_b}");
        assert_eq!(goodput("fig4", "1-ff00:0:110", "1-ff00:0:110"), None);
        assert_eq!(goodput("fig4", "1-ff00:0:110", "1-ff00:0:9"), None);
    }
}
