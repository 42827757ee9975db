//! Whether a lane still delivers, judged by what arrives over it. No I/O, no clock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Longest wait for an answer, beside a round trip, before a lane is doubted: TCP's delayed acknowledgement
/// takes at most 40 ms (RFC 1122, 4.2.3.2, and Linux). A subflow that had nothing to acknowledge answers the
/// probe that follows.
const GRACE: Duration = Duration::from_millis(60);
/// Time since the first unanswered probe, beside a round trip, after which a lane is dead.
const DEAD_TIME: Duration = Duration::from_millis(200);
/// Unanswered probes without which no lane is dead: a host that had no processor time for a while has sent
/// none yet, and may have answers that it has not read.
const MIN_MISSED: u32 = 3;
/// Time between probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(40);
/// The round-trip time assumed until one is measured.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// What is to be done about a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It delivers, or nothing was sent over it.
    Alive,
    /// Ask over it whether it delivers.
    Probe,
    /// Nothing has come back for too long.
    Dead,
}

/// What was sent and received over a lane, shared by the threads that do so. Times count from a
/// beginning that all of them have in common.
#[derive(Debug, Default)]
pub struct Liveness {
    /// When the first packet was sent that nothing has answered, in microseconds; 0 for none.
    waiting: AtomicU64,
    /// When something was received last, in microseconds.
    received: AtomicU64,
    /// When the first probe and the last one were sent since something was received, and how many; 0
    /// for none.
    doubted: AtomicU64,
    probed: AtomicU64,
    probes: AtomicU32,
}

impl Liveness {
    /// Records that a packet is sent.
    #[inline]
    pub fn sent(&self, now: Duration) {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            self.waiting.store(micros(now).max(1), Ordering::Relaxed);
        }
    }

    /// This process did not run for `pause` up to `now`: what was sent may have been answered meanwhile
    /// and not been read, so that time counts against nobody.
    pub fn excuse(&self, pause: Duration, now: Duration) {
        for time in [&self.waiting, &self.doubted, &self.probed] {
            // Zero is no time; what was answered meanwhile stays so.
            let later = |time: u64| (time + micros(pause)).min(micros(now));
            let shift = |time| (time != 0).then(|| later(time).max(time));
            let _ = time.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shift);
        }
    }

    /// Records that a packet was received.
    #[inline]
    pub fn received(&self, now: Duration) {
        self.received.store(micros(now), Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        self.doubted.store(0, Ordering::Relaxed);
    }

    /// Whether something was sent that nothing has answered.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Whether something was received after `since`.
    pub fn has_received_after(&self, since: Duration) -> bool {
        self.received.load(Ordering::Relaxed) > micros(since)
    }

    /// Whether an answer is overdue on the lane, whose round-trip time is `rtt` if it was measured.
    pub fn is_doubtful(&self, rtt: Option<Duration>, now: Duration) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let since = now.saturating_sub(Duration::from_micros(waiting));
        waiting != 0 && since > grace(rtt.unwrap_or(INITIAL_RTT))
    }

    /// Judges the lane, whose round-trip time is `rtt` if it was measured.
    pub fn judge(&self, rtt: Option<Duration>, now: Duration) -> Judgement {
        let rtt = rtt.unwrap_or(INITIAL_RTT);
        let waiting = match self.waiting.load(Ordering::Relaxed) {
            0 => return Judgement::Alive,
            since => now.saturating_sub(Duration::from_micros(since)),
        };
        if waiting <= grace(rtt) {
            return Judgement::Alive;
        }
        let since = |time: &AtomicU64| match time.load(Ordering::Relaxed) {
            0 => None,
            time => Some(now.saturating_sub(Duration::from_micros(time))),
        };
        let doubted = since(&self.doubted);
        let missed = self.probes.load(Ordering::Relaxed) >= MIN_MISSED;
        if missed && doubted.is_some_and(|doubted| doubted >= DEAD_TIME + rtt) {
            return Judgement::Dead;
        }
        if doubted.is_none() {
            self.doubted.store(micros(now).max(1), Ordering::Relaxed);
            self.probes.store(0, Ordering::Relaxed);
        } else if since(&self.probed).is_some_and(|probed| probed < PROBE_INTERVAL) {
            return Judgement::Alive;
        }
        self.probed.store(micros(now).max(1), Ordering::Relaxed);
        self.probes.fetch_add(1, Ordering::Relaxed);
        Judgement::Probe
    }
}

/// How long an answer may take.
fn grace(rtt: Duration) -> Duration {
    GRACE + rtt * 5 / 4
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(20));

    fn at(millis: u64) -> Duration {
        Duration::from_millis(1000 + millis)
    }

    #[test]
    fn a_lane_without_traffic_is_left_alone() {
        let lane = Liveness::default();
        assert_eq!(lane.judge(RTT, at(100_000)), Judgement::Alive);
        lane.sent(at(0));
        lane.received(at(20));
        assert_eq!(lane.judge(RTT, at(100_000)), Judgement::Alive);
    }

    #[test]
    fn an_unanswered_lane_is_probed_and_then_dead() {
        let lane = Liveness::default();
        // Later packets do not prolong the wait.
        (0..50).for_each(|time| lane.sent(at(time)));
        let judgements: Vec<_> = (0..40).map(|step| lane.judge(RTT, at(step * 10))).collect();
        let first = |wanted| judgements.iter().position(|one| *one == wanted).unwrap();
        let probes = judgements
            .iter()
            .filter(|one| **one == Judgement::Probe)
            .count();
        assert_eq!((first(Judgement::Probe), probes), (9, 6));
        assert_eq!(first(Judgement::Dead), 31);
        lane.received(at(400));
        assert_eq!(lane.judge(RTT, at(401)), Judgement::Alive);
    }

    #[test]
    fn a_far_lane_has_more_time() {
        let lane = Liveness::default();
        lane.sent(at(0));
        let far = Some(Duration::from_millis(300));
        assert_eq!(lane.judge(far, at(400)), Judgement::Alive);
        for time in [440, 480, 900] {
            assert_eq!(lane.judge(far, at(time)), Judgement::Probe);
        }
        assert_eq!(lane.judge(far, at(939)), Judgement::Alive);
        assert_eq!(lane.judge(far, at(940)), Judgement::Dead);
    }

    #[test]
    fn a_host_without_processor_time_asks_first() {
        let lane = Liveness::default();
        lane.sent(at(0));
        assert_eq!(lane.judge(RTT, at(2000)), Judgement::Probe);
        assert_eq!(lane.judge(RTT, at(2001)), Judgement::Alive);
        // And again without.
        for time in [4000, 4040] {
            assert_eq!(lane.judge(RTT, at(time)), Judgement::Probe);
        }
        assert_eq!(lane.judge(RTT, at(4041)), Judgement::Dead);
        lane.received(at(4050));
        lane.sent(at(4060));
        assert_eq!(lane.judge(RTT, at(9000)), Judgement::Probe);
        assert_ne!(lane.judge(RTT, at(9040)), Judgement::Dead);
    }

    #[test]
    fn a_process_that_seldom_runs_does_not_count_that_against_the_lane() {
        let lane = Liveness::default();
        lane.sent(at(0));
        // It runs for 10 ms every 200 ms: the answers to its probes are not read yet.
        for time in (0..2000).step_by(200) {
            lane.excuse(Duration::from_millis(190), at(time));
            assert_ne!(lane.judge(RTT, at(time)), Judgement::Dead, "at {time} ms");
        }
        // Then always, and nothing comes back.
        let dead = (2000..3000).step_by(10).find(|time| {
            let judged = lane.judge(RTT, at(*time));
            judged == Judgement::Dead
        });
        assert!(dead.is_some_and(|time| time < 2500), "{dead:?}");
    }

    #[test]
    fn an_excuse_is_for_what_waits_and_does_not_reach_into_the_future() {
        let lane = Liveness::default();
        lane.excuse(Duration::from_secs(5), at(0));
        assert!(!lane.is_waiting());
        lane.sent(at(0));
        lane.excuse(Duration::from_secs(5), at(100));
        assert_eq!(lane.judge(RTT, at(180)), Judgement::Alive);
        assert_eq!(lane.judge(RTT, at(190)), Judgement::Probe);
        lane.received(at(200));
        lane.excuse(Duration::from_secs(5), at(300));
        assert!(!lane.is_waiting());
    }

    #[test]
    fn what_arrives_after_a_doubt_ends_it() {
        let lane = Liveness::default();
        lane.received(at(5));
        assert!(lane.has_received_after(at(4)) && !lane.has_received_after(at(5)));
    }
}
