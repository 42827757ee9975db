//! What a connection has received and its application has not read.

use std::collections::{HashMap, VecDeque};
use std::sync::Weak;
use std::task::Waker;
use std::time::{Duration, Instant};

use noq_proto::{Dir, ReadError, StreamId, VarInt};

use crate::driver::buffer::{End, StreamBuffer};
use crate::driver::unknown::Number;
use crate::driver::window::ReceiveWindow;
use crate::driver::{Connection, Driver};

/// Unread data of all streams of a connection, and how much more of it the peer may send.
pub(super) struct Inbound {
    streams: HashMap<StreamId, StreamBuffer>,
    /// Streams that the peer opened and that were not accepted.
    opened: VecDeque<StreamId>,
    window: ReceiveWindow,
    /// What unread data of all streams takes, in bytes of memory.
    held: usize,
    /// The most that it was.
    peak_held: usize,
    /// Its number among the connections whose peers are unknown, with what they know to be held.
    unknown: Option<Number>,
    accounted: usize,
}

impl Inbound {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            streams: HashMap::new(),
            opened: VecDeque::new(),
            window: ReceiveWindow::new(now),
            held: 0,
            peak_held: 0,
            unknown: None,
            accounted: 0,
        }
    }

    /// Prepares for what arrives on a stream that was opened here.
    pub(super) fn open(&mut self, id: StreamId) {
        self.streams.insert(id, StreamBuffer::default());
    }

    /// Takes the streams that the peer has opened, and what arrived on them.
    pub(super) fn accept(&mut self, quic: &mut noq_proto::Connection, dir: Dir) {
        while let Some(id) = quic.streams().accept(dir) {
            self.open(id);
            self.opened.push_back(id);
            // Nothing reads it yet: no task is to be woken.
            let _ = self.receive(quic, id);
        }
    }

    /// The next stream that the peer opened.
    pub(super) fn next_opened(&mut self) -> Option<StreamId> {
        self.opened.pop_front()
    }

    /// Takes what arrived on a stream out of the protocol. Returns the task that waits for it.
    #[must_use]
    pub(super) fn receive(
        &mut self,
        quic: &mut noq_proto::Connection,
        id: StreamId,
    ) -> Option<Waker> {
        let stream = self.streams.get_mut(&id)?;
        let (before, held) = (stream.len(), stream.held());
        if let Ok(mut chunks) = quic.recv_stream(id).read(false) {
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => stream.insert(chunk.offset, &chunk.bytes),
                    Ok(None) => break stream.end(End::Finished),
                    Err(ReadError::Reset(code)) => break stream.end(End::Reset(code)),
                    Err(ReadError::Blocked) => break,
                }
            }
            // Reading gives the peer as much more to send; what nobody has read yet takes it back.
            self.window.on_received((stream.len() - before) as u64);
            let _ = chunks.finalize();
        }
        self.held = self.held + stream.held() - held;
        self.peak_held = self.peak_held.max(self.held);
        match stream.is_readable() {
            true => stream.reader.take(),
            false => None,
        }
    }

    /// The unread data of a stream that was neither stopped nor read to its end.
    pub(super) fn stream(&mut self, id: StreamId) -> Option<&mut StreamBuffer> {
        self.streams.get_mut(&id)
    }

    /// Notes that the application read `bytes` bytes, which took `freed` bytes of memory. Returns whether
    /// the peer is to be given more to send.
    pub(super) fn on_read(&mut self, bytes: usize, freed: usize) -> bool {
        self.held -= freed;
        self.window.on_read(bytes as u64);
        self.window.is_due()
    }

    /// Drops a stream that is not read any more. Returns whether there was one.
    pub(super) fn stop(&mut self, id: StreamId) -> bool {
        let stream = self.streams.remove(&id);
        if let Some(stream) = &stream {
            self.held -= stream.held();
            self.window.on_discarded(stream.len() as u64);
        }
        stream.is_some()
    }

    /// Drops what was not read. The connection must have ended.
    pub(super) fn discard(&mut self) {
        for stream in self.streams.values_mut() {
            self.window.on_discarded(stream.len() as u64);
            *stream = StreamBuffer::default();
        }
        self.held = 0;
    }

    /// The tasks that wait for data.
    pub(super) fn readers(&mut self) -> impl Iterator<Item = Waker> {
        let streams = self.streams.values_mut();
        streams.filter_map(|stream| stream.reader.take())
    }

    /// What unread data takes, and the most that it has taken, in bytes of memory.
    pub(super) fn held(&self) -> (usize, usize) {
        (self.held, self.peak_held)
    }

    /// Whether unread data takes more memory than its bytes can account for.
    pub(super) fn is_too_fragmented(&self) -> bool {
        self.held as u64 > self.window.memory()
    }

    /// Lets the receive window grow.
    pub(super) fn expect_data(&mut self, driver: &Driver) {
        self.window.grow(&driver.budget);
    }

    /// How much the peer may send beyond what was read, if that changes.
    pub(super) fn update_window(
        &mut self,
        driver: &Driver,
        round_trip: Duration,
        now: Instant,
    ) -> Option<VarInt> {
        let window = self.window.update(now, round_trip, &driver.budget)?;
        Some(VarInt::try_from(window).unwrap_or(VarInt::MAX))
    }

    /// Counts the connection as number `number` among those whose peers are unknown.
    pub(super) fn count_as_unknown(&mut self, number: Number) {
        self.unknown = Some(number);
    }

    /// The peer is known. Returns the number that the connection had among the others.
    pub(super) fn set_known(&mut self) -> Option<Number> {
        self.unknown.take()
    }

    /// Whether the peer is unknown.
    pub(super) fn is_unknown(&self) -> bool {
        self.unknown.is_some()
    }

    /// Accounts what is held, if the peer is unknown. Returns the connections that give way.
    pub(super) fn account(&mut self, driver: &Driver) -> Vec<Weak<Connection>> {
        match self.unknown {
            Some(number) if self.accounted != self.held => {
                self.accounted = self.held;
                driver.unknown.set_held(number, self.held)
            }
            _ => Vec::new(),
        }
    }

    /// Gives back what it has taken of the sums of the endpoint.
    pub(super) fn release(&mut self, driver: &Driver) {
        self.window.release(&driver.budget);
        if let Some(number) = self.set_known() {
            driver.unknown.remove(number);
        }
    }
}
