//! The bytes of a full packet, by what they are for.

use super::carrier::MptcpCarrier;
use crate::ceiling::{
    ETHERNET, MPTCP_HEADER, PathCost, QUIC_HEADERS, SCION_HEADERS, SHIM_HEADERS, TCP_HEADERS,
    UNDERLAY,
};
use crate::shape::{Columns, Format};

/// The bytes of a full frame of one carrier on a link.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeaderRow {
    /// The carrier.
    pub carrier: MptcpCarrier,
    /// The frame, as limits count it.
    pub frame: usize,
    /// Ethernet, IP and UDP around the SCION packet; Ethernet and IP around plain TCP.
    pub underlay: usize,
    /// SCION's common header, addresses and UDP header.
    pub scion: usize,
    /// The path in the SCION header.
    pub path: usize,
    /// What encrypts and authenticates: the shim's sealed packet with its slot, or QUIC's packet with
    /// its frame.
    pub seal: usize,
    /// TCP with its options; the shim's compact form of it.
    pub tcp: usize,
    /// What a program sends.
    pub payload: usize,
    /// The share of the frame that is not payload.
    pub overhead: f64,
    /// The share that is neither payload nor the path.
    pub overhead_without_path: f64,
}

impl HeaderRow {
    /// The frame of a carrier with this cost; `path` is the length of the path.
    pub fn new(carrier: MptcpCarrier, cost: &PathCost, path: usize) -> Self {
        let (frame, payload) = (cost.frame as usize, cost.payload as usize);
        let (underlay, scion, path, seal, tcp) = match carrier {
            MptcpCarrier::Mptcp => {
                let underlay = UNDERLAY as usize;
                (underlay, SCION_HEADERS, path, SHIM_HEADERS, MPTCP_HEADER)
            }
            MptcpCarrier::Quic | MptcpCarrier::Streams => {
                (UNDERLAY as usize, SCION_HEADERS, path, QUIC_HEADERS, 0)
            }
            MptcpCarrier::Tcp => {
                // The headers of TCP are counted with those of IPv4.
                let ip = 20;
                (ETHERNET as usize + ip, 0, 0, 0, TCP_HEADERS as usize - ip)
            }
        };
        let share = |bytes: usize| bytes as f64 / frame as f64;
        Self {
            carrier,
            frame,
            underlay,
            scion,
            path,
            seal,
            tcp,
            payload,
            overhead: share(frame - payload),
            overhead_without_path: share(frame - payload - path),
        }
    }
}

pub(super) fn columns() -> Columns<HeaderRow> {
    use Format::{Name, Number, Percent};
    let carrier = |row: &HeaderRow| row.carrier.to_string();
    Columns::new()
        .both("carrier", "carrier", Name, carrier)
        .both("frame", "frame", Number(0), |row| row.frame)
        .both("underlay", "underlay", Number(0), |row| row.underlay)
        .both("scion", "scion", Number(0), |row| row.scion)
        .both("path", "path", Number(0), |row| row.path)
        .both("seal", "seal", Number(0), |row| row.seal)
        .both("tcp", "tcp", Number(0), |row| row.tcp)
        .both("payload", "payload", Number(0), |row| row.payload)
        .both("overhead", "overhead", Percent(1), |row| row.overhead)
        .both(
            "overhead_without_path",
            "without the path",
            Percent(1),
            |row| row.overhead_without_path,
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{LinkSpec, fan};

    #[test]
    fn the_parts_of_a_frame_add_up() {
        let network = fan(1, LinkSpec::new(20.0, 10)).unwrap();
        let ends = ["1-ff00:0:111", "1-ff00:0:110"].map(|text| text.parse().unwrap());
        // Three hops of one segment: 4 + 8 + 3 * 12 bytes.
        let (mtu, path) = (network.links[0].mtu, 48);
        for (carrier, cost) in [
            (MptcpCarrier::Mptcp, PathCost::mptcp(mtu, path)),
            (MptcpCarrier::Quic, PathCost::quic(mtu, path)),
            (
                MptcpCarrier::Tcp,
                PathCost::tcp(&network, ends[0], ends[1]).unwrap(),
            ),
        ] {
            let row = HeaderRow::new(carrier, &cost, path);
            let parts = [
                row.underlay,
                row.scion,
                row.path,
                row.seal,
                row.tcp,
                row.payload,
            ];
            assert_eq!(parts.iter().sum::<usize>(), row.frame, "{row:?}");
            assert_eq!(row.frame, 1514);
        }
        let shim = HeaderRow::new(MptcpCarrier::Mptcp, &PathCost::mptcp(mtu, path), path);
        assert_eq!(shim.payload, 1318);
        assert!(
            shim.overhead < 0.13 && shim.overhead_without_path < 0.10,
            "{shim:?}"
        );
    }
}
