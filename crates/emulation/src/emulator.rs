//! One direction of a link.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hawser_topology::Shape;

/// Maximum number of bytes in flight over a link without a rate: 250 ms at 2 Gbit/s.
const WITHOUT_RATE: usize = 64 << 20;
/// Maximum number of bytes in flight over any link: 200 ms at 10 Gbit/s.
const MAX_IN_FLIGHT: usize = 256 << 20;
/// Added to what a link's rate carries: the burst that its limit passes, and large packets.
const BURST: usize = 1 << 20;

/// Memory is released after more bytes than this were held.
const MUCH: usize = 1 << 20;

/// Largest capacity that an empty queue keeps for the next packets.
const MAX_KEPT_CAPACITY: usize = 256;

/// Emulates one direction of a link, over which packets of type `T` travel in groups.
///
/// Loss is drawn per packet. Delay is `delay` plus a uniform draw from `-jitter` to `jitter`, per
/// group of packets that arrived together. Like a real link it keeps the order of packets: a packet
/// is never due before the previous one. A draw per packet would, with the order kept, move every
/// burst to the upper end of the jitter.
#[derive(Debug)]
pub struct Emulator<T> {
    shape: Shape,
    random: fastrand::Rng,
    queue: VecDeque<Held<T>>,
    held: usize,
    most_held: usize,
    last_due: Option<Instant>,
}

/// A group in flight.
#[derive(Debug)]
struct Held<T> {
    due: Instant,
    bytes: usize,
    group: T,
}

impl<T> Emulator<T> {
    /// An emulator of `shape` that draws jitter and loss from `seed`.
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

    /// Holds a group of `bytes`, which arrived at `arrival`, until it is due. Returns it if there is
    /// no room: more bytes are in flight than the link's rate carries in its delay and the time of
    /// its queue, so that its limit would drop as many.
    ///
    /// # Errors
    /// The group.
    pub fn hold(&mut self, arrival: Instant, bytes: usize, group: T) -> Result<(), T> {
        if self.held + bytes > room(&self.shape) {
            return Err(group);
        }
        let draw = self.random.f64() * 2.0 - 1.0;
        let shift = self.shape.jitter.mul_f64(draw.abs());
        let delay = if draw < 0.0 {
            self.shape.delay.saturating_sub(shift)
        } else {
            self.shape.delay.saturating_add(shift)
        };
        let due = arrival + delay;
        let due = self.last_due.map_or(due, |last| last.max(due));
        self.last_due = Some(due);
        self.held += bytes;
        self.most_held = self.most_held.max(self.held);
        self.queue.push_back(Held { due, bytes, group });
        Ok(())
    }

    /// When the next group is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.front().map(|held| held.due)
    }

    /// The next group that is due at `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<T> {
        if self.queue.front()?.due > now {
            return None;
        }
        let held = self.queue.pop_front()?;
        self.held -= held.bytes;
        if self.queue.is_empty() && self.queue.capacity() > MAX_KEPT_CAPACITY {
            self.queue = VecDeque::new();
        }
        Some(held.group)
    }

    /// Whether nothing is in flight, but more than 1 MiB was since this last returned `true`: then
    /// memory can be released.
    pub fn take_drained(&mut self) -> bool {
        let drained = self.queue.is_empty() && self.most_held > MUCH;
        if drained {
            self.most_held = 0;
        }
        drained
    }

    /// Takes all groups in flight, due or not.
    pub fn clear(&mut self) -> impl Iterator<Item = T> {
        self.held = 0;
        self.queue.drain(..).map(|held| held.group)
    }
}

/// Maximum number of bytes in flight: what the link's rate carries while a packet is held and
/// waits in the queue of the limit. Without a rate a constant.
fn room(shape: &Shape) -> usize {
    let Some(rate) = shape.rate else {
        return WITHOUT_RATE;
    };
    let time = shape.delay + shape.jitter + shape.queue;
    bytes_in(rate, time)
        .saturating_add(BURST)
        .min(MAX_IN_FLIGHT)
}

/// Maximum number of bytes to send at once over a link with `rate` in bit/s: the kernel's limit
/// counts a send as one packet, so a send is bounded by what the rate carries in 1 ms. `None`
/// without a rate.
pub fn max_batch(rate: Option<u64>) -> Option<usize> {
    rate.map(|rate| bytes_in(rate, Duration::from_millis(1)))
}

/// The bytes that `rate` in bit/s carries in a time.
fn bytes_in(rate: u64, time: Duration) -> usize {
    let bytes = u128::from(rate) * time.as_nanos() / 8 / 1_000_000_000;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
