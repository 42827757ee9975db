//! How much the peer of a connection may send, and what that may take in memory.
//!
//! Every connection has a small window. Once the application expects more data than that of the peer,
//! the window grows to what the path holds, within a budget that all connections of an endpoint
//! share. It grows by what the application reads: data that nothing can be done with earns nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Receive window of a new connection, in bytes: messages and requests fit. Every connection has this
/// much.
pub(crate) const MIN_WINDOW: u64 = 64 << 10;
/// Receive window of a connection that data is expected from, in bytes: more than a sender's first
/// flights.
const EXPECTING: u64 = 512 << 10;
/// Largest receive window, in bytes: 10 Gbit/s over 200 ms.
pub(crate) const MAX_WINDOW: u64 = 256 << 20;
/// What all connections of an endpoint may have beyond [`MIN_WINDOW`], in bytes.
const BUDGET: u64 = 512 << 20;
/// The window, in units of what is read in a round trip. A sender doubles its rate every round trip
/// when it starts, and what follows a lost packet is held for a round trip more.
const ROUND_TRIPS: u64 = 4;
/// What a window may take in memory: some bytes for each of its own, as buffers grow by doubling and
/// packets have a place each; and some runs of few bytes, as packets with short messages are lost,
/// too.
const MEMORY: u64 = 4;
const SHORT_RUNS: u64 = 64 << 10;
/// A window is announced again when it has grown by this part of its size.
const ANNOUNCE_PART: u64 = 8;

/// Memory that peers may fill, in bytes.
#[derive(Debug)]
pub(super) struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicU64::new(BUDGET))
    }
}

impl Budget {
    /// Takes `bytes` out of the budget, or what is left of it. Returns how much it took.
    fn reserve(&self, bytes: u64) -> u64 {
        let take = |left: u64| Some(left.saturating_sub(bytes));
        let left = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        left.unwrap_or(0).min(bytes)
    }

    fn release(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The receive window of one connection.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    size: u64,
    /// Whether it may grow.
    grows: bool,
    /// Bytes that arrived and that the application has not read.
    unread: u64,
    /// What the protocol grants the peer at present.
    granted: u64,
    /// Bytes that the application has read since `since`.
    read: u64,
    since: Instant,
}

impl ReceiveWindow {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            size: MIN_WINDOW,
            grows: false,
            unread: 0,
            granted: MIN_WINDOW,
            read: 0,
            since: now,
        }
    }

    /// Lets the window grow.
    pub(super) fn grow(&mut self, budget: &Budget) {
        if !std::mem::replace(&mut self.grows, true) {
            self.size += budget.reserve(EXPECTING - self.size);
        }
    }

    /// Notes `bytes` that arrived.
    pub(super) fn on_received(&mut self, bytes: u64) {
        self.unread += bytes;
    }

    /// Notes `bytes` that the application has read.
    pub(super) fn on_read(&mut self, bytes: u64) {
        self.unread -= bytes;
        self.read += bytes;
    }

    /// Notes `bytes` that the application will never read.
    pub(super) fn on_discarded(&mut self, bytes: u64) {
        self.unread -= bytes;
    }

    /// The most memory that unread bytes may take, in bytes.
    pub(super) fn memory(&self) -> u64 {
        MEMORY * self.size + SHORT_RUNS
    }

    fn wanted(&self) -> u64 {
        self.size.saturating_sub(self.unread)
    }

    /// Whether the peer should be informed that it may send more.
    pub(super) fn is_due(&self) -> bool {
        self.wanted() >= self.granted + self.size / ANNOUNCE_PART
    }

    /// Adapts the window to what is read in a round trip. Returns how much beyond what it has read the
    /// protocol should allow the peer from now on, when that changes.
    pub(super) fn update(
        &mut self,
        now: Instant,
        round_trip: Duration,
        budget: &Budget,
    ) -> Option<u64> {
        let elapsed = now.saturating_duration_since(self.since);
        if self.grows && elapsed >= round_trip {
            let share = round_trip.as_secs_f64() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
            let wanted = (self.read as f64 * share) as u64 * ROUND_TRIPS;
            let missing = wanted.min(MAX_WINDOW).saturating_sub(self.size);
            self.size += budget.reserve(missing);
            (self.read, self.since) = (0, now);
        }
        let wanted = self.wanted();
        if wanted < self.granted || self.is_due() {
            self.granted = wanted;
            return Some(wanted);
        }
        None
    }

    /// Gives back what the connection had of the budget.
    pub(super) fn release(&mut self, budget: &Budget) {
        budget.release(self.size - MIN_WINDOW);
        self.size = MIN_WINDOW;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A window that sees `bytes` in every round trip, for `rounds` of them.
    fn after(rounds: u32, bytes: u64, budget: &Budget) -> (ReceiveWindow, Option<u64>) {
        let start = Instant::now();
        let mut window = ReceiveWindow::new(start);
        window.grow(budget);
        let mut granted = None;
        for round in 1..=rounds {
            window.on_received(bytes);
            window.on_read(bytes);
            granted = window.update(start + RTT * round, RTT, budget).or(granted);
        }
        (window, granted)
    }

    #[test]
    fn a_window_grows_to_four_round_trips() {
        let budget = Budget::default();
        assert_eq!(after(3, 1000, &budget).1, Some(EXPECTING));
        assert_eq!(after(3, 25 << 20, &budget).1, Some(100 << 20));
        assert_eq!(after(3, 200 << 20, &budget).1, Some(MAX_WINDOW));
    }

    #[test]
    fn a_window_does_not_grow_by_what_is_not_read_or_not_expected() {
        let (budget, start) = (Budget::default(), Instant::now());
        let mut window = ReceiveWindow::new(start);
        for round in 1..10 {
            window.on_received(MIN_WINDOW);
            window.on_read(MIN_WINDOW);
            window.update(start + RTT * round, RTT, &budget);
            assert_eq!(window.size, MIN_WINDOW, "it is not expected");
        }
        let mut window = ReceiveWindow::new(start);
        window.grow(&budget);
        for round in 1..10 {
            window.on_received(EXPECTING);
            window.on_discarded(EXPECTING);
            window.update(start + RTT * round, RTT, &budget);
            assert_eq!(window.size, EXPECTING, "it is not read");
        }
    }

    #[test]
    fn connections_share_a_budget_and_give_it_back() {
        let budget = Budget::default();
        let mut windows: Vec<_> = (0..4).map(|_| after(1, MAX_WINDOW, &budget).0).collect();
        let sizes: Vec<_> = windows.iter().map(|window| window.size).collect();
        assert_eq!(
            sizes,
            [
                MAX_WINDOW,
                MAX_WINDOW,
                MIN_WINDOW + 2 * MIN_WINDOW,
                MIN_WINDOW
            ]
        );
        windows
            .iter_mut()
            .for_each(|window| window.release(&budget));
        assert_eq!(budget.reserve(u64::MAX), BUDGET);
    }

    proptest! {
        /// The peer is never allowed more than the window less what is unread.
        #[test]
        fn unread_bytes_close_the_window(
            steps in prop::collection::vec((0u64..4 << 20, 0u64..4 << 20, 1u64..300), 1..80),
        ) {
            let budget = Budget::default();
            let mut now = Instant::now();
            let mut window = ReceiveWindow::new(now);
            window.grow(&budget);
            for (received, read, millis) in steps {
                now += Duration::from_millis(millis);
                window.on_received(received.min(window.granted));
                window.on_read(read.min(window.unread));
                window.update(now, RTT, &budget);
                prop_assert!(window.granted <= window.size.saturating_sub(window.unread));
                prop_assert!(!window.is_due());
                prop_assert!((MIN_WINDOW..=MAX_WINDOW).contains(&window.size));
            }
        }
    }
}
