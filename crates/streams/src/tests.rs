//! Two sides without sockets, with paths that keep order and end at any time.

mod hostile;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proptest::prelude::*;

use super::receive::INITIAL;
use super::*;

/// One of the two sides.
struct End {
    streams: Streams,
    /// What was written to each stream, and how many of its bytes were accepted and read.
    sent: BTreeMap<StreamId, Vec<u8>>,
    read: BTreeMap<StreamId, Vec<u8>>,
    ended: BTreeSet<StreamId>,
    resets: BTreeMap<StreamId, u8>,
    opened: BTreeSet<StreamId>,
    paths: BTreeSet<PathKey>,
}

/// What is under way over a path to one side.
type Pipe = (VecDeque<Bytes>, Decoder);

/// Both sides, and what is under way between them.
struct Pair {
    ends: [End; 2],
    pipes: BTreeMap<(PathKey, usize), Pipe>,
    next_path: PathKey,
}

impl End {
    fn new(side: Side) -> Self {
        Self {
            streams: Streams::new(side),
            sent: BTreeMap::new(),
            read: BTreeMap::new(),
            ended: BTreeSet::new(),
            resets: BTreeMap::new(),
            opened: BTreeSet::new(),
            paths: BTreeSet::new(),
        }
    }

    fn write(&mut self, id: StreamId, bytes: &[u8]) -> usize {
        let written = self.streams.write(id, bytes).unwrap_or(0);
        let sent = self.sent.entry(id).or_default();
        sent.extend_from_slice(&bytes[..written]);
        written
    }

    fn read(&mut self, id: StreamId, max: usize) {
        match self.streams.read(id, max) {
            Read::Data(bytes) => {
                assert!(bytes.len() <= max);
                self.read.entry(id).or_default().extend_from_slice(&bytes);
                self.streams.consume(id, bytes.len());
            }
            Read::End => {
                self.ended.insert(id);
            }
            Read::Blocked | Read::Gone => {}
        }
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.streams.poll_event() {
            match event {
                Event::Opened(id) => assert!(self.opened.insert(id), "opened twice"),
                Event::Reset(id, code) => {
                    self.resets.insert(id, code);
                }
                Event::Readable(_) | Event::Writable(_) => {}
            }
        }
    }
}

impl Pair {
    fn new() -> Self {
        Self {
            ends: [End::new(Side::Opens), End::new(Side::Accepts)],
            pipes: BTreeMap::new(),
            next_path: 0,
        }
    }

    fn add_path(&mut self) {
        let path = self.next_path;
        self.next_path += 1;
        for side in 0..2 {
            self.ends[side].streams.add_path(path);
            self.ends[side].streams.set_name(path, path);
            self.ends[side].paths.insert(path);
            self.pipes.insert((path, side), Pipe::default());
        }
    }

    /// A path ends: nothing gets through any more, and one side notices.
    fn cut(&mut self, path: PathKey, side: usize) {
        self.pipes.remove(&(path, 0));
        self.pipes.remove(&(path, 1));
        self.notice(path, side);
    }

    fn notice(&mut self, path: PathKey, side: usize) {
        self.ends[side].paths.remove(&path);
        self.ends[side].streams.remove_path(path);
    }

    /// Sends what one side has for a path, at most `count` times.
    fn transmit(&mut self, path: PathKey, side: usize, count: usize) -> bool {
        let mut any = false;
        for _ in 0..count {
            let Some(bytes) = self.ends[side].streams.transmit(path) else {
                break;
            };
            any = true;
            if let Some((pipe, _)) = self.pipes.get_mut(&(path, 1 - side)) {
                pipe.push_back(bytes);
            }
        }
        any
    }

    /// Delivers at most `bytes` of what is under way over a path to one side.
    fn deliver(&mut self, path: PathKey, side: usize, mut bytes: usize) -> bool {
        let Some((pipe, decoder)) = self.pipes.get_mut(&(path, side)) else {
            return false;
        };
        let end = &mut self.ends[side];
        if !end.paths.contains(&path) {
            pipe.clear();
            return false;
        }
        let mut any = false;
        while bytes > 0
            && let Some(mut chunk) = pipe.pop_front()
        {
            any = true;
            let part = chunk.split_to(bytes.min(chunk.len()));
            bytes -= part.len();
            if !chunk.is_empty() {
                pipe.push_front(chunk);
            }
            decoder.push(part);
            while let Some(frame) = decoder.pop().unwrap() {
                end.streams.receive(path, frame).unwrap();
            }
        }
        end.drain_events();
        any
    }

    fn paths(&self, side: usize) -> Vec<PathKey> {
        self.ends[side].paths.iter().copied().collect()
    }

    /// Lets everything happen that can, until nothing does.
    fn settle(&mut self) {
        for side in 0..2 {
            for path in self.paths(side) {
                if !self.pipes.contains_key(&(path, side)) {
                    self.notice(path, side);
                }
            }
        }
        if self.paths(0).is_empty() {
            self.add_path();
        }
        // From here on only those paths are asked that have something to send.
        for side in 0..2 {
            for path in self.paths(side) {
                self.transmit(path, side, usize::MAX);
            }
        }
        let mut quiet = 0;
        for _ in 0..10_000 {
            let mut any = false;
            for side in 0..2 {
                while let Some(path) = self.ends[side].streams.next_path() {
                    assert!(self.transmit(path, side, usize::MAX), "nothing to send");
                    any = true;
                }
                for path in self.paths(side) {
                    any |= self.deliver(path, side, usize::MAX);
                }
                let end = &mut self.ends[side];
                for id in 0..end.streams.next {
                    end.read(id, usize::MAX);
                }
                end.streams.acknowledge();
            }
            quiet = if any { 0 } else { quiet + 1 };
            if quiet > 1 {
                if self.ends.iter().all(|end| end.streams.is_idle()) {
                    return;
                }
                self.ends.iter_mut().for_each(|end| end.streams.retry());
            }
            if quiet > 8 {
                return;
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Open,
    Write {
        side: usize,
        stream: u64,
        length: usize,
    },
    Read {
        side: usize,
        stream: u64,
        max: usize,
    },
    Finish {
        side: usize,
        stream: u64,
    },
    Reset {
        side: usize,
        stream: u64,
    },
    Transmit {
        side: usize,
        path: usize,
        count: usize,
    },
    Deliver {
        side: usize,
        path: usize,
        bytes: usize,
    },
    Estimate {
        side: usize,
        path: usize,
        rtt: u64,
        window: u64,
    },
    AddPath,
    Cut {
        side: usize,
        path: usize,
    },
    Notice {
        side: usize,
    },
    Acknowledge {
        side: usize,
    },
    Retry {
        side: usize,
    },
}

/// Mostly small, sometimes more than a window.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![5 => 1..100usize, 3 => 1..20_000usize, 1 => 1..300_000usize]
}

fn operations(with_resets: bool) -> impl Strategy<Value = Operation> {
    let (side, stream, path) = (0..2usize, 0..4u64, 0..4usize);
    prop_oneof![
        2 => Just(Operation::Open),
        8 => (side.clone(), stream.clone(), length())
            .prop_map(|(side, stream, length)| Operation::Write { side, stream, length }),
        6 => (side.clone(), stream.clone(), length())
            .prop_map(|(side, stream, max)| Operation::Read { side, stream, max }),
        1 => (side.clone(), stream.clone())
            .prop_map(|(side, stream)| Operation::Finish { side, stream }),
        1 => (side.clone(), stream).prop_map(move |(side, stream)| match with_resets {
            true => Operation::Reset { side, stream },
            false => Operation::Open,
        }),
        12 => (side.clone(), path.clone(), 1..20usize)
            .prop_map(|(side, path, count)| Operation::Transmit { side, path, count }),
        12 => (side.clone(), path.clone(), prop_oneof![1..50usize, 1..200_000usize])
            .prop_map(|(side, path, bytes)| Operation::Deliver { side, path, bytes }),
        2 => (side.clone(), path.clone(), 1..300u64, 1..1_000_000u64)
            .prop_map(|(side, path, rtt, window)| Operation::Estimate { side, path, rtt, window }),
        2 => Just(Operation::AddPath),
        1 => (side.clone(), path).prop_map(|(side, path)| Operation::Cut { side, path }),
        2 => side.clone().prop_map(|side| Operation::Notice { side }),
        1 => side.clone().prop_map(|side| Operation::Acknowledge { side }),
        1 => side.prop_map(|side| Operation::Retry { side }),
    ]
}

/// Bytes that differ by stream, side and place.
fn bytes(id: StreamId, side: usize, at: usize, length: usize) -> Vec<u8> {
    let seed = id * 7 + side as u64 * 3;
    let byte = |at: usize| (at as u64 * 31 + (at as u64 >> 8) * 17 + seed) as u8;
    (at..at + length).map(byte).collect()
}

fn run(operations: Vec<Operation>) -> Pair {
    let mut pair = Pair::new();
    pair.add_path();
    for operation in operations {
        let choose = |paths: Vec<PathKey>, at: usize| {
            let index = at.checked_rem(paths.len())?;
            paths.get(index).copied()
        };
        match operation {
            Operation::Open => {
                let id = pair.ends[0].streams.open();
                // As a preamble does.
                pair.ends[0].write(id, &bytes(id, 0, 0, 37));
            }
            Operation::Write {
                side,
                stream,
                length,
            } => {
                let end = &mut pair.ends[side];
                let at = end.sent.get(&stream).map_or(0, Vec::len);
                end.write(stream, &bytes(stream, side, at, length));
            }
            Operation::Read { side, stream, max } => pair.ends[side].read(stream, max),
            Operation::Finish { side, stream } => pair.ends[side].streams.finish(stream),
            Operation::Reset { side, stream } => pair.ends[side].streams.reset(stream, 9),
            Operation::Transmit { side, path, count } => {
                if let Some(path) = choose(pair.paths(side), path) {
                    pair.transmit(path, side, count);
                }
            }
            Operation::Deliver { side, path, bytes } => {
                if let Some(path) = choose(pair.paths(side), path) {
                    pair.deliver(path, side, bytes);
                }
            }
            Operation::Estimate {
                side,
                path,
                rtt,
                window,
            } => {
                if let Some(path) = choose(pair.paths(side), path) {
                    let rtt = std::time::Duration::from_millis(rtt);
                    let estimate = Estimate {
                        rtt,
                        window,
                        loss: 0,
                    };
                    pair.ends[side].streams.set_estimate(path, estimate);
                }
            }
            Operation::AddPath => {
                if pair.paths(0).len() < 4 {
                    pair.add_path();
                }
            }
            Operation::Cut { side, path } => {
                if let Some(path) = choose(pair.paths(side), path) {
                    pair.cut(path, side);
                }
            }
            Operation::Notice { side } => {
                let mut paths = pair.paths(side).into_iter();
                if let Some(path) = paths.find(|path| !pair.pipes.contains_key(&(*path, 0))) {
                    pair.notice(path, side);
                }
            }
            Operation::Acknowledge { side } => pair.ends[side].streams.acknowledge(),
            Operation::Retry { side } => pair.ends[side].streams.retry(),
        }
    }
    pair
}

proptest! {
    #[test]
    fn all_bytes_arrive_in_order_whatever_becomes_of_paths(
        operations in prop::collection::vec(operations(false), 1..200),
    ) {
        let mut pair = run(operations);
        pair.settle();
        let [client, server] = &mut pair.ends;
        for id in 0..client.streams.next {
            client.streams.finish(id);
            server.streams.finish(id);
        }
        pair.settle();
        let [client, server] = &pair.ends;
        for (from, to) in [(client, server), (server, client)] {
            for (id, sent) in &from.sent {
                // The server may have written to a stream that it had not seen yet.
                let read = to.read.get(id).map_or(&[][..], Vec::as_slice);
                prop_assert!(sent == read, "stream {}: {} of {}", id, read.len(), sent.len());
            }
            for id in 0..client.streams.next {
                prop_assert!(to.ended.contains(&id), "stream {} has no end", id);
            }
            prop_assert!(from.resets.is_empty());
            prop_assert!(from.streams.is_idle(), "{:?}", from.streams);
        }
    }

    #[test]
    fn nothing_is_kept_of_streams_that_are_reset(
        operations in prop::collection::vec(operations(true), 1..200),
    ) {
        let mut pair = run(operations);
        pair.settle();
        let all = pair.ends[0].streams.next;
        (0..all).for_each(|id| pair.ends[(id % 2) as usize].streams.reset(id, 9));
        pair.settle();
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (&pair.ends[from], &pair.ends[to]);
            prop_assert!(from.streams.is_idle(), "{:?}", from.streams);
            for (id, read) in &to.read {
                let sent = from.sent.get(id).map_or(&[][..], Vec::as_slice);
                prop_assert!(sent.starts_with(read), "stream {}", id);
            }
            prop_assert!(to.resets.values().all(|code| *code == 9 || *code == 0));
        }
    }

    #[test]
    fn any_frames_are_taken_in_or_refused(
        frames in prop::collection::vec((0..7u8, 0..4u64, 0..600_000u64, 1..70_000u64), 0..60),
        accepts: bool,
    ) {
        let side = if accepts { Side::Accepts } else { Side::Opens };
        let mut streams = Streams::new(side);
        streams.add_path(0);
        if !accepts {
            (0..2).for_each(|_| { streams.open(); });
        }
        for (kind, id, offset, length) in frames {
            let frame = match kind {
                0 => Frame::Hello { instance: id, known: true, path: 0 },
                1 => Frame::Data { id, offset, bytes: vec![0; length as usize].into() },
                2 => Frame::End { id, offset },
                3 => Frame::Ack { id, received: length % 3, limit: offset },
                4 => Frame::Reset { id, code: 1 },
                5 => Frame::Gone { id },
                _ => Frame::Arrived { path: id, units: length % 3 },
            };
            // As the user of the streams does, it ends with the first violation.
            if streams.receive(0, frame).is_err() {
                break;
            }
            while streams.transmit(0).is_some() {}
            let held: usize = streams.streams.len();
            prop_assert!(held <= 4);
        }
    }
}

#[test]
fn a_reader_that_is_slow_stops_its_own_stream_only() {
    let mut pair = Pair::new();
    pair.add_path();
    let [slow, fast] = [(); 2].map(|()| pair.ends[0].streams.open());
    let chunk = vec![1; 1 << 20];
    for _ in 0..100 {
        pair.ends[0].write(slow, &chunk);
        pair.ends[0].write(fast, &chunk);
        pair.transmit(0, 0, 1000);
        pair.deliver(0, 1, usize::MAX);
        pair.ends[1].read(fast, usize::MAX);
        pair.transmit(0, 1, 1000);
        pair.deliver(0, 0, usize::MAX);
    }
    let arrived = |id| pair.ends[1].streams.transferred(id).unwrap().received;
    assert_eq!(arrived(slow), INITIAL);
    assert!(arrived(fast) > 20 * INITIAL, "{}", arrived(fast));
    // The sender keeps what there is no room for, and accepts no more.
    let sent = pair.ends[0].sent[&slow].len() as u64;
    assert!(sent < 3 * INITIAL, "{sent}");
}

#[test]
fn what_a_lost_path_did_not_deliver_goes_over_the_others() {
    let mut pair = Pair::new();
    pair.add_path();
    let id = pair.ends[0].streams.open();
    pair.ends[0].write(id, &bytes(id, 0, 0, 100_000));
    assert!(pair.transmit(0, 0, 3));
    pair.add_path();
    pair.cut(0, 0);
    pair.notice(0, 1);
    while pair.transmit(1, 0, 1) {
        pair.deliver(1, 1, usize::MAX);
        pair.transmit(1, 1, 10);
        pair.deliver(1, 0, usize::MAX);
    }
    pair.ends[1].read(id, usize::MAX);
    assert_eq!(pair.ends[1].read[&id], bytes(id, 0, 0, 100_000));
}

#[test]
fn what_has_arrived_is_read_after_the_peer_has_gone() {
    let mut pair = Pair::new();
    pair.add_path();
    let [whole, part, read] = [(); 3].map(|()| {
        let id = pair.ends[0].streams.open();
        pair.ends[0].write(id, &bytes(id, 0, 0, 1000));
        id
    });
    pair.ends[0].streams.finish(whole);
    pair.ends[0].streams.finish(read);
    while pair.transmit(0, 0, 1) {
        pair.deliver(0, 1, usize::MAX);
    }
    let end = &mut pair.ends[1];
    end.read(read, usize::MAX);
    end.read(read, usize::MAX);
    end.streams.leave(3);
    end.drain_events();
    assert_eq!(end.resets, [(part, 3), (read, CLOSED)].into());
    assert_eq!(end.streams.read(part, 1), Read::Gone);
    // Nothing more is sent; a writer waits for the end.
    assert_eq!(end.streams.has_room(whole), Some(false));
    assert_eq!(end.streams.write(whole, b"answer"), Some(0));
    end.read(whole, usize::MAX);
    assert_eq!(end.read[&whole], bytes(whole, 0, 0, 1000));
    end.read(whole, usize::MAX);
    end.drain_events();
    assert!(end.ended.contains(&whole) && end.streams.is_empty());
    assert_eq!(end.resets[&whole], CLOSED);
}

#[test]
fn a_slow_path_is_used_while_a_writer_waits() {
    let mut streams = Streams::new(Side::Opens);
    let estimate = |rtt| Estimate {
        rtt: std::time::Duration::from_millis(rtt),
        window: 20_000,
        loss: 0,
    };
    for (path, rtt) in [(0, 10), (1, 50)] {
        streams.add_path(path);
        streams.set_estimate(path, estimate(rtt));
    }
    let id = streams.open();
    // Both sides announce what they have room for.
    let room = streams.transmit(0);
    assert!(room.is_some());
    assert_eq!(streams.transmit(1), room);
    let (received, limit) = (0, 1 << 20);
    let announced = Frame::Ack {
        id,
        received,
        limit,
    };
    streams.receive(0, announced).unwrap();
    streams.write(id, &[0; 50_000]);
    assert!(streams.transmit(1).is_none());
    // More than there is room for.
    assert!(streams.write(id, &vec![0; 1 << 20]).unwrap() < 1 << 20);
    assert_eq!(streams.next_path(), Some(1));
    assert!(streams.transmit(1).is_some());
}

#[test]
fn what_has_arrived_is_said_over_two_paths() {
    let mut streams = Streams::new(Side::Accepts);
    (0..3).for_each(|path| streams.add_path(path));
    assert!((0..3).all(|path| streams.transmit(path).is_none()));
    let frames = [
        Frame::Data {
            id: 0,
            offset: 0,
            bytes: Bytes::from_static(&[7; 1000]),
        },
        Frame::End {
            id: 0,
            offset: 1000,
        },
    ];
    for frame in frames {
        streams.receive(0, frame).unwrap();
    }
    assert_eq!(streams.next_path(), Some(0));
    let first = streams.transmit(0).unwrap();
    // The path may lose it, and nothing else is due that would say the same.
    assert_eq!(streams.next_path(), Some(1));
    assert_eq!(streams.transmit(1), Some(first));
    assert_eq!(streams.next_path(), None);
}
