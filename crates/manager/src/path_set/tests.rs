use hawser_path::{Metadata, Policies, Verdict};

use super::entry::NOT_OFFERED;
use super::testing::{Bench, MS, path};
use super::*;
use crate::order::Action;

use std::sync::Arc;

use hawser_path::Select;

/// A path of one hop that announces this latency.
fn announced(id: u16, latency: Duration) -> Arc<Path> {
    let plain = path(&[id]);
    let metadata = Metadata {
        latency: vec![Some(latency)],
        ..Metadata::default()
    };
    let path = Path::new(plain.src, plain.dst, plain.interfaces.clone(), metadata);
    Arc::new(path.unwrap())
}

#[test]
fn a_measured_latency_takes_precedence_over_the_announced() {
    let mut bench = Bench::new("latency".parse().unwrap(), 1);
    let (one, two) = (announced(1, MS), announced(2, 5 * MS));
    let now = Instant::now();
    bench.offer(&[one.clone(), two.clone()], now);
    assert_eq!(bench.taken(), [one.fingerprint()]);
    bench.connected(&one, 100 * MS, now);
    assert_eq!(bench.taken(), [two.fingerprint()]);
    // The path that works is kept until the other is connected.
    assert!(bench.closes(now).is_empty());
    bench.connected(&two, 20 * MS, now);
    assert_eq!(bench.taken(), [two.fingerprint()]);
    assert_eq!(bench.closes(now), [one.fingerprint()]);
    // The measured latency is remembered, so the choice does not alternate.
    let subflow = bench.subflows[&two.fingerprint()];
    bench.set.closed(subflow);
    bench.connected(&two, 30 * MS, now);
    assert_eq!(bench.taken(), [two.fingerprint()]);
}

#[test]
fn all_taken_paths_are_dialed_at_once_and_only_once() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let now = Instant::now();
    bench.offer(&[path(&[1]), path(&[2]), path(&[1, 3])], now);
    let dials = bench.dials(now);
    assert_eq!(dials.len(), 2);
    assert_eq!(dials, bench.taken());
    assert!(bench.dials(now).is_empty());
    let left = bench.set.paths().find(|path| !path.taken).unwrap();
    assert_eq!(left.decision().verdict, Verdict::Left);
}

#[test]
fn a_path_that_fails_is_dialed_after_growing_pauses_and_replaced() {
    let mut bench = Bench::new(Select::shortest(), 1);
    let start = Instant::now();
    let (short, long) = (path(&[1]), path(&[2, 3]));
    bench.offer(&[short.clone(), long.clone()], start);
    let name = short.fingerprint();
    assert_eq!(bench.dials(start), [name]);
    let (mut now, mut pauses) = (start, Vec::new());
    for _ in 0..8 {
        bench.failed(name, now);
        let due = (0..)
            .map(|ms| now + ms * MS)
            .find(|at| bench.dials(*at).contains(&name));
        pauses.push(due.unwrap() - now);
        now = due.unwrap();
    }
    assert!(pauses.is_sorted() && pauses[0] > Duration::ZERO);
    assert!(*pauses.last().unwrap() <= Duration::from_secs(5));
    assert_eq!(bench.taken(), [long.fingerprint()]);
    assert!(bench.set.trouble().unwrap().contains("no answer"));
    // It answers at last: it is taken again, and the other path is surplus.
    bench.connected(&long, MS, now);
    assert!(bench.closes(now).is_empty());
    bench.connected(&short, MS, now);
    assert_eq!(bench.taken(), [name]);
    assert_eq!(bench.closes(now), [long.fingerprint()]);
}

#[test]
fn a_refused_path_is_replaced_and_dialed_again_after_a_minute() {
    let mut bench = Bench::new(Select::shortest(), 1);
    let now = Instant::now();
    let (short, long) = (path(&[1]), path(&[2, 3]));
    bench.offer(&[short.clone(), long.clone()], now);
    bench.orders(now);
    let (name, minute) = (short.fingerprint(), Duration::from_secs(60));
    let (subflow, refused) = (bench.subflows[&name], Failure::Refused);
    bench.set.lost(subflow, refused, "it says so".into(), now);
    assert_eq!(bench.taken(), [long.fingerprint()]);
    assert!(!bench.dials(now + minute - MS).contains(&name));
    assert!(bench.dials(now + minute).contains(&name));
    let mut paths = bench.set.paths();
    let refused = paths.find(|path| path.fingerprint == name).unwrap();
    assert_eq!(refused.error.as_deref(), Some("it says so"));
}

#[test]
fn a_withdrawn_path_is_held_then_closed_and_dialed_at_once_when_offered_again() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let now = Instant::now();
    let (one, two) = (path(&[1]), path(&[2]));
    bench.offer(&[one.clone(), two.clone()], now);
    bench.connected(&one, MS, now);
    bench.connected(&two, MS, now);
    bench.offer(std::slice::from_ref(&two), now);
    let held = bench.orders(now).pop().unwrap();
    assert_eq!((held.path, held.action), (one.fingerprint(), Action::Hold));
    assert_eq!(bench.set.next_due(), Some(now + NOT_OFFERED));
    assert!(bench.closes(now + NOT_OFFERED - MS).is_empty());
    assert_eq!(bench.closes(now + NOT_OFFERED), [one.fingerprint()]);
    assert_eq!(bench.dials(now + 60_000 * MS), []);
    let decision = bench.set.decision(one.fingerprint()).unwrap();
    assert_eq!(decision.to_string(), "left: not offered any more");
    bench.offer(&[one.clone(), two], now);
    assert_eq!(bench.dials(now), [one.fingerprint()]);
}

#[test]
fn a_withdrawn_path_that_delivers_stays_in_use() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let (now, one) = (Instant::now(), path(&[1]));
    bench.offer(std::slice::from_ref(&one), now);
    bench.connected(&one, MS, now);
    bench.offer(&[], now);
    assert_eq!(bench.orders(now).len(), 1);
    bench.set.recovered(bench.subflows[&one.fingerprint()]);
    assert_eq!(bench.orders(now)[0].action, Action::Resume);
    assert!(bench.orders(now + 2 * NOT_OFFERED).is_empty());
}

#[test]
fn a_stalled_path_is_replaced_redialed_and_taken_again() {
    let mut bench = Bench::new(Select::shortest(), 1);
    let now = Instant::now();
    let (short, long) = (path(&[1]), path(&[2, 3]));
    bench.offer(&[short.clone(), long.clone()], now);
    bench.connected(&short, MS, now);
    let first = bench.subflows[&short.fingerprint()];
    assert_eq!(bench.dials(now), []);
    bench.set.stalled(first, now);
    let mut dials = bench.dials(now);
    dials.sort();
    let mut both = [short.fingerprint(), long.fingerprint()];
    both.sort();
    assert_eq!(dials, both);
    bench.connected(&long, MS, now);
    // It may recover: it is not closed.
    assert!(bench.closes(now).is_empty());
    let beside = bench.subflows[&short.fingerprint()];
    bench.set.recovered(first);
    assert_eq!(bench.taken(), [short.fingerprint()]);
    let orders = bench.orders(now);
    let of = |subflow| {
        orders
            .iter()
            .find(|order| order.subflow == subflow)
            .unwrap()
    };
    assert_eq!(of(beside).cause, Cause::Recovered);
    let surplus = of(bench.subflows[&long.fingerprint()]);
    assert_eq!(surplus.action, Action::Close { drain: true });
}

#[test]
fn a_connection_beside_a_stalled_one_replaces_it() {
    let mut bench = Bench::new(Select::shortest(), 1);
    let (now, one) = (Instant::now(), path(&[1]));
    bench.offer(std::slice::from_ref(&one), now);
    bench.connected(&one, MS, now);
    let first = bench.subflows[&one.fingerprint()];
    bench.set.stalled(first, now);
    bench.connected(&one, MS, now);
    let order = bench.orders(now).pop().unwrap();
    assert_eq!((order.subflow, order.cause), (first, Cause::Replaced));
    // Events of the old subflow no longer matter.
    bench.set.lost(first, Failure::Closed, "late".into(), now);
    assert!(bench.orders(now + 60_000 * MS).is_empty());
}

#[test]
fn nothing_is_dialed_beside_a_subflow_over_which_the_remote_is_only_late() {
    let mut bench = Bench::new(Select::shortest(), 1);
    let (now, one) = (Instant::now(), path(&[1]));
    bench.offer(std::slice::from_ref(&one), now);
    bench.connected(&one, MS, now);
    let first = bench.subflows[&one.fingerprint()];
    bench.set.late(first, now);
    assert_eq!(bench.dials(now + 60_000 * MS), []);
    // The remote no longer answers.
    bench.set.stalled(first, now);
    assert_eq!(bench.dials(now), [one.fingerprint()]);
    // It does again.
    bench.set.late(first, now);
    let order = bench.orders(now).pop().unwrap();
    assert_eq!(order.subflow, bench.subflows[&one.fingerprint()]);
    assert_eq!(order.cause, Cause::Late);
    bench.set.recovered(first);
    assert_eq!(bench.orders(now + 60_000 * MS), []);
    // A stall after that has a dial again.
    bench.set.stalled(first, now);
    assert_eq!(bench.dials(now), [one.fingerprint()]);
}

#[test]
fn a_remote_with_one_connection_at_a_time_is_redialed_after_the_patience() {
    let patience = Duration::from_secs(30);
    let mut bench = Bench::with(PathOptions {
        replace: Replace::After(patience),
        ..PathOptions::default()
    });
    let (now, one) = (Instant::now(), path(&[1]));
    bench.offer(std::slice::from_ref(&one), now);
    bench.connected(&one, MS, now);
    bench.set.stalled(bench.subflows[&one.fingerprint()], now);
    assert!(bench.orders(now + patience - MS).is_empty());
    let order = bench.orders(now + patience).pop().unwrap();
    assert_eq!(order.cause, Cause::Silent(patience));
    assert_eq!(bench.dials(now + 2 * patience), [one.fingerprint()]);
}

#[test]
fn losing_the_last_subflow_ends_all_pauses() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let mut now = Instant::now();
    let (one, two) = (path(&[1]), path(&[2]));
    bench.offer(&[one.clone(), two.clone()], now);
    bench.connected(&one, MS, now);
    for _ in 0..6 {
        let subflow = bench.subflows[&two.fingerprint()];
        let failure = Failure::Failed;
        bench.set.lost(subflow, failure, "no answer".into(), now);
        now = bench.set.next_due().unwrap();
        assert_eq!(bench.dials(now), [two.fingerprint()]);
    }
    bench.failed(two.fingerprint(), now);
    assert_eq!(bench.dials(now), []);
    // The path that works is lost: the other one is tried at once, and so is the lost one, soon.
    let lost = bench.subflows[&one.fingerprint()];
    bench.set.lost(lost, Failure::Closed, "silent".into(), now);
    let mut dials = bench.dials(now);
    dials.sort();
    let mut both = [one.fingerprint(), two.fingerprint()];
    both.sort();
    assert_eq!(dials, both);
    // Once only: a try that fails at once is not repeated without a pause.
    bench.failed(two.fingerprint(), now);
    assert_eq!(bench.dials(now), []);
}

#[test]
fn what_the_remote_refuses_is_not_tried_sooner() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let now = Instant::now();
    let (one, two) = (path(&[1]), path(&[2]));
    bench.offer(&[one.clone(), two.clone()], now);
    bench.connected(&one, MS, now);
    let refused = bench.subflows[&two.fingerprint()];
    bench.set.lost(refused, Failure::Refused, "no".into(), now);
    bench.orders(now);
    let lost = bench.subflows[&one.fingerprint()];
    bench.set.lost(lost, Failure::Closed, "silent".into(), now);
    assert_eq!(bench.dials(now), [one.fingerprint()]);
}

/// The reference's control plane: its daemon goes on offering a path that is down, and says nothing when
/// it works again. A dial sends packets at these times, in ms, and succeeds with the first that gets
/// through.
const DIAL: [u64; 5] = [0, 300, 900, 2100, 4500];
/// When a dial without an answer has failed, in ms.
const DIAL_FAILS: u64 = 5000;

/// How long a path that works again from `back` on, in ms, is not noticed, where nothing is offered anew.
fn unnoticed(back: u64, with_other: bool) -> u64 {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let start = Instant::now();
    let (one, two) = (path(&[1]), path(&[2]));
    let paths = [one.clone(), two.clone()];
    bench.offer(&paths[..if with_other { 2 } else { 1 }], start);
    bench.connected(&one, 20 * MS, start);
    if with_other {
        bench.connected(&two, 20 * MS, start);
    }
    let lost = bench.subflows[&one.fingerprint()];
    bench
        .set
        .lost(lost, Failure::Closed, "silent".into(), start);
    let mut dial: Option<(SubflowId, u64)> = None;
    for ms in 0.. {
        let now = start + ms as u32 * MS;
        for order in bench.orders(now) {
            match order.action {
                Action::Dial => dial = Some((order.subflow, ms)),
                Action::Close { .. } => dial = dial.filter(|(one, _)| *one != order.subflow),
                Action::Hold | Action::Resume => {}
            }
        }
        let Some((subflow, began)) = dial else {
            continue;
        };
        if ms >= back && DIAL.contains(&(ms - began)) {
            return ms - back;
        }
        if ms - began >= DIAL_FAILS {
            let failure = Failure::Failed;
            bench.set.lost(subflow, failure, "no answer".into(), now);
            dial = None;
        }
    }
    unreachable!()
}

#[test]
fn a_path_that_works_again_is_noticed_though_nothing_is_offered_anew() {
    for with_other in [true, false] {
        let times = (0..50_u64).map(|at| unnoticed(5_000 + at * 317, with_other));
        let times: Vec<u64> = times.collect();
        assert!(times.iter().max() <= Some(&1000), "{times:?} ms");
    }
}

/// A session over a path whose round trip is a second takes three of them, and is not begun anew because
/// that is long beside others.
#[test]
fn a_dial_that_was_answered_has_time_for_its_round_trips() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let start = Instant::now();
    let (near, far) = (path(&[1]), path(&[2]));
    bench.offer(&[near.clone(), far.clone()], start);
    bench.connected(&near, 20 * MS, start);
    bench.orders(start);
    let dialed = bench.subflows[&far.fingerprint()];
    bench.set.answered(dialed, 1010 * MS);
    assert_eq!(bench.closes(start + 3100 * MS), []);
    bench
        .set
        .connected(dialed, Some(1010 * MS), start + 3100 * MS);
    assert_eq!(bench.closes(start + 10_000 * MS), []);
    // One that was answered and never gets further is begun anew, as one without an answer.
    let mut bench = Bench::new(Select::disjoint(), 4);
    bench.offer(&[near.clone(), far.clone()], start);
    bench.connected(&near, 20 * MS, start);
    bench.orders(start);
    bench
        .set
        .answered(bench.subflows[&far.fingerprint()], 1010 * MS);
    assert_eq!(bench.closes(start + 6100 * MS), [far.fingerprint()]);
}

#[test]
fn when_every_path_fails_all_are_still_tried() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let mut now = Instant::now();
    let paths = [path(&[1]), path(&[2])];
    bench.offer(&paths, now);
    for _ in 0..2 {
        assert_eq!(bench.dials(now).len(), 2);
        for path in &paths {
            bench.failed(path.fingerprint(), now);
        }
        now += 60_000 * MS;
    }
    assert_eq!(bench.taken().len(), 2);
    bench.set.set_demand(Demand::None);
    assert_eq!(bench.dials(now), []);
    bench.set.set_demand(Demand::Transfer);
    assert_eq!(bench.dials(now).len(), 2);
    bench.set.set_demand(Demand::None);
    assert_eq!(bench.closes(now).len(), 2);
}

#[test]
fn on_standby_a_failed_path_is_seldom_retried() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let (now, one) = (Instant::now(), path(&[1]));
    let name = one.fingerprint();
    bench.offer(std::slice::from_ref(&one), now);
    bench.set.set_demand(Demand::Standby);
    bench.orders(now);
    bench.failed(name, now);
    assert_eq!(bench.set.next_due(), Some(now + STANDBY));
    bench.connected(&one, MS, now + STANDBY);
    let (subflow, interrupted) = (bench.subflows[&name], Failure::Interrupted);
    bench.set.lost(subflow, interrupted, "closed".into(), now);
    assert!(bench.set.next_due() < Some(now + STANDBY));
}

#[test]
fn one_path_is_used_until_paths_are_chosen_here() {
    let mut bench = Bench::with(PathOptions {
        contact_only: true,
        ..PathOptions::default()
    });
    let now = Instant::now();
    bench.offer(&[path(&[1]), path(&[2])], now);
    assert_eq!(bench.dials(now).len(), 1);
    assert!(bench.set.choose_here());
    assert!(!bench.set.choose_here());
    assert_eq!(bench.dials(now).len(), 1);
}

#[test]
fn a_denied_path_is_not_dialed() {
    let mut bench = Bench::with(PathOptions {
        select: Select::shortest(),
        policy: Some(Policy::new().with_acl("- 1-ff00:0:2; +".parse().unwrap())),
        ..PathOptions::default()
    });
    let (kept, denied) = (path(&[1]), path(&[2, 2]));
    let now = Instant::now();
    bench.offer(&[denied.clone(), kept.clone()], now);
    assert_eq!(bench.dials(now), [kept.fingerprint()]);
    assert_eq!(
        bench
            .set
            .decision(denied.fingerprint())
            .unwrap()
            .to_string(),
        "left: policy: acl entry \"- 1-ff00:0:2\" at 1-ff00:0:2#2"
    );
    assert!(bench.set.is_usable());
    // Without the policy it is used.
    bench.set.set_policy(None);
    assert_eq!(bench.dials(now), [denied.fingerprint()]);
    let mut bench = Bench::with(bench.set.options.clone());
    bench.set.set_policy(Some(
        Policy::new().with_acl("- 1-ff00:0:2; +".parse().unwrap()),
    ));
    bench.offer(std::slice::from_ref(&denied), now);
    assert!(!bench.set.is_usable());
    assert!(bench.set.trouble().unwrap().starts_with("policy: acl"));
}

#[test]
fn a_path_that_becomes_denied_is_closed() {
    // The shorter path has more weight, so the longer one may be used only while the shorter one is
    // not offered.
    let policies = "
        both: {options: [{weight: 2, policy: {extends: [short]}}, {weight: 1, policy: {extends: [all]}}]}
        short: {acl: ['- 1-ff00:0:2', '+']}
        all: {acl: ['+']}";
    let policies = Policies::parse(policies).unwrap();
    let mut bench = Bench::with(PathOptions {
        select: Select::shortest(),
        policy: Some(policies.policy("both").unwrap().clone()),
        ..PathOptions::default()
    });
    let (short, long) = (path(&[1]), path(&[2, 2]));
    let now = Instant::now();
    bench.offer(std::slice::from_ref(&long), now);
    assert_eq!(bench.dials(now), [long.fingerprint()]);
    bench.connected(&long, MS, now);
    bench.offer(&[short.clone(), long.clone()], now);
    let orders = bench.orders(now);
    assert_eq!(orders[0].action, Action::Close { drain: false });
    assert_eq!(orders[0].path, long.fingerprint());
    assert!(matches!(
        &orders[0].cause,
        Cause::Decided(Reason::Policy { .. })
    ));
    assert_eq!(bench.taken(), [short.fingerprint()]);
}

#[test]
fn a_path_far_below_the_best_is_held_and_resumed() {
    let mut bench = Bench::new(Select::disjoint(), 4);
    let mut now = Instant::now();
    let (best, poor) = (path(&[1]), path(&[2]));
    bench.offer(&[best.clone(), poor.clone()], now);
    bench.connected(&best, MS, now);
    bench.connected(&poor, MS, now);
    let slow = bench.subflows[&poor.fingerprint()];
    let begun = now;
    let mut actions = Vec::new();
    for _ in 0..300 {
        now += 50 * MS;
        let ms = (now - begun).as_millis() as u64;
        let carried = |subflow| Carried {
            bytes: if subflow == slow { ms } else { 1000 * ms },
            usable: true,
        };
        bench.set.tick(carried, now);
        let of_slow = bench
            .orders(now)
            .into_iter()
            .inspect(|order| assert_eq!(order.subflow, slow));
        actions.extend(of_slow.map(|order| order.action));
    }
    assert_eq!(actions[..3], [Action::Hold, Action::Resume, Action::Hold]);
    let decision = bench.set.decision(best.fingerprint()).unwrap();
    assert_eq!(decision.verdict, Verdict::Taken);
}

/// Runs a set for 15 s in which all connected paths carry the same.
fn carry(bench: &mut Bench, paths: &[Arc<Path>], now: &mut Instant) {
    let mut carried: BTreeMap<SubflowId, u64> = BTreeMap::new();
    for _ in 0..300 {
        for dialed in bench.dials(*now) {
            let mut paths = paths.iter();
            let path = paths.find(|path| path.fingerprint() == dialed).unwrap();
            bench.connected(path, MS, *now);
        }
        *now += 50 * MS;
        for subflow in bench.subflows.values() {
            *carried.entry(*subflow).or_default() += 50_000;
        }
        let of = |subflow| Carried {
            bytes: carried[&subflow],
            usable: true,
        };
        bench.set.tick(of, *now);
    }
}

/// How many paths are connected, and how many are taken.
fn used(bench: &Bench) -> [usize; 2] {
    let open = bench.set.paths().filter(|path| path.open.is_some());
    let taken = |path: &&PathStatus<_>| path.decision().verdict == Verdict::Taken;
    [open.count(), bench.set.paths().filter(taken).count()]
}

#[test]
fn a_path_that_shares_an_interface_is_tried_and_kept_if_the_others_lose_nothing() {
    for sensing in [true, false] {
        let mut bench = Bench::with(PathOptions {
            sensing,
            ..PathOptions::default()
        });
        let mut now = Instant::now();
        let paths = [path(&[1, 5, 1]), path(&[2, 5, 2])];
        bench.offer(&paths, now);
        carry(&mut bench, &paths, &mut now);
        let count = if sensing { 2 } else { 1 };
        assert_eq!(used(&bench), [count; 2]);
    }
}

#[test]
fn a_path_on_trial_gives_way_to_a_selected_one() {
    let mut bench = Bench::new(Select::disjoint(), 2);
    let mut now = Instant::now();
    let paths = [path(&[1, 5, 1]), path(&[2, 5, 2]), path(&[7])];
    bench.offer(&paths[..2], now);
    carry(&mut bench, &paths, &mut now);
    assert_eq!(used(&bench), [2; 2]);
    bench.offer(&paths, now);
    let last = bench.set.decision(paths[2].fingerprint()).unwrap();
    assert_eq!((last.verdict, used(&bench)[1]), (Verdict::Taken, 2));
    carry(&mut bench, &paths, &mut now);
    assert_eq!(used(&bench), [2; 2]);
}

#[test]
fn a_path_that_shares_more_than_is_allowed_is_tried_too() {
    let mut bench = Bench::new("disjoint:1".parse().unwrap(), 4);
    let mut now = Instant::now();
    let paths = [path(&[1, 5, 6, 1]), path(&[2, 5, 6, 2])];
    bench.offer(&paths, now);
    let left = bench.set.decision(paths[1].fingerprint()).unwrap();
    assert_eq!(left.reason.kind(), "shares more interfaces");
    carry(&mut bench, &paths, &mut now);
    assert_eq!(used(&bench), [2; 2]);
}

#[test]
fn paths_that_come_and_go_do_not_pile_up() {
    let mut bench = Bench::new(Select::disjoint(), 2);
    let start = Instant::now();
    let stays = path(&[1]);
    bench.offer(std::slice::from_ref(&stays), start);
    bench.connected(&stays, MS, start);
    for round in 2..1000u16 {
        let now = start + MS * round.into();
        let comes = path(&[round]);
        bench.offer(&[stays.clone(), comes.clone()], now);
        bench.connected(&comes, MS, now);
        bench.set.tick(|_| Carried::default(), now);
        bench.orders(now);
        let subflow = bench.subflows[&comes.fingerprint()];
        bench.offer(std::slice::from_ref(&stays), now);
        bench.orders(now);
        bench.set.closed(subflow);
        bench.set.changes();
    }
    assert!(bench.set.paths().count() <= MAX_FORMER + 2);
    // The latest are remembered, and the one that is in use.
    let known = |path: &Path| bench.set.decision(path.fingerprint()).is_some();
    assert!(known(&stays) && known(&path(&[999])) && !known(&path(&[2])));
}
