//! A link's delay, jitter and loss, before its rate limit.

use std::collections::VecDeque;
use std::time::Instant;

use hawser_topology::Shape;

/// Maximum number of bytes in flight over one emulated link: 250 ms at 1 Gbit/s.
const MAX_HELD: usize = 32 << 20;

/// Memory is released after more bytes than this were held.
const MUCH: usize = 1 << 20;

/// Largest capacity that an empty queue keeps for the next packets.
const KEPT: usize = 256;

/// Emulates one direction of a link.
///
/// Loss is drawn per packet. Delay is `delay` plus a uniform draw from `-jitter` to `jitter`, per
/// group of packets that arrived together. Like a real link it keeps the order of packets: a packet
/// is never due before the previous one. A draw per packet would, with the order kept, move every
/// burst to the upper end of the jitter.
pub(crate) struct Emulator {
    shape: Shape,
    random: fastrand::Rng,
    queue: VecDeque<Held>,
    held: usize,
    most_held: usize,
    last_due: Option<Instant>,
}

/// Packets in flight, which are sent with one call when due.
pub(crate) struct Held {
    pub due: Instant,
    /// Length of each packet but the last.
    pub segment: usize,
    pub data: Vec<u8>,
    /// Whether it is a BFD packet, which is not counted.
    pub is_bfd: bool,
}

/// The number of packets of `segment` bytes, the last perhaps shorter, in `bytes`.
#[inline]
pub(crate) fn packets_in(bytes: usize, segment: usize) -> u64 {
    bytes.div_ceil(segment.max(1)) as u64
}

impl Emulator {
    pub fn new(shape: Shape, seed: u64) -> Self {
        Self {
            shape,
            random: fastrand::Rng::with_seed(seed),
            queue: VecDeque::new(),
            held: 0,
            most_held: 0,
            last_due: None,
        }
    }

    /// Sets the shape for later packets, not for those in flight.
    pub fn set_shape(&mut self, shape: Shape) {
        self.shape = shape;
    }

    /// Whether packets may be [lost](Self::loses).
    #[inline]
    pub fn is_lossy(&self) -> bool {
        self.shape.loss > 0.0
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn loses(&mut self) -> bool {
        self.is_lossy() && self.random.f64() < self.shape.loss
    }

    /// Whether packets must be [held](Self::hold) at all.
    #[inline]
    pub fn delays(&self) -> bool {
        !self.queue.is_empty() || !self.shape.delay.is_zero() || !self.shape.jitter.is_zero()
    }

    /// Holds packets of `segment` bytes each, the last perhaps shorter, until they are due; fails
    /// with their number when there is no room.
    pub fn hold(
        &mut self,
        now: Instant,
        segment: usize,
        data: Vec<u8>,
        is_bfd: bool,
    ) -> Result<(), u64> {
        if self.held + data.len() > MAX_HELD {
            return Err(packets_in(data.len(), segment));
        }
        let draw = self.random.f64() * 2.0 - 1.0;
        let shift = self.shape.jitter.mul_f64(draw.abs());
        let delay = if draw < 0.0 {
            self.shape.delay.saturating_sub(shift)
        } else {
            self.shape.delay.saturating_add(shift)
        };
        let due = self
            .last_due
            .map_or(now + delay, |last| last.max(now + delay));
        self.last_due = Some(due);
        self.held += data.len();
        self.most_held = self.most_held.max(self.held);
        self.queue.push_back(Held {
            due,
            segment,
            data,
            is_bfd,
        });
        Ok(())
    }

    /// When the next packets are due.
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.front().map(|held| held.due)
    }

    /// The next packets that are due at `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<Held> {
        if self.queue.front()?.due > now {
            return None;
        }
        let held = self.queue.pop_front()?;
        self.held -= held.data.len();
        if self.queue.is_empty() && self.queue.capacity() > KEPT {
            self.queue = VecDeque::new();
        }
        Some(held)
    }

    /// Whether nothing is in flight, but more than [`MUCH`] bytes were since this last returned
    /// `true`: then memory can be released.
    pub fn take_drained(&mut self) -> bool {
        let drained = self.queue.is_empty() && self.most_held > MUCH;
        if drained {
            self.most_held = 0;
        }
        drained
    }

    /// Drops all packets in flight; returns their number.
    pub fn clear(&mut self) -> u64 {
        self.held = 0;
        let dropped = self.queue.drain(..);
        dropped
            .map(|held| packets_in(held.data.len(), held.segment))
            .sum()
    }
}

#[cfg(test)]
mod tests;
