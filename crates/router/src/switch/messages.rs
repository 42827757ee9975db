//! SCMP messages and STUN answers to the senders of packets.

use std::time::Instant;

use hawser_packet::ScmpError;
use hawser_packet::number::unreachable;

use super::{Arrived, INTERNAL, Switch};
use crate::reason::DropReason;
use crate::scmp::is_single_host;
use crate::stun::BindingRequest;
use crate::verdict::{Answer, Origin};

/// An SCMP message to the source of a packet.
pub(super) enum Message {
    Error(ScmpError),
    Reply(Answer),
}

impl Switch {
    /// Sends SCMP errors to the sources of the packets whose destination host is unreachable. Not
    /// for other routers of the AS: BFD detects those.
    #[cold]
    pub(super) fn report_unreachable(
        &mut self,
        to: usize,
        index: usize,
        port: usize,
        now: Instant,
    ) {
        let run = self.ports[to].runs.at(index);
        let (ranges, host): (Vec<_>, _) = (run.packets().collect(), run.to);
        self.drops.add(DropReason::Unreachable, ranges.len() as u64);
        if to != INTERNAL || self.forwarder.internal_origin(host) != Origin::Host {
            return;
        }
        let origin = Origin::from(self.ports[port].id);
        for range in ranges {
            let packet = &mut self.inbox.data[range.clone()];
            self.forwarder.undo_delivery(origin.interface(), packet);
            let error = ScmpError::DestinationUnreachable {
                code: unreachable::ADDRESS,
            };
            let packet = Arrived {
                port,
                origin,
                slot: None,
                length: range.len(),
                range,
            };
            self.send_back(packet, Message::Error(error), now);
        }
    }

    /// Sends a message to the sender of `packet`.
    #[cold]
    pub(super) fn send_back(&mut self, packet: Arrived, message: Message, now: Instant) {
        let (port, origin) = (&mut self.ports[packet.port], packet.origin);
        let bytes = &self.inbox.data[packet.range];
        let allowed = match message {
            Message::Error(_) => port.shared.may_send_error(now),
            Message::Reply(_) => port.shared.may_send_reply(now),
        };
        if !allowed {
            return self.drops.add(DropReason::ScmpRateLimited, 1);
        }
        let (forwarder, out) = (&self.forwarder, &mut self.scratch);
        let written = match message {
            Message::Error(error) => forwarder.write_error(origin, bytes, error, out),
            Message::Reply(answer) => forwarder.write_answer(origin, bytes, answer, out),
        };
        // The neighbour at an external port is known.
        let slot = packet.slot.filter(|_| packet.port == INTERNAL);
        let to = slot.and_then(|slot| self.inbox.from(slot));
        match written {
            Some(()) => port.send_one(&self.scratch, to, now, &mut self.drops),
            None => self.drops.add(DropReason::ScmpNotAnswered, 1),
        }
    }
    /// Answers a STUN message of a host with the address that it came from.
    #[cold]
    pub(super) fn answer_stun(&mut self, packet: Arrived, now: Instant) {
        let request = match BindingRequest::parse(&self.inbox.data[packet.range]) {
            Ok(request) => request,
            Err(error) => return self.drops.add(error.into(), 1),
        };
        let port = &mut self.ports[packet.port];
        let from = packet.slot.and_then(|slot| self.inbox.from(slot));
        let Some(from) = from.filter(|from| from.port() != 0 && is_single_host(from.ip())) else {
            return self.drops.add(DropReason::StunNotAnswered, 1);
        };
        if !port.shared.may_answer_binding(now) {
            return self.drops.add(DropReason::StunRateLimited, 1);
        }
        request.write_answer(from, &mut self.scratch);
        port.send_one(&self.scratch, Some(from), now, &mut self.drops);
        self.bindings += 1;
    }
}
