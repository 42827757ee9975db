//! The thread that receives for all connections of an endpoint.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, iter, mem, thread};

use bytes::BytesMut;
use hawser_endhost::lanes::{Candidate, LaneReceiver};
use hawser_kernel::pace::{BusyPoll, NAP, Pace, Spin};
use noq_proto::{ConnectionHandle, DatagramEvent, EcnCodepoint, FourTuple, Transmit};
use tokio::sync::mpsc::error::TrySendError;

use super::connection::Connection;
use super::workers::Workers;
use super::{Begun, BegunSender, Driver, Received, address_of, lock};

/// Receives before connections may answer. More would only fill the caches.
const MAX_RECEIVES: usize = 4;
/// Payloads are copied into blocks of this size, in bytes. A whole block is kept for what the protocol
/// keeps of one of them; stream data is copied out at once, so that is little.
const BLOCK: usize = 16 << 10;
/// The bit of the first byte that long headers have (RFC 9000, 17.2).
const LONG_HEADER: u8 = 0x80;

struct Task {
    driver: Arc<Driver>,
    receiver: LaneReceiver,
    workers: Workers,
    /// `None` once the endpoint is closed.
    incoming: Option<BegunSender>,
    blocks: Blocks,
    /// What was received for connections, in order.
    received: Vec<(ConnectionHandle, Received)>,
    response: Vec<u8>,
    spin: Spin,
}

/// Where payloads are copied to, many to one allocation.
#[derive(Default)]
struct Blocks(BytesMut);

impl Blocks {
    fn copy(&mut self, payload: &[u8]) -> BytesMut {
        let Self(block) = self;
        // What sets connections up may be kept for long, and comes from anybody.
        if payload
            .first()
            .is_some_and(|first| first & LONG_HEADER != 0)
        {
            return BytesMut::from(payload);
        }
        if block.capacity() < payload.len() {
            block.reserve(BLOCK.max(payload.len()));
        }
        block.extend_from_slice(payload);
        block.split()
    }
}

/// Receives until nothing uses the endpoint any more. Connections that peers begin go to `incoming`.
/// The threads of `workers` help to take packets in. After traffic it looks for more for as long as
/// `busy_poll` says before it waits.
pub(crate) fn run(
    driver: Arc<Driver>,
    receiver: LaneReceiver,
    workers: Workers,
    incoming: BegunSender,
    busy_poll: BusyPoll,
) {
    // Naps are shorter than what the kernel adds to sleep unless told otherwise (50 us).
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1000));
    let mut task = Task {
        driver,
        receiver,
        workers,
        incoming: Some(incoming),
        blocks: Blocks::default(),
        received: Vec::new(),
        response: Vec::new(),
        spin: Spin::new(busy_poll),
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
        // Since when it looks again and again.
        let mut spins_since = None;
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
            if protocol.has_ended() {
                return Ok(());
            }
            drop(protocol);
            let now = Instant::now();
            if packets > 0 {
                self.spin.note(now);
                spins_since = None;
                pace.note(packets, waited);
            } else if spins_since.is_none() {
                pace.note(0, waited);
            }
            if !pace.naps() && self.spin.spins(now) {
                thread::yield_now();
                waited = spins_since.get_or_insert(now).elapsed();
                continue;
            }
            spins_since = None;
            self.rest(pace.naps(), now)?;
            waited = now.elapsed();
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
        let look = || {
            let protocol = self.driver.protocol();
            let news = (protocol.closed && self.incoming.is_some()) || protocol.has_ended();
            drop(protocol);
            let blocked = !lock(&self.driver.blocked).is_empty();
            let timeout = self.driver.timers.await_next(now).map(until);
            (!news).then_some((blocked, timeout))
        };
        let socket = self.driver.lanes.socket();
        (self.driver.parker).park(look, |(blocked, timeout), unparked| {
            socket.wait(unparked, blocked, timeout)
        })
    }

    fn with(&self, handle: ConnectionHandle, act: impl FnOnce(&Connection, Instant)) {
        let connection = self.driver.protocol().connection(handle);
        if let Some(connection) = connection {
            act(&connection, Instant::now());
        }
    }

    /// Hands what has arrived to the connections that it is for. Returns how many packets.
    fn receive(&mut self) -> io::Result<usize> {
        for _ in 0..MAX_RECEIVES {
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
            let connection = self.driver.protocol().connection(handle);
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
            let data = self.blocks.copy(datagram.payload);
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

#[cfg(test)]
mod tests {
    use hawser_endhost::lanes::Lanes;
    use hawser_endhost::socket::Socket;
    use hawser_keys::Identity;
    use noq_proto::EndpointConfig;
    use tokio::sync::mpsc;

    use super::*;
    use crate::congestion::Factory;
    use crate::connection_id;
    use crate::endpoint::accept::server_config;
    use crate::endpoint::toy::{ToyDaemon, isd_as, own_ip};
    use crate::reset::reset_key;
    use crate::tls::Tls;
    use crate::transport::{Config, MIN_MTU, Mtu};

    /// Longest wait for what must happen, far longer than it takes.
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    async fn task() -> Task {
        let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
        let host = daemon.endhost().await;
        let socket = Socket::bind(&host, Some((own_ip(7), 0).into())).unwrap();
        let (identity, config) = (Identity::generate().unwrap(), Config::default());
        let tls = Tls::new(&identity, &config.alpn).unwrap();
        let key = reset_key(&identity, &socket.local_addr());
        let server = server_config(&tls, &config, Mtu::UpTo(MIN_MTU), Factory::default());
        let (lanes, receiver) = Lanes::new(socket, connection_id::FORMAT);
        let quic = EndpointConfig::new(Arc::new(key));
        let driver = Driver::new(lanes, quic, server, config.least_send_window).unwrap();
        Task {
            driver,
            receiver,
            workers: Workers::default(),
            incoming: Some(mpsc::channel(1).0),
            blocks: Blocks::default(),
            received: Vec::new(),
            response: Vec::new(),
            spin: Spin::new(BusyPoll::default()),
        }
    }

    /// `change` is made after the thread has looked and before it waits: the other thread saw no need
    /// to wake it.
    async fn ends_the_wait(change: impl FnOnce(&Driver)) {
        let task = task().await;
        change(&task.driver);
        let waiting = tokio::task::spawn_blocking(move || task.rest(false, Instant::now()));
        let waited = tokio::time::timeout(TEST_TIMEOUT, waiting).await;
        waited.expect("the thread looks again").unwrap().unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn closing_is_noticed_at_any_time() {
        ends_the_wait(|driver| driver.close(0, "")).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn retiring_is_noticed_at_any_time() {
        ends_the_wait(Driver::retire).await;
    }
}
