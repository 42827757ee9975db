//! What is to be sent over which path.

use bytes::{Bytes, BytesMut};

use super::frame::Frame;
use super::{CONTROL, Event, PathKey, StreamId, Streams};

impl Streams {
    /// The next bytes for `path`, which has room; `None` if nothing is to be sent over it now. Then
    /// this is to be called again after anything was written, read, received or lost.
    pub fn transmit(&mut self, path: PathKey) -> Option<Bytes> {
        let bytes = self.take(path);
        self.paths.set_idle(path, bytes.is_none());
        bytes
    }

    /// The path for which [`transmit`](Self::transmit) had nothing and has something now, if there is
    /// one. To be called after everything that may change that, also after `transmit` itself.
    pub fn next_path(&self) -> Option<PathKey> {
        let path = self.paths.first_idle()?;
        if self.has_control() {
            return Some(path);
        }
        let least = self.paths.least_backlog(path)?;
        self.has_backlog(least).then_some(path)
    }

    fn take(&mut self, path: PathKey) -> Option<Bytes> {
        // What is small goes over the fastest path that has room.
        if !self.paths.is_first(path) {
            return None;
        }
        if let Some(control) = self.control() {
            return Some(control);
        }
        let least = self.paths.least_backlog(path)?;
        if !self.has_backlog(least) {
            return None;
        }
        while let Some(id) = self.turns.pop_front() {
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            // What has nothing to send, or may not, takes its turn again when that changes.
            let Some(frame) = stream.send.pop(path) else {
                stream.has_turn = false;
                continue;
            };
            self.turns.push_back(id);
            if stream.is_writer_waiting && stream.send.has_room() {
                stream.is_writer_waiting = false;
                self.events.push_back(Event::Writable(id));
            }
            self.paths.on_sent(path, frame.len() as u64);
            return Some(frame);
        }
        None
    }

    /// Whether at least this many bytes wait to be sent. A writer that waits for room has more, as
    /// many as one likes to assume.
    fn has_backlog(&self, least: u64) -> bool {
        let mut backlog = 0;
        self.turns.iter().any(|id| {
            let Some(stream) = self.streams.get(id) else {
                return false;
            };
            let sendable = stream.send.sendable();
            backlog += sendable;
            backlog > 0 && backlog >= least || sendable > 0 && stream.is_writer_waiting
        })
    }

    pub(super) fn take_turn(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.has_turn
            && stream.send.sendable() > 0
        {
            stream.has_turn = true;
            self.turns.push_back(id);
        }
    }

    fn has_control(&self) -> bool {
        !(self.due_gone.is_empty() && self.due_resets.is_empty() && self.due_acks.is_empty())
    }

    /// Frames without data, if any are due.
    fn control(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        while out.len() < CONTROL
            && let Some(id) = self.due_gone.pop_first()
        {
            Frame::Gone { id }.encode_to(&mut out);
        }
        while out.len() < CONTROL
            && let Some(id) = self.due_resets.pop_first()
        {
            if let Some(code) = self.resets.get(&id).copied() {
                Frame::Reset { id, code }.encode_to(&mut out);
            }
        }
        while out.len() < CONTROL
            && let Some(id) = self.due_acks.pop_first()
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
        (!out.is_empty()).then(|| out.freeze())
    }
}
