//! Resolves the underlay address that a packet is delivered to: the host's IP, and the UDP port
//! that its upper-layer header names.

use std::net::{IpAddr, SocketAddr};

use hawser_packet::header::DST_HOST;
use hawser_packet::number::{next_header, parameter, path_type, scmp_type, unreachable};
use hawser_packet::scmp::{QUERY, SCMP_HEADER, quote_at};
use hawser_packet::{Header, Host, ScmpError};

use crate::forwarder::Forwarder;
use crate::reason::DropReason;
use crate::scmp;
use crate::verdict::{Answer, PacketVerdict, Step, refuse, refuse_field};

/// The port of a host's dispatcher, which receives packets without a port in the dispatched range
/// (scionproto `topology.EndhostPort`).
pub const ENDHOST_PORT: u16 = 30041;

/// The underlay address to deliver `packet` to, whose destination is in this AS.
pub(crate) fn resolve(router: &Forwarder, packet: &[u8], header: &Header) -> Step<SocketAddr> {
    let no_route = ScmpError::DestinationUnreachable {
        code: unreachable::NO_ROUTE,
    };
    match header.dst_host(packet) {
        Ok(Host::Service(service)) => {
            // The flow: traffic class, flow label and source AS.
            let line = packet
                .first_chunk()
                .map_or(0, |line| u32::from_be_bytes(*line));
            let flow = header.src_as.to_u64() ^ u64::from(line);
            match router.service(service, flow) {
                Some(to) => Ok(to),
                None => refuse(DropReason::NoService, no_route),
            }
        }
        Ok(Host::Ip(ip)) if is_deliverable(router, ip) => {
            if ip == router.host && scmp::is_echo_request(packet, header) {
                return Err(PacketVerdict::Answer(Answer::Echo));
            }
            if ip.is_ipv4() != router.host.is_ipv4() {
                return refuse(DropReason::Unreachable, no_route);
            }
            let port = port(packet, header).ok_or(PacketVerdict::Drop(DropReason::UnknownPort))?;
            let (first, last) = router.dispatched_ports;
            let to = SocketAddr::new(ip, port);
            let is_direct = (first..=last).contains(&port) && port != 0;
            if is_direct || router.has_service_at(to) {
                Ok(to)
            } else {
                Ok(SocketAddr::new(ip, ENDHOST_PORT))
            }
        }
        _ => {
            let code = parameter::INVALID_DESTINATION;
            refuse_field(DropReason::InvalidDestination, code, DST_HOST)
        }
    }
}

/// Whether a packet from another AS may be sent to `ip`: it must be a single host, and may be a
/// loopback address only if the router's is one.
fn is_deliverable(router: &Forwarder, ip: IpAddr) -> bool {
    let mapped = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    scmp::is_single_host(ip) && !mapped && (!ip.is_loopback() || router.host.is_loopback())
}

/// The port that the upper-layer header names (scionproto `dstScionPort`). `None` if the header is
/// truncated, or belongs to an SCMP message without an identifiable receiver.
fn port(packet: &[u8], header: &Header) -> Option<u16> {
    let (kind, at) = header.upper_layer(packet)?;
    let rest = &packet[at..];
    match kind {
        next_header::UDP if rest.len() >= 8 => u16_at(rest, 2),
        next_header::TCP if rest.len() >= 20 => u16_at(rest, 2),
        next_header::UDP | next_header::TCP => None,
        next_header::SCMP => scmp_port(rest),
        _ => Some(ENDHOST_PORT),
    }
}

/// The port for an SCMP message: a request goes to the host's dispatcher, a reply to the port that
/// its identifier names, an error to the source port of the quoted packet.
fn scmp_port(message: &[u8]) -> Option<u16> {
    if message.len() < SCMP_HEADER {
        return None;
    }
    match message[0] {
        scmp_type::ECHO_REQUEST | scmp_type::TRACEROUTE_REQUEST => Some(ENDHOST_PORT),
        scmp_type::ECHO_REPLY | scmp_type::TRACEROUTE_REPLY if message.len() >= QUERY => {
            u16_at(message, SCMP_HEADER)
        }
        kind => quoted_port(message.get(quote_at(kind)?..)?),
    }
}

/// The source port of the quoted packet, which may be truncated.
fn quoted_port(quote: &[u8]) -> Option<u16> {
    let header = Header::parse(quote).ok()?;
    if header.path_type == path_type::STANDARD {
        header.standard_path(quote).ok()?;
    }
    let (kind, at) = header.upper_layer(quote)?;
    let rest = &quote[at..];
    match (kind, rest.first()?) {
        (next_header::UDP, _) => u16_at(rest, 0).filter(|port| *port != 0),
        (next_header::SCMP, &(scmp_type::ECHO_REQUEST | scmp_type::TRACEROUTE_REQUEST)) => {
            u16_at(rest, SCMP_HEADER)
        }
        _ => None,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let number = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    number.map(|number| u16::from_be_bytes(*number))
}
