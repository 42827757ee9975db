//! What is requested from seeders, whose uplink is spared for what only they have.

use super::*;

/// The connection to a seeder, and that to a leecher.
const SEEDER: ConnId = 1;
const LEECHER: ConnId = 2;

/// A picker with a seeder, and a leecher that has the pieces `has`.
fn swarm(count: u64, has: impl IntoIterator<Item = u32>) -> Picker {
    let mut picker = picker(count, 8);
    add(&mut picker, SEEDER, 1, 0..count as u32);
    add(&mut picker, LEECHER, 2, has);
    picker.set_peer(SEEDER, 1, AddressFamily::Scion);
    picker.set_peer(LEECHER, 2, AddressFamily::Scion);
    picker
}

/// The pieces of requests.
fn pieces_of(requests: &[Request]) -> BTreeSet<u32> {
    requests.iter().map(|request| request.piece).collect()
}

#[test]
fn a_seeder_is_asked_first_for_what_no_leecher_has() {
    let mut picker = swarm(4, 0..3);
    // The first piece may be any.
    for request in picker.pick(LEECHER, 8).requests {
        picker.receive(LEECHER, request, Instant::now());
    }
    let first = (0..3).find(|piece| !picker.rarity.contains(*piece));
    picker.verify(first.unwrap());
    let begun = picker.pick(LEECHER, 1).requests;
    assert_eq!(begun.len(), 1);
    // The rest of the begun piece waits for the leecher.
    assert_eq!(pieces_of(&picker.pick(SEEDER, 8).requests), [3].into());
    // There is no other that only the seeder has.
    let rest = pieces_of(&picker.pick(SEEDER, 7).requests);
    assert_eq!(rest, pieces_of(&begun));
    assert_eq!(picker.pick(SEEDER, 100).requests.len(), 8);
}

#[test]
fn a_web_seed_is_asked_for_begun_pieces() {
    let mut picker = picker(4, 8);
    add(&mut picker, SEEDER, 1, 0..4);
    add(&mut picker, LEECHER, 2, 0..3);
    let begun = pieces_of(&picker.pick(LEECHER, 1).requests);
    assert_eq!(pieces_of(&picker.pick(SEEDER, 7).requests), begun);
}

#[test]
fn a_piece_that_a_leecher_has_is_not_awaited_from_a_seeder() {
    let mut picker = swarm(4, []);
    let first = picker.pick(SEEDER, 8).requests;
    let second = picker.pick(SEEDER, 8).requests;
    let cancel = picker.add_has(LEECHER, second[0].piece);
    let expected: Vec<Placed> = second.iter().map(|request| (SEEDER, *request)).collect();
    assert_eq!(cancel, expected);
    // The seeder gives another one, and the leecher this.
    let third = picker.pick(SEEDER, 8).requests;
    assert!(pieces_of(&third).is_disjoint(&pieces_of(&second)));
    assert_eq!(picker.pick(LEECHER, 8).requests, second);
    // What is most likely under way stays.
    let cancel = picker.add_has(LEECHER, first[0].piece);
    let cancel: Vec<Request> = cancel.into_iter().map(|(_, request)| request).collect();
    assert_eq!(cancel, first[4..]);
}

#[test]
fn requests_stay_with_a_seeder_that_has_nothing_else_to_give() {
    let mut picker = swarm(2, []);
    let requests = picker.pick(SEEDER, 16).requests;
    assert_eq!(pieces_of(&requests).len(), 2);
    assert_eq!(picker.add_has(LEECHER, requests[0].piece), []);
}

#[test]
fn a_piece_that_must_come_from_the_seeder_stays_with_it() {
    let mut picker = swarm(4, []);
    let bad = picker.pick(SEEDER, 8).requests;
    let now = Instant::now();
    for request in &bad {
        picker.receive(SEEDER, *request, now);
    }
    picker.fail(bad[0].piece);
    let again = picker.pick(SEEDER, 8).requests;
    assert_eq!(again, bad);
    assert_eq!(picker.add_has(LEECHER, bad[0].piece), []);
}

#[test]
fn the_last_pieces_of_other_leechers_are_left_to_them_while_they_come() {
    let mut left = 0;
    for own in 10..30 {
        let mut picker = swarm(3, []);
        picker.set_own_id(own);
        let start = Instant::now();
        // The leecher has got two pieces from the seeder, and passes one on.
        picker.add_has(LEECHER, 0);
        for request in picker.pick(LEECHER, 8).requests {
            picker.receive(LEECHER, request, start);
        }
        picker.verify(0);
        picker.add_has(LEECHER, 1);
        picker.review(start);
        // The last one is either its own, or that of the leecher.
        let requests = picker.pick(SEEDER, 8).requests;
        if requests.is_empty() {
            left += 1;
            // No new piece has come from the leecher for more than a second.
            picker.review(start + Duration::from_millis(1100));
            assert_eq!(pieces_of(&picker.pick(SEEDER, 8).requests), [2].into());
        } else {
            assert_eq!(pieces_of(&requests), [2].into());
        }
    }
    assert!((3..18).contains(&left), "{left} of 20");
}
