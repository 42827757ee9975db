//! Which packets a connection sends now.

use std::time::Instant;

use super::{Connection, State};
use crate::packet::{HEADER_LENGTH, Header, PacketKind};
use crate::send::{Limits, Outgoing};
use crate::sequence::FIRST_EPOCH;

impl Connection {
    /// Whether [`Self::transmit`] has something to send.
    pub fn wants_to_transmit(&self) -> bool {
        match self.state {
            State::SynSent { is_due, .. } => is_due,
            State::Closed { is_told, .. } => !is_told,
            State::SynReceived => self.acks.is_due,
            State::Established => self.acks.is_due || self.outgoing().is_some(),
        }
    }

    /// Appends packets to `out` that may be sent now: all of one length, but for the last, which may be
    /// shorter, at most `most`. Returns that length, or `None` if there is nothing to send.
    pub fn transmit(&mut self, out: &mut Vec<u8>, most: usize, now: Instant) -> Option<usize> {
        let begin = out.len();
        match self.state {
            State::SynSent { attempts, is_due } => {
                if !is_due {
                    return None;
                }
                self.state = State::SynSent {
                    attempts: attempts + 1,
                    is_due: false,
                };
                let mut header = self.header(PacketKind::Syn, now);
                // The peer answers with the number after that of the SYN.
                header.connection_id = self.ids.receive;
                header.sequence = header.sequence.wrapping_sub(1);
                header.acknowledged = 0;
                header.write(&[], out);
                self.timers.retransmit = None;
                self.arm_retransmission(now);
            }
            State::Closed { reason, is_told } => {
                if is_told {
                    return None;
                }
                let is_told = true;
                self.state = State::Closed { reason, is_told };
                self.header(PacketKind::Reset, now).write(&[], out);
            }
            State::SynReceived => self.transmit_ack(out, now)?,
            State::Established => {
                if let Some(stride) = self.transmit_segments(out, most, now) {
                    return Some(stride);
                }
                self.transmit_ack(out, now)?;
            }
        }
        Some(out.len() - begin)
    }

    fn outgoing(&self) -> Option<Outgoing> {
        self.sender.outgoing(&Limits {
            payload: self.payload,
            congestion: self.control.window(),
            peer: self.peer_window,
            probes: self.timers.probes,
        })
    }

    fn transmit_segments(&mut self, out: &mut Vec<u8>, most: usize, now: Instant) -> Option<usize> {
        let pause = now.saturating_duration_since(self.timers.sent_content);
        if !self.sender.is_outstanding() && pause > self.rtt.timeout() {
            self.control.on_idle();
        }
        let mut stride = None;
        for _ in 0..most {
            let Some(outgoing) = self.outgoing() else {
                break;
            };
            let length = HEADER_LENGTH + outgoing.length;
            let first = *stride.get_or_insert(length);
            if length > first {
                break;
            }
            self.timers.probes = false;
            self.timers.sent_content = now;
            let kind = match outgoing.is_end {
                true => PacketKind::Fin,
                false => PacketKind::Data,
            };
            let mut header = self.header(kind, now);
            header.sequence = outgoing.sequence as u16;
            header.write(&[], out);
            self.sender.send(&outgoing, out, now);
            if length < first {
                break;
            }
        }
        if stride.is_some() {
            self.timers.confirmation = None;
            self.on_acknowledged();
            self.arm_retransmission(now);
            self.arm_tail_probe(now);
        }
        stride
    }

    fn transmit_ack(&mut self, out: &mut Vec<u8>, now: Instant) -> Option<()> {
        if !self.acks.is_due {
            return None;
        }
        let selective = self.receiver.selective();
        self.header(PacketKind::State, now).write(&selective, out);
        self.acks.is_due = false;
        self.on_acknowledged();
        Some(())
    }

    /// What has arrived was acknowledged. Only a packet without content also says what waits for others.
    fn on_acknowledged(&mut self) {
        self.acks.is_due &= self.receiver.is_waiting();
        self.acks.is_pending = false;
        self.timers.ack = None;
    }

    fn header(&mut self, kind: PacketKind, now: Instant) -> Header {
        self.timers.sent = now;
        self.acks.announced = self.receiver.room_end();
        Header {
            kind,
            connection_id: self.ids.send,
            timestamp: self.timestamp(now),
            timestamp_difference: self.difference,
            window: self.receiver.window().try_into().unwrap_or(u32::MAX),
            sequence: self.sender.next() as u16,
            acknowledged: (self.receiver.next() - 1) as u16,
        }
    }
}

/// The answer to a packet of a connection that does not exist.
pub(crate) fn reset_for(header: &Header) -> [u8; HEADER_LENGTH] {
    let mut out = Vec::with_capacity(HEADER_LENGTH);
    let reset = Header {
        kind: PacketKind::Reset,
        connection_id: header.connection_id,
        timestamp: 0,
        timestamp_difference: 0,
        window: 0,
        sequence: FIRST_EPOCH as u16,
        acknowledged: header.sequence,
    };
    reset.write(&[], &mut out);
    let mut bytes = [0; HEADER_LENGTH];
    bytes.copy_from_slice(&out);
    bytes
}
