//! The SCION headers around a BFD packet.

use std::net::IpAddr;

use super::packet::{Control, LENGTH};
use crate::mac::{HopKey, MacInput};
use crate::wire;

/// Traffic class 0xb8 (expedited forwarding) and flow label 0xdead, as scionproto has them.
const FIRST_LINE: u32 = 0x0b80_dead;
/// How long the first hop is valid: 63 and one units of 337.5 s.
const EXP_TIME: u8 = 63;
/// The path is this much older than it is, in seconds: clocks differ.
const AGE: u32 = 10;

/// The headers of all BFD packets of one session.
pub(crate) struct Frame {
    headers: Vec<u8>,
    /// Over a link to another AS: the interface.
    interface: Option<u16>,
    path: usize,
}

impl Frame {
    /// Over `interface`, which links this AS at `local` with `neighbour` at `remote`: on a one-hop
    /// path.
    pub fn external(
        isd_as: u64,
        local: IpAddr,
        neighbour: u64,
        remote: IpAddr,
        interface: u16,
    ) -> Self {
        let mut headers = addresses(wire::ONE_HOP_PATH, (isd_as, local), (neighbour, remote));
        let path = headers.len();
        headers.resize(path + wire::ONE_HOP, 0);
        headers[path] = 1; // in construction direction
        let hop = path + wire::INFO;
        headers[hop + 1] = EXP_TIME;
        headers[hop + 4..hop + 6].copy_from_slice(&interface.to_be_bytes());
        Self::whole(headers, Some(interface), path)
    }

    /// From this router at `local` to another of its AS at `remote`: on an empty path.
    pub fn internal(isd_as: u64, local: IpAddr, remote: IpAddr) -> Self {
        let headers = addresses(wire::EMPTY_PATH, (isd_as, local), (isd_as, remote));
        let path = headers.len();
        Self::whole(headers, None, path)
    }

    fn whole(mut headers: Vec<u8>, interface: Option<u16>, path: usize) -> Self {
        headers[5] = (headers.len() / 4) as u8;
        headers[6..8].copy_from_slice(&(LENGTH as u16).to_be_bytes());
        Self {
            headers,
            interface,
            path,
        }
    }

    /// Writes the packet for `control` at `time`, in Unix seconds, into `out`.
    pub fn write(&self, control: Control, key: &HopKey, time: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.headers);
        if let Some(interface) = self.interface {
            // The field is what the path format has, until 2106.
            let timestamp = (time as u32).saturating_sub(AGE);
            let mac = key.mac(&MacInput {
                segment_id: 0,
                timestamp,
                exp_time: EXP_TIME,
                cons_ingress: 0,
                cons_egress: interface,
            });
            let (info, hop) = (self.path, self.path + wire::INFO);
            out[info + 4..info + 8].copy_from_slice(&timestamp.to_be_bytes());
            out[hop + 6..hop + 12].copy_from_slice(&mac);
        }
        out.extend(control.to_bytes());
    }
}

/// Common and address headers, without lengths.
fn addresses(path_type: u8, src: (u64, IpAddr), dst: (u64, IpAddr)) -> Vec<u8> {
    let kind = |ip: IpAddr| if ip.is_ipv4() { 0b0000 } else { 0b0011 };
    let mut bytes = FIRST_LINE.to_be_bytes().to_vec();
    bytes.extend([wire::BFD, 0, 0, 0, path_type]);
    bytes.extend([kind(dst.1) << 4 | kind(src.1), 0, 0]);
    bytes.extend(dst.0.to_be_bytes());
    bytes.extend(src.0.to_be_bytes());
    for ip in [dst.1, src.1] {
        match ip {
            IpAddr::V4(ip) => bytes.extend(ip.octets()),
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

    use hawser_topology::AsDir;

    use super::*;

    /// Where these were recorded says the file.
    fn recorded(name: &str) -> Option<Vec<u8>> {
        let mut lines = include_str!("../../tests/recorded/scionproto.txt").lines();
        let hex = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        Some((0..hex.len()).step_by(2).map(byte).collect())
    }

    /// Routers of scionproto write the same bytes for the same words.
    #[test]
    fn frames_are_those_of_scionproto() {
        let folder = tempfile::tempdir().unwrap();
        let dir = AsDir::new(folder.path());
        let (core, child) = (0x1_ff00_0000_0110, 0x1_ff00_0000_0111);
        // The master key of AS 111.
        let master = 0xf6e0_a1e2_ac41_945a_9aa7_ff8a_8aaa_0ceb_u128;
        dir.write_master_key(&master.to_be_bytes()).unwrap();
        let key = HopKey::new(&dir.hop_key().unwrap());
        let mut compared = 0;
        for (family, ends, routers) in [
            ("v4", ["10.9.0.1", "10.9.0.2"], ["10.0.1.254", "10.0.1.253"]),
            (
                "v6",
                ["fd00:ff::1", "fd00:ff::2"],
                ["fd00:0:1::fe", "fd00:0:1::fd"],
            ),
        ] {
            let [a, b] = ends.map(|ip| ip.parse().unwrap());
            let [near, far] = routers.map(|ip| ip.parse().unwrap());
            let link = [
                Frame::external(child, b, core, a, 1),
                Frame::external(child, a, core, b, 1),
            ];
            let sibling = [
                Frame::internal(core, near, far),
                Frame::internal(core, far, near),
            ];
            for (kind, frames) in [("link", link), ("sibling", sibling)] {
                for state in ["down", "init", "up"] {
                    let Some(theirs) = recorded(&format!("{family}.bfd.{kind}.{state}")) else {
                        continue;
                    };
                    let control = Control::parse(&theirs[theirs.len() - LENGTH..]).unwrap();
                    let stamp = theirs[frames[0].path + 4..][..4].try_into().unwrap();
                    let time = u64::from(u32::from_be_bytes(stamp)) + u64::from(AGE);
                    let mut ours = Vec::new();
                    frames[0].write(control, &key, time, &mut ours);
                    assert_eq!(ours, theirs, "{family} {kind} {state}");
                    frames[1].write(control, &key, time, &mut ours);
                    assert_ne!(ours, theirs);
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 9);
    }
}
