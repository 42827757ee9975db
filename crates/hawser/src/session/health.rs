//! Whether a path delivers, and whether a session has a path. No I/O, no clock.

use std::time::{Duration, Instant};

use hawser_endhost::patience::Patience;

/// How long nothing may arrive over a path before nothing more is sent over it, at least; packets that
/// have to be answered are sent every quarter of a second.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(1);
/// The same in round trips.
const SILENCE_ROUND_TRIPS: u32 = 4;

/// What changes about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing arrives over it any more.
    Silent,
    /// Something arrives over it again.
    Recovered,
}

/// Whether anything arrives over a path.
#[derive(Debug)]
pub(crate) struct Health {
    received: u64,
    silence: Patience,
    is_silent: bool,
}

impl Health {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            received: 0,
            silence: Patience::new(now),
            is_silent: false,
        }
    }

    /// Takes in how many bytes have arrived in all. To be called more often than twice in a second:
    /// longer intervals are pauses of this process, and no silence of the path.
    pub(crate) fn observe(&mut self, received: u64, rtt: Duration, now: Instant) -> Option<Change> {
        if std::mem::replace(&mut self.received, received) != received {
            self.silence = Patience::new(now);
            return std::mem::take(&mut self.is_silent).then_some(Change::Recovered);
        }
        let limit = SILENCE_TIMEOUT.max(rtt * SILENCE_ROUND_TRIPS);
        let silent = self.silence.is_over(limit, now) && !self.is_silent;
        self.is_silent |= silent;
        silent.then_some(Change::Silent)
    }
}

/// For how long a session has had no path that works.
#[derive(Debug)]
pub(crate) struct Outage {
    since: Option<Patience>,
}

impl Outage {
    pub(crate) fn new() -> Self {
        Self { since: None }
    }

    /// Whether no path has worked for `limit`. To be called more often than twice in a second.
    pub(crate) fn is_over(&mut self, has_path: bool, limit: Duration, now: Instant) -> bool {
        if has_path {
            self.since = None;
            return false;
        }
        let since = self.since.get_or_insert_with(|| Patience::new(now));
        since.is_over(limit, now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TICK: Duration = Duration::from_millis(100);
    const RTT: Duration = Duration::from_millis(50);

    /// The changes over some ticks, in each of which as many bytes arrive.
    fn changes(health: &mut Health, now: &mut Instant, ticks: &[u64]) -> Vec<(usize, Change)> {
        let mut changes = Vec::new();
        for (tick, bytes) in ticks.iter().enumerate() {
            *now += TICK;
            let received = health.received + bytes;
            changes.extend(
                health
                    .observe(received, RTT, *now)
                    .map(|change| (tick, change)),
            );
        }
        changes
    }

    #[test]
    fn a_path_is_silent_after_a_second_and_recovers_with_the_first_packet() {
        let mut now = Instant::now();
        let mut health = Health::new(now);
        let quiet = [&[1; 30][..], &[0; 9], &[1; 1], &[0; 9]].concat();
        assert_eq!(changes(&mut health, &mut now, &quiet), []);
        let ticks = [&[0; 30][..], &[7, 0, 0]].concat();
        let changes = changes(&mut health, &mut now, &ticks);
        assert_eq!(changes, [(0, Change::Silent), (30, Change::Recovered)]);
    }

    #[test]
    fn long_round_trips_are_no_silence() {
        let now = Instant::now();
        let mut health = Health::new(now);
        let rtt = Duration::from_millis(600);
        let mut silent = |tick: &u32| health.observe(0, rtt, now + TICK * *tick).is_some();
        assert_eq!((1..100).find(|tick| silent(tick)), Some(24));
    }

    #[test]
    fn a_pause_of_this_process_is_no_silence() {
        let now = Instant::now();
        let mut health = Health::new(now);
        assert_eq!(health.observe(1, RTT, now + TICK), None);
        assert_eq!(health.observe(1, RTT, now + 600 * TICK), None);
        let mut outage = Outage::new();
        assert!(!outage.is_over(false, 10 * TICK, now));
        assert!(!outage.is_over(false, 10 * TICK, now + 600 * TICK));
    }

    #[test]
    fn an_outage_ends_with_a_path() {
        let now = Instant::now();
        let mut outage = Outage::new();
        let limit = 10 * TICK;
        let mut at = |tick: u32, has_path| outage.is_over(has_path, limit, now + tick * TICK);
        assert!((0..9).all(|tick| !at(tick, false)));
        assert!(!at(9, true));
        assert!((10..20).all(|tick| !at(tick, false)));
        assert!(at(20, false));
    }

    proptest! {
        #[test]
        fn changes_alternate(ticks in prop::collection::vec(prop_oneof![4 => Just(0u64), 1 => 1u64..9], 0..300)) {
            let mut now = Instant::now();
            let mut health = Health::new(now);
            let changes = changes(&mut health, &mut now, &ticks);
            for (at, (_, change)) in changes.iter().enumerate() {
                let expected = if at % 2 == 0 { Change::Silent } else { Change::Recovered };
                prop_assert_eq!(*change, expected);
            }
        }
    }
}
