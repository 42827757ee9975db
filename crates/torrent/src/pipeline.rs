//! How many blocks to keep requested on a connection: rate × delay, never a fixed number.
//!
//! Pure: the caller passes the time. A connection must never wait for the next request, so the
//! requests cover more than a round trip. Near the end, blocks requested over a slow path would
//! delay the whole, so no connection has more than it can deliver by the time the others are done.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::wire::BLOCK;

/// Time covered beyond the round trip: pauses of the peer's disk and scheduler, and the interval at
/// which requests are topped up.
pub(crate) const SLACK: Duration = Duration::from_millis(200);

/// The same for peers with other programs: those may answer in bursts, Transmission every half second. With
/// fewer than two bursts requested, a rate that is low once would stay low.
pub(crate) const BURST_SLACK: Duration = Duration::from_millis(1500);

/// Blocks requested before anything has arrived: 1 MiB, what slow start sends in its first seven
/// round trips.
pub(crate) const INITIAL_DEPTH: usize = 64;

/// Fewest blocks requested on a connection that delivers: one arriving, one behind it.
pub(crate) const MIN_DEPTH: usize = 2;

/// A block that arrives less than this many seconds after the others is not worth a duplicate:
/// rates measured over [`WINDOW`] are no more exact.
const HELD_UP: f64 = 0.1;

/// Rates are measured over this window, in bins: a path that stalls has no rate half a second
/// later.
const WINDOW: Duration = Duration::from_millis(500);
const BIN: Duration = Duration::from_millis(25);

/// Bytes per second over the last [`WINDOW`].
#[derive(Debug)]
pub(crate) struct Meter {
    bins: VecDeque<(Instant, u64)>,
    since: Instant,
}

impl Meter {
    /// Starts counting at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            bins: VecDeque::new(),
            since: now,
        }
    }

    /// Counts `bytes` that arrived at `now`.
    pub fn add(&mut self, now: Instant, bytes: u64) {
        match self.bins.back_mut() {
            Some((start, sum)) if now.saturating_duration_since(*start) < BIN => *sum += bytes,
            _ => self.bins.push_back((now, bytes)),
        }
        while let Some((start, _)) = self.bins.front()
            && now.saturating_duration_since(*start) > WINDOW
        {
            self.bins.pop_front();
        }
    }

    /// Starts again: rates before a pause do not predict those after it.
    pub fn restart(&mut self, now: Instant) {
        self.bins.clear();
        self.since = now;
    }

    /// The average over the window, in bytes per second.
    pub fn rate(&self, now: Instant) -> f64 {
        self.over(now, WINDOW)
    }

    /// The highest of the averages over the last fifth, the last half and all of the window, to
    /// follow a growing rate.
    pub fn peak(&self, now: Instant) -> f64 {
        let averages = [WINDOW / 5, WINDOW / 2, WINDOW].map(|window| self.over(now, window));
        averages.into_iter().fold(0.0, f64::max)
    }

    fn over(&self, now: Instant, window: Duration) -> f64 {
        let within = |start: &Instant| now.saturating_duration_since(*start) <= window;
        let bins = self.bins.iter().rev();
        let recent = bins.take_while(|(start, _)| within(start));
        let bytes: u64 = recent.map(|(_, bytes)| *bytes).sum();
        let age = now.saturating_duration_since(self.since);
        bytes as f64 / age.clamp(BIN, window).as_secs_f64()
    }
}

/// The rate of one connection, and the number of blocks requested over it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Subflow {
    /// Bytes per second; `None` while nothing has arrived yet.
    pub rate: Option<f64>,
    /// Round-trip time.
    pub rtt: Duration,
    /// Number of blocks requested.
    pub asked: usize,
}

impl Subflow {
    /// Seconds until the block at `place` in its queue arrives.
    pub fn arrival(&self, place: usize, assumed_rate: f64) -> f64 {
        let rate = self.rate.unwrap_or(assumed_rate).max(1.0);
        ((place + 1) as f64 * f64::from(BLOCK) / rate).max(self.rtt.as_secs_f64() / 2.0)
    }

    /// Seconds until a block requested now arrives.
    fn next_arrival(&self, assumed_rate: f64) -> f64 {
        self.arrival(self.asked, assumed_rate)
            .max(self.rtt.as_secs_f64())
    }
}

/// Blocks to keep requested on a connection that delivers `peak` bytes per second, if nothing else
/// limits it; `slack` is [`SLACK`] or [`BURST_SLACK`], `limit` the blocks that the peer queues.
///
/// The time covered is twice the round trip, so that a rate can double per round trip (slow start).
pub(crate) fn depth(peak: Option<f64>, rtt: Duration, slack: Duration, limit: usize) -> usize {
    let Some(peak) = peak else {
        return INITIAL_DEPTH.min(limit);
    };
    let time = time(rtt, slack);
    let blocks = (peak * time.as_secs_f64() / f64::from(BLOCK)).ceil() as usize;
    blocks.max(MIN_DEPTH).min(limit.max(1))
}

/// The time that the requested blocks cover.
pub(crate) fn time(rtt: Duration, slack: Duration) -> Duration {
    rtt + rtt.max(slack)
}

/// Shares out the remaining blocks among all connections that deliver.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Bytes per second assumed for connections without a measured rate; infinite if none has one.
    assumed_rate: f64,
    /// Seconds until everything has arrived if all connections deliver to the end.
    finish: f64,
    unmeasured: usize,
}

impl Plan {
    /// A plan for `blocks_left` blocks that are not received yet, requested or not.
    pub fn new(subflows: &[Subflow], blocks_left: u64) -> Self {
        let rates = || subflows.iter().filter_map(|subflow| subflow.rate);
        let measured = rates().count();
        let sum: f64 = rates().sum();
        let unmeasured = subflows.len() - measured;
        let assumed_rate = match measured {
            0 => f64::INFINITY,
            _ => sum / measured as f64,
        };
        let total = sum + assumed_rate.min(f64::MAX) * unmeasured as f64;
        let together = blocks_left as f64 * f64::from(BLOCK) / total.max(1.0);
        // The connection that delivers one more block soonest may always request it, so that the
        // rest always gets done.
        let arrivals = subflows.iter().map(|it| it.next_arrival(assumed_rate));
        let soonest = arrivals.fold(f64::INFINITY, f64::min);
        Self {
            assumed_rate,
            finish: together.max(soonest),
            unmeasured,
        }
    }

    /// How many of the `free` blocks may be requested over a connection, up to `depth` in all.
    pub fn share(&self, subflow: &Subflow, depth: usize, free: u64) -> usize {
        let room = depth.saturating_sub(subflow.asked);
        match subflow.rate {
            // Without rates, equal parts: otherwise the first connection would get all of a small
            // torrent.
            None => {
                let part = free.div_ceil(self.unmeasured.max(1) as u64);
                room.min(usize::try_from(part).unwrap_or(usize::MAX))
            }
            Some(rate) => {
                if subflow.rtt.as_secs_f64() > self.finish {
                    return 0;
                }
                let by_finish = (rate * self.finish / f64::from(BLOCK)).ceil() as usize;
                room.min(by_finish.max(1).saturating_sub(subflow.asked))
            }
        }
    }

    /// How many blocks stay requested over a connection when another one comes to which its last
    /// ones can move; `part` is the share of each if nothing is measured. What may be under way
    /// already stays.
    pub fn keeps(&self, subflow: &Subflow, part: usize) -> usize {
        let kept = match subflow.rate {
            None => part,
            Some(rate) => {
                let time = self.finish.max(2.0 * subflow.rtt.as_secs_f64());
                (rate * time / f64::from(BLOCK)).ceil() as usize
            }
        };
        kept.max(MIN_DEPTH)
    }

    /// Seconds gained by requesting a block at `place` in the queue of `holder` over `subflow` too;
    /// `None` unless it arrives clearly sooner, and would clearly come after the others.
    pub fn gain(&self, subflow: &Subflow, holder: &Subflow, place: usize) -> Option<f64> {
        let here = subflow.next_arrival(self.assumed_rate);
        let there = holder.arrival(place, self.assumed_rate);
        let holds_up = there > 2.0 * self.finish + HELD_UP;
        (holds_up && here * 1.25 + 0.005 < there).then_some(there - here)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn subflow(mbit: f64, rtt: Duration, asked: usize) -> Subflow {
        Subflow {
            rate: Some(mbit * 125_000.0),
            rtt,
            asked,
        }
    }

    #[test]
    fn a_steady_rate_is_measured_and_forgotten_when_it_stops() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        for ms in 0..1000 {
            meter.add(start + ms * MS, 1000);
        }
        let at = |ms: u32| meter.rate(start + ms * MS);
        assert!((0.9e6..1.1e6).contains(&at(1000)), "{}", at(1000));
        assert!((0.4e6..0.6e6).contains(&at(1250)), "{}", at(1250));
        assert_eq!(at(1600), 0.0);
    }

    #[test]
    fn a_new_rate_counts_from_its_start_and_its_peak_shows_growth() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        for ms in 0..100u32 {
            meter.add(start + ms * MS, 1000);
        }
        let early = meter.rate(start + 100 * MS);
        assert!((0.9e6..1.2e6).contains(&early), "{early}");
        for ms in 100..500u32 {
            meter.add(start + ms * MS, if ms < 400 { 1000 } else { 8000 });
        }
        let now = start + 500 * MS;
        assert!(meter.peak(now) > 6e6, "{}", meter.peak(now));
        assert!(meter.rate(now) < 3e6);
    }

    #[test]
    fn depth_covers_rate_times_delay_and_keeps_to_the_limit() {
        assert_eq!(depth(None, 10 * MS, SLACK, 2000), INITIAL_DEPTH);
        assert_eq!(depth(None, 10 * MS, SLACK, 10), 10);
        // 1 Gbit/s at 100 ms: 12.5 MB are under way.
        let deep = depth(Some(125e6), 100 * MS, SLACK, 1 << 20);
        assert!(deep as f64 * f64::from(BLOCK) >= 2.0 * 12.5e6);
        assert_eq!(depth(Some(125e6), 100 * MS, SLACK, 500), 500);
        assert_eq!(depth(Some(0.0), 10 * MS, SLACK, 500), MIN_DEPTH);
    }

    #[test]
    fn a_rate_limited_by_requests_at_least_doubles_per_round_trip() {
        // Exactly the requested blocks arrive within one round trip.
        for rtt in [1, 20, 200, 800].map(|ms| ms * MS) {
            let asked = 100;
            let seen = f64::from(BLOCK) * f64::from(asked) / rtt.as_secs_f64();
            assert!(
                depth(Some(seen), rtt, SLACK, usize::MAX) >= 2 * asked as usize,
                "{rtt:?}"
            );
        }
    }

    #[test]
    fn a_rate_limited_by_bursts_of_half_a_second_grows() {
        // All requested blocks arrive in one burst.
        let asked = 2;
        let seen = f64::from(BLOCK) * f64::from(asked) / 0.5;
        assert!(depth(Some(seen), MS, BURST_SLACK, usize::MAX) >= 2 * asked as usize);
    }

    #[test]
    fn near_the_end_a_slow_path_gets_its_share_only() {
        let (slow, fast) = (subflow(10.0, 20 * MS, 0), subflow(20.0, 20 * MS, 0));
        let plan = Plan::new(&[slow, fast], 30);
        let to_slow = plan.share(&slow, 100, 30);
        let to_fast = plan.share(&fast, 100, 30);
        assert!((10..=11).contains(&to_slow), "{to_slow}");
        assert!((20..=21).contains(&to_fast), "{to_fast}");
    }

    #[test]
    fn a_path_too_long_for_the_remaining_blocks_gets_nothing() {
        let (far, near) = (subflow(10.0, 900 * MS, 0), subflow(20.0, 10 * MS, 0));
        let plan = Plan::new(&[far, near], 5);
        assert_eq!(plan.share(&far, 100, 5), 0);
        assert!(plan.share(&near, 100, 5) > 0);
    }

    #[test]
    fn a_small_torrent_is_divided_before_rates_are_known() {
        let new = Subflow {
            rate: None,
            rtt: 10 * MS,
            asked: 0,
        };
        let plan = Plan::new(&[new, new], 20);
        assert_eq!(plan.share(&new, INITIAL_DEPTH, 20), 10);
    }

    #[test]
    fn a_duplicate_pays_only_where_it_comes_sooner() {
        let (slow, fast) = (subflow(1.0, 20 * MS, 10), subflow(20.0, 20 * MS, 0));
        let plan = Plan::new(&[slow, fast], 10);
        assert!(plan.gain(&fast, &slow, 9).is_some());
        assert!(plan.gain(&slow, &fast, 0).is_none());
        // The block is about to arrive anyway.
        let medium = subflow(10.0, 20 * MS, 1);
        assert!(plan.gain(&fast, &medium, 0).is_none());
        let silent = Subflow {
            rate: Some(0.0),
            ..medium
        };
        assert!(plan.gain(&fast, &silent, 0).is_some());
    }

    fn any_subflow() -> impl Strategy<Value = Subflow> {
        (proptest::option::of(0.0..1e9f64), 0u64..2000, 0usize..50).prop_map(|(rate, ms, asked)| {
            Subflow {
                rate,
                rtt: Duration::from_millis(ms),
                asked,
            }
        })
    }

    proptest! {
        /// A download always ends: while blocks are left and none is requested, some connection may
        /// request one.
        #[test]
        fn some_connection_may_always_request(
            mut subflows in proptest::collection::vec(any_subflow(), 1..6),
            left in 1u64..1000,
        ) {
            subflows.iter_mut().for_each(|subflow| subflow.asked = 0);
            let plan = Plan::new(&subflows, left);
            let most = subflows.iter().map(|subflow| plan.share(subflow, depth(subflow.rate, subflow.rtt, SLACK, 500), left)).max();
            prop_assert!(most > Some(0));
        }
    }
}
