//! A peer that sends all that it may.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{Decoder, Frame, Read, Side, StreamId, Streams, Violation};

/// The side that accepts streams, and what its peer may send and has sent of each.
struct Peer {
    streams: Streams,
    limits: BTreeMap<StreamId, u64>,
    sent: BTreeMap<StreamId, u64>,
}

impl Peer {
    fn new(room: Room) -> Self {
        let mut streams = Streams::new(Side::Accepts);
        streams.room = room;
        streams.add_path(0);
        Self {
            streams,
            limits: BTreeMap::new(),
            sent: BTreeMap::new(),
        }
    }

    /// Sends all of a stream that there is room for.
    fn fill(&mut self, id: StreamId) {
        let limit = *self.limits.entry(id).or_insert(MIN_ROOM);
        let sent = self.sent.entry(id).or_default();
        while *sent < limit {
            let bytes = Bytes::from(vec![0; (limit - *sent).min(16 << 10) as usize]);
            let (offset, length) = (*sent, bytes.len() as u64);
            let frame = Frame::Data { id, offset, bytes };
            self.streams.receive(0, frame).unwrap();
            *sent += length;
        }
        self.learn();
    }

    /// Takes in what is announced.
    fn learn(&mut self) {
        let mut decoder = Decoder::default();
        while let Some(bytes) = self.streams.transmit(0) {
            decoder.push(bytes);
            while let Some(frame) = decoder.pop().unwrap() {
                if let Frame::Ack { id, limit, .. } = frame {
                    self.limits.insert(id, limit);
                }
            }
        }
    }

    fn read(&mut self, id: StreamId) {
        while let Read::Data(bytes) = self.streams.read(id, usize::MAX) {
            self.streams.consume(id, bytes.len());
        }
        self.learn();
    }

    /// What may be kept at some time, by what was promised.
    fn promised(&self) -> u64 {
        let streams = self.streams.streams.values();
        streams.map(|stream| stream.receive.promised()).sum()
    }
}

proptest! {
    /// Whatever is read or not, the streams keep no more than the session has room for.
    #[test]
    fn streams_share_the_room_of_their_session(
        steps in prop::collection::vec((0u8..8, 0u64..24, 0u64..80), 1..300),
    ) {
        const ALL: u64 = 1 << 20;
        let (room, mut now) = (Room::new(ALL), Duration::ZERO);
        let mut peer = Peer::new(room.clone());
        for (step, id, millis) in steps {
            now += Duration::from_millis(millis);
            peer.streams.advance(now);
            match step {
                0 => peer.streams.reset(id, 0),
                1..=4 => peer.fill(id),
                // Some are never read.
                _ if id % 3 > 0 => peer.read(id),
                _ => {}
            }
            let count = peer.streams.len() as u64;
            prop_assert!(peer.promised() <= count * MIN_ROOM + ALL);
            let streams = peer.streams.streams.values();
            let kept = streams.map(|stream| stream.receive.window() - MIN_ROOM);
            prop_assert_eq!(kept.sum::<u64>() + room.left(), ALL);
        }
        drop(peer);
        prop_assert_eq!(room.left(), ALL);
    }
}

#[test]
fn streams_that_are_not_read_leave_room_for_those_that_are() {
    let mut peer = Peer::new(Room::default());
    let unread = 2000;
    for id in 0..unread {
        peer.fill(id);
        peer.fill(id);
    }
    assert!(
        peer.promised() <= unread * MIN_ROOM + SHARED_ROOM,
        "{}",
        peer.promised()
    );
    for _ in 0..20 {
        peer.fill(unread);
        peer.read(unread);
    }
    let window = peer.limits[&unread] - peer.sent[&unread];
    assert!(window >= 4 << 20, "{window}");
}

#[test]
fn single_bytes_behind_gaps_end_the_session() {
    let mut peer = Peer::new(Room::default());
    let byte = |id, offset| Frame::Data {
        id,
        offset,
        bytes: Bytes::from_static(b"x"),
    };
    let all = (0..).flat_map(|id| (0..MIN_ROOM / 2).map(move |at| byte(id, at * 2 + 1)));
    let mut refused = all
        .zip(1..)
        .map(|(frame, count)| (peer.streams.receive(0, frame), count));
    let refused = refused.find(|(result, _)| result.is_err());
    assert_eq!(refused, Some((Err(Violation::Pieces), MAX_RUNS + 1)));
}
