//! Where in the AS a packet is delivered: the host's IP, and the UDP port that its transport header
//! names.

use std::net::{IpAddr, SocketAddr};

use crate::forward::{Forwarder, Verdict};
use crate::reason::Reason;
use crate::scmp::{self, Problem, code};
use crate::wire::{self, Header, Host, Path, u16_at, u32_at};

/// The port that the shim dispatcher of a host listens on: for whatever has no port in the
/// dispatched range (scionproto `topology.EndhostPort`).
pub const ENDHOST_PORT: u16 = 30041;

/// The underlay address that `packet`, destined to this AS, goes to.
pub(crate) fn resolve(
    router: &Forwarder,
    packet: &[u8],
    header: &Header,
) -> Result<SocketAddr, Verdict> {
    match header.dst_host(packet) {
        Some(Host::Service(service)) => {
            let flow = header.src_ia ^ u64::from(u32_at(packet, 0));
            router.services.find(service, flow).ok_or(Verdict::Refuse {
                reason: Reason::NoService,
                problem: Problem::Unreachable(code::NO_ROUTE),
            })
        }
        Some(Host::Ip(ip)) if deliverable(router, ip) => {
            if ip == router.host && scmp::asks_echo(packet, header) {
                return Err(Verdict::Answer(crate::forward::Answer::Echo));
            }
            if ip.is_ipv4() != router.host.is_ipv4() {
                return Err(Verdict::Refuse {
                    reason: Reason::Unreachable,
                    problem: Problem::Unreachable(code::NO_ROUTE),
                });
            }
            let port = port(packet, header).ok_or(Verdict::Drop(Reason::UnknownPort))?;
            let (first, last) = router.dispatched_ports;
            let to = SocketAddr::new(ip, port);
            let is_direct = (first..=last).contains(&port) && port != 0;
            if is_direct || router.services.has(to) {
                Ok(to)
            } else {
                Ok(SocketAddr::new(ip, ENDHOST_PORT))
            }
        }
        _ => Err(Verdict::Refuse {
            reason: Reason::InvalidDestination,
            problem: Problem::parameter(code::INVALID_DESTINATION, header.dst_host_at()),
        }),
    }
}

/// Whether a packet from elsewhere may be handed to `ip`: one host, and none of the router's own
/// machine unless the whole AS lives there.
fn deliverable(router: &Forwarder, ip: IpAddr) -> bool {
    let mapped = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    scmp::is_single(ip) && !mapped && (!ip.is_loopback() || router.host.is_loopback())
}

/// The port that the transport header asks for (scionproto `dstScionPort`). None: it is cut short,
/// or an SCMP message that nobody can be found for.
fn port(packet: &[u8], header: &Header) -> Option<u16> {
    let (kind, at) = header.transport(packet)?;
    let rest = &packet[at..];
    match kind {
        wire::UDP if rest.len() >= 8 => Some(u16_at(rest, 2)),
        wire::TCP if rest.len() >= 20 => Some(u16_at(rest, 2)),
        wire::UDP | wire::TCP => None,
        wire::SCMP => scmp_port(rest),
        _ => Some(ENDHOST_PORT),
    }
}

/// Requests go to whoever answers for the host; replies to who asked, by the identifier; errors to
/// the sender of what they quote.
fn scmp_port(message: &[u8]) -> Option<u16> {
    if message.len() < 4 {
        return None;
    }
    match message[0] {
        scmp::ECHO_REQUEST | scmp::TRACEROUTE_REQUEST => Some(ENDHOST_PORT),
        scmp::ECHO_REPLY | scmp::TRACEROUTE_REPLY if message.len() >= 8 => Some(u16_at(message, 4)),
        kind => quoted_port(message.get(4 + scmp::info_length(kind)?..)?),
    }
}

/// The port that the quoted packet, perhaps cut short, was sent from.
fn quoted_port(quote: &[u8]) -> Option<u16> {
    let header = Header::parse(quote).ok()?;
    if header.path_type == wire::STANDARD_PATH {
        Path::parse(quote, &header).ok()?;
    }
    let (kind, at) = header.transport(quote)?;
    let rest = &quote[at..];
    match kind {
        wire::UDP if rest.len() >= 2 => Some(u16_at(rest, 0)).filter(|port| *port != 0),
        wire::SCMP
            if rest.len() >= 6
                && matches!(rest[0], scmp::ECHO_REQUEST | scmp::TRACEROUTE_REQUEST) =>
        {
            Some(u16_at(rest, 4))
        }
        _ => None,
    }
}
