//! The checks a packet must pass to be forwarded, each with the SCMP error for one that fails it.

use std::net::IpAddr;

use hawser_packet::header::{DST_AS, SRC_AS};
use hawser_packet::number::parameter;
use hawser_packet::path::{HopField, InfoField, PathHop, StandardPath};
use hawser_packet::{Header, Host};
use hawser_topology::LinkTo;

use crate::forwarder::{Forwarder, InterfaceEntry};
use crate::reason::DropReason;
use crate::verdict::{Origin, PacketVerdict, Step, refuse_field};

/// How far in the future a segment's timestamp may be, in seconds: the clocks of ASes differ, and
/// the unit of a hop's expiry is 337.5 s.
pub const CLOCK_SKEW: u64 = 337;

impl Forwarder {
    /// Checks the position in the path. A packet from a host of this AS is at the start of its
    /// path. One from a neighbour has its previous hop in the same segment: the ingress router
    /// changes segments, except at a peering link. One from another router of this AS must have
    /// entered by an interface of that router, so that no host can forge packets of other ASes
    /// (scionproto `validateTransitUnderlaySrc`).
    #[inline]
    pub(crate) fn check_entry(
        &self,
        origin: Origin,
        packet: &[u8],
        path: &StandardPath,
        peering: bool,
    ) -> Step<()> {
        let here = path.current_hop;
        let changed = path.changed_before(here) && !peering;
        match origin {
            Origin::Interface(_) if here == 0 || changed => {
                Err(PacketVerdict::Drop(DropReason::MalformedPath))
            }
            Origin::Host if here != 0 => Err(PacketVerdict::Drop(DropReason::TransitFromInside)),
            Origin::Sibling(sibling) if here != 0 => {
                let hop = path.at(packet, if changed { here - 1 } else { here });
                match self.interface(hop.field.ingress(&hop.info)) {
                    Some(entry) if entry.sibling == Some(sibling) => Ok(()),
                    _ => Err(PacketVerdict::Drop(DropReason::TransitFromInside)),
                }
            }
            _ => Ok(()),
        }
    }

    /// Checks that the packet came in by the interface that its hop field names.
    #[inline]
    pub(crate) fn check_ingress(
        &self,
        ingress: u16,
        path: &StandardPath,
        hop: &PathHop,
    ) -> Step<()> {
        if ingress == 0 || ingress == hop.field.ingress(&hop.info) {
            return Ok(());
        }
        let code = match hop.info.cons_dir {
            true => parameter::UNKNOWN_CONS_INGRESS,
            false => parameter::UNKNOWN_CONS_EGRESS,
        };
        refuse_field(DropReason::WrongIngress, code, path.hop_at(hop.number))
    }

    /// Checks that the packet is as long as its header says.
    #[inline]
    pub(crate) fn check_length(&self, packet: &[u8], header: &Header) -> Step<()> {
        if packet.len() == header.len + header.payload_len {
            return Ok(());
        }
        refuse_field(DropReason::PacketSize, parameter::INVALID_PACKET_SIZE, 0)
    }

    /// Checks the source and destination AS. A packet from inside must have a source in this AS if
    /// it is at the start of its path, and a destination in another AS. A packet from outside must
    /// have a source in another AS, and a destination in this AS if and only if it is at the end of
    /// its path. (SCMP messages of another router of this AS have a source in this AS in the middle
    /// of a path.)
    #[inline]
    pub(crate) fn check_addresses(
        &self,
        ingress: u16,
        packet: &[u8],
        header: &Header,
        path: &StandardPath,
    ) -> Step<()> {
        let from_here = header.src_as == self.isd_as;
        let to_here = header.dst_as == self.isd_as;
        let last = path.current_hop + 1 == path.hops;
        let (possible, destined) = match ingress {
            0 => (from_here || path.current_hop != 0, !to_here),
            _ => (!from_here, to_here == last),
        };
        if !possible {
            return refuse_field(DropReason::InvalidSource, parameter::INVALID_SOURCE, SRC_AS);
        }
        if !destined {
            let code = parameter::INVALID_DESTINATION;
            return refuse_field(DropReason::InvalidDestination, code, DST_AS);
        }
        if !from_here {
            return Ok(());
        }
        let possible = match header.src_host(packet) {
            Ok(Host::Ip(IpAddr::V6(ip))) => ip.to_ipv4_mapped().is_none(),
            host => host.is_ok(),
        };
        if possible {
            return Ok(());
        }
        let at = header.src_host_at();
        refuse_field(DropReason::InvalidSource, parameter::INVALID_SOURCE, at)
    }

    /// Checks the MAC of a hop field.
    #[inline]
    pub(crate) fn check_mac(&self, path: &StandardPath, hop: &PathHop) -> Step<()> {
        if self.key.mac(&hop.field.mac_input(&hop.info)) == hop.field.mac {
            return Ok(());
        }
        let at = path.hop_at(hop.number);
        refuse_field(DropReason::InvalidMac, parameter::INVALID_MAC, at)
    }

    /// Checks that the egress interface exists, and that the link types of ingress and egress are
    /// allowed together, within a segment or where the segment changes (scionproto
    /// `validateEgressID`).
    #[inline]
    pub(crate) fn check_egress(
        &self,
        ingress: u16,
        crossing: bool,
        path: &StandardPath,
        hop: &PathHop,
    ) -> Step<&InterfaceEntry> {
        use LinkTo::{Child, Core, Parent, Peer};
        let at = path.hop_at(hop.number);
        let entry = self.interface(hop.field.egress(&hop.info));
        // A packet from inside must be sent to the egress router directly.
        let Some(entry) = entry.filter(|entry| ingress != 0 || entry.sibling.is_none()) else {
            let code = match hop.info.cons_dir {
                true => parameter::UNKNOWN_CONS_EGRESS,
                false => parameter::UNKNOWN_CONS_INGRESS,
            };
            return refuse_field(DropReason::UnknownEgress, code, at);
        };
        let from = match ingress {
            0 => None,
            _ => self.interface(ingress).map(|entry| entry.external.link_to),
        };
        let possible = match (from, entry.external.link_to) {
            (None, _)
            | (Some(Core), Core)
            | (Some(Child), Parent | Peer)
            | (Some(Parent | Peer), Child) => !crossing,
            (Some(Core), Child) | (Some(Child), Core | Child) => crossing,
            _ => false,
        };
        if possible {
            return Ok(entry);
        }
        match crossing {
            true => {
                let at = path.info_at(path.info_of(hop.number));
                let code = parameter::INVALID_SEGMENT_CHANGE;
                refuse_field(DropReason::InvalidSegmentChange, code, at)
            }
            false => refuse_field(DropReason::InvalidPath, parameter::INVALID_PATH, at),
        }
    }
}

/// Whether the current hop is one of the two at a peering link: the last of the first segment and
/// the first of the second, on a path of two segments (scionproto `determinePeer`). Only peering
/// paths have segments of a single hop.
#[inline]
pub(crate) fn peering(path: &StandardPath, info: &InfoField) -> Step<bool> {
    let possible = match info.peer {
        true => path.infos == 2,
        false => !path.segments.contains(&1),
    };
    if !possible {
        return Err(PacketVerdict::Drop(DropReason::MalformedPath));
    }
    let first = path.segments[0];
    Ok(info.peer && (path.current_hop + 1 == first || path.current_hop == first))
}

/// Checks that a hop field is valid at `now`.
#[inline]
pub(crate) fn check_time(now: u64, path: &StandardPath, hop: &PathHop) -> Step<()> {
    let Err(reason) = check_age(now, &hop.info, &hop.field) else {
        return Ok(());
    };
    let (code, at) = match reason {
        DropReason::ExpiredHop => (parameter::PATH_EXPIRED, path.hop_at(hop.number)),
        _ => (
            parameter::INVALID_PATH,
            path.info_at(path.info_of(hop.number)),
        ),
    };
    refuse_field(reason, code, at)
}

/// Whether a hop field has neither expired at `now` nor a timestamp in the future.
#[inline]
pub(crate) fn check_age(now: u64, info: &InfoField, hop: &HopField) -> Result<(), DropReason> {
    if hop.expiry_half_seconds(info) < now * 2 {
        return Err(DropReason::ExpiredHop);
    }
    if u64::from(info.timestamp) > now + CLOCK_SKEW {
        return Err(DropReason::NotYetValid);
    }
    Ok(())
}
