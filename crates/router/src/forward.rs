//! What a border router does with one packet.
//!
//! [`Forwarder::process`] is a function of the packet, the interface it came
//! in by and the time; it does no I/O and allocates nothing. The rules are
//! those of the SCION dataplane specification as scionproto's router applies
//! them, for an AS with one border router: whatever comes in from inside is
//! the AS's own traffic, at the first hop of its path.

use crate::{
    deliver,
    mac::HopKey,
    reason::Reason,
    scmp::{self, Problem, code},
    wire::{self, Header, Hop, Host, Info, Path},
};
use hawser_topology::{IsdAsn, LinkTo};
use std::net::{IpAddr, SocketAddr};

/// How far in the future a segment's timestamp may lie, in seconds: ASes'
/// clocks differ, and a hop's time is not counted finer than 337.5 s.
pub const CLOCK_SKEW: u64 = 337;

/// An external interface, as forwarding sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Face {
    /// What the neighbour is to this AS.
    pub link_to: LinkTo,
    /// Largest SCION packet on the link, in bytes.
    pub mtu: u16,
    /// Whether packets pass.
    pub up: bool,
}

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Send it to the neighbour; its path has been advanced.
    Forward {
        /// The interface to send it out by.
        egress: u16,
    },
    /// Hand it to a host of this AS; its path is ready to be reversed.
    Deliver {
        /// The host's underlay address.
        to: SocketAddr,
    },
    /// Answer it with an SCMP message, which takes the way back. The packet
    /// is as it came.
    Answer(Answer),
    /// Drop it, and tell the source why. The packet is as it came.
    Refuse {
        /// For the counters.
        reason: Reason,
        /// For the source.
        problem: Problem,
    },
    /// Drop it. The packet is as it came.
    Drop(Reason),
}

/// What a packet for the router itself asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// An SCMP echo reply.
    Echo,
    /// An SCMP traceroute reply.
    Traceroute {
        /// The interface whose router was asked for.
        interface: u16,
    },
}

/// The forwarding state of one border router.
#[derive(Debug, Clone)]
pub struct Forwarder {
    pub(crate) isd_as: u64,
    pub(crate) host: IpAddr,
    key: HopKey,
    pub(crate) dispatched_ports: (u16, u16),
    pub(crate) control_service: Option<SocketAddr>,
    /// Sorted by number.
    faces: Vec<(u16, Face)>,
}

/// A verdict that ends the processing of a packet early.
type Step<T> = Result<T, Verdict>;

impl Forwarder {
    /// The router of `isd_as` with the hop-field key `key`, reachable for the
    /// AS's hosts at `host`, without interfaces.
    pub fn new(isd_as: IsdAsn, key: &[u8; 16], host: IpAddr) -> Forwarder {
        Forwarder {
            isd_as: isd_as.to_u64(),
            host,
            key: HopKey::new(key),
            dispatched_ports: (31000, 32767),
            control_service: None,
            faces: Vec::new(),
        }
    }

    /// Sets the first and last UDP port that is delivered to directly.
    #[must_use]
    pub fn with_dispatched_ports(mut self, ports: (u16, u16)) -> Forwarder {
        self.dispatched_ports = ports;
        self
    }

    /// Sets where packets to the control service's address go.
    #[must_use]
    pub fn with_control_service(mut self, address: Option<SocketAddr>) -> Forwarder {
        self.control_service = address;
        self
    }

    /// Adds or replaces the external interface `id`.
    #[must_use]
    pub fn with_interface(mut self, id: u16, face: Face) -> Forwarder {
        match self.faces.binary_search_by_key(&id, |f| f.0) {
            Ok(at) => self.faces[at].1 = face,
            Err(at) => self.faces.insert(at, (id, face)),
        }
        self
    }

    /// Takes interface `id` up or down; says whether there is one.
    pub fn set_up(&mut self, id: u16, up: bool) -> bool {
        let found = self.faces.iter_mut().find(|f| f.0 == id);
        let exists = found.is_some();
        if let Some((_, face)) = found {
            face.up = up;
        }
        exists
    }

    /// The external interface `id`.
    #[inline]
    pub fn interface(&self, id: u16) -> Option<&Face> {
        self.faces.iter().find(|f| f.0 == id).map(|f| &f.1)
    }

    /// Processes `packet`, which came in by interface `ingress` (0: from a
    /// host of this AS) at `now`, in Unix seconds. The packet is changed only
    /// when the verdict is to forward or deliver it.
    #[inline]
    pub fn process(&self, now: u64, ingress: u16, packet: &mut [u8]) -> Verdict {
        self.step(now, ingress, packet)
            .unwrap_or_else(|verdict| verdict)
    }

    fn step(&self, now: u64, ingress: u16, packet: &mut [u8]) -> Step<Verdict> {
        let header = Header::parse(packet).map_err(Verdict::Drop)?;
        match header.path_type {
            wire::STANDARD_PATH => {}
            wire::EMPTY_PATH => return Err(self.empty_path(ingress, &header, packet)),
            _ => return Err(Verdict::Drop(Reason::UnsupportedPathType)),
        }
        let path = Path::parse(packet, &header).map_err(Verdict::Drop)?;
        let here = path.current_hop;
        let mut info = path.info(packet, path.current_info);
        let hop = path.hop(packet, here);
        let peering = peering(&path, &info)?;
        self.check_entry(ingress, &path, peering)?;

        check_time(now, &path, &info, &hop, here)?;
        self.check_ingress(ingress, &path, &info, &hop)?;
        self.check_length(packet, &header)?;
        self.check_addresses(ingress, packet, &header, &path)?;

        // Against construction direction the router at the ingress undoes the
        // chaining of its own hop; the peering hop is not part of the chain.
        let unchain = !info.cons_dir && ingress != 0 && !peering;
        if unchain {
            info.segment_id = hop.chain(info.segment_id);
        }
        self.check_mac(&path, &info, &hop, here)?;
        if ingress != 0 && hop.ingress_alert(&info) && scmp::asks_route(packet, &header) {
            return Err(Verdict::Answer(Answer::Traceroute { interface: ingress }));
        }

        if header.dst_ia == self.isd_as {
            let to = deliver::resolve(self, packet, &header)?;
            if unchain {
                path.set_segment_id(packet, path.current_info, info.segment_id);
            }
            return Ok(Verdict::Deliver { to });
        }

        let crossing = !peering && path.changes_after(here);
        let (out, mut out_info, out_hop) = if crossing {
            let next = here + 1;
            let next_info = path.info(packet, path.info_of(next));
            let next_hop = path.hop(packet, next);
            check_time(now, &path, &next_info, &next_hop, next)?;
            self.check_mac(&path, &next_info, &next_hop, next)?;
            (next, next_info, next_hop)
        } else {
            (here, info, hop)
        };
        if out + 1 >= path.hops {
            return Err(Verdict::Drop(Reason::MalformedPath));
        }
        let egress = out_hop.egress(&out_info);
        let face = self.check_egress(ingress, egress, crossing, &path, &out_info, out)?;
        if out_hop.egress_alert(&out_info) && scmp::asks_route(packet, &header) {
            return Err(Verdict::Answer(Answer::Traceroute { interface: egress }));
        }
        if !face.up {
            return refuse(Reason::InterfaceDown, Problem::InterfaceDown(egress));
        }
        if packet.len() > usize::from(face.mtu) {
            return refuse(Reason::PacketTooBig, Problem::PacketTooBig(face.mtu));
        }

        if crossing && unchain {
            path.set_segment_id(packet, path.current_info, info.segment_id);
        }
        // The egress router chains its hop in construction direction.
        let chain = out_info.cons_dir && !peering;
        if chain {
            out_info.segment_id = out_hop.chain(out_info.segment_id);
        }
        if chain || (unchain && !crossing) {
            path.set_segment_id(packet, path.info_of(out), out_info.segment_id);
        }
        path.set_current(packet, out + 1);
        Ok(Verdict::Forward { egress })
    }

    /// Takes back what [`process`](Self::process) changed in a packet it had
    /// delivered, for an answer after the delivery failed.
    pub(crate) fn take_back(&self, ingress: u16, packet: &mut [u8]) {
        let Ok(header) = Header::parse(packet) else {
            return;
        };
        let Ok(path) = Path::parse(packet, &header) else {
            return;
        };
        let info = path.info(packet, path.current_info);
        if let Ok(false) = peering(&path, &info)
            && !info.cons_dir
            && ingress != 0
        {
            let hop = path.hop(packet, path.current_hop);
            path.set_segment_id(packet, path.current_info, hop.chain(info.segment_id));
        }
    }

    /// An empty path leads nowhere; only the router itself answers on it.
    fn empty_path(&self, ingress: u16, header: &Header, packet: &[u8]) -> Verdict {
        let local = header.src_ia == self.isd_as && header.dst_ia == self.isd_as;
        let whole = header.len == header.path && packet.len() == header.len + header.payload_len;
        if ingress == 0
            && local
            && whole
            && header.dst_host(packet) == Some(Host::Ip(self.host))
            && scmp::asks_echo(packet, header)
        {
            Verdict::Answer(Answer::Echo)
        } else {
            Verdict::Drop(Reason::EmptyPath)
        }
    }

    /// A packet from inside is at the start of its path. One from outside has
    /// its previous hop behind it, and in the same segment: the ingress
    /// router changes segments, except over a peering link.
    #[inline]
    fn check_entry(&self, ingress: u16, path: &Path, peering: bool) -> Step<()> {
        let here = path.current_hop;
        if ingress == 0 && here != 0 {
            return Err(Verdict::Drop(Reason::TransitFromInside));
        }
        if ingress != 0 && (here == 0 || (path.changed_before(here) && !peering)) {
            return Err(Verdict::Drop(Reason::MalformedPath));
        }
        Ok(())
    }

    #[inline]
    fn check_ingress(&self, ingress: u16, path: &Path, info: &Info, hop: &Hop) -> Step<()> {
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
    fn check_length(&self, packet: &[u8], header: &Header) -> Step<()> {
        if packet.len() == header.len + header.payload_len {
            return Ok(());
        }
        refuse(
            Reason::PacketSize,
            Problem::parameter(code::INVALID_PACKET_SIZE, 0),
        )
    }

    /// Whose packets may come from where: from inside only this AS's own, to
    /// elsewhere; from outside only others', and those at the end of their
    /// path are for this AS.
    #[inline]
    fn check_addresses(
        &self,
        ingress: u16,
        packet: &[u8],
        header: &Header,
        path: &Path,
    ) -> Step<()> {
        let from_here = header.src_ia == self.isd_as;
        let to_here = header.dst_ia == self.isd_as;
        if from_here != (ingress == 0) {
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
    fn check_mac(&self, path: &Path, info: &Info, hop: &Hop, at: usize) -> Step<()> {
        if self.key.mac(&hop.mac_input(info)) == hop.mac {
            return Ok(());
        }
        refuse(
            Reason::InvalidMac,
            Problem::parameter(code::INVALID_MAC, path.hop_at(at)),
        )
    }

    /// The egress interface must exist, and the links on both sides must fit
    /// together: within a segment, or where one segment follows another
    /// (scionproto `validateEgressID`).
    #[inline]
    fn check_egress(
        &self,
        ingress: u16,
        egress: u16,
        crossing: bool,
        path: &Path,
        info: &Info,
        hop: usize,
    ) -> Step<Face> {
        use LinkTo::{Child, Core, Parent, Peer};
        let Some(face) = self.interface(egress) else {
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
        let links = (self.interface(ingress).map(|f| f.link_to), face.link_to);
        if crossing {
            return match links {
                (Some(Core), Child) | (Some(Child), Core | Child) => Ok(*face),
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
            | (Some(Parent | Peer), Child) => Ok(*face),
            _ => refuse(
                Reason::InvalidPath,
                Problem::parameter(code::INVALID_PATH, path.hop_at(hop)),
            ),
        }
    }
}

#[inline]
fn refuse<T>(reason: Reason, problem: Problem) -> Step<T> {
    Err(Verdict::Refuse { reason, problem })
}

/// Whether the current hop is one of the two at a peering link: the last of
/// the first segment and the first of the second, of two (scionproto
/// `determinePeer`). A segment of one hop exists only there.
#[inline]
fn peering(path: &Path, info: &Info) -> Step<bool> {
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

/// A hop is valid from the segment's timestamp for `1 + exp_time` units of
/// 1/256 day, which is 337.5 s.
#[inline]
fn check_time(now: u64, path: &Path, info: &Info, hop: &Hop, at: usize) -> Step<()> {
    let start = u64::from(info.timestamp);
    if start * 2 + (u64::from(hop.exp_time) + 1) * 675 < now * 2 {
        return refuse(
            Reason::ExpiredHop,
            Problem::parameter(code::PATH_EXPIRED, path.hop_at(at)),
        );
    }
    if start > now + CLOCK_SKEW {
        return refuse(
            Reason::NotYetValid,
            Problem::parameter(code::INVALID_PATH, path.info_at(path.info_of(at))),
        );
    }
    Ok(())
}
