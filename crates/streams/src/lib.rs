//! Streams between two hosts over several connections, each of which has a path: no I/O, no clock.
//!
//! The bytes of a stream are cut into blocks, each of which is sent over the
//! path that delivers it first, and put in order again at the other end by their offsets. What is not
//! acknowledged is kept, and sent again over other paths when its path is lost, or when it is late:
//! whatever a path does, the others carry on. The bytes that the receiver has room for are announced
//! for each stream apart, so that a slow reader stops nothing but its own stream. All of them together
//! are bounded.
//!
//! # The life of a stream
//!
//! One side [opens](Streams::open) it; on the other it begins with the first frame that names it
//! ([`Event::Opened`]), or is reset if there are too many. A block waits for its turn, is under way
//! over one path or more, and is forgotten once it is acknowledged; the end of a direction is a
//! block too. The stream is *gone* when this side's end is acknowledged, the peer's was read, and
//! its arrival acknowledged. It is gone at once when either side [resets](Streams::reset) it: the
//! side that does so repeats that until the peer confirms it. When the peer has
//! [gone](Streams::leave), what has arrived whole can still be read. After a [`Violation`] the user
//! ends the session.
//!
//! # Who drives it
//!
//! Its user, who keeps it under a lock that the tasks of all paths take. They hand in what each
//! path [receives](Streams::receive), ask what to [`transmit`](Streams::transmit) over it while it
//! has room, and [which other path](Streams::next_path) has something now. A task of the session
//! calls [`acknowledge`](Streams::acknowledge) and [`retry`](Streams::retry) at their times. No
//! call waits, and nothing in here is locked.
//!
//! What has arrived and was not read is bounded by 32 KiB for each stream, of which the peer may
//! have 16,384 open, and 128 MiB that they share. Of what was written, each stream keeps up to 256
//! KiB that wait to be sent, and what was sent until it is acknowledged: as much as the peer
//! announces room for, which is up to 16 MiB if it keeps to the same bounds. A number is kept for
//! each stream that was reset here until the peer confirms that, and for each that the peer reset
//! until that is confirmed to it, without a bound.

mod arrive;
mod estimate;
mod flight;
mod frame;
#[cfg(test)]
mod fuzz;
mod losses;
#[cfg(test)]
mod model;
mod paths;
mod receive;
mod room;
mod send;
#[cfg(test)]
mod tests;
mod transmit;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use thiserror::Error;

pub use self::estimate::Estimate;
pub use self::frame::{Decoder, Frame, FrameError};
pub use self::losses::Losses;
use self::paths::Paths;
use self::receive::ReceiveHalf;
use self::room::{MIN_ROOM, Room};
use self::send::SendHalf;

/// The number of a stream in its session. The side whose programs connect counts them up from 0.
pub type StreamId = u64;

/// A path of a session, as its user numbers them.
pub type PathKey = u64;

/// Most streams at once that the peer may open; a further one is reset.
const MAX_STREAMS: usize = 16 << 10;
/// Most streams that the peer has opened beyond these and that were reset, until it says that they are
/// gone.
const MAX_RESETS: usize = MAX_STREAMS;
/// Most streams of which the peer is still to be told that they are gone.
const MAX_GONE: usize = 64 << 10;
/// Most numbers that may arrive before a smaller one does.
const AHEAD: usize = 64 << 10;
/// The code of a stream that one of its ends closed in haste.
const CLOSED: u8 = 0;
/// The code of a stream beyond [`MAX_STREAMS`].
const TOO_MANY: u8 = 3;
/// Bytes of acknowledgements and the like that are sent together.
const CONTROL: usize = 1 << 10;

/// Which side of a session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Opens streams.
    Opens,
    /// Accepts them.
    Accepts,
}

/// What the peer does against the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Violation {
    /// It sends more than there is room for.
    #[error("the other side sends more than it may")]
    Window,
    /// The length of a stream changes, or is less than what was sent.
    #[error("the other side sends bytes behind the end of a stream")]
    Length,
    /// It names a stream that cannot be.
    #[error("the other side names stream {0}, which was never opened")]
    Stream(StreamId),
    /// It opens ever more streams beyond those that it may have, and looks at no answer.
    #[error("the other side opens more streams than it may")]
    Streams,
    /// It acknowledges what was not sent.
    #[error("the other side acknowledges what was not sent")]
    Acknowledgement,
    /// What it sends has more gaps than several paths make.
    #[error("the other side sends its data in too many pieces")]
    Pieces,
    /// A frame comes at the wrong time.
    #[error("the other side sends a frame at the wrong time")]
    Order,
}

/// What happens to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The peer opened it.
    Opened(StreamId),
    /// There is something to read, or the end.
    Readable(StreamId),
    /// There is room to write again.
    Writable(StreamId),
    /// The peer has reset it, with this code; it is gone.
    Reset(StreamId, u8),
}

/// What there is to read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// The next bytes.
    Data(BytesMut),
    /// Nothing yet.
    Blocked,
    /// No more: the peer has finished its direction.
    End,
    /// Nothing: the stream is gone.
    Gone,
}

/// How much a stream has carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transferred {
    /// Bytes that the peer has acknowledged.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

#[derive(Debug)]
struct Stream {
    send: SendHalf,
    receive: ReceiveHalf,
    /// Whether an event is wanted when there is room.
    is_writer_waiting: bool,
    /// Whether it is among those that may have something to send.
    has_turn: bool,
    /// Whether the peer has gone: what has arrived can be read, and nothing is sent.
    is_left: bool,
}

/// Of what the peer is to be informed.
#[derive(Debug, Default)]
struct Due {
    /// Streams that were reset, that are gone, and of which more has arrived.
    resets: BTreeSet<StreamId>,
    gone: BTreeSet<StreamId>,
    acks: BTreeSet<StreamId>,
    /// Whether all arrivals are to be reported, also few.
    all_reports: bool,
    /// The last reports and acknowledgements, and the path that they were sent over: another one
    /// takes them as well.
    copy: Option<(PathKey, Bytes)>,
}

/// The streams of a session, on one side.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    streams: BTreeMap<StreamId, Stream>,
    /// The number of the next stream that this side opens; of those that the peer opens, all below
    /// were seen.
    next: StreamId,
    /// Numbers above `next` that were seen.
    ahead: BTreeSet<StreamId>,
    /// Streams that were reset here, until the peer says that they are gone.
    resets: BTreeMap<StreamId, u8>,
    due: Due,
    /// Streams that may have something to send, each in its turn.
    turns: VecDeque<StreamId>,
    /// Streams that have something to send for which the peer has no room.
    blocked: BTreeSet<StreamId>,
    /// Streams whose latest bytes are not acknowledged.
    unacknowledged: BTreeSet<StreamId>,
    room: Room,
    paths: Paths,
    /// Bytes that were sent again because they were late.
    repeated: u64,
    events: VecDeque<Event>,
    /// The time, since a beginning that the user has chosen.
    now: Duration,
}

impl Streams {
    /// No streams and no paths.
    pub fn new(side: Side) -> Self {
        Self {
            side,
            streams: BTreeMap::new(),
            next: 0,
            ahead: BTreeSet::new(),
            resets: BTreeMap::new(),
            due: Due::default(),
            turns: VecDeque::new(),
            blocked: BTreeSet::new(),
            unacknowledged: BTreeSet::new(),
            room: Room::default(),
            paths: Paths::default(),
            repeated: 0,
            events: VecDeque::new(),
            now: Duration::ZERO,
        }
    }

    /// Sets the time, which counts from a beginning that the user chooses. To be called before
    /// anything else that happens, and every 20 ms as long as something [is under
    /// way](Self::are_under_way).
    pub fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.blocked.retain(|id| self.streams.contains_key(id));
    }

    /// Whether anything is under way over a path, whose arrival was not reported.
    pub fn are_under_way(&self) -> bool {
        self.paths.are_in_use()
    }

    /// Opens a stream. The peer sees it with its first bytes.
    pub fn open(&mut self) -> StreamId {
        let id = self.next;
        self.next += 1;
        self.insert(id);
        id
    }

    fn insert(&mut self, id: StreamId) {
        let stream = Stream {
            send: SendHalf::new(id, MIN_ROOM),
            receive: ReceiveHalf::new(&self.room),
            is_writer_waiting: false,
            has_turn: false,
            is_left: false,
        };
        if stream.receive.is_due(false) {
            self.due.acks.insert(id);
        }
        self.streams.insert(id, stream);
    }

    /// Sends as many of `bytes` as there is room for, and returns how many; `None` if the stream is
    /// gone. When it returns fewer, [`Event::Writable`] follows.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> Option<usize> {
        let stream = self.streams.get_mut(&id)?;
        let written = match stream.is_left {
            true => 0,
            false => stream.send.write(bytes),
        };
        stream.is_writer_waiting = written < bytes.len();
        self.take_turn(id);
        Some(written)
    }

    /// Whether [`write`](Self::write) accepts something; otherwise [`Event::Writable`] follows.
    /// `None` if the stream is gone.
    pub fn has_room(&mut self, id: StreamId) -> Option<bool> {
        let stream = self.streams.get_mut(&id)?;
        stream.is_writer_waiting = stream.is_left || !stream.send.has_room();
        Some(!stream.is_writer_waiting)
    }

    /// Ends this side's direction behind what was written.
    pub fn finish(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.send.finish();
            self.take_turn(id);
        }
    }

    /// Ends both directions at once; the peer receives `code`.
    pub fn reset(&mut self, id: StreamId, code: u8) {
        if self.streams.remove(&id).is_some() {
            self.resets.insert(id, code);
            self.due.resets.insert(id);
        }
    }

    /// The next bytes of a stream, at most `max`. [`consume`](Self::consume) them when they are done
    /// with. After [`Read::Blocked`], [`Event::Readable`] follows.
    pub fn read(&mut self, id: StreamId, max: usize) -> Read {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Read::Gone;
        };
        if stream.receive.read_end() {
            if stream.is_left {
                self.streams.remove(&id);
                self.events.push_back(Event::Reset(id, CLOSED));
            } else {
                self.forget_if_complete(id);
            }
            return Read::End;
        }
        let bytes = stream.receive.read(max);
        match bytes.is_empty() {
            true => Read::Blocked,
            false => Read::Data(bytes),
        }
    }

    /// Makes room for as many more bytes of a stream.
    pub fn consume(&mut self, id: StreamId, bytes: usize) {
        if let Some(stream) = self.streams.get_mut(&id) {
            let rtt = self.paths.longest_rtt();
            stream.receive.consume(bytes, self.now, rtt);
            if stream.receive.is_due(false) {
                self.due.acks.insert(id);
            }
        }
    }

    /// How much a stream has carried; `None` if it is gone.
    pub fn transferred(&self, id: StreamId) -> Option<Transferred> {
        let stream = self.streams.get(&id)?;
        Some(Transferred {
            sent: stream.send.acknowledged(),
            received: stream.receive.received(),
        })
    }

    /// Whether the peer has received everything of this side's direction, up to its end; `None` if the
    /// stream is gone, as those are whose both directions have arrived.
    pub fn is_delivered(&self, id: StreamId) -> Option<bool> {
        Some(self.streams.get(&id)?.send.is_complete())
    }

    /// Whether everything of the peer's direction has arrived, up to its end; `None` if the stream is gone.
    pub fn has_arrived(&self, id: StreamId) -> Option<bool> {
        Some(self.streams.get(&id)?.receive.has_all())
    }

    /// Bytes sent over each path, with those that were sent again.
    pub fn sent(&self) -> impl Iterator<Item = (PathKey, u64)> {
        self.paths.sent()
    }

    /// Uses a path from now on.
    pub fn add_path(&mut self, path: PathKey) {
        self.paths.add(path);
    }

    /// Bytes of blocks that were sent again over another path, because they were late.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// What the other side calls a path in its reports.
    pub fn set_name(&mut self, path: PathKey, name: u64) {
        self.paths.set_name(path, name);
    }

    /// What is known of a path now.
    pub fn set_estimate(&mut self, path: PathKey, estimate: Estimate) {
        self.paths.set(path, estimate);
    }

    /// Uses a path no more: what it has not delivered is sent again over the others.
    pub fn remove_path(&mut self, path: PathKey) {
        if self.paths.remove(path) {
            self.lose(path);
        }
    }

    /// Uses a path no more until [`resume_path`](Self::resume_path): what it has not delivered is sent
    /// again over the others. What arrives over it is still taken.
    pub fn suspend_path(&mut self, path: PathKey) {
        if self.paths.suspend(path) {
            self.lose(path);
        }
    }

    /// Uses a path again.
    pub fn resume_path(&mut self, path: PathKey) {
        self.paths.resume(path);
    }

    fn lose(&mut self, path: PathKey) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.send.lose(path);
                self.take_turn(id);
            }
            self.due.acks.insert(id);
        }
        self.due.resets.extend(self.resets.keys());
    }

    /// Sends again what has waited for an acknowledgement since the last call, though its path was not
    /// lost. An acknowledgement is lost in this manner where the two sides notice the end of a path
    /// at different times. To be called every few seconds.
    pub fn retry(&mut self) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.send.retry();
                self.take_turn(id);
            }
        }
        self.due.resets.extend(self.resets.keys());
    }

    /// Has everything acknowledged that has arrived, also where little has. To be called some time
    /// after [`lacks_acknowledgement`](Self::lacks_acknowledgement).
    pub fn acknowledge(&mut self) {
        self.due.all_reports = true;
        for id in std::mem::take(&mut self.unacknowledged) {
            let stream = self.streams.get(&id);
            if stream.is_some_and(|stream| stream.receive.is_due(true)) {
                self.due.acks.insert(id);
            }
        }
    }

    /// Whether something has arrived that is neither acknowledged nor reported.
    pub fn lacks_acknowledgement(&self) -> bool {
        !self.unacknowledged.is_empty()
            || !self.due.all_reports && self.paths.unreported(true).is_some()
    }

    fn forget_if_complete(&mut self, id: StreamId) {
        if let Entry::Occupied(entry) = self.streams.entry(id) {
            let stream = entry.get();
            if stream.send.is_complete() && stream.receive.is_complete() {
                entry.remove();
            }
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Ends all streams, without informing the peer; their readers and writers find them gone.
    pub fn end_all(&mut self, code: u8) {
        for (id, _) in std::mem::take(&mut self.streams) {
            self.events.push_back(Event::Reset(id, code));
        }
        self.resets.clear();
    }

    /// The peer has gone: ends all streams as [`end_all`](Self::end_all) does, but for those of which
    /// everything up to the end has arrived. These end once it was read, as if the peer had closed both
    /// of their directions.
    pub fn leave(&mut self, code: u8) {
        for (id, mut stream) in std::mem::take(&mut self.streams) {
            let receive = &stream.receive;
            if receive.has_all() && !receive.was_read() {
                stream.is_left = true;
                self.streams.insert(id, stream);
            } else {
                let code = if receive.has_all() { CLOSED } else { code };
                self.events.push_back(Event::Reset(id, code));
            }
        }
        self.resets.clear();
    }

    /// The streams that there are.
    pub fn ids(&self) -> impl Iterator<Item = StreamId> {
        self.streams.keys().copied()
    }

    /// Whether there are neither streams nor anything left to say of former ones.
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty()
            && self.resets.is_empty()
            && self.due.gone.is_empty()
            && self.events.is_empty()
    }

    /// How many streams there are.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }
}
