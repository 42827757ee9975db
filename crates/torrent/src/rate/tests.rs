//! Limits on virtual time: what passes at most, and the order of turns.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::bucket::{BURST, Bucket};
use super::turns::{Ticket, Turns};
use super::*;

/// Bytes that pass in `time` at most, beside what passes last.
fn most(rate: u64, time: Duration) -> f64 {
    rate as f64 * (time + BURST).as_secs_f64() + 1.0
}

proptest! {
    /// Over any time no more passes than the rate allows, however late and large each part is.
    #[test]
    fn no_more_passes_than_the_rate_allows(
        rate in 1_000..100_000_000u64,
        parts in prop::collection::vec((1..300_000u64, 0..60u64, 0..20u64), 1..60),
    ) {
        let mut bucket = Bucket::new(Some(rate));
        let (mut now, mut passed) = (Instant::now(), Vec::new());
        for (bytes, late, pause) in parts {
            // A task that wakes up late, and sometimes has nothing to send.
            let pause = if pause == 0 { 500 } else { 0 };
            now = bucket.due(now).max(now) + Duration::from_millis(late + pause);
            prop_assert!(bucket.due(now) <= now);
            bucket.spend(bytes, now);
            passed.push((now, bytes));
        }
        for (at, (from, _)) in passed.iter().enumerate() {
            let mut sum = 0.0;
            for (until, bytes) in &passed[at..] {
                prop_assert!(sum <= most(rate, *until - *from), "{sum} bytes at {rate}");
                sum += *bytes as f64;
            }
        }
    }

    /// One that always sends gets all that the rate allows, though it wakes up late.
    #[test]
    fn no_less_passes_than_the_rate_allows(
        rate in 1_000..100_000_000u64,
        parts in prop::collection::vec((1..300_000u64, 0..50u64), 1..60),
    ) {
        let start = Instant::now();
        let mut bucket = Bucket::new(Some(rate));
        let (mut now, mut sum) = (start, 0);
        for (bytes, late) in parts {
            let due = bucket.due(now);
            if due > now {
                now = due + Duration::from_millis(late);
            }
            let least = rate as f64 * (now - start).saturating_sub(BURST).as_secs_f64();
            // Times are whole nanoseconds.
            prop_assert!(sum as f64 + rate as f64 / 1e6 >= least, "{sum} of {least}");
            bucket.spend(bytes, now);
            sum += bytes;
        }
    }

    /// What has passed before a change takes as long as at the new rate.
    #[test]
    fn a_changed_rate_holds_at_once(
        before in 1_000..1_000_000u64,
        after in 1_000..1_000_000u64,
        bytes in 1..1_000_000u64,
    ) {
        let start = Instant::now();
        let mut bucket = Bucket::new(Some(before));
        bucket.spend(bytes, start);
        bucket.set_rate(Some(after), start);
        let burst = before as f64 * BURST.as_secs_f64();
        let wanted = (bytes as f64 - burst).max(0.0) / after as f64;
        let due = bucket.due(start).saturating_duration_since(start).as_secs_f64();
        prop_assert!((due - wanted).abs() < 1e-3 * (1.0 + wanted), "{due} {wanted}");
        bucket.set_rate(None, start);
        prop_assert_eq!(bucket.due(start), start);
    }

    /// Peers that always wait get a turn each, whatever number of connections they have.
    #[test]
    fn peers_take_turns(
        conns in prop::collection::vec(1..9usize, 1..10),
        rounds in 1..200usize,
    ) {
        let mut turns = Turns::default();
        let mut of: BTreeMap<Ticket, usize> = BTreeMap::new();
        for (peer, count) in conns.iter().enumerate() {
            for _ in 0..*count {
                of.insert(turns.enter(peer, 1), peer);
            }
        }
        let mut had = vec![0; conns.len()];
        for _ in 0..rounds {
            let head = turns.head().unwrap();
            let peer = of.remove(&head).unwrap();
            had[peer] += 1;
            turns.give();
            turns.leave(peer, head, 1);
            of.insert(turns.enter(peer, 1), peer);
            let (least, most) = (had.iter().min(), had.iter().max());
            prop_assert!(most.unwrap() - least.unwrap() <= 1, "{had:?}");
        }
    }

    /// Those that always wait get bytes by their prices, whatever number of connections each has, and also those
    /// that have none that waits while another has its turn.
    #[test]
    fn bytes_are_shared_out_by_price(
        all in prop::collection::vec((1..4usize, prop::sample::select(vec![1u64, 4, 16])), 2..8),
        sizes in prop::collection::vec(1..100_000u64, 200..600),
    ) {
        let mut turns = Turns::default();
        let mut of = BTreeMap::new();
        for (key, (count, price)) in all.iter().enumerate() {
            for _ in 0..*count {
                of.insert(turns.enter(key, *price), key);
            }
        }
        let mut passed = vec![0; all.len()];
        for bytes in sizes {
            let head = turns.head().unwrap();
            turns.give();
            let key = of.remove(&head).unwrap();
            passed[key] += bytes;
            turns.leave(key, head, bytes);
            of.insert(turns.enter(key, all[key].1), key);
            // Each has cost as much as any other, but for what passes in a turn.
            let costs = || passed.iter().zip(&all).map(|(bytes, (_, price))| bytes * price);
            let (least, most) = (costs().min().unwrap(), costs().max().unwrap());
            prop_assert!(most - least <= 16 * 100_000, "{passed:?}");
        }
    }

    /// A key that did not wait gets nothing for the time before, and what has a turn keeps it.
    #[test]
    fn those_that_come_late_save_nothing_up(turns_before in 1..100u64, price in 1..17u64) {
        let mut turns = Turns::default();
        let mut ticket = turns.enter(0, 1);
        for _ in 0..turns_before {
            turns.give();
            turns.leave(0, ticket, 1000);
            ticket = turns.enter(0, 1);
        }
        turns.give();
        let late = turns.enter(1, price);
        prop_assert_eq!(turns.head(), Some(ticket));
        turns.leave(0, ticket, 1000);
        let mut ticket = turns.enter(0, 1);
        prop_assert_eq!(turns.head(), Some(late));
        turns.give();
        turns.leave(1, late, 1000);
        turns.enter(1, price);
        for _ in 1..price {
            prop_assert_eq!(turns.head(), Some(ticket));
            turns.give();
            turns.leave(0, ticket, 1000);
            ticket = turns.enter(0, 1);
        }
    }

    /// While others come and go: the head is one that waits, and each gets its turn after no more
    /// turns than there are peers, times its place among the connections of its own.
    #[test]
    fn each_one_that_waits_gets_its_turn(
        steps in prop::collection::vec((0..6u8, any::<prop::sample::Index>(), 0..3u8), 1..120),
    ) {
        let mut turns = Turns::default();
        // In the order in which they came, with the turns that others had since.
        let mut waiting: Vec<(Ticket, u8, u64)> = Vec::new();
        let mut most = 0;
        for (peer, which, what) in steps {
            match what {
                0 => waiting.push((turns.enter(peer, 1), peer, 0)),
                1 if !waiting.is_empty() => {
                    let (ticket, peer, _) = waiting.remove(which.index(waiting.len()));
                    turns.leave(peer, ticket, 0);
                }
                _ => {
                    let head = turns.head();
                    prop_assert_eq!(head.is_some(), !waiting.is_empty());
                    let Some(head) = head else { continue };
                    let at = waiting.iter().position(|(ticket, ..)| *ticket == head);
                    let (ticket, peer, _) = waiting.remove(at.unwrap());
                    turns.give();
                    turns.leave(peer, ticket, 1);
                    waiting.iter_mut().for_each(|(.., others)| *others += 1);
                }
            }
            most = most.max(waiting.len() as u64);
            for (.., others) in &waiting {
                prop_assert!(*others <= 6 * most);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn connections_keep_to_the_limit_of_the_torrent_and_of_the_session() {
    let session = SessionRates::unlimited();
    let limits = RateLimits {
        upload: Some(4_000_000),
        download: None,
    };
    let torrents = [(); 2].map(|()| Arc::new(Rates::new(limits, session.clone())));
    session.set(RateLimits {
        upload: Some(2_000_000),
        download: None,
    });
    assert_eq!(torrents[0].up.rate(), Some(2_000_000));
    assert!(!torrents[0].down.is_limited());
    let start = tokio::time::Instant::now();
    let sent = Arc::new([const { AtomicU64::new(0) }; 2]);
    let tasks = (0..10u8).map(|conn| {
        // The first torrent has one peer of one connection, the other one of nine.
        let torrent = usize::from(conn > 0);
        let (rates, sent) = (Arc::clone(&torrents[torrent]), Arc::clone(&sent));
        tokio::spawn(async move {
            while sent
                .iter()
                .map(|it| it.load(Ordering::Relaxed))
                .sum::<u64>()
                < 600_000
            {
                rates.up.acquire([conn; 32]).await.spend(10_000);
                sent[torrent].fetch_add(10_000, Ordering::Relaxed);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let [one, nine] = [0, 1].map(|at| sent[at].load(Ordering::Relaxed));
    let allowed = most(2_000_000, start.elapsed()) as u64 + 10_000;
    assert!(one + nine <= allowed, "{one} and {nine} of {allowed}");
    assert!(
        start.elapsed() < Duration::from_millis(360),
        "less than allowed"
    );
    // The torrents take turns; at the end, each connection may have one more.
    assert!(one.abs_diff(nine) <= 100_000, "{one} and {nine}");
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_go_on_when_the_limit_is_lifted_or_another_gives_up() {
    let rates = Rates::new(
        RateLimits {
            upload: Some(1),
            download: None,
        },
        SessionRates::unlimited(),
    );
    // More than a day's worth.
    rates.up.acquire([1; 32]).await.spend(1_000_000);
    let gives_up = rates.up.acquire([2; 32]);
    let waits = rates.up.acquire([3; 32]);
    let first = async {
        tokio::select! {
            biased;
            _ = gives_up => unreachable!("nothing may pass"),
            () = tokio::task::yield_now() => {}
        }
        rates.set(RateLimits::default());
    };
    let (permit, ()) = tokio::join!(waits, first);
    permit.spend(1_000_000);
    assert!(!rates.up.is_limited());
}

/// Sends over one connection of each torrent until all together have sent 600 kB. Returns what each sent, and
/// the time.
async fn send(torrents: &[Arc<Rates>]) -> (Vec<u64>, Duration) {
    let start = tokio::time::Instant::now();
    let sent: Arc<Vec<AtomicU64>> = Arc::new(torrents.iter().map(|_| AtomicU64::new(0)).collect());
    let tasks = torrents.iter().enumerate().map(|(torrent, rates)| {
        let (rates, sent) = (Arc::clone(rates), Arc::clone(&sent));
        let sum = move |sent: &[AtomicU64]| {
            sent.iter()
                .map(|it| it.load(Ordering::Relaxed))
                .sum::<u64>()
        };
        tokio::spawn(async move {
            while sum(&sent) < 600_000 {
                rates.up.acquire([1; 32]).await.spend(10_000);
                sent[torrent].fetch_add(10_000, Ordering::Relaxed);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let sent = sent.iter().map(|it| it.load(Ordering::Relaxed)).collect();
    (sent, start.elapsed())
}

fn upload(rate: u64) -> RateLimits {
    RateLimits {
        upload: Some(rate),
        download: None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_group_is_that_of_its_torrents_together() {
    let session = SessionRates::unlimited();
    session.set(upload(2_000_000));
    let unlimited = RateLimits::default();
    let torrents: Vec<_> = (0..3)
        .map(|_| Arc::new(Rates::new(unlimited, session.clone())))
        .collect();
    let group = RateGroup::new();
    group.set(upload(500_000), false);
    for rates in &torrents[..2] {
        let group = Some(group.clone());
        rates.set_outer(&OuterLimits {
            group,
            ..OuterLimits::default()
        });
    }
    let rates = || torrents.iter().map(|it| it.up.rate()).collect::<Vec<_>>();
    assert_eq!(rates(), [500_000, 500_000, 2_000_000].map(Some));
    assert!(!torrents[0].down.is_limited());
    let (sent, time) = send(&torrents).await;
    let (ours, all) = (sent[0] + sent[1], sent.iter().sum::<u64>());
    assert!(
        (ours as f64) < most(500_000, time) + 20_000.0,
        "{sent:?} in {time:?}"
    );
    assert!(
        (all as f64) < most(2_000_000, time) + 30_000.0,
        "{sent:?} in {time:?}"
    );
    // What the group may not send, the other torrent may.
    assert!(time < Duration::from_millis(360), "{sent:?} in {time:?}");
    // They take turns, once the first one has had what may pass late, alone.
    assert!(sent[0].abs_diff(sent[1]) <= 45_000, "{sent:?}");
    // The group alone.
    session.set(upload(1));
    group.set(upload(500_000), true);
    assert_eq!(rates(), [500_000, 500_000, 1].map(Some));
    let (sent, time) = send(&torrents[..2]).await;
    assert!((sent.iter().sum::<u64>() as f64) < most(500_000, time) + 20_000.0);
    assert!(time < Duration::from_millis(1400), "{sent:?} in {time:?}");
    // Neither.
    torrents[0].set_outer(&OuterLimits {
        group: Some(group),
        is_exempt: true,
        ..OuterLimits::default()
    });
    assert_eq!(rates(), [None, Some(500_000), Some(1)]);
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_obey_other_limits_at_once() {
    let session = SessionRates::unlimited();
    let rates = Rates::new(RateLimits::default(), session.clone());
    let slow = RateGroup::new();
    slow.set(upload(1), false);
    let within = |group: &RateGroup| OuterLimits {
        group: Some(group.clone()),
        ..OuterLimits::default()
    };
    rates.set_outer(&within(&slow));
    // More than a day's worth for the group, and for the session.
    rates.up.acquire([1; 32]).await.spend(1_000_000);
    session.set(upload(1));
    rates.set_outer(&OuterLimits::default());
    rates.up.acquire([1; 32]).await.spend(1_000_000);
    rates.set_outer(&within(&slow));
    let start = tokio::time::Instant::now();
    let other = RateGroup::new();
    let change = async {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        rates.set_outer(&within(&other));
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        other.set(RateLimits::default(), true);
    };
    let (permit, ()) = tokio::join!(rates.up.acquire([2; 32]), change);
    permit.spend(1);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn torrents_of_higher_priority_get_more_of_the_limit_that_they_share() {
    use BandwidthPriority::{High, Low, Normal};
    let session = SessionRates::unlimited();
    session.set(upload(1_000_000));
    let rates = |priority| {
        let rates = Rates::new(RateLimits::default(), session.clone());
        rates.set_outer(&OuterLimits {
            priority,
            ..OuterLimits::default()
        });
        Arc::new(rates)
    };
    let torrents = [High, Normal, Low].map(rates);
    let (sent, _) = send(&torrents).await;
    let wanted = [16, 4, 1].map(|part| sent.iter().sum::<u64>() * part / 21);
    for (sent, wanted) in sent.iter().zip(wanted) {
        // The first one has what may pass late, alone.
        assert!(sent.abs_diff(wanted) <= 60_000, "{sent} of {wanted}");
    }
    // None waits for ever, and one alone has it all.
    assert!(sent[2] > 0, "{sent:?}");
    let (sent, time) = send(&torrents[2..]).await;
    assert!(time < Duration::from_millis(700), "{sent:?} in {time:?}");
    // At once, also for what waits.
    torrents[2].set_outer(&OuterLimits::default());
    let (sent, _) = send(&torrents[1..]).await;
    assert!(sent[0].abs_diff(sent[1]) <= 60_000, "{sent:?}");
}
