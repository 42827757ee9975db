//! What has arrived of the peer's direction: in order and not read yet, and what waits for earlier packets.

use std::collections::{BTreeMap, VecDeque};

use crate::packet::MAX_SELECTIVE_LENGTH;

/// How far ahead of the next packet one may be: what a selective acknowledgement can tell of.
pub(crate) const MAX_AHEAD: u64 = MAX_SELECTIVE_LENGTH as u64 * 8;

/// What a packet was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one; nothing waits behind it.
    InOrder,
    /// The next one, for which others waited.
    FilledGap,
    /// It waits for earlier ones.
    Ahead,
    /// It arrived before.
    Repeated,
    /// There is no room for it, or it lies behind the end.
    Refused,
}

/// The receiving direction. In order are kept the capacity and one packet at most, and as much again may wait
/// for earlier packets, as peers count what was acknowledged selectively no longer as sent.
#[derive(Debug)]
pub(crate) struct Receiver {
    capacity: usize,
    /// The number of the next packet.
    next: u64,
    ready: VecDeque<u8>,
    /// Packets that wait for earlier ones, by their numbers.
    held: BTreeMap<u64, Vec<u8>>,
    held_bytes: usize,
    /// The number of the packet that ends the stream.
    end: Option<u64>,
    /// Bytes that were in order so far.
    arrived: u64,
    /// Nobody reads: bytes are acknowledged, and dropped.
    discards: bool,
}

impl Receiver {
    /// Expects the packet `next`, and keeps `capacity` bytes.
    pub fn new(next: u64, capacity: usize) -> Self {
        Self {
            capacity,
            next,
            ready: VecDeque::new(),
            held: BTreeMap::new(),
            held_bytes: 0,
            end: None,
            arrived: 0,
            discards: false,
        }
    }

    /// The number of the first packet is known now.
    pub fn start_at(&mut self, next: u64) {
        self.next = next;
    }

    /// Bytes that are kept in order, at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether packets wait for earlier ones.
    pub fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// The number of the next packet.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes a packet; `is_end` says whether it is the last one.
    pub fn receive(&mut self, sequence: u64, payload: &[u8], is_end: bool) -> Arrival {
        if sequence < self.next || self.held.contains_key(&sequence) {
            return Arrival::Repeated;
        }
        let behind_end = self.end.is_some_and(|end| sequence > end);
        let last_held = self.held.keys().next_back().copied();
        // An end before what has arrived cannot be.
        let is_false_end = is_end && last_held.is_some_and(|last| sequence < last);
        if behind_end || is_false_end || sequence - self.next > MAX_AHEAD {
            return Arrival::Refused;
        }
        if sequence > self.next {
            if self.held_bytes + payload.len() > self.capacity {
                return Arrival::Refused;
            }
            self.set_end(sequence, is_end);
            self.held_bytes += payload.len();
            self.held.insert(sequence, payload.to_vec());
            return Arrival::Ahead;
        }
        if !payload.is_empty() && self.ready.len() >= self.capacity {
            return Arrival::Refused;
        }
        self.set_end(sequence, is_end);
        self.push(payload);
        let mut arrival = Arrival::InOrder;
        while let Some(payload) = self.held.remove(&self.next) {
            self.held_bytes -= payload.len();
            self.push(&payload);
            arrival = Arrival::FilledGap;
        }
        match self.held.is_empty() {
            true => arrival,
            false => Arrival::FilledGap,
        }
    }

    fn set_end(&mut self, sequence: u64, is_end: bool) {
        if is_end {
            self.end.get_or_insert(sequence);
        }
    }

    fn push(&mut self, payload: &[u8]) {
        self.next += 1;
        self.arrived += payload.len() as u64;
        if !self.discards {
            self.ready.extend(payload);
        }
    }

    /// Reads up to `out.len()` bytes. Returns how many.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let length = out.len().min(self.ready.len());
        let (first, second) = self.ready.as_slices();
        let from_first = length.min(first.len());
        out[..from_first].copy_from_slice(&first[..from_first]);
        out[from_first..length].copy_from_slice(&second[..length - from_first]);
        self.ready.drain(..length);
        length
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> usize {
        self.ready.len()
    }

    /// Whether all packets have arrived, up to the end.
    pub fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| self.next > end)
    }

    /// Drops what is not read, and all that arrives from now on.
    pub fn discard(&mut self) {
        self.discards = true;
        self.ready = VecDeque::new();
    }

    /// Bytes for which there is room behind the next packet.
    pub fn window(&self) -> usize {
        self.capacity.saturating_sub(self.ready.len())
    }

    /// The byte of the stream up to which there is room.
    pub fn room_end(&self) -> u64 {
        self.arrived + self.window() as u64
    }

    /// Which packets wait for earlier ones, as a selective acknowledgement; empty if none does.
    pub fn selective(&self) -> Vec<u8> {
        let Some((last, _)) = self.held.last_key_value() else {
            return Vec::new();
        };
        // Bit 0 stands for the packet behind the next one.
        let bit = |sequence: u64| (sequence - self.next - 1) as usize;
        let length = (bit(*last) / 8 + 1).next_multiple_of(4);
        let mut bits = vec![0; length];
        for sequence in self.held.keys() {
            let bit = bit(*sequence);
            bits[bit / 8] |= 1 << (bit % 8);
        }
        bits
    }

    /// Gives back memory that is not used.
    pub fn shrink(&mut self) {
        self.ready.shrink_to_fit();
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.ready.len() + self.held_bytes
    }
}

#[cfg(test)]
mod tests;
