//! A SCION packet as bytes: common, address and standard path headers.
//!
//! Offsets are those of the SCION header specification. Only what forwarding needs is read, in
//! place.

use std::net::IpAddr;

use crate::mac::MacInput;
use crate::reason::Reason;

/// Length of the common header.
pub(crate) const COMMON: usize = 12;
/// Length of the two ISD-AS numbers that begin the address header.
const ISD_ASES: usize = 16;
/// Offset of the destination ISD-AS.
pub(crate) const DST_IA: usize = COMMON;
/// Offset of the source ISD-AS.
pub(crate) const SRC_IA: usize = COMMON + 8;
/// Length of the meta header that begins a standard path.
pub(crate) const META: usize = 4;
/// Length of an info field.
pub(crate) const INFO: usize = 8;
/// Length of a hop field.
pub(crate) const HOP: usize = 12;
/// A standard path has at most 64 hops: the current hop is a 6-bit number.
pub(crate) const MAX_HOPS: usize = 64;

/// Path types of the common header.
pub(crate) const EMPTY_PATH: u8 = 0;
pub(crate) const STANDARD_PATH: u8 = 1;
pub(crate) const ONE_HOP_PATH: u8 = 2;

/// Length of a one-hop path: an info field and two hop fields.
pub(crate) const ONE_HOP: usize = INFO + 2 * HOP;

/// Next-header values.
pub(crate) const UDP: u8 = 17;
pub(crate) const TCP: u8 = 6;
pub(crate) const HOP_BY_HOP: u8 = 200;
pub(crate) const END_TO_END: u8 = 201;
pub(crate) const SCMP: u8 = 202;
pub(crate) const BFD: u8 = 203;

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

/// A host in the address header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    Ip(IpAddr),
    /// A service address; the multicast bit is kept.
    Service(u16),
}

/// Common and address headers, lengths checked against each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    /// Length of all SCION headers: where extensions or transport begin.
    pub len: usize,
    /// Offset of the path header.
    pub path: usize,
    pub path_type: u8,
    pub next: u8,
    pub payload_len: usize,
    pub dst_ia: u64,
    pub src_ia: u64,
    dst_type: u8,
    src_type: u8,
}

impl Header {
    /// Reads the headers of `packet`; it holds at least `len` bytes then.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<Self, Reason> {
        if packet.len() < COMMON + ISD_ASES + 8 {
            return Err(Reason::Malformed);
        }
        if packet[0] >> 4 != 0 {
            return Err(Reason::UnknownVersion);
        }
        let len = usize::from(packet[5]) * 4;
        let (dst_type, src_type) = (packet[9] >> 4, packet[9] & 0xf);
        let path = COMMON + ISD_ASES + host_len(dst_type) + host_len(src_type);
        if len < path || packet.len() < len {
            return Err(Reason::Malformed);
        }
        Ok(Self {
            len,
            path,
            path_type: packet[8],
            next: packet[4],
            payload_len: usize::from(u16_at(packet, 6)),
            dst_ia: u64_at(packet, DST_IA),
            src_ia: u64_at(packet, SRC_IA),
            dst_type,
            src_type,
        })
    }

    /// Where the destination host lies.
    pub fn dst_host_at(&self) -> usize {
        COMMON + ISD_ASES
    }

    /// Where the source host lies.
    pub fn src_host_at(&self) -> usize {
        self.dst_host_at() + host_len(self.dst_type)
    }

    /// Type of the source host, as the common header has it.
    pub fn src_type(&self) -> u8 {
        self.src_type
    }

    /// The destination host, unless its type is unknown.
    pub fn dst_host(&self, packet: &[u8]) -> Option<Host> {
        host(packet, self.dst_host_at(), self.dst_type)
    }

    /// The source host, unless its type is unknown.
    pub fn src_host(&self, packet: &[u8]) -> Option<Host> {
        host(packet, self.src_host_at(), self.src_type)
    }

    /// Kind and offset of the transport header, behind at most one hop-by-hop and one end-to-end
    /// extension, in this order.
    pub fn transport(&self, packet: &[u8]) -> Option<(u8, usize)> {
        let (mut next, mut at) = (self.next, self.len);
        for extension in [HOP_BY_HOP, END_TO_END] {
            if next == extension {
                let length = packet.get(at + 1)?;
                next = packet[at];
                at += (usize::from(*length) + 1) * 4;
            }
        }
        (at <= packet.len() && next != HOP_BY_HOP && next != END_TO_END).then_some((next, at))
    }
}

/// Host lengths are coded in the type's low two bits, in lines of four bytes.
#[inline]
fn host_len(kind: u8) -> usize {
    usize::from((kind & 3) + 1) * 4
}

#[inline]
fn host(packet: &[u8], at: usize, kind: u8) -> Option<Host> {
    match kind {
        0b0000 => Some(Host::Ip(IpAddr::from(
            <[u8; 4]>::try_from(&packet[at..at + 4]).ok()?,
        ))),
        0b0011 => Some(Host::Ip(IpAddr::from(
            <[u8; 16]>::try_from(&packet[at..at + 16]).ok()?,
        ))),
        0b0100 => Some(Host::Service(u16_at(packet, at))),
        _ => None,
    }
}

/// The meta header of a standard path, lengths checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    at: usize,
    pub current_info: usize,
    pub current_hop: usize,
    pub segments: [usize; 3],
    pub infos: usize,
    pub hops: usize,
}

impl Path {
    /// Reads the path of `packet`: segments without gaps, a length that fills the header exactly, a
    /// current hop that lies in the current segment.
    #[inline]
    pub fn parse(packet: &[u8], header: &Header) -> Result<Self, Reason> {
        let at = header.path;
        if header.len < at + META {
            return Err(Reason::MalformedPath);
        }
        let meta = u32_at(packet, at);
        let segments = [12, 6, 0].map(|shift| (meta >> shift & 0x3f) as usize);
        let infos = match segments {
            [0, ..] => 0,
            [_, 0, 0] => 1,
            [_, 0, _] => 0,
            [_, _, 0] => 2,
            _ => 3,
        };
        let path = Self {
            at,
            current_info: (meta >> 30) as usize,
            current_hop: (meta >> 24 & 0x3f) as usize,
            segments,
            infos,
            hops: segments.iter().sum(),
        };
        let whole = infos != 0
            && path.hops <= MAX_HOPS
            && at + META + INFO * infos + HOP * path.hops == header.len
            && path.current_hop < path.hops
            && path.current_info == path.info_of(path.current_hop);
        if whole {
            Ok(path)
        } else {
            Err(Reason::MalformedPath)
        }
    }

    /// Number of the segment that hop `hop` lies in.
    #[inline]
    pub fn info_of(&self, hop: usize) -> usize {
        if hop < self.segments[0] {
            0
        } else if hop < self.segments[0] + self.segments[1] {
            1
        } else {
            2
        }
    }

    /// Offset of info field `info` in the packet.
    #[inline]
    pub fn info_at(&self, info: usize) -> usize {
        self.at + META + INFO * info
    }

    /// Offset of hop field `hop` in the packet.
    #[inline]
    pub fn hop_at(&self, hop: usize) -> usize {
        self.at + META + INFO * self.infos + HOP * hop
    }

    /// Whether `hop` is the last of its segment, with another segment after.
    #[inline]
    pub fn changes_after(&self, hop: usize) -> bool {
        hop + 1 < self.hops && self.info_of(hop) != self.info_of(hop + 1)
    }

    /// Whether `hop` is the first of its segment, with another segment before.
    #[inline]
    pub fn changed_before(&self, hop: usize) -> bool {
        hop > 0 && self.info_of(hop) != self.info_of(hop - 1)
    }

    #[inline]
    pub fn info(&self, packet: &[u8], info: usize) -> Info {
        Info::read(packet, self.info_at(info))
    }

    #[inline]
    pub fn hop(&self, packet: &[u8], hop: usize) -> Hop {
        Hop::read(packet, self.hop_at(hop))
    }

    /// Makes `hop` the current one.
    #[inline]
    pub fn set_current(&self, packet: &mut [u8], hop: usize) {
        packet[self.at] = (self.info_of(hop) << 6 | hop) as u8;
    }

    /// Writes the accumulated segment identifier of segment `info`.
    #[inline]
    pub fn set_segment_id(&self, packet: &mut [u8], info: usize, id: u16) {
        let at = self.info_at(info) + 2;
        packet[at..at + 2].copy_from_slice(&id.to_be_bytes());
    }
}

/// An info field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Info {
    pub cons_dir: bool,
    pub peer: bool,
    pub segment_id: u16,
    pub timestamp: u32,
}

impl Info {
    /// Reads the info field at offset `at`.
    #[inline]
    pub fn read(packet: &[u8], at: usize) -> Self {
        Self {
            cons_dir: packet[at] & 1 != 0,
            peer: packet[at] & 2 != 0,
            segment_id: u16_at(packet, at + 2),
            timestamp: u32_at(packet, at + 4),
        }
    }
}

/// A hop field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hop {
    flags: u8,
    pub exp_time: u8,
    cons_ingress: u16,
    cons_egress: u16,
    pub mac: [u8; 6],
}

impl Hop {
    /// Reads the hop field at offset `at`.
    #[inline]
    pub fn read(packet: &[u8], at: usize) -> Self {
        let field = &packet[at..at + HOP];
        Self {
            flags: field[0],
            exp_time: field[1],
            cons_ingress: u16_at(field, 2),
            cons_egress: u16_at(field, 4),
            mac: [field[6], field[7], field[8], field[9], field[10], field[11]],
        }
    }

    /// The interface the packet comes in by, in direction of travel.
    #[inline]
    pub fn ingress(&self, info: &Info) -> u16 {
        if info.cons_dir {
            self.cons_ingress
        } else {
            self.cons_egress
        }
    }

    /// The interface the packet leaves by, in direction of travel.
    #[inline]
    pub fn egress(&self, info: &Info) -> u16 {
        if info.cons_dir {
            self.cons_egress
        } else {
            self.cons_ingress
        }
    }

    /// Whether the router of the ingress interface is to look at the packet.
    #[inline]
    pub fn ingress_alert(&self, info: &Info) -> bool {
        self.flags & if info.cons_dir { 2 } else { 1 } != 0
    }

    /// Whether the router of the egress interface is to look at the packet.
    #[inline]
    pub fn egress_alert(&self, info: &Info) -> bool {
        self.flags & if info.cons_dir { 1 } else { 2 } != 0
    }

    /// The next accumulated segment identifier, or, against construction direction, the one before
    /// (MAC chaining: XOR with the MAC's first two bytes).
    #[inline]
    pub fn chain(&self, segment_id: u16) -> u16 {
        segment_id ^ u16::from_be_bytes([self.mac[0], self.mac[1]])
    }

    #[inline]
    pub fn mac_input(&self, info: &Info) -> MacInput {
        MacInput {
            segment_id: info.segment_id,
            timestamp: info.timestamp,
            exp_time: self.exp_time,
            cons_ingress: self.cons_ingress,
            cons_egress: self.cons_egress,
        }
    }
}
