//! Limits on virtual time: what is sent at most, and the share of each session.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::bucket::BURST;
use super::*;

const MBIT: u64 = 1_000_000;
/// Least and most bytes of a batch.
const MIN_BATCH: u64 = 2_800;
const MAX_BATCH: u64 = 65_000;

/// A session that sends whenever it may.
struct Sender {
    allowance: Allowance,
    /// Time between its batches at least: the pace of its path.
    pace: Duration,
    /// How late it wakes up at most.
    late: Duration,
    next: Instant,
    sent: u64,
}

impl Sender {
    fn new(limit: &Limit, start: Instant) -> Self {
        Self {
            allowance: Allowance::new(Some(limit.clone())),
            pace: Duration::ZERO,
            late: Duration::from_micros(60),
            next: start,
            sent: 0,
        }
    }
}

/// Lets them send for some time. Returns the rate of each, in Mbit/s.
fn run(senders: &mut [Sender], start: Instant, seconds: u64) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(14);
    let end = start + Duration::from_secs(seconds);
    while let Some(one) = senders.iter_mut().min_by_key(|one| one.next)
        && one.next < end
    {
        let now = one.next;
        let again = match one.allowance.ask(now) {
            Ok(bytes) => {
                let bytes = bytes.clamp(MIN_BATCH, MAX_BATCH);
                one.allowance.spend(bytes, now);
                one.sent += bytes;
                now + one.pace
            }
            Err(at) => at,
        };
        assert!(again >= now);
        one.next = again + one.late.mul_f64(random.f64());
    }
    let mbit = |one: &Sender| one.sent as f64 * 8e-6 / seconds as f64;
    senders.iter().map(mbit).collect()
}

fn is_about(rate: f64, wanted: f64) -> bool {
    (rate / wanted - 1.0).abs() < 0.05
}

#[test]
fn sessions_share_a_limit_equally_and_use_all_of_it() {
    let start = Instant::now();
    // Above, a batch is too short for a thread that is late by 400 us.
    for mbit in [1, 30, 1000] {
        let limit = Limit::new(mbit * MBIT, None);
        let mut senders = [(); 3].map(|()| Sender::new(&limit, start));
        // One thread is as slow as the system lets it be.
        senders[2].late = Duration::from_micros(400);
        let rates = run(&mut senders, start, 20);
        let wanted = mbit as f64 / 3.0;
        assert!(
            rates.iter().all(|rate| (rate / wanted - 1.0).abs() < 0.1),
            "{rates:?}"
        );
        assert!(is_about(rates.iter().sum(), mbit as f64), "{rates:?}");
    }
}

#[test]
fn a_session_over_a_slow_path_gets_all_that_it_can_send() {
    let start = Instant::now();
    let limit = Limit::new(50 * MBIT, None);
    let mut senders = [(); 3].map(|()| Sender::new(&limit, start));
    // 3125 bytes, a batch at 50 Mbit/s, each 5 ms: 5 Mbit/s.
    senders[0].pace = Duration::from_millis(5);
    let rates = run(&mut senders, start, 20);
    // Waiting for its turn takes time too.
    assert!(rates[0] > 0.8 * 5.0, "{rates:?}");
    assert!(is_about(rates.iter().sum(), 50.0), "{rates:?}");
    assert!(is_about(rates[1], rates[2]), "{rates:?}");
}

#[test]
fn a_limit_inside_another_keeps_to_both() {
    let start = Instant::now();
    let all = Limit::new(40 * MBIT, None);
    let user = Limit::new(10 * MBIT, Some(all.clone()));
    let mut senders = [&user, &user, &all, &all].map(|limit| Sender::new(limit, start));
    let rates = run(&mut senders, start, 20);
    let wanted = [5.0, 5.0, 15.0, 15.0];
    let mut each = rates.iter().zip(wanted);
    assert!(
        each.all(|(rate, wanted)| (rate / wanted - 1.0).abs() < 0.1),
        "{rates:?}"
    );
    // The inner one is not reached.
    let user = Limit::new(100 * MBIT, Some(all.clone()));
    let mut senders = [&user, &all].map(|limit| Sender::new(limit, start + BURST));
    let start = start + Duration::from_secs(30);
    senders.iter_mut().for_each(|one| one.next = start);
    let rates = run(&mut senders, start, 20);
    assert!(rates.iter().all(|rate| is_about(*rate, 20.0)), "{rates:?}");
}

#[test]
fn a_session_that_ends_or_falls_silent_does_not_delay_others() {
    let start = Instant::now();
    let limit = Limit::new(10 * MBIT, None);
    let mut senders = [(); 3].map(|()| Sender::new(&limit, start));
    run(&mut senders, start, 1);
    // It never asks again, although it may be its turn.
    senders[0].next = start + Duration::from_secs(3600);
    let [silent, ended, mut last] = senders;
    drop(ended);
    let (rate, start) = (last.sent, start + Duration::from_secs(1));
    last.sent -= rate;
    let rates = run(std::slice::from_mut(&mut last), start, 10);
    assert!(is_about(rates[0], 10.0), "{rates:?}");
    drop(silent);
}

#[test]
fn without_a_limit_everything_is_allowed_until_the_sink_asks_for_one() {
    let now = Instant::now();
    let mut allowance = Allowance::new(None);
    assert!(!allowance.is_limited());
    for _ in 0..10 {
        assert_eq!(allowance.ask(now), Ok(u64::MAX));
        allowance.spend(MAX_BATCH, now);
    }
    allowance.set_sink(Some(Limit::new(8 * MBIT, None)));
    assert_eq!(allowance.ask(now), Ok(500));
    allowance.spend(1000, now);
    assert_eq!(allowance.ask(now), Err(now + Duration::from_millis(1)));
    // What was sent at the rate before does not delay what follows.
    allowance.set_sink(Some(Limit::new(80 * MBIT, None)));
    assert_eq!(allowance.ask(now), Ok(5000));
    allowance.set_sink(None);
    assert!(!allowance.is_limited());
    let mut allowance = Allowance::new(Some(Limit::new(8 * MBIT, None)));
    allowance.set_sink(Some(Limit::new(16 * MBIT, None)));
    allowance.set_sink(None);
    assert_eq!(allowance.ask(now), Ok(500));
}

#[tokio::test]
async fn sessions_that_receive_divide_a_limit_equally() {
    let all = Limit::new(90, None);
    let limit = Limit::new(60, Some(all.clone()));
    let mut one = Receiving::begin(limit.clone());
    assert_eq!(one.share(), 60);
    let mut two = Receiving::begin(limit);
    assert_eq!((two.share(), one.changed().await), (30, 30));
    // Four share the outer one.
    let others = [(); 2].map(|()| Receiving::begin(all.clone()));
    assert_eq!((one.changed().await, two.changed().await), (22, 22));
    drop(others);
    drop(two);
    assert_eq!(one.changed().await, 60);
}

proptest! {
    /// Over any time, never more than the rate × (the time + a burst) and one batch.
    #[test]
    fn no_more_is_sent_than_the_limit(
        rate in 1..10_000_u64,
        asks in prop::collection::vec((0..4_usize, 0..8000_u64, 1..MAX_BATCH, any::<bool>()), 1..300),
    ) {
        let rate = rate * MBIT / 10;
        let limit = Limit::new(rate, None);
        let mut senders = [(); 4].map(|()| Allowance::new(Some(limit.clone())));
        let mut now = Instant::now();
        let mut sent: Vec<(Instant, u64)> = Vec::new();
        for (sender, micros, bytes, leaves) in asks {
            now += Duration::from_micros(micros);
            let sender = &mut senders[sender];
            match sender.ask(now) {
                Ok(_) if leaves => sender.leave(),
                Ok(_) => {
                    sender.spend(bytes, now);
                    sent.push((now, bytes));
                }
                Err(at) => prop_assert!(at > now),
            }
        }
        let bytes_per_second = rate as f64 / 8.0;
        for (first, (from, _)) in sent.iter().enumerate() {
            let mut bytes = 0;
            for (at, more) in &sent[first..] {
                // Without the last one.
                let most = bytes_per_second * (*at - *from + BURST).as_secs_f64();
                prop_assert!(bytes as f64 <= most * 1.000_001 + 1.0, "{bytes} > {most}");
                bytes += more;
            }
        }
    }
}
