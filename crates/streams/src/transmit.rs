//! What is to be sent over which path.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::frame::Frame;
use super::paths::Rank;
use super::send::Unsent;
use super::{CONTROL, Event, PathKey, StreamId, Streams};

/// By how much sooner a path must deliver a block that is sent again before it is late, beyond twice
/// as soon.
const SOONER: Duration = Duration::from_millis(20);

/// What is sent next over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// Frames without data.
    Control,
    /// Those that were sent last over another path.
    Copy,
    /// A block that is late on this path.
    Late(PathKey, StreamId, u64),
    /// A block for which the other side waits.
    Awaited(StreamId, u64),
    /// The next block of a stream.
    Unsent(StreamId),
}

impl Streams {
    /// The next bytes for `path`, which has room; `None` if nothing is to be sent over it now. Then
    /// this is to be called again after anything was written, read, received or lost.
    pub fn transmit(&mut self, path: PathKey) -> Option<Bytes> {
        let bytes = self.take(path);
        self.paths.set_idle(path, bytes.is_none());
        bytes
    }

    /// A path for which [`transmit`](Self::transmit) had nothing and has something now, if there is
    /// one. To be called after everything that may change that, also after `transmit` itself.
    pub fn next_path(&self) -> Option<PathKey> {
        let mut idle = self.paths.idle(self.now).into_iter();
        idle.find(|path| self.plan(*path).is_some())
    }

    /// What is sent next over `path`, which has room.
    fn plan(&self, path: PathKey) -> Option<Plan> {
        let rank = self.paths.rank(path, self.now)?;
        // What is small goes over the fastest path that has room.
        if self.has_control() && self.paths.is_first_for_control(rank, None, self.now) {
            return Some(Plan::Control);
        }
        // The peer sends nothing new until it learns what has arrived. A path may lose that for some
        // time unnoticed, as its losses are known by what is sent over it; so the next one has it too.
        if let Some((sent, _)) = self.due.copy
            && sent != path
            && self.paths.is_first_for_control(rank, Some(sent), self.now)
        {
            return Some(Plan::Copy);
        }
        if self.paths.is_full(path, self.now) {
            return None;
        }
        if let Some((late, id, offset)) = self.late(rank, path) {
            return Some(Plan::Late(late, id, offset));
        }
        if self.paths.is_first(rank, self.now)
            && let Some(id) = self.unsent(rank)
        {
            return Some(Plan::Unsent(id));
        }
        self.awaited(rank, path)
            .map(|(id, offset)| Plan::Awaited(id, offset))
    }

    fn take(&mut self, path: PathKey) -> Option<Bytes> {
        loop {
            match self.plan(path)? {
                Plan::Control => {
                    // Nothing, where all of it was about streams that are gone.
                    if let Some(control) = self.control(path) {
                        return Some(control);
                    }
                }
                Plan::Copy => return self.due.copy.take().map(|(_, bytes)| bytes),
                Plan::Late(late, id, offset) => {
                    self.paths.on_repeated(late, (id, offset));
                    return self.send_again(path, id, offset);
                }
                Plan::Awaited(id, offset) => return self.send_again(path, id, offset),
                Plan::Unsent(id) => {
                    let block = self.streams.get_mut(&id)?.send.pop()?;
                    self.end_turn(id);
                    return Some(self.send(path, id, block));
                }
            }
        }
    }

    /// A block that is late on another path than that of this rank.
    fn late(&self, rank: Rank, path: PathKey) -> Option<(PathKey, StreamId, u64)> {
        if rank.is_late {
            return None;
        }
        let mut late = self.paths.late_on_others(rank, self.now);
        late.find(|(_, id, offset)| {
            let stream = self.streams.get(id);
            stream.is_some_and(|stream| stream.send.lacks(*offset, path))
        })
    }

    /// A block for which the other side waits, and which a path of this rank delivers much sooner than
    /// those over which it is under way. Nothing else may be sent of its stream.
    fn awaited(&self, rank: Rank, path: PathKey) -> Option<(StreamId, u64)> {
        if rank.is_late {
            return None;
        }
        let then = self.now + 2 * rank.delay + SOONER;
        self.blocked.iter().find_map(|id| {
            let offset = self.streams.get(id)?.send.awaited(path, then)?;
            Some((*id, offset))
        })
    }

    /// The stream whose turn it is to be sent over a path of this rank, if it delivers the next block
    /// sooner than others. Nor must the other side wait for that block: what it has room for meanwhile
    /// must keep the others busy.
    fn unsent(&self, rank: Rank) -> Option<StreamId> {
        let least = self.paths.least_backlog(rank, self.now)?;
        let (mut backlog, mut found) = (0_u64, None);
        for id in &self.turns {
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            let sendable = stream.send.sendable();
            if sendable > 0 && stream.send.window() >= 2 * least {
                found = found.or(Some(*id));
            }
            backlog = backlog.saturating_add(sendable);
            // A writer that waits for room has more, as many as one likes to assume.
            if sendable > 0 && stream.is_writer_waiting {
                backlog = u64::MAX;
            }
            if found.is_some() && backlog >= least {
                return found;
            }
        }
        None
    }

    /// Sends a block of a stream over a path.
    fn send(&mut self, path: PathKey, id: StreamId, block: Unsent) -> Bytes {
        let name = (id, block.offset);
        let expected = self.paths.on_sent(path, name, block.length, self.now);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.send.on_sent(block.offset, path, expected);
        }
        block.frame
    }

    fn send_again(&mut self, path: PathKey, id: StreamId, offset: u64) -> Option<Bytes> {
        let block = self.streams.get(&id)?.send.again(offset)?;
        self.repeated += block.length;
        Some(self.send(path, id, block))
    }

    /// After a block of a stream was sent, it is the turn of the others.
    fn end_turn(&mut self, id: StreamId) {
        // What has nothing to send, or may not, takes its turn again when that changes.
        while let Some(first) = self.turns.front()
            && *first != id
        {
            match self.streams.get_mut(first) {
                Some(stream) if stream.send.sendable() > 0 => break,
                Some(stream) => stream.has_turn = false,
                None => {}
            }
            self.turns.pop_front();
        }
        if let Some(at) = self.turns.iter().position(|one| *one == id) {
            self.turns.remove(at);
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.has_turn = false;
        if stream.is_writer_waiting && stream.send.has_room() {
            stream.is_writer_waiting = false;
            self.events.push_back(Event::Writable(id));
        }
        self.take_turn(id);
    }

    /// Notes whether a stream has something to send, and may.
    pub(super) fn take_turn(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        match stream.send.is_blocked() {
            true => self.blocked.insert(id),
            false => self.blocked.remove(&id),
        };
        if !stream.has_turn && stream.send.sendable() > 0 {
            stream.has_turn = true;
            self.turns.push_back(id);
        }
    }

    fn has_control(&self) -> bool {
        !(self.due.gone.is_empty() && self.due.resets.is_empty() && self.due.acks.is_empty())
            || self.paths.unreported(self.due.all_reports).is_some()
    }

    /// Frames without data, if any are due, which are sent over `path`.
    fn control(&mut self, path: PathKey) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while out.len() < CONTROL
            && let Some(key) = self.paths.unreported(self.due.all_reports)
        {
            if let Some((path, units)) = self.paths.report(key) {
                Frame::Arrived { path, units }.encode_to(&mut out);
            }
        }
        if self.paths.unreported(true).is_none() {
            self.due.all_reports = false;
        }
        while out.len() < CONTROL
            && let Some(id) = self.due.acks.pop_first()
        {
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            let (received, limit) = stream.receive.announce();
            let frame = Frame::Ack {
                id,
                received,
                limit,
            };
            frame.encode_to(&mut out);
            self.unacknowledged.remove(&id);
            self.forget_if_complete(id);
        }
        // These say how much there is in all, so that it does not matter which come twice or late.
        self.due.copy = (!out.is_empty()).then(|| (path, Bytes::copy_from_slice(&out)));
        while out.len() < CONTROL
            && let Some(id) = self.due.gone.pop_first()
        {
            Frame::Gone { id }.encode_to(&mut out);
        }
        while out.len() < CONTROL
            && let Some(id) = self.due.resets.pop_first()
        {
            if let Some(code) = self.resets.get(&id).copied() {
                Frame::Reset { id, code }.encode_to(&mut out);
            }
        }
        (!out.is_empty()).then(|| out.freeze())
    }
}
