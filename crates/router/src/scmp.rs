//! SCMP messages the router sends, as bytes (SCION Control Message Protocol).

use std::net::IpAddr;

use crate::forward::{Answer, Forwarder, Origin};
use crate::reason::Reason;
use crate::wire::{self, COMMON, HOP, Header, Host, INFO, META, Path, u16_at};

pub(crate) const DESTINATION_UNREACHABLE: u8 = 1;
pub(crate) const PACKET_TOO_BIG: u8 = 2;
pub(crate) const PARAMETER_PROBLEM: u8 = 4;
pub(crate) const INTERFACE_DOWN: u8 = 5;
pub(crate) const CONNECTIVITY_DOWN: u8 = 6;
pub(crate) const ECHO_REQUEST: u8 = 128;
pub(crate) const ECHO_REPLY: u8 = 129;
pub(crate) const TRACEROUTE_REQUEST: u8 = 130;
pub(crate) const TRACEROUTE_REPLY: u8 = 131;

/// An error message, with its SCION header, is at most this long.
const MAX_ERROR: usize = 1232;
/// Type, code and checksum.
const HEAD: usize = 4;
/// Length of a traceroute message.
const TRACEROUTE: usize = HEAD + 20;

/// Codes of destination unreachable (the first two) and parameter problem.
pub(crate) mod code {
    pub const NO_ROUTE: u8 = 0;
    pub const ADDRESS_UNREACHABLE: u8 = 3;
    pub const INVALID_PACKET_SIZE: u8 = 19;
    pub const INVALID_SOURCE: u8 = 33;
    pub const INVALID_DESTINATION: u8 = 34;
    pub const INVALID_PATH: u8 = 48;
    pub const UNKNOWN_CONS_INGRESS: u8 = 49;
    pub const UNKNOWN_CONS_EGRESS: u8 = 50;
    pub const INVALID_MAC: u8 = 51;
    pub const PATH_EXPIRED: u8 = 52;
    pub const INVALID_SEGMENT_CHANGE: u8 = 53;
}

/// What the source of a dropped packet is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Destination unreachable, with its code.
    Unreachable(u8),
    /// Packet too big: the egress link's MTU, in bytes.
    PacketTooBig(u16),
    /// Parameter problem: its code, and the offset of the field in question.
    Parameter {
        /// As the SCMP specification numbers them.
        code: u8,
        /// Offset in the packet, in bytes.
        pointer: u16,
    },
    /// External interface down: its number.
    InterfaceDown(u16),
    /// Internal connectivity down: from the router of one interface to that of the other.
    ConnectivityDown {
        /// Where the packet came in; 0: from a host of the AS.
        ingress: u16,
        /// Where it was to leave.
        egress: u16,
    },
}

impl Problem {
    /// A parameter problem at an offset within the headers, which are at most 1020 bytes long.
    #[inline]
    pub(crate) fn parameter(code: u8, pointer: usize) -> Self {
        Self::Parameter {
            code,
            pointer: pointer as u16,
        }
    }
}

/// Length of what follows the first four bytes of an SCMP error and precedes the quoted packet;
/// none for other messages.
pub(crate) fn info_length(kind: u8) -> Option<usize> {
    match kind {
        DESTINATION_UNREACHABLE | PACKET_TOO_BIG | PARAMETER_PROBLEM => Some(4),
        INTERFACE_DOWN => Some(16),
        CONNECTIVITY_DOWN => Some(24),
        _ => None,
    }
}

/// Whether `packet` is a whole echo request.
pub(crate) fn asks_echo(packet: &[u8], header: &Header) -> bool {
    asks(packet, header, ECHO_REQUEST, HEAD + 4)
}

/// Whether `packet` is a whole traceroute request.
pub(crate) fn asks_route(packet: &[u8], header: &Header) -> bool {
    asks(packet, header, TRACEROUTE_REQUEST, TRACEROUTE)
}

fn asks(packet: &[u8], header: &Header, kind: u8, length: usize) -> bool {
    match header.transport(packet) {
        Some((wire::SCMP, at)) => {
            let message = &packet[at..];
            message.len() >= length && message[..2] == [kind, 0]
        }
        _ => false,
    }
}

impl Forwarder {
    /// Writes into `out` the message that tells the source of `packet`, which came from `origin`,
    /// of `problem`. It goes back there.
    ///
    /// # Errors
    /// A reason when the packet must not be answered: it is an SCMP error itself, or its source is
    /// no single host.
    pub fn write_error(
        &self,
        origin: impl Into<Origin>,
        packet: &[u8],
        problem: Problem,
        out: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        let header = Header::parse(packet).map_err(|_| Reason::ScmpNotAnswered)?;
        match header.transport(packet) {
            // The types of error messages have no top bit.
            Some((wire::SCMP, at)) if packet.get(at).is_none_or(|kind| kind & 0x80 == 0) => {
                return Err(Reason::ScmpNotAnswered);
            }
            _ => {}
        }
        let start = self.begin(origin.into(), packet, &header, out)?;
        match problem {
            Problem::Unreachable(code) => {
                out.extend([DESTINATION_UNREACHABLE, code, 0, 0, 0, 0, 0, 0]);
            }
            Problem::PacketTooBig(mtu) => {
                out.extend([PACKET_TOO_BIG, 0, 0, 0, 0, 0]);
                out.extend(mtu.to_be_bytes());
            }
            Problem::Parameter { code, pointer } => {
                out.extend([PARAMETER_PROBLEM, code, 0, 0, 0, 0]);
                out.extend(pointer.to_be_bytes());
            }
            Problem::InterfaceDown(id) => {
                out.extend([INTERFACE_DOWN, 0, 0, 0]);
                self.write_interface(id, out);
            }
            Problem::ConnectivityDown { ingress, egress } => {
                out.extend([CONNECTIVITY_DOWN, 0, 0, 0]);
                self.write_interface(ingress, out);
                out.extend(u64::from(egress).to_be_bytes());
            }
        }
        let quote = packet.len().min(MAX_ERROR.saturating_sub(out.len()));
        out.extend_from_slice(&packet[..quote]);
        finish(start, out);
        Ok(())
    }

    /// Writes into `out` the reply to the request `packet`, which came from `origin`. It goes back
    /// there.
    ///
    /// # Errors
    /// A reason when the packet must not be answered: its source is no single host, or it is no
    /// such request.
    pub fn write_answer(
        &self,
        origin: impl Into<Origin>,
        packet: &[u8],
        answer: Answer,
        out: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        let header = Header::parse(packet).map_err(|_| Reason::ScmpNotAnswered)?;
        let Some((wire::SCMP, at)) = header.transport(packet) else {
            return Err(Reason::ScmpNotAnswered);
        };
        let request = &packet[at..];
        if request.len() < HEAD + 4 {
            return Err(Reason::ScmpNotAnswered);
        }
        let start = self.begin(origin.into(), packet, &header, out)?;
        match answer {
            Answer::Echo => {
                out.extend([ECHO_REPLY, 0, 0, 0]);
                out.extend_from_slice(&request[HEAD..]);
            }
            Answer::Traceroute { interface } => {
                out.extend([TRACEROUTE_REPLY, 0, 0, 0]);
                out.extend_from_slice(&request[HEAD..HEAD + 4]);
                self.write_interface(interface, out);
            }
        }
        finish(start, out);
        Ok(())
    }

    fn write_interface(&self, id: u16, out: &mut Vec<u8>) {
        out.extend(self.isd_as.to_be_bytes());
        out.extend(u64::from(id).to_be_bytes());
    }

    /// Begins a packet to the source of `packet`: all headers but the payload length. Returns where
    /// its payload starts.
    fn begin(
        &self,
        origin: Origin,
        packet: &[u8],
        header: &Header,
        out: &mut Vec<u8>,
    ) -> Result<usize, Reason> {
        match header.src_host(packet) {
            Some(Host::Ip(ip)) if is_single(ip) => {}
            _ => return Err(Reason::ScmpNotAnswered),
        }
        out.clear();
        // Version, traffic class and flow label as they came.
        out.extend_from_slice(&packet[..4]);
        let src_type = if self.host.is_ipv4() { 0b0000 } else { 0b0011 };
        out.extend([wire::SCMP, 0, 0, 0, header.path_type]);
        out.extend([header.src_type() << 4 | src_type, 0, 0]);
        out.extend(header.src_ia.to_be_bytes());
        out.extend(self.isd_as.to_be_bytes());
        out.extend_from_slice(&packet[header.src_host_at()..header.path]);
        match self.host {
            IpAddr::V4(ip) => out.extend(ip.octets()),
            IpAddr::V6(ip) => out.extend(ip.octets()),
        }
        match header.path_type {
            wire::STANDARD_PATH => {
                let path = Path::parse(packet, header).map_err(|_| Reason::ScmpNotAnswered)?;
                reverse(origin, packet, &path, out);
            }
            wire::EMPTY_PATH => {}
            _ => return Err(Reason::ScmpNotAnswered),
        }
        out[5] = u8::try_from(out.len() / 4).map_err(|_| Reason::ScmpNotAnswered)?;
        Ok(out.len())
    }
}

/// Whether `ip` is the address of one host, so that it can be answered.
pub(crate) fn is_single(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_multicast() && !ip.is_broadcast() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unspecified(),
    }
}

/// Appends the way back of `path`, ready for the neighbour that `packet` came from, or, from
/// inside, for the host or router that sent it.
///
/// The packet is as it came, so each segment's identifier is what its last router left. Read
/// backwards that is just what the same router expects of the packet that comes to it next, so
/// nothing is chained here.
fn reverse(origin: Origin, packet: &[u8], path: &Path, out: &mut Vec<u8>) {
    let back = |hop: usize| path.hops - 1 - hop;
    let here = path.current_hop;
    let current = match origin {
        Origin::Interface(_) => back(here.saturating_sub(1)),
        // The other router has changed segments already; on the way back it expects the packet
        // before that.
        Origin::Sibling(_)
            if path.changed_before(here) && !path.info(packet, path.current_info).peer =>
        {
            back(here - 1)
        }
        Origin::Sibling(_) | Origin::Host => back(here),
    };
    let mut meta = 0u32;
    for info in (0..path.infos).rev() {
        meta = meta << 6 | path.segments[info] as u32;
    }
    meta <<= 6 * (3 - path.infos);
    let info = path.infos - 1 - path.info_of(back(current));
    meta |= (info << 30 | current << 24) as u32;
    debug_assert_eq!(META, size_of_val(&meta));
    out.extend(meta.to_be_bytes());
    for info in (0..path.infos).rev() {
        let at = path.info_at(info);
        out.push(packet[at] ^ 1);
        out.extend_from_slice(&packet[at + 1..at + INFO]);
    }
    for hop in (0..path.hops).rev() {
        let at = path.hop_at(hop);
        // Without the router alerts: those were for the way out.
        out.push(packet[at] & !3);
        out.extend_from_slice(&packet[at + 1..at + HOP]);
    }
}

/// Fills in the payload length and the checksum of the message at `start`.
fn finish(start: usize, out: &mut [u8]) {
    let length = out.len() - start;
    out[6..8].copy_from_slice(&(length as u16).to_be_bytes());
    // RFC 1071 over the pseudo header (address header, length, protocol) and the message.
    let addresses = &out[COMMON..addresses_end(out)];
    let sum = sum(addresses) + length as u64 + u64::from(wire::SCMP) + sum(&out[start..]);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let checksum = !(folded as u16);
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
}

fn addresses_end(packet: &[u8]) -> usize {
    Header::parse(packet).map_or(COMMON, |header| header.path)
}

/// Sum of 16-bit words; an odd last byte is the high half of a word. Packets are short, so the sum
/// cannot overflow.
fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let whole: u64 = words.by_ref().map(|word| u64::from(u16_at(word, 0))).sum();
    whole
        + words
            .remainder()
            .first()
            .map_or(0, |last| u64::from(*last) << 8)
}
