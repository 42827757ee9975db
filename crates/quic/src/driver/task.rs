//! The thread that receives for all connections of an endpoint.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{io, iter, mem, thread};

use bytes::BytesMut;
use hawser_endhost::lanes::{Candidate, LaneReceiver};
use hawser_kernel::pace::{NAP, Pace};
use noq_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, FourTuple, Transmit};
use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::mpsc::error::TrySendError;

use super::connection::Connection;
use super::workers::Workers;
use super::{Begun, BegunSender, Driver, Received, address_of, lock};

/// Receives before connections may answer. More would only fill the caches.
const ROUNDS: usize = 4;
/// Payloads are copied into blocks of this size, in bytes.
const BLOCK: usize = 64 << 10;

struct Task {
    driver: Arc<Driver>,
    receiver: LaneReceiver,
    workers: Workers,
    /// `None` once the endpoint is closed.
    incoming: Option<BegunSender>,
    /// Where payloads are copied to, many to one allocation.
    block: BytesMut,
    /// What was received for connections, in order.
    received: Vec<(ConnectionHandle, Received)>,
    response: Vec<u8>,
}

/// What ends the thread's wait: other threads write to it.
pub(super) fn waker() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Receives until nothing uses the endpoint any more. Connections that peers begin go to `incoming`.
/// The threads of `workers` help to take packets in.
pub(crate) fn run(
    driver: Arc<Driver>,
    receiver: LaneReceiver,
    workers: Workers,
    incoming: BegunSender,
) {
    // Naps are shorter than what the kernel adds to sleep unless told otherwise (50 us).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
    let mut task = Task {
        driver,
        receiver,
        workers,
        incoming: Some(incoming),
        block: BytesMut::new(),
        received: Vec::new(),
        response: Vec::new(),
    };
    if let Err(error) = task.run() {
        tracing::error!(%error, "cannot receive");
        task.driver
            .abandon(&format!("this host cannot receive: {error}"));
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if thread::panicking() {
            self.driver.abandon("the thread of the endpoint panicked");
        }
    }
}

impl Task {
    fn run(&mut self) -> io::Result<()> {
        let mut pace = Pace::default();
        let mut waited = Duration::MAX;
        loop {
            let packets = self.receive()?;
            let blocked = mem::take(&mut *lock(&self.driver.blocked));
            for handle in blocked {
                self.with(handle, |connection, now| connection.fire(None, now));
            }
            while let Some((deadline, handle)) = self.driver.timers.pop(Instant::now()) {
                self.with(handle, |connection, now| {
                    connection.fire(Some(deadline), now)
                });
            }
            let protocol = self.driver.protocol();
            if protocol.closed {
                self.incoming = None;
            }
            if protocol.retired && protocol.connections.is_empty() {
                return Ok(());
            }
            drop(protocol);
            pace.note(packets, waited);
            let began = Instant::now();
            self.rest(pace.naps(), began)?;
            waited = began.elapsed();
        }
    }

    /// Naps while packets flow; waits where none do.
    fn rest(&self, naps: bool, now: Instant) -> io::Result<()> {
        let until = |deadline: Instant| deadline.saturating_duration_since(now);
        if naps {
            let time = self.driver.timers.next().map_or(NAP, until).min(NAP);
            thread::sleep(time);
            return Ok(());
        }
        self.driver.waiting.store(true, Ordering::SeqCst);
        // What was noted before is not announced by the waker.
        let blocked = !lock(&self.driver.blocked).is_empty();
        let timeout = self.driver.timers.next().map(until);
        let socket = self.driver.lanes.socket();
        let waited = socket.wait(self.driver.waker.as_fd(), blocked, timeout);
        self.driver.waiting.store(false, Ordering::SeqCst);
        let mut count = [0; 8];
        // Nothing to read when something else ended the wait.
        let _ = rustix::io::read(&self.driver.waker, &mut count);
        waited
    }

    fn with(&self, handle: ConnectionHandle, act: impl FnOnce(&Connection, Instant)) {
        let connection = self.driver.protocol().connections.get(&handle).cloned();
        if let Some(connection) = connection {
            act(&connection, Instant::now());
        }
    }

    /// Hands what has arrived to the connections that it is for. Returns how many packets.
    fn receive(&mut self) -> io::Result<usize> {
        for _ in 0..ROUNDS {
            match self.receiver.try_receive() {
                Ok(()) => self.sort(Instant::now()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let packets = self.received.len();
        // Stable: packets of one connection stay in order.
        self.received.sort_by_key(|(handle, _)| *handle);
        let mut received = self.received.drain(..).peekable();
        while let Some((handle, first)) = received.next() {
            let connection = self.driver.protocol().connections.get(&handle).cloned();
            let rest = iter::from_fn(|| received.next_if(|(next, _)| *next == handle));
            let packets = iter::once(first).chain(rest.map(|(_, packet)| packet));
            match connection {
                Some(connection) => self.workers.receive(handle, connection, packets),
                None => packets.for_each(drop),
            }
        }
        Ok(packets)
    }

    /// Finds out which connections the packets of one receive are for.
    fn sort(&mut self, now: Instant) {
        let mut responses: Vec<(Transmit, Vec<u8>, Option<Arc<Candidate>>)> = Vec::new();
        let mut protocol = self.driver.protocol();
        for datagram in self.receiver.batch() {
            if self.block.capacity() < datagram.payload.len() {
                self.block.reserve(BLOCK.max(datagram.payload.len()));
            }
            self.block.extend_from_slice(datagram.payload);
            let data = self.block.split();
            let path = FourTuple::from_remote(address_of(datagram.flow));
            let ecn = EcnCodepoint::from_bits(datagram.ecn);
            let candidate = datagram.candidate;
            let event = (protocol.endpoint).handle(now, path, ecn, data, &mut self.response);
            match event {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    self.received.push((handle, Received { event, candidate }));
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let begun = Begun {
                        incoming,
                        candidate,
                    };
                    let refused = match &self.incoming {
                        Some(queue) => queue.try_send(begun).err().map(|error| match error {
                            TrySendError::Full(one) | TrySendError::Closed(one) => one,
                        }),
                        None => Some(begun),
                    };
                    // While there is an endpoint the peer may try again.
                    if let Some(begun) = refused {
                        protocol.endpoint.ignore(begun.incoming);
                    }
                }
                Some(DatagramEvent::Response(transmit)) => {
                    responses.push((transmit, mem::take(&mut self.response), candidate));
                }
                None => {}
            }
            self.response.clear();
        }
        for (transmit, bytes, candidate) in responses {
            protocol.respond(&self.driver.lanes, &transmit, &bytes, candidate.as_deref());
        }
    }
}
