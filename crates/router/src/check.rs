//! The checks a packet must pass to be forwarded, each with what the source is told when it does
//! not.

use std::net::IpAddr;

use hawser_topology::LinkTo;

use crate::forward::{CLOCK_SKEW, Forwarder, Origin, Step, Verdict};
use crate::place::Place;
use crate::reason::Reason;
use crate::scmp::{Problem, code};
use crate::wire::{self, Header, Hop, Host, Info, Path};

impl Forwarder {
    /// A packet from a host of this AS is at the start of its path. One from outside has its
    /// previous hop behind it, and in the same segment: the ingress router changes segments, except
    /// over a peering link. One from another router of this AS has come in by an interface of that
    /// router's, so that no host can pass its packets off as another AS's (scionproto
    /// `validateTransitUnderlaySrc`).
    #[inline]
    pub(crate) fn check_entry(
        &self,
        origin: Origin,
        packet: &[u8],
        path: &Path,
        peering: bool,
    ) -> Step<()> {
        let here = path.current_hop;
        let changed = path.changed_before(here) && !peering;
        match origin {
            Origin::Interface(_) if here == 0 || changed => {
                Err(Verdict::Drop(Reason::MalformedPath))
            }
            Origin::Host if here != 0 => Err(Verdict::Drop(Reason::TransitFromInside)),
            Origin::Sibling(sibling) if here != 0 => {
                let hop = if changed { here - 1 } else { here };
                let info = path.info(packet, path.info_of(hop));
                let entry = path.hop(packet, hop).ingress(&info);
                match self.place(entry) {
                    Some(place) if place.sibling == Some(sibling) => Ok(()),
                    _ => Err(Verdict::Drop(Reason::TransitFromInside)),
                }
            }
            _ => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn check_ingress(
        &self,
        ingress: u16,
        path: &Path,
        info: &Info,
        hop: &Hop,
    ) -> Step<()> {
        if ingress == 0 || ingress == hop.ingress(info) {
            return Ok(());
        }
        let code = if info.cons_dir {
            code::UNKNOWN_CONS_INGRESS
        } else {
            code::UNKNOWN_CONS_EGRESS
        };
        refuse(
            Reason::WrongIngress,
            Problem::parameter(code, path.hop_at(path.current_hop)),
        )
    }

    #[inline]
    pub(crate) fn check_length(&self, packet: &[u8], header: &Header) -> Step<()> {
        if packet.len() == header.len + header.payload_len {
            return Ok(());
        }
        refuse(
            Reason::PacketSize,
            Problem::parameter(code::INVALID_PACKET_SIZE, 0),
        )
    }

    /// Whose packets may come from where: from inside only this AS's own where a path begins, and
    /// all to elsewhere; from outside only others', and those at the end of their path are for this
    /// AS. (SCMP messages of another router of this AS come from this AS, in the middle of a path.)
    #[inline]
    pub(crate) fn check_addresses(
        &self,
        ingress: u16,
        packet: &[u8],
        header: &Header,
        path: &Path,
    ) -> Step<()> {
        let from_here = header.src_ia == self.isd_as;
        let to_here = header.dst_ia == self.isd_as;
        let possible = if ingress == 0 {
            from_here || path.current_hop != 0
        } else {
            !from_here
        };
        if !possible {
            return refuse(
                Reason::InvalidSource,
                Problem::parameter(code::INVALID_SOURCE, wire::SRC_IA),
            );
        }
        let last = path.current_hop + 1 == path.hops;
        let destined = if ingress == 0 {
            !to_here
        } else {
            to_here == last
        };
        if !destined {
            return refuse(
                Reason::InvalidDestination,
                Problem::parameter(code::INVALID_DESTINATION, wire::DST_IA),
            );
        }
        if from_here {
            match header.src_host(packet) {
                Some(Host::Ip(IpAddr::V6(ip))) if ip.to_ipv4_mapped().is_some() => {}
                Some(_) => return Ok(()),
                None => {}
            }
            return refuse(
                Reason::InvalidSource,
                Problem::parameter(code::INVALID_SOURCE, header.src_host_at()),
            );
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn check_mac(&self, path: &Path, info: &Info, hop: &Hop, at: usize) -> Step<()> {
        if self.key.mac(&hop.mac_input(info)) == hop.mac {
            return Ok(());
        }
        refuse(
            Reason::InvalidMac,
            Problem::parameter(code::INVALID_MAC, path.hop_at(at)),
        )
    }

    /// The egress interface must exist, and the links on both sides must fit together: within a
    /// segment, or where one segment follows another (scionproto `validateEgressID`).
    #[inline]
    pub(crate) fn check_egress(
        &self,
        ingress: u16,
        egress: u16,
        crossing: bool,
        path: &Path,
        info: &Info,
        hop: usize,
    ) -> Step<&Place> {
        use LinkTo::{Child, Core, Parent, Peer};
        let place = self.place(egress);
        // From inside it goes to the right router straight.
        let Some(place) = place.filter(|place| ingress != 0 || place.sibling.is_none()) else {
            let code = if info.cons_dir {
                code::UNKNOWN_CONS_EGRESS
            } else {
                code::UNKNOWN_CONS_INGRESS
            };
            return refuse(
                Reason::UnknownEgress,
                Problem::parameter(code, path.hop_at(hop)),
            );
        };
        let from = match ingress {
            0 => None,
            _ => self.place(ingress).map(|place| place.face.link_to),
        };
        let links = (from, place.face.link_to);
        if crossing {
            return match links {
                (Some(Core), Child) | (Some(Child), Core | Child) => Ok(place),
                _ => refuse(
                    Reason::InvalidSegmentChange,
                    Problem::parameter(
                        code::INVALID_SEGMENT_CHANGE,
                        path.info_at(path.info_of(hop)),
                    ),
                ),
            };
        }
        match links {
            (None, _)
            | (Some(Core), Core)
            | (Some(Child), Parent | Peer)
            | (Some(Parent | Peer), Child) => Ok(place),
            _ => refuse(
                Reason::InvalidPath,
                Problem::parameter(code::INVALID_PATH, path.hop_at(hop)),
            ),
        }
    }
}

#[inline]
pub(crate) fn refuse<T>(reason: Reason, problem: Problem) -> Step<T> {
    Err(Verdict::Refuse { reason, problem })
}

/// Whether the current hop is one of the two at a peering link: the last of the first segment and
/// the first of the second, of two (scionproto `determinePeer`). A segment of one hop exists only
/// there.
#[inline]
pub(crate) fn peering(path: &Path, info: &Info) -> Step<bool> {
    if !info.peer {
        return if path.segments.contains(&1) {
            Err(Verdict::Drop(Reason::MalformedPath))
        } else {
            Ok(false)
        };
    }
    if path.infos != 2 {
        return Err(Verdict::Drop(Reason::MalformedPath));
    }
    let first = path.segments[0];
    Ok(path.current_hop + 1 == first || path.current_hop == first)
}

/// Whether the hop's time is neither over nor to come.
#[inline]
pub(crate) fn check_time(now: u64, path: &Path, info: &Info, hop: &Hop, at: usize) -> Step<()> {
    let Err(reason) = check_age(now, info, hop) else {
        return Ok(());
    };
    let problem = match reason {
        Reason::ExpiredHop => Problem::parameter(code::PATH_EXPIRED, path.hop_at(at)),
        _ => Problem::parameter(code::INVALID_PATH, path.info_at(path.info_of(at))),
    };
    refuse(reason, problem)
}

/// A hop is valid from the segment's timestamp for `1 + exp_time` units of 1/256 day, which is
/// 337.5 s.
#[inline]
pub(crate) fn check_age(now: u64, info: &Info, hop: &Hop) -> Result<(), Reason> {
    let start = u64::from(info.timestamp);
    if start * 2 + (u64::from(hop.exp_time) + 1) * 675 < now * 2 {
        return Err(Reason::ExpiredHop);
    }
    if start > now + CLOCK_SKEW {
        return Err(Reason::NotYetValid);
    }
    Ok(())
}
