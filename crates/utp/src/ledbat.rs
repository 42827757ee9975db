//! Congestion control: LEDBAT (RFC 6817), as BEP 29 uses it. It keeps the queue of the bottleneck at
//! 100 ms, so that it gives way to flows that fill the queue further, and halves its window after a loss.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::delay::BaseDelay;

/// The time in queues that is aimed at, in microseconds (BEP 29, RFC 6817).
const TARGET: f64 = 100_000.0;
/// Packets that the window grows by in a round trip without a queue (RFC 6817, `GAIN`).
const GAIN: f64 = 1.0;
/// Slow start ends at this time in queues, in microseconds: what is sent until that is noticed fills the queue
/// about as much again.
const SLOW_START_DELAY: f64 = TARGET / 2.0;
/// Packets of the first window, and of the first after a pause (RFC 3390).
const INITIAL_PACKETS: f64 = 4.0;
/// Packets of the smallest window.
const MIN_PACKETS: f64 = 2.0;
/// Delays of which the shortest counts (RFC 6817, `CURRENT_FILTER`).
const FILTER: usize = 4;
/// By how much, in microseconds, the base of the other direction may fall at once because the clocks differ
/// in speed. What falls further has other reasons, as a route that changed.
const MAX_SKEW: u32 = 10_000;

/// The congestion window of one direction of a connection.
#[derive(Debug)]
pub(crate) struct Ledbat {
    /// In bytes.
    window: f64,
    /// The window up to which slow start goes, in bytes.
    threshold: f64,
    /// Bytes of a full packet.
    packet: f64,
    /// The delay to the peer.
    ours: BaseDelay,
    /// The delay from the peer.
    theirs: BaseDelay,
    /// The last delays to the peer.
    recent: VecDeque<u32>,
}

impl Ledbat {
    /// Starts with full packets of `packet` bytes.
    pub fn new(packet: usize) -> Self {
        let packet = packet as f64;
        Self {
            window: INITIAL_PACKETS * packet,
            threshold: f64::INFINITY,
            packet,
            ours: BaseDelay::default(),
            theirs: BaseDelay::default(),
            recent: VecDeque::with_capacity(FILTER),
        }
    }

    /// Bytes that may be in flight: at least two packets.
    pub fn window(&self) -> usize {
        self.window as usize
    }

    /// Full packets have another length from now on.
    pub fn set_packet(&mut self, packet: usize) {
        self.packet = packet as f64;
    }

    /// Takes what the peer says a packet took, and what its packet took here; 0 means not known.
    pub fn on_delay(&mut self, ours: u32, theirs: u32, now: Instant) {
        if theirs != 0 {
            let before = self.theirs.base();
            self.theirs.observe(theirs, now);
            // The peer's clock is slower: our delays grow by as much as its delays shrink (libutp does so too).
            let fallen = before
                .zip(self.theirs.base())
                .map_or(0, |(before, after)| before.wrapping_sub(after));
            if fallen <= MAX_SKEW {
                self.ours.shift(fallen);
            }
        }
        if ours != 0 {
            self.ours.observe(ours, now);
            if self.recent.len() == FILTER {
                self.recent.pop_front();
            }
            self.recent.push_back(ours);
        }
    }

    /// Time in queues on the way to the peer, in microseconds.
    fn queuing(&self) -> u32 {
        let recent = self.recent.iter().map(|delay| self.ours.queuing(*delay));
        recent.min().unwrap_or(0)
    }

    /// Takes the acknowledgement of `acked` bytes, when `in_flight` bytes were in flight, those included.
    /// `rtt` is the round trip of one of them: no queue holds a packet longer.
    pub fn on_acked(&mut self, acked: usize, in_flight: usize, rtt: Option<Duration>) {
        let rtt = rtt.map_or(f64::INFINITY, |rtt| rtt.as_micros() as f64);
        let queuing = f64::from(self.queuing()).min(rtt);
        if self.is_slow_start() && queuing > SLOW_START_DELAY {
            self.threshold = self.window;
        }
        let acked = acked as f64;
        let change = match self.is_slow_start() {
            true => acked,
            false => GAIN * (TARGET - queuing) / TARGET * acked * self.packet / self.window,
        };
        // A window of which not half is used does not grow (RFC 6817, 2.4.1; RFC 7661). Several
        // acknowledgements may come before the next packet is sent.
        if change < 0.0 || in_flight as f64 * 2.0 >= self.window {
            self.window = (self.window + change).max(self.smallest());
        }
        if change < 0.0 {
            // Slow start would undo it.
            self.threshold = self.window;
        }
    }

    /// Packets were lost that were sent since the last call: at most one call in a round trip.
    pub fn on_lost(&mut self) {
        self.window = (self.window / 2.0).max(self.smallest());
        self.threshold = self.window;
    }

    /// Nothing was acknowledged in time.
    pub fn on_timeout(&mut self) {
        // A second timeout in a row says nothing of the window of before the first.
        if self.window > self.smallest() {
            self.threshold = (self.window / 2.0).max(self.smallest());
        }
        self.window = self.smallest();
    }

    /// Nothing was in flight for longer than a timeout: what the window stood for is no longer known.
    pub fn on_idle(&mut self) {
        self.window = self.window.min(INITIAL_PACKETS * self.packet);
    }

    fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    fn smallest(&self) -> f64 {
        MIN_PACKETS * self.packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: usize = 1000;

    /// A round trip in which the whole window is acknowledged, one packet at a time.
    fn round(ledbat: &mut Ledbat, delay: u32, now: Instant) {
        let in_flight = ledbat.window();
        for _ in 0..in_flight / PACKET {
            ledbat.on_delay(delay, 0, now);
            ledbat.on_acked(PACKET, in_flight, None);
        }
    }

    #[test]
    fn the_window_doubles_without_a_queue_and_grows_by_a_packet_a_round_trip_later() {
        let (mut ledbat, now) = (Ledbat::new(PACKET), Instant::now());
        round(&mut ledbat, 5000, now);
        assert_eq!(ledbat.window(), 8 * PACKET);
        ledbat.on_lost();
        assert_eq!(ledbat.window(), 4 * PACKET);
        round(&mut ledbat, 5000, now);
        assert!(
            (4800..=5000).contains(&ledbat.window()),
            "{}",
            ledbat.window()
        );
    }

    #[test]
    fn a_queue_above_the_target_shrinks_the_window_down_to_two_packets() {
        let (mut ledbat, now) = (Ledbat::new(PACKET), Instant::now());
        (0..5).for_each(|_| round(&mut ledbat, 1000, now));
        let before = ledbat.window();
        (0..5).for_each(|_| round(&mut ledbat, 301_000, now));
        let after = ledbat.window();
        assert!(after < before - 5 * PACKET, "{before} {after}");
        (0..1000).for_each(|_| round(&mut ledbat, 301_000, now));
        assert_eq!(ledbat.window(), 2 * PACKET);
        // At the target it stays.
        (0..5).for_each(|_| round(&mut ledbat, 1000, now));
        let before = ledbat.window();
        (0..50).for_each(|_| round(&mut ledbat, 101_000, now));
        assert!(before.abs_diff(ledbat.window()) < PACKET);
    }

    #[test]
    fn clocks_of_different_speed_make_no_queue() {
        let (mut ledbat, start) = (Ledbat::new(PACKET), Instant::now());
        // The peer's clock gains 100 ms in a minute: 10 ms in 6 s.
        for second in 0..120u32 {
            let now = start + Duration::from_secs(second.into());
            let skew = second * 1666;
            ledbat.on_delay(50_000 + skew, 250_000 - skew, now);
        }
        assert!(ledbat.queuing() < 10_000, "{}", ledbat.queuing());
    }

    #[test]
    fn one_long_delay_among_others_is_no_queue_and_a_round_trip_bounds_it() {
        let (mut ledbat, now) = (Ledbat::new(PACKET), Instant::now());
        ledbat.on_delay(1000, 0, now);
        ledbat.on_delay(500_000, 0, now);
        assert_eq!(ledbat.queuing(), 0);
        (0..FILTER).for_each(|_| ledbat.on_delay(500_000, 0, now));
        assert_eq!(ledbat.queuing(), 499_000);
        let before = ledbat.window();
        ledbat.on_acked(PACKET, before, Some(Duration::from_millis(20)));
        assert_eq!(ledbat.window(), before + PACKET);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow_and_a_pause_ends_it() {
        let mut ledbat = Ledbat::new(PACKET);
        ledbat.on_acked(PACKET, PACKET, None);
        assert_eq!(ledbat.window(), 4 * PACKET);
        (0..3).for_each(|_| round(&mut ledbat, 1000, Instant::now()));
        assert_eq!(ledbat.window(), 32 * PACKET);
        ledbat.on_idle();
        assert_eq!(ledbat.window(), 4 * PACKET);
        (0..3).for_each(|_| round(&mut ledbat, 1000, Instant::now()));
        ledbat.on_timeout();
        ledbat.on_timeout();
        assert_eq!((ledbat.window(), ledbat.threshold), (2 * PACKET, 16_000.0));
    }
}
