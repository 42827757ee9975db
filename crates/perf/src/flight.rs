//! The packets of a test: numbered by the sender, counted by the receiver.
//!
//! Each payload begins with the number of the test and the number of the packet. The receiver
//! returns the highest number that it has seen, so that a sender without a rate can keep a bounded
//! number of packets in flight: without that, packets lost in full buffers would take the processor
//! time of those that arrive.

use std::time::{Duration, Instant};

/// Bytes at the beginning of each payload: the number of the test, and that of the packet.
pub(crate) const HEADER: usize = 16;

/// Bytes of payload in flight at most, if no rate is requested: enough for 8 Gbit/s at a round trip
/// of 1 ms, and no more than the buffers of sockets and routers take.
const IN_FLIGHT: u64 = 1 << 20;

/// The sender's side.
#[derive(Debug)]
pub(crate) struct Sender {
    id: u64,
    /// Most packets in flight.
    window: u64,
    /// The number of the next packet.
    next: u64,
    /// The number after the highest one that the receiver has seen.
    seen: u64,
}

impl Sender {
    /// A sender of payloads of `payload` bytes.
    pub fn new(id: u64, payload: usize) -> Self {
        Self {
            id,
            window: (IN_FLIGHT / payload.max(1) as u64).max(1),
            next: 0,
            seen: 0,
        }
    }

    /// How many packets may be sent now.
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.next - self.seen)
    }

    /// The number of packets that may be in flight.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The number of packets sent.
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// Numbers the packets in `payloads`, each of `payload` bytes.
    pub fn number(&self, payloads: &mut [u8], payload: usize) {
        for (packet, number) in payloads.chunks_mut(payload).zip(self.next..) {
            write(packet, self.id, number);
        }
    }

    /// Counts packets as sent.
    pub fn on_sent(&mut self, packets: u64) {
        self.next += packets;
    }

    /// Takes an answer of the receiver.
    pub fn on_answer(&mut self, payload: &[u8]) {
        match read(payload) {
            Some((id, seen)) if id == self.id && seen <= self.next => {
                self.seen = self.seen.max(seen);
            }
            _ => {}
        }
    }

    /// Counts everything in flight as lost, since no answer arrives.
    pub fn on_silence(&mut self) {
        self.seen = self.next;
    }
}

/// The receiver's side.
#[derive(Debug)]
pub(crate) struct Receiver {
    id: u64,
    packets: u64,
    bytes: u64,
    /// The number after the highest one seen.
    seen: u64,
    /// The number after the highest one answered.
    answered: u64,
    /// The times of the first packet and of the last.
    span: Option<(Instant, Instant)>,
}

impl Receiver {
    pub fn new(id: u64) -> Self {
        Self {
            id,
            packets: 0,
            bytes: 0,
            seen: 0,
            answered: 0,
            span: None,
        }
    }

    /// Counts a packet; returns whether it belongs to the test.
    pub fn on_packet(&mut self, payload: &[u8]) -> bool {
        let number = match read(payload) {
            Some((id, number)) if id == self.id => number,
            _ => return false,
        };
        self.packets += 1;
        self.bytes += payload.len() as u64;
        self.seen = self.seen.max(number.saturating_add(1));
        true
    }

    /// Notes the time of the packets counted since the last call. Returns the answer to them, if
    /// there are new ones.
    pub fn answer(&mut self, now: Instant) -> Option<[u8; HEADER]> {
        if self.seen == self.answered {
            return None;
        }
        self.answered = self.seen;
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
        let mut answer = [0; HEADER];
        write(&mut answer, self.id, self.seen);
        Some(answer)
    }

    pub fn packets(&self) -> u64 {
        self.packets
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The time from the first packet to the last.
    pub fn time(&self) -> Duration {
        self.span
            .map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

fn write(payload: &mut [u8], id: u64, number: u64) {
    if let Some(header) = payload.first_chunk_mut::<HEADER>() {
        header[..8].copy_from_slice(&id.to_be_bytes());
        header[8..].copy_from_slice(&number.to_be_bytes());
    }
}

fn read(payload: &[u8]) -> Option<(u64, u64)> {
    let (id, rest) = payload.split_first_chunk()?;
    let number = rest.first_chunk()?;
    Some((u64::from_be_bytes(*id), u64::from_be_bytes(*number)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packets_in_flight_are_bounded_until_they_are_answered() {
        const PAYLOAD: usize = 1000;
        let (mut sender, mut receiver) = (Sender::new(7, PAYLOAD), Receiver::new(7));
        let window = sender.room();
        assert_eq!(window, IN_FLIGHT / PAYLOAD as u64);
        let mut packets = vec![0; window as usize * PAYLOAD];
        sender.number(&mut packets, PAYLOAD);
        sender.on_sent(window);
        assert_eq!((sender.room(), sender.sent()), (0, window));
        // The first half arrives, but for the first packet.
        let half = window as usize / 2;
        for packet in packets.chunks(PAYLOAD).take(half).skip(1) {
            assert!(receiver.on_packet(packet));
        }
        let now = Instant::now();
        sender.on_answer(&receiver.answer(now).unwrap());
        assert_eq!(sender.room(), half as u64);
        assert_eq!(receiver.answer(now), None);
        let count = half as u64 - 1;
        assert_eq!(receiver.packets(), count);
        assert_eq!(receiver.bytes(), count * PAYLOAD as u64);
        sender.on_silence();
        assert_eq!(sender.room(), window);
    }

    #[test]
    fn packets_and_answers_of_other_tests_are_ignored() {
        let (mut sender, mut receiver) = (Sender::new(1, 100), Receiver::new(2));
        let mut packet = [0; 100];
        sender.number(&mut packet, 100);
        sender.on_sent(1);
        let room = sender.room();
        assert!(!receiver.on_packet(&packet));
        let mut answer = [0; HEADER];
        // An answer to packets that were never sent.
        write(&mut answer, 1, 2);
        sender.on_answer(&answer);
        write(&mut answer, 2, 1);
        sender.on_answer(&answer);
        assert_eq!(sender.room(), room);
    }

    proptest! {
        #[test]
        fn any_packet_and_any_answer_are_accepted_or_ignored(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            id in any::<u64>(),
        ) {
            let (mut sender, mut receiver) = (Sender::new(id, 100), Receiver::new(id));
            sender.on_answer(&bytes);
            receiver.on_packet(&bytes);
            prop_assert!(sender.room() > 0);
        }
    }
}
