use std::time::Duration;

use super::peer::{MAX_PENDING, REQUEST_TIMEOUT};
use super::*;

const ONE: ConnectionId = ConnectionId(1);
const TWO: ConnectionId = ConnectionId(2);
const THREE: ConnectionId = ConnectionId(3);

/// An info dictionary of three pieces.
fn info() -> Vec<u8> {
    (0..40_000u32).map(|n| (n / 7) as u8).collect()
}

fn fetch() -> Fetch {
    Fetch::new(InfoHashes {
        v1: Some(Sha1::digest(info()).into()),
        v2: None,
    })
}

fn data(info: &[u8], piece: u32) -> MetadataMessage<'_> {
    let start = piece as usize * METADATA_PIECE;
    MetadataMessage::Data {
        piece,
        total: Some(info.len() as u64),
        bytes: &info[start..info.len().min(start + METADATA_PIECE)],
    }
}

fn ask(peer: ConnectionId, piece: u32) -> Output {
    Output::Ask { peer, piece }
}

fn asked(outputs: &[Output], of: ConnectionId) -> Vec<u32> {
    let asked = outputs.iter().filter_map(|output| match output {
        Output::Ask { peer, piece } if *peer == of => Some(*piece),
        _ => None,
    });
    asked.collect()
}

#[test]
fn pieces_are_requested_from_all_peers_and_put_together() {
    let (now, info, mut fetch) = (Instant::now(), info(), fetch());
    assert_eq!(fetch.advance(now), []);
    assert_eq!(fetch.next_due(), None);
    fetch.on_peer(ONE, 40_000);
    fetch.on_peer(TWO, 40_000);
    assert_eq!(fetch.advance(now), [ask(ONE, 0), ask(TWO, 1), ask(ONE, 2)]);
    assert_eq!(fetch.advance(now), []);
    fetch.on_message(TWO, data(&info, 1), now);
    fetch.on_message(TWO, data(&info, 1), now);
    fetch.on_message(ONE, data(&info, 2), now);
    assert_eq!(fetch.progress(), Some((2, 3)));
    // It was not asked for that one.
    fetch.on_message(TWO, data(&info, 0), now);
    assert_eq!(fetch.advance(now), []);
    fetch.on_message(ONE, data(&info, 0), now);
    assert_eq!(fetch.advance(now), [Output::Done(info)]);
    fetch.on_peer(THREE, 40_000);
    assert_eq!((fetch.advance(now), fetch.next_due()), (vec![], None));
}

#[test]
fn what_is_late_is_requested_from_another_peer_and_still_counts() {
    let (now, info, mut fetch) = (Instant::now(), info(), fetch());
    fetch.on_peer(ONE, 40_000);
    assert_eq!(asked(&fetch.advance(now), ONE), [0, 1, 2]);
    fetch.on_peer(TWO, 40_000);
    assert_eq!(fetch.next_due(), Some(now + REQUEST_TIMEOUT));
    let late = now + REQUEST_TIMEOUT;
    assert_eq!(asked(&fetch.advance(late), TWO), [0, 1, 2]);
    (0..3).for_each(|piece| fetch.on_message(ONE, data(&info, piece), late));
    assert_eq!(fetch.advance(late), [Output::Done(info)]);
}

#[test]
fn a_rejected_request_goes_to_another_peer() {
    let (now, mut fetch) = (Instant::now(), fetch());
    fetch.on_peer(ONE, 40_000);
    fetch.advance(now);
    fetch.on_peer(TWO, 40_000);
    for piece in [7, 1] {
        fetch.on_message(ONE, MetadataMessage::Reject { piece }, now);
    }
    assert_eq!(fetch.advance(now), [ask(TWO, 1)]);
    // After its backoff it is asked for other pieces.
    fetch.on_gone(TWO);
    assert_eq!(fetch.advance(now), []);
    let later = now + Duration::from_secs(2);
    assert_eq!(fetch.next_due(), Some(later));
    assert_eq!(fetch.advance(later), [ask(ONE, 1)]);
}

#[test]
fn a_liar_is_found_by_asking_one_peer_for_all() {
    let (now, info, mut fetch) = (Instant::now(), info(), fetch());
    let mut false_info = info.clone();
    false_info[METADATA_PIECE] ^= 1;
    fetch.on_peer(ONE, 40_000);
    fetch.on_peer(TWO, 40_000);
    fetch.advance(now);
    fetch.on_message(ONE, data(&info, 0), now);
    fetch.on_message(TWO, data(&false_info, 1), now);
    fetch.on_message(ONE, data(&info, 2), now);
    assert_eq!(asked(&fetch.advance(now), ONE), [0, 1, 2]);
    // What is not its turn does not count.
    (0..3).for_each(|piece| fetch.on_message(TWO, data(&false_info, piece), now));
    (0..3).for_each(|piece| fetch.on_message(ONE, data(&info, piece), now));
    assert_eq!(fetch.advance(now), [Output::Ban(TWO), Output::Done(info)]);
}

#[test]
fn a_peer_that_alone_sent_all_is_banned_if_that_is_wrong() {
    let (now, mut fetch) = (Instant::now(), fetch());
    fetch.on_peer(ONE, 40_000);
    fetch.advance(now);
    let wrong = vec![0; 40_000];
    (0..3).for_each(|piece| fetch.on_message(ONE, data(&wrong, piece), now));
    assert_eq!(fetch.advance(now), [Output::Ban(ONE)]);
    fetch.on_peer(ONE, 40_000);
    assert_eq!(fetch.advance(now), []);
    fetch.on_peer(TWO, 40_000);
    assert_eq!(asked(&fetch.advance(now), TWO), [0, 1, 2]);
}

#[test]
fn an_answer_that_contradicts_the_announced_length_is_false() {
    let now = Instant::now();
    for (total, length) in [
        (40_001, METADATA_PIECE),
        (40_000, METADATA_PIECE - 1),
        (40_000, 0),
    ] {
        let mut fetch = fetch();
        fetch.on_peer(ONE, 40_000);
        fetch.advance(now);
        let bytes = &info()[..length];
        let answer = |piece| MetadataMessage::Data {
            piece,
            total: Some(total),
            bytes,
        };
        fetch.on_message(ONE, answer(9), now);
        assert_eq!(fetch.advance(now), []);
        fetch.on_message(ONE, answer(0), now);
        assert_eq!(fetch.advance(now), [Output::Ban(ONE)]);
    }
}

#[test]
fn lengths_take_turns() {
    let (begun, mut fetch) = (Instant::now(), fetch());
    for (id, size) in [0, u64::MAX, 16 << 20, 1 << 20, 40_000]
        .into_iter()
        .enumerate()
    {
        fetch.on_peer(ConnectionId(id as u64), size);
    }
    let honest = ConnectionId(4);
    let first = fetch.advance(begun);
    assert_eq!(first.len(), 2 * MAX_PENDING);
    assert_eq!(asked(&first, honest), [0; 0]);
    let mut now = begun;
    while now < begun + turn(0) {
        now = fetch.next_due().unwrap();
        let outputs = fetch.advance(now);
        if asked(&outputs, honest) == [0, 1, 2] {
            assert_eq!(now, begun + turn(0));
            return;
        }
    }
    panic!("never asked");
}

#[test]
fn a_peer_that_announces_another_length_counts_for_that_one() {
    let (now, mut fetch) = (Instant::now(), fetch());
    fetch.on_peer(ONE, 1_000_000);
    assert_eq!(asked(&fetch.advance(now), ONE), [0, 1, 2, 3]);
    fetch.on_peer(ONE, 40_000);
    assert_eq!(asked(&fetch.advance(now), ONE), [0, 1, 2]);
    let wrong = vec![0; 1_000_000];
    fetch.on_message(ONE, data(&wrong, 3), now);
    assert_eq!(fetch.advance(now), []);
}

#[test]
fn hashes_of_two_torrents_are_named_and_nobody_is_banned() {
    let (now, info) = (Instant::now(), info());
    let mut fetch = Fetch::new(InfoHashes {
        v1: Some(Sha1::digest(&info).into()),
        v2: Some([0; 32]),
    });
    fetch.on_peer(ONE, 40_000);
    fetch.advance(now);
    (0..3).for_each(|piece| fetch.on_message(ONE, data(&info, piece), now));
    assert_eq!(fetch.advance(now), [Output::Contradiction]);
}

#[test]
fn peers_beyond_the_bound_are_ignored_until_some_leave() {
    let (now, mut fetch) = (Instant::now(), fetch());
    (0..1000).for_each(|id| fetch.on_peer(ConnectionId(id), 40_000 + id));
    assert_eq!(fetch.peers.len(), MAX_PEERS);
    fetch.advance(now);
    assert_eq!(fetch.candidates.len(), MAX_CANDIDATES);
    fetch.on_gone(ConnectionId(0));
    fetch.on_peer(ConnectionId(999), 40_000);
    assert_eq!(fetch.peers.len(), MAX_PEERS);
    (1..1000).for_each(|id| fetch.on_gone(ConnectionId(id)));
    assert!(fetch.peers.is_empty() && fetch.waiting.is_empty());
    assert_eq!(fetch.groups.len(), fetch.candidates.len());
}
