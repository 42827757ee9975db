//! The packet that an SCMP error quotes, and its comparison with packets that were sent.
//!
//! SCMP errors are not authenticated: any host can send one to an address it knows, with a forged
//! packet inside. Addresses and paths are public. So an error is accepted only if the quoted packet
//! was really sent, which bytes that only nodes on the path can see must prove. A quote that is too
//! short for this proof is treated as forged. Sources: RFC 9000, 14.2.1 (for ICMP); RFC 5927,
//! section 4 (such attacks on TCP); SCMP specification, "SCMP error messages" (length of the
//! quote).

use std::net::Ipv4Addr;

use hawser_address::ScionAddr;

use crate::bytes::u16_at;
use crate::malformed::Malformed;
use crate::number::path_type::{EMPTY, STANDARD};
use crate::number::scmp_type::{ECHO_REQUEST, TRACEROUTE_REQUEST};
use crate::packet::Packet;
use crate::path;

/// Number of bytes of an SCMP request that identify it: type, code, checksum, identifier, sequence
/// number.
const REQUEST: usize = 8;

/// A packet quoted by an SCMP error, perhaps truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote<'a> {
    packet: Packet<'a>,
    /// The packet's source.
    pub src: ScionAddr,
    /// The packet's destination.
    pub dst: ScionAddr,
    /// The quoted part of the UDP payload or of the SCMP message.
    pub payload: &'a [u8],
    /// The sequence number if the packet is an echo or traceroute request.
    pub request: Option<u16>,
}

impl<'a> Quote<'a> {
    /// Reads the packet that begins with `bytes`. `None` if it is truncated before the end of its
    /// ports, or is not of a kind that hosts send.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let packet = Packet::parse_quoted(bytes).ok()?;
        let (src_port, dst_port, payload, request) = if packet.is_scmp() {
            // Hosts send requests only; their identifier is the sender's port.
            let message = packet.payload();
            let request = message.first_chunk::<REQUEST>()?;
            let is_request = matches!(request[0], ECHO_REQUEST | TRACEROUTE_REQUEST);
            let (id, sequence) = (u16_at(request, 4), u16_at(request, 6));
            is_request.then_some((id, 0, message, Some(sequence)))?
        } else {
            let udp = packet.udp_quoted().ok()?;
            (udp.src_port, udp.dst_port, udp.payload, None)
        };
        // A path probe is addressed to a router at the end of the path, not to a host.
        let dst_host = match packet.dst_host() {
            Err(Malformed::AddressType(_)) if request.is_some() => Ipv4Addr::UNSPECIFIED.into(),
            host => host.ok()?,
        };
        let (kind, path) = (packet.header.path_type, packet.path());
        if kind != STANDARD && (kind, path) != (EMPTY, &[]) {
            return None;
        }
        let addr = |isd_as, host, port| ScionAddr::new(isd_as, (host, port).into());
        Some(Self {
            packet,
            src: addr(packet.header.src_as, packet.src_host().ok()?, src_port),
            dst: addr(packet.header.dst_as, dst_host, dst_port),
            payload,
            request,
        })
    }

    /// The quoted bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.packet.bytes()
    }

    /// The packet's path, as the quoting router received it.
    pub fn path(&self) -> &'a [u8] {
        self.packet.path()
    }

    /// The length of the complete quoted packet in bytes, according to its header.
    pub fn packet_len(&self) -> usize {
        self.packet.header.len + self.packet.header.payload_len
    }

    /// Whether the quoted request is the packet `sent`, except for the fields that routers change.
    pub fn is_of(&self, sent: &[u8]) -> bool {
        let Ok(sent) = Packet::parse(sent) else {
            return false;
        };
        let quoted = self.packet.payload();
        self.packet.end_to_end() == sent.end_to_end()
            && path::same_path(self.path(), sent.path())
            && quoted.len() >= REQUEST
            && sent.payload().starts_with(quoted)
    }
}

#[cfg(test)]
mod tests;
