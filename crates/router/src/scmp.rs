//! The SCMP messages that the router sends, and the requests that it answers.

use std::net::IpAddr;

use hawser_packet::header::{NewHeader, end_header};
use hawser_packet::number::{next_header, path_type, scmp_type};
use hawser_packet::path::StandardPath;
use hawser_packet::scmp::{self, QUERY, TRACEROUTE};
use hawser_packet::{Body, Header, Host, Scmp, ScmpError};

use crate::forwarder::Forwarder;
use crate::verdict::{Answer, Origin};

/// Maximum length of an error message with its SCION header, in bytes.
const MAX_ERROR: usize = 1232;

/// Whether `packet` is a complete echo request.
pub(crate) fn is_echo_request(packet: &[u8], header: &Header) -> bool {
    is_request(packet, header, scmp_type::ECHO_REQUEST, QUERY)
}

/// Whether `packet` is a complete traceroute request.
pub(crate) fn is_traceroute_request(packet: &[u8], header: &Header) -> bool {
    is_request(packet, header, scmp_type::TRACEROUTE_REQUEST, TRACEROUTE)
}

fn is_request(packet: &[u8], header: &Header, kind: u8, length: usize) -> bool {
    match header.upper_layer(packet) {
        Some((next_header::SCMP, at)) => {
            let message = &packet[at..];
            message.len() >= length && message[..2] == [kind, 0]
        }
        _ => false,
    }
}

/// Whether `ip` is the address of a single host, so that it can be answered.
pub(crate) fn is_single_host(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_multicast() && !ip.is_broadcast() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unspecified(),
    }
}

impl Forwarder {
    /// Writes into `out` the message that reports `error` to the source of `packet`. The caller
    /// sends it to `origin`, from which `packet` came. `None` if the packet must not be answered:
    /// it is an SCMP error itself, or its source is not a single host.
    pub fn write_error(
        &self,
        origin: impl Into<Origin>,
        packet: &[u8],
        error: ScmpError,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let header = Header::parse(packet).ok()?;
        if let Some((next_header::SCMP, at)) = header.upper_layer(packet) {
            // Only the types of informational messages have the top bit set.
            packet.get(at).filter(|kind| **kind & 0x80 != 0)?;
        }
        let (path_at, message_at) = self.begin(origin.into(), packet, &header, out)?;
        error.write(out);
        let quote = packet.len().min(MAX_ERROR.saturating_sub(out.len()));
        out.extend_from_slice(&packet[..quote]);
        scmp::finish(out, path_at, message_at);
        Some(())
    }

    /// Writes into `out` the reply to the request `packet`. The caller sends it to `origin`, from
    /// which `packet` came. `None` if the packet must not be answered: its source is not a single
    /// host, or it is not a request of that kind.
    pub fn write_answer(
        &self,
        origin: impl Into<Origin>,
        packet: &[u8],
        answer: Answer,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let header = Header::parse(packet).ok()?;
        let (next_header::SCMP, at) = header.upper_layer(packet)? else {
            return None;
        };
        let (&[_, _, _, _, id @ .., s0, s1], data) = packet[at..].split_first_chunk::<QUERY>()?;
        let (path_at, message_at) = self.begin(origin.into(), packet, &header, out)?;
        let reply = Scmp::Query {
            reply: true,
            id: u16::from_be_bytes(id),
            sequence: u16::from_be_bytes([s0, s1]),
            body: match answer {
                Answer::Echo => Body::Echo(data),
                Answer::Traceroute { interface } => Body::Traceroute {
                    isd_as: self.isd_as,
                    interface,
                },
            },
        };
        reply.write(out);
        scmp::finish(out, path_at, message_at);
        Some(())
    }

    /// Begins a packet to the source of `packet`: all headers but the payload length. Returns the
    /// offsets of its path and its payload.
    fn begin(
        &self,
        origin: Origin,
        packet: &[u8],
        header: &Header,
        out: &mut Vec<u8>,
    ) -> Option<(usize, usize)> {
        let src = header.src_host(packet).and_then(Host::ip).ok()?;
        if !is_single_host(src) {
            return None;
        }
        NewHeader {
            first_line: u32::from_be_bytes(*packet.first_chunk()?),
            next_header: next_header::SCMP,
            path_type: header.path_type,
            dst: (header.src_as, src),
            src: (self.isd_as, self.host),
        }
        .write(out);
        let path_at = out.len();
        match header.path_type {
            path_type::STANDARD => {
                let path = header.standard_path(packet).ok()?;
                path.write_reversed(packet, previous_hop(origin, packet, &path), out);
            }
            path_type::EMPTY => {}
            _ => return None,
        }
        let message_at = end_header(out).ok()?;
        Some((path_at, message_at))
    }
}

/// The hop of `path` that an answer to `packet` reaches next: that of the neighbour that sent the
/// packet, or if it came from inside, that of the host or router that did.
fn previous_hop(origin: Origin, packet: &[u8], path: &StandardPath) -> usize {
    let here = path.current_hop;
    match origin {
        Origin::Interface(_) => here.saturating_sub(1),
        // The other router has already changed segments; in the reverse direction it expects the
        // packet before the change.
        Origin::Sibling(_) if path.changed_before(here) && !path.at(packet, here).info.peer => {
            here - 1
        }
        Origin::Sibling(_) | Origin::Host => here,
    }
}
