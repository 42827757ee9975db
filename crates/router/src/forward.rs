//! The processing of one packet by a border router.
//!
//! [`Forwarder::process`] depends only on the packet, its ingress interface and the time; it does
//! no I/O and allocates nothing. The rules are those of the SCION dataplane specification as
//! scionproto's router applies them. A packet from a host of the AS is at the first hop of its
//! path; one from another router of the AS entered the AS by an interface of that router and leaves
//! it by one of this router.

use hawser_packet::number::{next_header, path_type};
use hawser_packet::path::PathHop;
use hawser_packet::{Header, Host, ScmpError};

use crate::check::{check_time, peering};
use crate::deliver;
use crate::forwarder::Forwarder;
use crate::reason::DropReason;
use crate::scmp;
use crate::stun::is_stun;
use crate::verdict::{Answer, Origin, PacketVerdict, Step, refuse};

impl Forwarder {
    /// Processes `packet`, which came from `origin` at `now`, in Unix seconds. The packet is
    /// changed only if the verdict is [`PacketVerdict::Forward`], [`PacketVerdict::Deliver`] or
    /// [`PacketVerdict::Transit`].
    #[inline]
    pub fn process(&self, now: u64, origin: impl Into<Origin>, packet: &mut [u8]) -> PacketVerdict {
        let origin = origin.into();
        self.step(now, origin, packet)
            .unwrap_or_else(|verdict| match origin {
                // Never valid as SCION packets, so that those of others need not be looked at.
                Origin::Host if is_stun(packet) => PacketVerdict::Stun,
                _ => verdict,
            })
    }

    fn step(&self, now: u64, origin: Origin, packet: &mut [u8]) -> Step<PacketVerdict> {
        let header = Header::parse(packet).map_err(|error| PacketVerdict::Drop(error.into()))?;
        match header.path_type {
            path_type::STANDARD => {}
            path_type::EMPTY => return Err(self.empty_path(origin, &header, packet)),
            path_type::ONE_HOP => return self.one_hop(now, origin, &header, packet),
            _ => return Err(PacketVerdict::Drop(DropReason::UnsupportedPathType)),
        }
        let ingress = origin.interface();
        let path = header.standard_path(packet);
        let path = path.map_err(|_| PacketVerdict::Drop(DropReason::MalformedPath))?;
        let mut hop = path.at(packet, path.current_hop);
        let peering = peering(&path, &hop.info)?;
        self.check_entry(origin, packet, &path, peering)?;

        check_time(now, &path, &hop)?;
        self.check_ingress(ingress, &path, &hop)?;
        self.check_length(packet, &header)?;
        self.check_addresses(ingress, packet, &header, &path)?;

        // Against construction direction the router at the ingress undoes the chaining of its own
        // hop; the peering hop is not part of the chain.
        let unchain = !hop.info.cons_dir && ingress != 0 && !peering;
        if unchain {
            hop.info.segment_id = hop.field.chain(hop.info.segment_id);
        }
        self.check_mac(&path, &hop)?;
        let alerted = ingress != 0 && hop.field.ingress_alert(&hop.info);
        if alerted && scmp::is_traceroute_request(packet, &header) {
            return Err(PacketVerdict::Answer(Answer::Traceroute {
                interface: ingress,
            }));
        }

        if header.dst_as == self.isd_as {
            let to = deliver::resolve(self, packet, &header)?;
            if unchain {
                path.set_segment_id(packet, path.current_info, hop.info.segment_id);
            }
            return Ok(PacketVerdict::Deliver { to });
        }

        let crossing = !peering && path.changes_after(hop.number);
        let mut out = hop;
        if crossing {
            out = path.at(packet, hop.number + 1);
            check_time(now, &path, &out)?;
            self.check_mac(&path, &out)?;
        }
        if out.number + 1 >= path.hops {
            return Err(PacketVerdict::Drop(DropReason::MalformedPath));
        }
        let egress = out.field.egress(&out.info);
        let entry = self.check_egress(ingress, crossing, &path, &out)?;
        if let Some(sibling) = entry.sibling {
            let sibling = self.sibling(sibling);
            if !sibling.bfd_up {
                let error = ScmpError::InternalConnectivityDown {
                    isd_as: self.isd_as,
                    ingress,
                    egress,
                };
                return refuse(DropReason::SiblingDown, error);
            }
            // The egress router does the rest of the processing.
            if unchain {
                path.set_segment_id(packet, path.current_info, hop.info.segment_id);
            }
            path.set_current(packet, out.number);
            return Ok(PacketVerdict::Transit {
                to: sibling.address,
            });
        }
        if out.field.egress_alert(&out.info) && scmp::is_traceroute_request(packet, &header) {
            return Err(PacketVerdict::Answer(Answer::Traceroute {
                interface: egress,
            }));
        }
        let external = &entry.external;
        if !(external.up && entry.bfd_up) {
            let error = ScmpError::ExternalInterfaceDown {
                isd_as: self.isd_as,
                interface: egress,
            };
            return refuse(DropReason::InterfaceDown, error);
        }
        if let Some(mtu) = external.exceeded_mtu(packet.len()) {
            return refuse(DropReason::PacketTooBig, ScmpError::PacketTooBig { mtu });
        }

        if crossing && unchain {
            path.set_segment_id(packet, path.current_info, hop.info.segment_id);
        }
        // The egress router chains its hop in construction direction.
        let chain = out.info.cons_dir && !peering;
        if chain {
            out.info.segment_id = out.field.chain(out.info.segment_id);
        }
        if chain || (unchain && !crossing) {
            path.set_segment_id(packet, path.info_of(out.number), out.info.segment_id);
        }
        path.set_current(packet, out.number + 1);
        Ok(PacketVerdict::Forward { egress })
    }

    /// Reverts the changes that [`process`](Self::process) made to a packet that was to be
    /// delivered, for an SCMP error after the delivery failed.
    pub(crate) fn undo_delivery(&self, ingress: u16, packet: &mut [u8]) {
        if let Ok(header) = Header::parse(packet)
            && header.path_type == path_type::STANDARD
            && let Ok(path) = header.standard_path(packet)
            && let PathHop { info, field, .. } = path.at(packet, path.current_hop)
            && let Ok(false) = peering(&path, &info)
            && !info.cons_dir
            && ingress != 0
        {
            path.set_segment_id(packet, path.current_info, field.chain(info.segment_id));
        }
    }

    /// Processes a packet with an empty path, which cannot leave the AS: an echo request to the
    /// router itself, or a BFD packet of another router of the AS.
    fn empty_path(&self, origin: Origin, header: &Header, packet: &[u8]) -> PacketVerdict {
        let local = header.src_as == self.isd_as && header.dst_as == self.isd_as;
        let whole = header.len == header.path && packet.len() == header.len + header.payload_len;
        if let (Origin::Sibling(_), Some((next_header::BFD, at))) =
            (origin, header.upper_layer(packet))
            && local
            && whole
        {
            PacketVerdict::Bfd { at }
        } else if origin == Origin::Host
            && local
            && whole
            && header.dst_host(packet) == Ok(Host::Ip(self.host))
            && scmp::is_echo_request(packet, header)
        {
            PacketVerdict::Answer(Answer::Echo)
        } else {
            PacketVerdict::Drop(DropReason::EmptyPath)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::testing::{KEY, packet};

    /// A packet that arrives at `1-1` over one link, up or down.
    fn arriving(up: bool) -> Vec<u8> {
        let ends = ["1-2,10.0.2.1:31000", "1-1,10.0.1.1:31001"];
        let mut packet = packet(ends, !up, 1_000_000, &[1; 50]);
        // The previous router has advanced the path and chained its own hop.
        let header = Header::parse(&packet).unwrap();
        let path = header.standard_path(&packet).unwrap();
        let hop = path.at(&packet, 0);
        if hop.info.cons_dir {
            let id = hop.field.chain(hop.info.segment_id);
            path.set_segment_id(&mut packet, 0, id);
        }
        path.set_current(&mut packet, 1);
        packet
    }

    #[test]
    fn a_delivery_can_be_undone() {
        let router = IpAddr::from([10, 0, 1, 254]);
        let forwarder = Forwarder::new("1-1".parse().unwrap(), &KEY, router);
        for up in [true, false] {
            let before = arriving(up);
            let mut packet = before.clone();
            let verdict = forwarder.process(1_000_000, 5, &mut packet);
            assert!(
                matches!(verdict, PacketVerdict::Deliver { .. }),
                "{verdict:?}"
            );
            assert_eq!(packet != before, up, "only upwards is it changed");
            forwarder.undo_delivery(5, &mut packet);
            assert_eq!(packet, before);
        }
    }
}
