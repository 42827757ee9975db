//! What a peer may cost that keeps to no rule.

use super::super::receive::MAX_WINDOW;
use super::*;

#[test]
fn the_peer_cannot_open_any_number_of_streams() {
    let mut streams = Streams::new(Side::Accepts);
    for id in 0..MAX_STREAMS as u64 + 2 {
        streams.receive(0, Frame::End { id, offset: 0 }).unwrap();
    }
    assert_eq!((streams.len(), streams.resets.len()), (MAX_STREAMS, 2));
    let mut streams = Streams::new(Side::Opens);
    let frame = Frame::End { id: 0, offset: 0 };
    assert_eq!(streams.receive(0, frame), Err(Violation::Stream(0)));
}

#[test]
fn what_a_peer_cannot_have_room_for_is_not_kept() {
    let mut send = SendHalf::new(0, MIN_ROOM);
    assert!(send.acknowledge(0, u64::MAX));
    let (block, mut written) = (vec![0; 16 << 10], 0);
    // Everything arrives, and nothing is acknowledged.
    while written <= 4 * MAX_WINDOW {
        written += send.write(&block) as u64;
        match send.pop() {
            Some(unsent) => send.on_arrived(unsent.offset),
            None => break,
        }
    }
    let most = MAX_WINDOW + (1 << 20);
    assert!((MAX_WINDOW..=most).contains(&written), "{written}");
}

#[test]
fn a_peer_that_reads_no_answers_costs_a_fixed_sum() {
    let mut streams = Streams::new(Side::Accepts);
    let end = |id| Frame::End { id, offset: 0 };
    let all = (MAX_STREAMS + MAX_RESETS) as u64;
    assert!((0..all).all(|id| streams.receive(0, end(id)).is_ok()));
    assert_eq!(streams.receive(0, end(all)), Err(Violation::Streams));
    let mut streams = Streams::new(Side::Accepts);
    for id in 0..2 * MAX_GONE as u64 {
        streams.receive(0, Frame::Reset { id, code: 0 }).unwrap();
    }
    assert_eq!(streams.due.gone.len(), MAX_GONE);
}
