//! What a border router does with one packet.
//!
//! [`Forwarder::process`] is a function of the packet, the interface it came in by and the time; it
//! does no I/O and allocates nothing. The rules are those of the SCION dataplane specification as
//! scionproto's router applies them. What a host of the AS sends is at the first hop of its path;
//! what another router of the AS sends came in by one of its interfaces and leaves by one of this
//! router's.

use std::net::{IpAddr, SocketAddr};

use hawser_topology::IsdAsn;

use crate::check::{check_time, peering, refuse};
use crate::deliver;
use crate::mac::HopKey;
use crate::place::{Face, Place, Service, Services, Sibling};
use crate::reason::Reason;
use crate::scmp::{self, Problem};
use crate::wire::{self, Header, Host, Path};

/// How far in the future a segment's timestamp may lie, in seconds: ASes' clocks differ, and a
/// hop's time is not counted finer than 337.5 s.
pub const CLOCK_SKEW: u64 = 337;

/// Where a packet came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A host of this AS.
    Host,
    /// Another router of this AS, by its number among them.
    Sibling(u8),
    /// The neighbour at this external interface.
    Interface(u16),
}

impl Origin {
    /// The interface the packet came in by; 0 is the inside.
    #[inline]
    pub fn interface(self) -> u16 {
        match self {
            Self::Host | Self::Sibling(_) => 0,
            Self::Interface(id) => id,
        }
    }
}

/// By interface; 0 is a host.
impl From<u16> for Origin {
    fn from(interface: u16) -> Self {
        match interface {
            0 => Self::Host,
            id => Self::Interface(id),
        }
    }
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
    /// Hand it to the router of this AS that has its egress interface.
    Transit {
        /// That router's internal address.
        to: SocketAddr,
    },
    /// It is for the router's own BFD session with where it came from.
    Bfd {
        /// Where in the packet the BFD packet begins.
        at: usize,
    },
    /// Answer it with an SCMP message, which takes the way back. The packet is as it came.
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
    pub(crate) key: HopKey,
    pub(crate) dispatched_ports: (u16, u16),
    pub(crate) services: Services,
    /// Sorted by number.
    places: Vec<(u16, Place)>,
    siblings: Vec<Sibling>,
}

/// A verdict that ends the processing of a packet early.
pub(crate) type Step<T> = Result<T, Verdict>;

impl Forwarder {
    /// The router of `isd_as` with the hop-field key `key`, reachable for the AS's hosts at `host`,
    /// without interfaces.
    pub fn new(isd_as: IsdAsn, key: &[u8; 16], host: IpAddr) -> Self {
        Self {
            isd_as: isd_as.to_u64(),
            host,
            key: HopKey::new(key),
            dispatched_ports: (31000, 32767),
            services: Services::default(),
            places: Vec::new(),
            siblings: Vec::new(),
        }
    }

    /// Sets the first and last UDP port that is delivered to directly; `(0, 0)`: none.
    #[must_use]
    pub fn with_dispatched_ports(mut self, ports: (u16, u16)) -> Self {
        self.dispatched_ports = ports;
        self
    }

    /// Sets where packets to the address of `service` go.
    #[must_use]
    pub fn with_service(
        mut self,
        service: Service,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> Self {
        self.services.set(service, addresses.into_iter().collect());
        self
    }

    /// Adds or replaces the external interface `id`.
    #[must_use]
    pub fn with_interface(mut self, id: u16, face: Face) -> Self {
        self.insert(id, face, None);
        self
    }

    /// Adds another router of the AS, at the internal address `address`, and its external
    /// interfaces. It is known as [`Origin::Sibling`]`(number)`, counted from 0. No AS has more
    /// than 256.
    #[must_use]
    pub fn with_sibling(
        mut self,
        address: SocketAddr,
        interfaces: impl IntoIterator<Item = (u16, Face)>,
    ) -> Self {
        let number = self.siblings.len() as u8;
        self.siblings.push(Sibling {
            address,
            heard: true,
        });
        for (id, face) in interfaces {
            self.insert(id, face, Some(number));
        }
        self
    }

    fn insert(&mut self, id: u16, face: Face, sibling: Option<u8>) {
        let place = Place {
            face,
            heard: true,
            sibling,
        };
        match self.places.binary_search_by_key(&id, |place| place.0) {
            Ok(at) => self.places[at].1 = place,
            Err(at) => self.places.insert(at, (id, place)),
        }
    }

    /// Changes interface `id`; says whether there is one.
    fn change(&mut self, id: u16, change: impl FnOnce(&mut Place)) -> bool {
        let at = self.places.binary_search_by_key(&id, |place| place.0);
        if let Ok(at) = at {
            change(&mut self.places[at].1);
        }
        at.is_ok()
    }

    /// Takes interface `id` up or down; says whether there is one.
    pub fn set_up(&mut self, id: u16, up: bool) -> bool {
        self.change(id, |place| place.face.up = up)
    }

    /// Sets the largest packet that passes interface `id`.
    pub(crate) fn set_mtu(&mut self, id: u16, mtu: u16) {
        self.change(id, |place| place.face.mtu = mtu);
    }

    /// Sets whether what is at `origin` and this router hear each other, as until now they are
    /// taken to do. Nothing is sent where they do not.
    pub fn set_heard(&mut self, origin: Origin, heard: bool) {
        match origin {
            Origin::Host => {}
            Origin::Sibling(number) => {
                if let Some(sibling) = self.siblings.get_mut(usize::from(number)) {
                    sibling.heard = heard;
                }
            }
            Origin::Interface(id) => {
                self.change(id, |place| place.heard = heard);
            }
        }
    }

    /// The external interface `id`, of whatever router.
    #[inline]
    pub(crate) fn place(&self, id: u16) -> Option<&Place> {
        let at = self.places.binary_search_by_key(&id, |place| place.0);
        at.ok().map(|at| &self.places[at].1)
    }

    /// Who sent a packet from inside, by the address it was sent from.
    #[inline]
    pub(crate) fn insider(&self, from: Option<SocketAddr>) -> Origin {
        let mut siblings = self.siblings.iter();
        match siblings.position(|sibling| Some(sibling.address) == from) {
            Some(number) => Origin::Sibling(number as u8),
            None => Origin::Host,
        }
    }

    /// Processes `packet`, which came from `origin` at `now`, in Unix seconds. The packet is
    /// changed only when the verdict is to forward it, to hand it on or to deliver it.
    #[inline]
    pub fn process(&self, now: u64, origin: impl Into<Origin>, packet: &mut [u8]) -> Verdict {
        self.step(now, origin.into(), packet)
            .unwrap_or_else(|verdict| verdict)
    }

    fn step(&self, now: u64, origin: Origin, packet: &mut [u8]) -> Step<Verdict> {
        let header = Header::parse(packet).map_err(Verdict::Drop)?;
        match header.path_type {
            wire::STANDARD_PATH => {}
            wire::EMPTY_PATH => return Err(self.empty_path(origin, &header, packet)),
            wire::ONE_HOP_PATH => return self.one_hop(now, origin, &header, packet),
            _ => return Err(Verdict::Drop(Reason::UnsupportedPathType)),
        }
        let ingress = origin.interface();
        let path = Path::parse(packet, &header).map_err(Verdict::Drop)?;
        let here = path.current_hop;
        let mut info = path.info(packet, path.current_info);
        let hop = path.hop(packet, here);
        let peering = peering(&path, &info)?;
        self.check_entry(origin, packet, &path, peering)?;

        check_time(now, &path, &info, &hop, here)?;
        self.check_ingress(ingress, &path, &info, &hop)?;
        self.check_length(packet, &header)?;
        self.check_addresses(ingress, packet, &header, &path)?;

        // Against construction direction the router at the ingress undoes the chaining of its own
        // hop; the peering hop is not part of the chain.
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
        let place = self.check_egress(ingress, egress, crossing, &path, &out_info, out)?;
        if let Some(sibling) = place.sibling {
            let sibling = &self.siblings[usize::from(sibling)];
            if !sibling.heard {
                let problem = Problem::ConnectivityDown { ingress, egress };
                return refuse(Reason::SiblingDown, problem);
            }
            // The rest is the egress router's to do.
            if unchain {
                path.set_segment_id(packet, path.current_info, info.segment_id);
            }
            path.set_current(packet, out);
            return Ok(Verdict::Transit {
                to: sibling.address,
            });
        }
        let face = &place.face;
        if out_hop.egress_alert(&out_info) && scmp::asks_route(packet, &header) {
            return Err(Verdict::Answer(Answer::Traceroute { interface: egress }));
        }
        if !(face.up && place.heard) {
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

    /// Takes back what [`process`](Self::process) changed in a packet it had delivered, for an
    /// answer after the delivery failed.
    pub(crate) fn take_back(&self, ingress: u16, packet: &mut [u8]) {
        let Ok(header) = Header::parse(packet) else {
            return;
        };
        if header.path_type != wire::STANDARD_PATH {
            return;
        }
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

    /// An empty path leads nowhere; only the router itself answers on it, and hears the AS's other
    /// routers.
    fn empty_path(&self, origin: Origin, header: &Header, packet: &[u8]) -> Verdict {
        let local = header.src_ia == self.isd_as && header.dst_ia == self.isd_as;
        let whole = header.len == header.path && packet.len() == header.len + header.payload_len;
        if let (Origin::Sibling(_), Some((wire::BFD, at))) = (origin, header.transport(packet))
            && local
            && whole
        {
            Verdict::Bfd { at }
        } else if origin == Origin::Host
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
}

#[cfg(test)]
mod tests {
    use sciparse::address::addr::ScionAddr;
    use sciparse::core::encode::WireEncode as _;
    use sciparse::util::test_builder::TestPathBuilder;

    use super::*;

    /// A packet that goes up to `1-1`, or down to it, over one link.
    fn arriving(up: bool) -> Vec<u8> {
        let addr = |isd_as: &str, ip: [u8; 4]| {
            ScionAddr::new(isd_as.parse().unwrap(), IpAddr::from(ip).into())
        };
        let builder = TestPathBuilder::new(addr("1-2", [10, 0, 2, 1]), addr("1-1", [10, 0, 1, 1]))
            .using_info_timestamp(1_000_000)
            .using_forwarding_key([9; 16]);
        let builder = if up { builder.up() } else { builder.down() };
        let mut packet = builder
            .add_hop(0, 4)
            .add_hop(5, 0)
            .build(1_000_000)
            .scion_packet_udp(&[1; 50], 31000, 31001)
            .try_encode_to_vec()
            .unwrap();
        // The router before has advanced it, and chained its own hop.
        let path = Path::parse(&packet, &Header::parse(&packet).unwrap()).unwrap();
        let (info, hop) = (path.info(&packet, 0), path.hop(&packet, 0));
        if info.cons_dir {
            path.set_segment_id(&mut packet, 0, hop.chain(info.segment_id));
        }
        path.set_current(&mut packet, 1);
        packet
    }

    #[test]
    fn a_delivery_can_be_taken_back() {
        let router = IpAddr::from([10, 0, 1, 254]);
        let forwarder = Forwarder::new("1-1".parse().unwrap(), &[9; 16], router);
        for up in [true, false] {
            let before = arriving(up);
            let mut packet = before.clone();
            let verdict = forwarder.process(1_000_000, 5, &mut packet);
            assert!(matches!(verdict, Verdict::Deliver { .. }), "{verdict:?}");
            assert_eq!(packet != before, up, "only upwards is it changed");
            forwarder.take_back(5, &mut packet);
            assert_eq!(packet, before);
        }
    }
}
