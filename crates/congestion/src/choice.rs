//! Which controller suits a path, by what its losses look like.

use std::fmt;
use std::time::{Duration, Instant};

use super::algorithm::Algorithm;

/// Shortest round-trip time at which losses without a queue matter: over a shorter one CUBIC makes
/// up for them soon enough.
const MIN_LONG_RTT: Duration = Duration::from_millis(10);
/// Rounds with such losses, less those with a queue, after which BBR takes over.
const TO_BBR: i32 = 3;
/// A queue that delays less cannot be distinguished from noise.
const QUEUE: Duration = Duration::from_millis(4);
/// Time for which the longest round-trip time counts, at least.
const LONGEST_AGE: Duration = Duration::from_secs(5);
/// Most that one kind of losses weighs more than the other. CUBIC takes over again when losses with
/// a queue weigh that much: BBR's own probing builds a queue in about one round of five.
const MAX_BALANCE: i32 = 6;

/// Which congestion control a connection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Congestion {
    /// BBR where packets are lost without a queue at a long round-trip time, CUBIC elsewhere.
    #[default]
    Auto,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBRv3 (draft-ietf-ccwg-bbr).
    Bbr,
}

impl Congestion {
    /// What a connection begins with.
    pub fn begins(self) -> CongestionState {
        let (algorithm, reason) = match self {
            Self::Auto => (Algorithm::Cubic, CongestionReason::Default),
            Self::Cubic => (Algorithm::Cubic, CongestionReason::Requested),
            Self::Bbr => (Algorithm::Bbr, CongestionReason::Requested),
        };
        CongestionState { algorithm, reason }
    }
}

/// The algorithm that a connection uses, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CongestionState {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Why it is used.
    pub reason: CongestionReason,
}

/// Why a connection uses an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum CongestionReason {
    /// The setting names it.
    Requested,
    /// No other suits the path better so far.
    #[default]
    Default,
    /// Packets were lost while the round-trip time was near its shortest.
    LossWithoutQueue {
        /// The shortest round-trip time.
        rtt: Duration,
    },
    /// Packets were lost when the round-trip time had grown, after a time in which they were not.
    LossWithQueue {
        /// The shortest round-trip time.
        rtt: Duration,
    },
}

impl Default for CongestionState {
    fn default() -> Self {
        Congestion::default().begins()
    }
}

impl fmt::Display for CongestionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => f.write_str("requested"),
            Self::Default => f.write_str("no losses that another suits better"),
            Self::LossWithoutQueue { rtt } => write!(
                f,
                "packets are lost without a queue, at a round-trip time of {} ms",
                rtt.as_millis()
            ),
            Self::LossWithQueue { rtt } => write!(
                f,
                "packets are lost when a queue is full, which adds to a round-trip time of {} ms",
                rtt.as_millis()
            ),
        }
    }
}

/// Round trips after which a loss that ended slow start without a queue is enough for BBR. CUBIC would
/// have to fill the path from a small window, which loses packets so rarely that it shows nothing for
/// seconds. If a queue was full that others fill, it is shorter by then, since they have answered.
const ANSWER_ROUND_TRIPS: u32 = 2;
/// A decrease of the round-trip time by less cannot be distinguished from noise.
const SHORTER: Duration = Duration::from_micros(500);

/// What the losses of a path have shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    /// A loss that ended slow start without a queue, until it is judged.
    pending: Option<Pending>,
    /// Rounds with losses: without a queue, less those with one.
    balance: i32,
    /// Losses of packets sent before this time belong to a round that is counted.
    counted: Option<Instant>,
    /// The longest round-trip time since `longest_at`, and in the time before it.
    longest: Duration,
    longest_before: Duration,
    longest_at: Option<Instant>,
    /// The round-trip time of the last acknowledgement.
    last: Option<Duration>,
}

/// A loss that is enough for BBR at a time, unless the round-trip time falls below the shortest until
/// then.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at: Instant,
    min: Duration,
}

impl Evidence {
    /// Records the round-trip time of an acknowledgement. Returns what to use from now on instead of
    /// `current`.
    pub(crate) fn acked(
        &mut self,
        now: Instant,
        rtt: Duration,
        current: Algorithm,
    ) -> Option<CongestionState> {
        self.measure(now, rtt);
        let Pending { at, min } = self.pending?;
        if rtt + SHORTER < min {
            self.pending = None;
        } else if now >= at {
            self.pending = None;
            return self.count(TO_BBR, current, min);
        }
        None
    }

    /// Keeps the round-trip times that losses are compared with.
    fn measure(&mut self, now: Instant, rtt: Duration) {
        self.last = Some(rtt);
        let old = |at: Instant| now.saturating_duration_since(at) > LONGEST_AGE;
        if self.longest_at.is_none_or(old) {
            (self.longest_before, self.longest) = (self.longest, rtt);
            self.longest_at = Some(now);
        }
        self.longest = self.longest.max(rtt);
    }

    /// What a loss now weighs for BBR, when `min` is the shortest round-trip time: nothing when the
    /// queue is neither full nor empty. The queue of other flows may be in `min` too, and their
    /// bursts overflow it before it has reached its longest.
    fn weight(&self, min: Duration) -> i32 {
        let queue = |rtt: Duration| rtt.saturating_sub(min);
        let now = self.last.map(queue).unwrap_or_default();
        let most = queue(self.longest.max(self.longest_before));
        if now < QUEUE || now < most / 4 {
            1
        } else if now >= most * 3 / 4 {
            -1
        } else {
            0
        }
    }

    /// Counts a loss of packets, the last of them sent at `sent`, where `min` is the shortest
    /// round-trip time. `starting`: it ended slow start. Returns what to use from now on instead of
    /// `current`.
    pub(crate) fn lost(
        &mut self,
        now: Instant,
        sent: Instant,
        current: Algorithm,
        starting: bool,
        min: Duration,
    ) -> Option<CongestionState> {
        if min < MIN_LONG_RTT || self.counted.is_some_and(|counted| sent <= counted) {
            return None;
        }
        self.counted = Some(now);
        let weight = self.weight(min);
        if starting && weight > 0 {
            let at = now + ANSWER_ROUND_TRIPS * min;
            self.pending = Some(Pending { at, min });
        }
        self.count(weight, current, min)
    }

    /// Takes back that a loss ended slow start: it was spurious.
    pub(crate) fn withdraw(&mut self) {
        self.pending = None;
    }

    /// Adds `weight` to the balance.
    fn count(&mut self, weight: i32, current: Algorithm, min: Duration) -> Option<CongestionState> {
        self.balance = (self.balance + weight).clamp(-MAX_BALANCE, MAX_BALANCE);
        let (algorithm, reason) = match current {
            Algorithm::Cubic if self.balance >= TO_BBR => (
                Algorithm::Bbr,
                CongestionReason::LossWithoutQueue { rtt: min },
            ),
            Algorithm::Bbr if self.balance <= -MAX_BALANCE => (
                Algorithm::Cubic,
                CongestionReason::LossWithQueue { rtt: min },
            ),
            _ => return None,
        };
        Some(CongestionState { algorithm, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Feeds `losses`, a round-trip time each, of a path of `min`; returns what is used at the end.
    fn after(min: Duration, losses: &[Duration]) -> Algorithm {
        let (mut evidence, mut now) = (Evidence::default(), Instant::now());
        let mut algorithm = Algorithm::Cubic;
        for &rtt in losses {
            now += rtt;
            evidence.measure(now, min);
            evidence.measure(now, rtt);
            let change = evidence.lost(now, now - rtt / 2, algorithm, false, min);
            algorithm = change.map_or(algorithm, |state| state.algorithm);
            // The rest of the same round.
            let again = evidence.lost(now + rtt / 4, now - rtt / 4, algorithm, false, min);
            assert_eq!(again, None);
        }
        algorithm
    }

    #[test]
    fn losses_without_a_queue_on_a_long_path_are_for_bbr() {
        assert_eq!(after(194 * MS, &[196 * MS; 2]), Algorithm::Cubic);
        assert_eq!(after(194 * MS, &[196 * MS; 3]), Algorithm::Bbr);
        assert_eq!(after(25 * MS, &[26 * MS; 3]), Algorithm::Bbr);
        assert_eq!(after(5 * MS, &[5 * MS; 30]), Algorithm::Cubic);
    }

    /// What is used after slow start has ended with a loss at `rtt`, and then these round-trip times,
    /// on a path of 194 ms.
    fn started(rtt: Duration, then: &[Duration]) -> Algorithm {
        let (mut evidence, mut now) = (Evidence::default(), Instant::now());
        let (cubic, min) = (Algorithm::Cubic, 194 * MS);
        for rtt in [min, rtt] {
            assert_eq!(evidence.acked(now, rtt, cubic), None);
        }
        assert_eq!(evidence.lost(now, now - rtt, cubic, true, min), None);
        let mut algorithm = cubic;
        for &rtt in then {
            now += rtt;
            let change = evidence.acked(now, rtt, algorithm);
            algorithm = change.map_or(algorithm, |state| state.algorithm);
        }
        algorithm
    }

    #[test]
    fn a_loss_that_ends_slow_start_without_a_queue_is_enough() {
        assert_eq!(started(195 * MS, &[194 * MS]), Algorithm::Cubic);
        assert_eq!(started(195 * MS, &[194 * MS; 2]), Algorithm::Bbr);
        assert_eq!(started(230 * MS, &[194 * MS; 9]), Algorithm::Cubic);
        // The queue of others was full, and is shorter now.
        let then = [194 * MS, 192 * MS, 194 * MS, 194 * MS];
        assert_eq!(started(195 * MS, &then), Algorithm::Cubic);
    }

    #[test]
    fn losses_with_a_queue_of_other_flows_are_no_evidence() {
        // The shortest round-trip time has most of another flow's queue in it.
        let losses = [50 * MS, 42 * MS, 44 * MS, 43 * MS, 45 * MS, 41 * MS].repeat(5);
        assert_eq!(after(35 * MS, &losses), Algorithm::Cubic);
    }

    #[test]
    fn losses_with_a_queue_are_for_cubic() {
        assert_eq!(after(100 * MS, &[130 * MS; 30]), Algorithm::Cubic);
        let mut losses = vec![101 * MS; 20];
        losses.extend([150 * MS; 11]);
        assert_eq!(after(100 * MS, &losses), Algorithm::Bbr);
        losses.push(150 * MS);
        assert_eq!(after(100 * MS, &losses), Algorithm::Cubic);
    }
}
