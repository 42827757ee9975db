//! The SCION headers around a BFD packet.

use std::net::IpAddr;

use hawser_packet::header::{NewHeader, set_payload_len};
use hawser_packet::number::{next_header, path_type};
use hawser_packet::path::{HOP, HopKey, InfoField, ONE_HOP};
use hawser_topology::IsdAsn;

use super::packet::Control;

/// Traffic class 0xb8 (expedited forwarding) and flow label 0xdead, as scionproto writes them.
const FIRST_LINE: u32 = 0x0b80_dead;
/// Expiry of the first hop: 64 units of 337.5 s, that is 6 hours.
const EXP_TIME: u8 = 63;
/// The timestamp is this many seconds in the past: the neighbour's clock may be slow.
const AGE: u32 = 10;

/// The headers of all BFD packets of one session.
#[derive(PartialEq, Eq)]
pub(crate) struct Frame {
    /// All headers before the path.
    headers: Vec<u8>,
    /// The interface of the link to another AS; `None` inside the AS.
    interface: Option<u16>,
}

impl Frame {
    /// Frame from the router at `src` to the one at `dst`: with a one-hop path over the link at
    /// `interface`, or with an empty path inside the AS if that is `None`.
    pub fn new(src: (IsdAsn, IpAddr), dst: (IsdAsn, IpAddr), interface: Option<u16>) -> Self {
        let mut headers = Vec::new();
        NewHeader {
            first_line: FIRST_LINE,
            next_header: next_header::BFD,
            path_type: interface.map_or(path_type::EMPTY, |_| path_type::ONE_HOP),
            dst,
            src,
        }
        .write(&mut headers);
        let path = interface.map_or(0, |_| ONE_HOP);
        headers[5] = ((headers.len() + path) / 4) as u8;
        Self { headers, interface }
    }

    /// Writes the packet for `control` at `time`, in Unix seconds, into `out`.
    pub fn write(&self, control: Control, key: &HopKey, time: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.headers);
        if let Some(interface) = self.interface {
            let info = InfoField {
                cons_dir: true,
                peer: false,
                segment_id: 0,
                // 32 bits, as in the path format, last until 2106.
                timestamp: (time as u32).saturating_sub(AGE),
            };
            let first = key.hop_field(&info, EXP_TIME, 0, interface);
            out.extend(info.to_bytes());
            out.extend(first.to_bytes());
            // The receiver writes the second hop field.
            out.extend([0; HOP]);
        }
        let header_len = out.len();
        out.extend(control.to_bytes());
        set_payload_len(out, header_len);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

    use hawser_topology::AsDir;

    use super::super::packet::LENGTH;
    use super::*;

    /// Returns the recorded packet `name`; the file says where it was recorded.
    fn recorded(name: &str) -> Option<Vec<u8>> {
        let mut lines = include_str!("../../tests/recorded/scionproto.txt").lines();
        let hex = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        Some((0..hex.len()).step_by(2).map(byte).collect())
    }

    /// scionproto's routers write the same bytes for the same control packets.
    #[test]
    fn frames_equal_those_of_scionproto() {
        let folder = tempfile::tempdir().unwrap();
        let dir = AsDir::new(folder.path());
        let [core, child] = [0x1_ff00_0000_0110, 0x1_ff00_0000_0111].map(IsdAsn);
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
                Frame::new((child, b), (core, a), Some(1)),
                Frame::new((child, a), (core, b), Some(1)),
            ];
            let sibling = [
                Frame::new((core, near), (core, far), None),
                Frame::new((core, far), (core, near), None),
            ];
            for (kind, frames) in [("link", link), ("sibling", sibling)] {
                for state in ["down", "init", "up"] {
                    let Some(theirs) = recorded(&format!("{family}.bfd.{kind}.{state}")) else {
                        continue;
                    };
                    let control = Control::parse(&theirs[theirs.len() - LENGTH..]).unwrap();
                    let path = frames[0].headers.len();
                    let stamp = theirs[path + 4..][..4].try_into().unwrap();
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
