//! One-hop paths: a packet to a neighbour AS of which no path is known yet, so beacons and BFD
//! packets (SCION dataplane specification, "One-Hop Path").
//!
//! The sender makes the first hop field; the router that the packet comes in by makes the second,
//! so that the packet can be answered. Nobody is told of a fault: without a second hop field there
//! is no way back.

use crate::check::check_age;
use crate::deliver;
use crate::forward::{Forwarder, Origin, Step, Verdict};
use crate::mac::MacInput;
use crate::reason::Reason;
use crate::wire::{self, Header, Hop, INFO, Info};

impl Forwarder {
    pub(crate) fn one_hop(
        &self,
        now: u64,
        origin: Origin,
        header: &Header,
        packet: &mut [u8],
    ) -> Step<Verdict> {
        if header.len != header.path + wire::ONE_HOP {
            return Err(Verdict::Drop(Reason::MalformedPath));
        }
        if packet.len() != header.len + header.payload_len {
            return Err(Verdict::Drop(Reason::PacketSize));
        }
        if let (Origin::Interface(_), Some((wire::BFD, at))) = (origin, header.transport(packet)) {
            return Ok(Verdict::Bfd { at });
        }
        let info = Info::read(packet, header.path);
        let first = Hop::read(packet, header.path + INFO);
        if !info.cons_dir {
            return Err(Verdict::Drop(Reason::MalformedPath));
        }
        check_age(now, &info, &first).map_err(Verdict::Drop)?;
        let done = match origin {
            Origin::Host => self.one_hop_out(header, packet, &info, &first),
            Origin::Interface(id) => self.one_hop_in(id, header, packet, &info, &first),
            Origin::Sibling(_) => Err(Reason::TransitFromInside),
        };
        done.map_err(Verdict::Drop)
    }

    fn one_hop_out(
        &self,
        header: &Header,
        packet: &mut [u8],
        info: &Info,
        first: &Hop,
    ) -> Result<Verdict, Reason> {
        let egress = first.egress(info);
        let place = self
            .place(egress)
            .filter(|place| place.sibling.is_none())
            .ok_or(Reason::UnknownEgress)?;
        if header.src_ia != self.isd_as {
            return Err(Reason::InvalidSource);
        }
        if header.dst_ia != place.face.neighbour.to_u64() {
            return Err(Reason::InvalidDestination);
        }
        if self.key.mac(&first.mac_input(info)) != first.mac {
            return Err(Reason::InvalidMac);
        }
        if !(place.face.up && place.heard) {
            return Err(Reason::InterfaceDown);
        }
        if packet.len() > usize::from(place.face.mtu) {
            return Err(Reason::PacketTooBig);
        }
        let id = first.chain(info.segment_id);
        packet[header.path + 2..header.path + 4].copy_from_slice(&id.to_be_bytes());
        Ok(Verdict::Forward { egress })
    }

    fn one_hop_in(
        &self,
        ingress: u16,
        header: &Header,
        packet: &mut [u8],
        info: &Info,
        first: &Hop,
    ) -> Result<Verdict, Reason> {
        if header.dst_ia != self.isd_as {
            return Err(Reason::InvalidDestination);
        }
        let neighbour = self.place(ingress).map(|place| place.face.neighbour);
        if neighbour.map(|isd_as| isd_as.to_u64()) != Some(header.src_ia) {
            return Err(Reason::InvalidSource);
        }
        let to = deliver::resolve(self, packet, header).map_err(|verdict| match verdict {
            Verdict::Drop(reason) | Verdict::Refuse { reason, .. } => reason,
            // An echo request: its answer would have no way back.
            _ => Reason::ScmpNotAnswered,
        })?;
        let input = MacInput {
            segment_id: info.segment_id,
            timestamp: info.timestamp,
            exp_time: first.exp_time,
            cons_ingress: ingress,
            cons_egress: 0,
        };
        let second = &mut packet[header.len - wire::HOP..header.len];
        second[0] = 0;
        second[1] = input.exp_time;
        second[2..4].copy_from_slice(&input.cons_ingress.to_be_bytes());
        second[4..6].copy_from_slice(&input.cons_egress.to_be_bytes());
        second[6..].copy_from_slice(&self.key.mac(&input));
        Ok(Verdict::Deliver { to })
    }
}
