//! One-hop paths, which reach a neighbour AS before any path to it is known: used by beacons and
//! BFD packets (SCION dataplane specification, "One-Hop Path").
//!
//! The sender writes the first hop field; the router at the other end of the link writes the
//! second, so that the receiver can answer. No SCMP error is sent: without a second hop field there
//! is no return path.

use hawser_packet::Header;
use hawser_packet::number::next_header;
use hawser_packet::path::{HOP, HopField, INFO, InfoField, ONE_HOP};

use crate::check::check_age;
use crate::deliver;
use crate::forwarder::Forwarder;
use crate::reason::DropReason;
use crate::verdict::{Origin, PacketVerdict, Step};

impl Forwarder {
    pub(crate) fn one_hop(
        &self,
        now: u64,
        origin: Origin,
        header: &Header,
        packet: &mut [u8],
    ) -> Step<PacketVerdict> {
        if header.len != header.path + ONE_HOP {
            return Err(PacketVerdict::Drop(DropReason::MalformedPath));
        }
        if packet.len() != header.len + header.payload_len {
            return Err(PacketVerdict::Drop(DropReason::PacketSize));
        }
        if let (Origin::Interface(_), Some((next_header::BFD, at))) =
            (origin, header.upper_layer(packet))
        {
            return Ok(PacketVerdict::Bfd { at });
        }
        let info = InfoField::read(packet, header.path);
        let first = HopField::read(packet, header.path + INFO);
        if !info.cons_dir {
            return Err(PacketVerdict::Drop(DropReason::MalformedPath));
        }
        check_age(now, &info, &first).map_err(PacketVerdict::Drop)?;
        let done = match origin {
            Origin::Host => self.one_hop_out(header, packet, &info, &first),
            Origin::Interface(id) => self.one_hop_in(id, header, packet, &info, &first),
            Origin::Sibling(_) => Err(DropReason::TransitFromInside),
        };
        done.map_err(PacketVerdict::Drop)
    }

    fn one_hop_out(
        &self,
        header: &Header,
        packet: &mut [u8],
        info: &InfoField,
        first: &HopField,
    ) -> Result<PacketVerdict, DropReason> {
        let egress = first.egress(info);
        let entry = self
            .interface(egress)
            .filter(|entry| entry.sibling.is_none())
            .ok_or(DropReason::UnknownEgress)?;
        if header.src_as != self.isd_as {
            return Err(DropReason::InvalidSource);
        }
        if header.dst_as != entry.external.neighbour {
            return Err(DropReason::InvalidDestination);
        }
        if self.key.mac(&first.mac_input(info)) != first.mac {
            return Err(DropReason::InvalidMac);
        }
        if !(entry.external.up && entry.bfd_up) {
            return Err(DropReason::InterfaceDown);
        }
        if entry.external.exceeded_mtu(packet.len()).is_some() {
            return Err(DropReason::PacketTooBig);
        }
        let id = first.chain(info.segment_id);
        InfoField::set_segment_id(packet, header.path, id);
        Ok(PacketVerdict::Forward { egress })
    }

    fn one_hop_in(
        &self,
        ingress: u16,
        header: &Header,
        packet: &mut [u8],
        info: &InfoField,
        first: &HopField,
    ) -> Result<PacketVerdict, DropReason> {
        if header.dst_as != self.isd_as {
            return Err(DropReason::InvalidDestination);
        }
        let entry = self.interface(ingress);
        if entry.map(|entry| entry.external.neighbour) != Some(header.src_as) {
            return Err(DropReason::InvalidSource);
        }
        let to = deliver::resolve(self, packet, header).map_err(|verdict| match verdict {
            PacketVerdict::Drop(reason) | PacketVerdict::Refuse { reason, .. } => reason,
            // An echo request: the reply would have no return path.
            _ => DropReason::ScmpNotAnswered,
        })?;
        let second = self.key.hop_field(info, first.exp_time, ingress, 0);
        packet[header.len - HOP..header.len].copy_from_slice(&second.to_bytes());
        Ok(PacketVerdict::Deliver { to })
    }
}
