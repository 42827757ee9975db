//! Blocks that come late, repeatedly, out of order, or not at all.

use super::super::conn::ALLOWANCE;
use super::*;

/// The peer answers each of three requests for the same block, and once more.
#[test]
fn a_block_may_arrive_more_often_than_it_was_requested() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    let first = picker.pick(1, 1);
    for _ in 0..2 {
        picker.release(1);
        assert_eq!(picker.pick(1, 1), first);
    }
    let now = Instant::now();
    let arrivals = [(); 4].map(|()| picker.receive(1, first.requests[0], now));
    assert!(matches!(arrivals[0], Arrival::New { .. }), "{arrivals:?}");
    let surplus = [Arrival::Surplus, Arrival::Surplus, Arrival::Surplus];
    assert_eq!(arrivals[1..], surplus);
}

#[test]
fn only_far_more_than_was_requested_is_a_flood() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    let now = Instant::now();
    let requested = picker.pick(1, 16).requests;
    for request in requested.iter().cycle().take(3 * requested.len()) {
        let arrival = picker.receive(1, *request, now);
        assert!(!matches!(arrival, Arrival::Flood(_)));
    }
    let before = ALLOWANCE / u64::from(BLOCK);
    for _ in 0..before - 1 {
        assert_eq!(picker.receive(1, requested[0], now), Arrival::Surplus);
    }
    let arrivals = [(); 2].map(|()| picker.receive(1, requested[0], now));
    assert!(matches!(arrivals[1], Arrival::Flood(_)), "{arrivals:?}");
}

/// The memory for late blocks is bounded: a forgotten one is not accepted, and the peer is not
/// blamed for it.
#[test]
fn late_blocks_beyond_those_remembered_are_surplus() {
    let pieces = MAX_LATE as u32 / 4 + 1;
    let mut picker = picker(pieces.into(), 4);
    add(&mut picker, 1, 1, 0..pieces);
    let asked = picker.pick(1, MAX_LATE + 1).requests;
    picker.release(1);
    let late = &picker.conns[&1].late;
    let is_forgotten = |r: &&Request| !late.contains(&(r.piece, r.begin / BLOCK));
    let forgotten = *asked.iter().find(is_forgotten).unwrap();
    let arrival = picker.receive(1, forgotten, Instant::now());
    assert_eq!(arrival, Arrival::Surplus);
    check_counters(&picker);
}

#[test]
fn late_blocks_that_arrived_elsewhere_need_no_memory() {
    let pieces = MAX_LATE as u32 / 4;
    let mut picker = picker(2 * u64::from(pieces), 4);
    add(&mut picker, 1, 1, 0..2 * pieces);
    add(&mut picker, 2, 2, 0..2 * pieces);
    let given_up = picker.pick(1, MAX_LATE - 8).requests;
    picker.release(1);
    for request in picker.pick(2, MAX_LATE - 8).requests {
        picker.receive(2, request, Instant::now());
        picker.verify(request.piece);
    }
    let missing = picker.pick(1, 12).requests;
    picker.release(1);
    let late = &picker.conns[&1].late;
    assert!(
        missing
            .iter()
            .all(|r| late.contains(&(r.piece, r.begin / BLOCK)))
    );
    assert!(late.len() < given_up.len());
}

#[test]
fn released_blocks_are_taken_first_and_in_order() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    add(&mut picker, 2, 2, 0..4);
    let lost = picker.pick(1, 6).requests;
    picker.release(1);
    assert_eq!(picker.pick(2, 6).requests, lost);
    // The block arrives after all, and the request over the other connection is cancelled.
    let late = picker.receive(1, lost[0], Instant::now());
    let cancel = vec![(2, lost[0])];
    assert_eq!(
        late,
        Arrival::New {
            cancel,
            complete: false
        }
    );
    for conn in [2, 1] {
        let arrival = picker.receive(conn, lost[0], Instant::now());
        assert_eq!(arrival, Arrival::Surplus);
    }
}

#[test]
fn suspended_blocks_are_expected_again_after_the_pause() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    let asked = picker.pick(1, 6).requests;
    assert_eq!(picker.suspend(1), []);
    assert_eq!((picker.asked(1), picker.free_blocks()), (0, 16));
    // One arrives before the pause is known to be over.
    let arrival = picker.receive(1, asked[0], Instant::now());
    assert!(matches!(arrival, Arrival::New { .. }));
    picker.resume(1);
    assert_eq!((picker.asked(1), picker.free_blocks()), (5, 10));
    for request in &asked[1..] {
        let arrival = picker.receive(1, *request, Instant::now());
        assert!(matches!(arrival, Arrival::New { cancel, .. } if cancel.is_empty()));
    }
}

#[test]
fn suspended_blocks_are_taken_by_others_last() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    add(&mut picker, 2, 2, 0..4);
    let asked = picker.pick(1, 6).requests;
    picker.suspend(1);
    let others = picker.pick(2, 10);
    assert!(others.cancel.is_empty());
    assert!(
        others
            .requests
            .iter()
            .all(|request| !asked.contains(request))
    );
    let last = picker.pick(2, 6);
    let cancelled: Vec<_> = last
        .cancel
        .iter()
        .map(|(conn, it)| (*conn, key(it)))
        .collect();
    let mut wanted: Vec<_> = asked.iter().map(|request| (1, key(request))).collect();
    wanted.sort_unstable();
    assert_eq!(cancelled, wanted);
    picker.resume(1);
    assert_eq!(picker.asked(1), 0);
    // It had sent one before it read the cancel.
    let arrival = picker.receive(1, asked[3], Instant::now());
    let cancel = vec![(2, asked[3])];
    assert!(matches!(arrival, Arrival::New { cancel: it, .. } if it == cancel));
}

#[test]
fn an_answered_probe_shows_what_the_peer_forgot() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    let asked = picker.pick(1, 6).requests;
    picker.suspend(1);
    assert_eq!(picker.probe(1).requests, [asked[5]]);
    picker.resume(1);
    let arrival = picker.receive(1, asked[5], Instant::now());
    let cancel: Vec<_> = asked[..5].iter().map(|request| (1, *request)).collect();
    assert!(matches!(arrival, Arrival::New { cancel: it, .. } if it == cancel));
    assert_eq!(picker.pick(1, 5).requests, asked[..5]);
}

#[test]
fn a_probe_without_suspended_blocks_takes_a_new_one() {
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    picker.suspend(1);
    let probe = picker.probe(1).requests;
    assert_eq!((probe.len(), picker.asked(1)), (1, 0));
    assert_eq!(picker.probe(1).requests, probe);
    let arrival = picker.receive(1, probe[0], Instant::now());
    assert!(matches!(arrival, Arrival::New { .. }));
}

#[test]
fn overtaken_blocks_are_released_and_waiting_ones_are_not() {
    let mut picker = picker(1, 8);
    add(&mut picker, 1, 1, 0..1);
    let asked = picker.pick(1, 6).requests;
    let start = Instant::now();
    let at = |ms| start + std::time::Duration::from_millis(ms);
    picker.receive(1, asked[2], at(10));
    picker.receive(1, asked[4], at(20));
    assert_eq!(picker.release_passed(1, at(9)), []);
    assert_eq!(picker.release_passed(1, at(15)), asked[..2]);
    assert_eq!(picker.release_passed(1, at(20)), [asked[3]]);
    assert_eq!(picker.asked(1), 1);
    // They are requested again, over the same connection too, and each is accepted only once.
    let again = picker.pick(1, 3).requests;
    let given_back: BTreeSet<_> = again.iter().map(key).collect();
    assert_eq!(given_back, [0, 1, 3].map(|i| key(&asked[i])).into());
    let first = picker.receive(1, asked[0], at(30));
    assert!(matches!(first, Arrival::New { .. }));
    assert_eq!(picker.receive(1, asked[0], at(40)), Arrival::Surplus);
}

/// Only a block that a connection was still expected to deliver counts as requested twice.
#[test]
fn answers_of_a_stalled_connection_were_not_requested_twice() {
    let now = Instant::now();
    // Whether the blocks are taken back, and whether the connection stalls, before another one
    // delivers them; and how many of the late answers count.
    for (taken_back, stalls, repeated) in [(false, true, 0), (true, true, 0), (true, false, 8)] {
        let mut picker = picker(4, 4);
        add(&mut picker, 1, 1, 0..4);
        add(&mut picker, 2, 2, 0..4);
        let mut moved = picker.pick(1, 16).requests;
        if taken_back {
            moved = picker.take_back(1, 8, 8);
        }
        if stalls {
            picker.suspend(1);
        }
        let over_second = picker.pick(2, 16).requests;
        for request in &over_second {
            picker.receive(2, *request, now);
        }
        for request in &moved {
            assert_eq!(picker.receive(1, *request, now), Arrival::Surplus);
        }
        assert_eq!(picker.repeated(), repeated, "{taken_back} {stalls}");
        check_counters(&picker);
    }
}

#[test]
fn each_answer_to_a_request_over_a_second_connection_counts() {
    let now = Instant::now();
    let mut picker = picker(4, 4);
    add(&mut picker, 1, 1, 0..4);
    add(&mut picker, 2, 2, 0..4);
    picker.pick(1, 16);
    let twice = picker.duplicate(2, |_, _| Some(1.0)).unwrap();
    picker.receive(2, twice, now);
    assert_eq!(picker.repeated(), 0);
    for answers in 1..=2 {
        assert_eq!(picker.receive(1, twice, now), Arrival::Surplus);
        assert_eq!(picker.repeated(), answers);
    }
}
