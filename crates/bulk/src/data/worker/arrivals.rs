//! What the thread does with packets that arrive.

use std::time::Instant;

use hawser_seal::subflow_id;
use hawser_session::{First, Sightings};

use super::super::incoming::Packet;
use super::super::{DataEvent, SessionKey, SubflowKey};
use super::{Part, Session, Worker};
use crate::protocol::Payload;

/// A subflow over which a packet has arrived for the first time.
struct NewUp {
    session: SessionKey,
    subflow: SubflowKey,
    /// What is to be acknowledged once the lane is known.
    packet: Option<Packet>,
}

impl Session {
    /// The peer breaks the protocol, which ends the session.
    fn breaks(&mut self, how: &dyn std::fmt::Display) {
        self.is_broken = true;
        self.subflows.report(DataEvent::Broken(how.to_string()));
    }
}

impl Worker {
    /// Takes in the packets of one receive. Returns how many.
    pub(super) fn take(&mut self, now: Instant) -> usize {
        let mut packets = 0;
        let mut sightings = Sightings::default();
        for datagram in self.receiver.batch() {
            packets += 1;
            let place = subflow_id(datagram.payload).and_then(|id| self.ids.get(&id));
            let Some(&(session, key)) = place else {
                continue;
            };
            let Some(one) = self.sessions.get_mut(&session) else {
                continue;
            };
            if one.is_broken {
                continue;
            }
            let Some(subflow) = one.subflows.get_mut(key) else {
                continue;
            };
            let opened = subflow.opener.open(datagram.payload, &mut self.scratch);
            // What does not open is counted.
            let Ok(opened) = opened else {
                continue;
            };
            let size = datagram.payload.len();
            subflow.traffic.received += size as u64;
            // A peer that dialed shows how large a packet the path takes.
            subflow.datagram = subflow.datagram.max(size);
            let packet = Packet {
                number: opened.number,
                ask: opened.ask,
                marked: datagram.ecn == 0b11,
            };
            let mut kept = None;
            match (&mut one.part, opened.payload) {
                (Part::Source(outgoing), Payload::Ack(ack)) => {
                    match outgoing.on_ack(key, &ack, now) {
                        Ok(bytes) => subflow.traffic.delivered += bytes,
                        Err(error) => one.breaks(&error),
                    }
                }
                (Part::Sink(incoming), Payload::Data { position, content }) => {
                    match incoming.on_data(position, content) {
                        Ok(Some(bytes)) => {
                            subflow.traffic.delivered += bytes;
                            kept = Some(packet);
                        }
                        Ok(None) => {}
                        Err(error) => one.breaks(&error),
                    }
                }
                (Part::Sink(_), Payload::Probe { .. }) => kept = Some(packet),
                // Content does not flow that way; a probe to the source shows only that the path works.
                _ => {}
            }
            let Some(subflow) = one.subflows.get(key) else {
                continue;
            };
            let (is_up, lane) = (subflow.is_up, subflow.lane.as_ref());
            sightings.opened(&datagram, is_up, lane, || NewUp {
                session,
                subflow: key,
                packet: kept,
            });
            if is_up && let (Part::Sink(incoming), Some(packet)) = (&mut one.part, kept) {
                incoming.acknowledge(key, packet, now);
            }
        }
        for first in sightings.apply(&self.lanes) {
            self.take_first(&first, now);
        }
        packets
    }

    /// Takes the lane of the first packet that opened, if the subflow has none, and handles the packet
    /// as any other. Some packets of one receive may be the first.
    fn take_first(&mut self, first: &First<NewUp>, now: Instant) {
        let NewUp {
            session,
            subflow: key,
            packet,
        } = first.subflow;
        let Some(one) = self.sessions.get_mut(&session) else {
            return;
        };
        let Some(subflow) = one.subflows.get_mut(key) else {
            return;
        };
        let accepted = subflow.lane.is_none();
        if accepted {
            subflow.lane = first.accept(&self.lanes, subflow.remote);
        }
        if subflow.lane.is_none() {
            // Its peer repeats what is not acknowledged.
            return;
        }
        let was_up = std::mem::replace(&mut subflow.is_up, true);
        if accepted {
            self.admit(session, key, now);
        }
        let Some(one) = self.sessions.get_mut(&session) else {
            return;
        };
        if let (Part::Sink(incoming), Some(packet)) = (&mut one.part, packet) {
            incoming.acknowledge(key, packet, now);
        }
        if !was_up {
            one.subflows.report(DataEvent::Up(key));
        }
    }

    /// Uses a subflow whose lane is known from now on.
    pub(super) fn admit(&mut self, session: SessionKey, key: SubflowKey, now: Instant) {
        let Some(one) = self.sessions.get_mut(&session) else {
            return;
        };
        let Some(subflow) = one.subflows.get(key) else {
            return;
        };
        match &mut one.part {
            Part::Source(outgoing) => {
                outgoing.add(key, subflow, now);
                let local = self.lanes.socket().local_addr().isd_as;
                self.coupled
                    .add((session, key), subflow.lane.as_ref(), local);
            }
            Part::Sink(incoming) => incoming.add(key, now),
        }
    }
}
