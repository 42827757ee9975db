//! What arrives over any path.

use super::frame::Frame;
use super::receive::ReceiveHalf;
use super::{
    AHEAD, CLOSED, Event, MAX_GONE, MAX_RESETS, MAX_STREAMS, PathKey, Side, StreamId, Streams,
    TOO_MANY, Violation,
};

impl Streams {
    /// Takes in a frame that arrived over `path`.
    ///
    /// # Errors
    /// [`Violation`]; the session is of no use then.
    pub fn receive(&mut self, path: PathKey, frame: Frame) -> Result<(), Violation> {
        self.paths.on_received(path, frame.units());
        match frame {
            Frame::Hello { .. } => return Err(Violation::Order),
            Frame::Data { id, offset, bytes } => {
                self.arrive(id, |receive| receive.insert(offset, bytes))?;
            }
            Frame::End { id, offset } => {
                self.arrive(id, |receive| receive.end(offset))?;
            }
            Frame::Ack {
                id,
                received,
                limit,
            } => {
                self.check(id)?;
                // A stream may begin with what its opener has room for.
                self.begin(id)?;
                if let Some(stream) = self.streams.get_mut(&id) {
                    if !stream.send.acknowledge(received, limit) {
                        return Err(Violation::Acknowledgement);
                    }
                    self.take_turn(id);
                    self.forget_if_complete(id);
                }
            }
            Frame::Reset { id, code } => {
                self.check(id)?;
                self.see(id)?;
                self.resets.remove(&id);
                self.answer_gone(id);
                if self.streams.remove(&id).is_some() {
                    self.events.push_back(Event::Reset(id, code));
                }
            }
            Frame::Gone { id } => {
                self.check(id)?;
                self.resets.remove(&id);
                if let Some(stream) = self.streams.get_mut(&id) {
                    if stream.receive.has_all() {
                        stream.send.complete();
                        self.forget_if_complete(id);
                    } else {
                        // It was reset over there, and the frame that said so was lost with its path.
                        self.streams.remove(&id);
                        self.events.push_back(Event::Reset(id, CLOSED));
                    }
                }
            }
            Frame::Arrived { path, units } => {
                let arrived = self.paths.on_arrived(path, units, self.now);
                let blocks = arrived.map_err(|_| Violation::Acknowledgement)?;
                for (id, offset) in blocks {
                    if let Some(stream) = self.streams.get_mut(&id) {
                        stream.send.on_arrived(offset);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes data or the end of a stream in.
    fn arrive(
        &mut self,
        id: StreamId,
        work: impl FnOnce(&mut ReceiveHalf) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        self.check(id)?;
        self.begin(id)?;
        let Some(stream) = self.streams.get_mut(&id) else {
            // It crosses a reset, which answers it; otherwise it is late.
            if !self.resets.contains_key(&id) {
                self.answer_gone(id);
            }
            return Ok(());
        };
        let was_readable = stream.receive.is_readable();
        let (had_all, before) = (stream.receive.has_all(), stream.receive.arrived());
        work(&mut stream.receive)?;
        let receive = &stream.receive;
        if receive.is_readable() && !was_readable {
            self.events.push_back(Event::Readable(id));
        }
        // What arrives again was not acknowledged over there: the acknowledgement is late, or lost.
        let is_repeated = had_all || receive.arrived() == before;
        if receive.is_due(false) || is_repeated {
            self.due.acks.insert(id);
        } else if receive.is_due(true) {
            self.unacknowledged.insert(id);
        }
        Ok(())
    }

    /// Has the peer told that a stream is gone. One that reads no answers is told of so many at most; it
    /// asks again with whatever it sends of the others.
    fn answer_gone(&mut self, id: StreamId) {
        if self.due.gone.len() < MAX_GONE {
            self.due.gone.insert(id);
        }
    }

    /// Begins a stream of the peer's, if it is new; resets it if there are too many.
    fn begin(&mut self, id: StreamId) -> Result<(), Violation> {
        if self.see(id)? {
            if self.streams.len() >= MAX_STREAMS {
                if self.resets.len() >= MAX_RESETS {
                    return Err(Violation::Streams);
                }
                self.resets.insert(id, TOO_MANY);
                self.due.resets.insert(id);
            } else {
                self.insert(id);
                self.events.push_back(Event::Opened(id));
            }
        }
        Ok(())
    }

    /// Refuses a stream that the peer cannot name.
    fn check(&self, id: StreamId) -> Result<(), Violation> {
        match self.side {
            Side::Opens if id >= self.next => Err(Violation::Stream(id)),
            _ => Ok(()),
        }
    }

    /// Marks a stream of the peer's as seen; whether it is new.
    fn see(&mut self, id: StreamId) -> Result<bool, Violation> {
        if self.side == Side::Opens || id < self.next || !self.ahead.insert(id) {
            return Ok(false);
        }
        while self.ahead.remove(&self.next) {
            self.next += 1;
        }
        match self.ahead.len() > AHEAD {
            true => Err(Violation::Stream(id)),
            false => Ok(true),
        }
    }
}
