//! The task that receives for all connections of an endpoint.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;
use std::{io, mem};

use bytes::BytesMut;
use hawser_endhost::lanes::LaneReceiver;
use noq_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, FourTuple, Transmit,
};
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Sleep, sleep_until};

use super::{Driver, IncomingSender, address_of};

/// Rounds of work before other tasks get their turn.
const ROUNDS: usize = 16;
/// Payloads are copied into blocks of this size, in bytes.
const BLOCK: usize = 64 << 10;

struct Task {
    driver: Arc<Driver>,
    receiver: LaneReceiver,
    /// `None` once the endpoint is closed.
    incoming: Option<IncomingSender>,
    /// Where payloads are copied to, many to one allocation.
    block: BytesMut,
    /// What was received for connections, in order.
    received: Vec<(ConnectionHandle, ConnectionEvent)>,
    response: Vec<u8>,
    writable: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
    sleep: Pin<Box<Sleep>>,
    /// Until when `sleep` sleeps.
    until: Option<Instant>,
}

/// Receives until nothing uses the endpoint any more. Connections that peers begin go to `incoming`.
pub(crate) async fn run(driver: Arc<Driver>, receiver: LaneReceiver, incoming: IncomingSender) {
    let mut task = Task {
        driver,
        receiver,
        incoming: Some(incoming),
        block: BytesMut::new(),
        received: Vec::new(),
        response: Vec::new(),
        writable: None,
        sleep: Box::pin(sleep_until(tokio::time::Instant::now())),
        until: None,
    };
    poll_fn(|cx| task.poll(cx)).await;
}

impl Task {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waker = (self.driver.task.lock()).unwrap_or_else(PoisonError::into_inner);
        *waker = Some(cx.waker().clone());
        drop(waker);
        for _ in 0..ROUNDS {
            let received = match self.receiver.poll_receive(cx) {
                Poll::Ready(Ok(())) => {
                    self.receive(Instant::now());
                    true
                }
                Poll::Ready(Err(error)) => {
                    // Every connection finds out by itself, when nothing arrives.
                    tracing::warn!(%error, "cannot receive");
                    return Poll::Ready(());
                }
                Poll::Pending => false,
            };
            let progress = received | self.send_blocked(cx) | self.fire();
            let protocol = self.driver.protocol();
            if protocol.closed {
                self.incoming = None;
            }
            if protocol.retired && protocol.connections.is_empty() {
                return Poll::Ready(());
            }
            drop(protocol);
            if !progress && self.poll_sleep(cx).is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Hands what was received to the connections that it is for.
    fn receive(&mut self, now: Instant) {
        let mut responses: Vec<(Transmit, Vec<u8>)> = Vec::new();
        let mut protocol = self.driver.protocol();
        for datagram in self.receiver.batch() {
            if self.block.capacity() < datagram.payload.len() {
                self.block.reserve(BLOCK.max(datagram.payload.len()));
            }
            self.block.extend_from_slice(datagram.payload);
            let data = self.block.split();
            let path = FourTuple::from_remote(address_of(datagram.flow));
            let ecn = EcnCodepoint::from_bits(datagram.ecn);
            let event = (protocol.endpoint).handle(now, path, ecn, data, &mut self.response);
            match event {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    self.received.push((handle, event));
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let refused = match &self.incoming {
                        Some(queue) => queue.try_send(incoming).err().map(|error| match error {
                            TrySendError::Full(one) | TrySendError::Closed(one) => one,
                        }),
                        None => Some(incoming),
                    };
                    // While there is an endpoint the peer may try again.
                    if let Some(incoming) = refused {
                        protocol.endpoint.ignore(incoming);
                    }
                }
                Some(DatagramEvent::Response(transmit)) => {
                    responses.push((transmit, mem::take(&mut self.response)));
                }
                None => {}
            }
            self.response.clear();
        }
        for (transmit, bytes) in responses {
            protocol.respond(&self.driver.lanes, &transmit, &bytes);
        }
        drop(protocol);
        // Stable: packets of one connection stay in order.
        self.received.sort_by_key(|(handle, _)| *handle);
        let mut received = self.received.drain(..).peekable();
        while let Some((handle, first)) = received.next() {
            let mut events = vec![first];
            while let Some((_, event)) = received.next_if(|(next, _)| *next == handle) {
                events.push(event);
            }
            let connection = self.driver.protocol().connections.get(&handle).cloned();
            if let Some(connection) = connection {
                connection.receive(events, now);
            }
        }
    }

    /// Lets connections send what the socket had no room for, if it has now.
    fn send_blocked(&mut self, cx: &mut Context<'_>) -> bool {
        let mut blocked = (self.driver.blocked.lock()).unwrap_or_else(PoisonError::into_inner);
        if blocked.is_empty() {
            return false;
        }
        let writable = self.writable.get_or_insert_with(|| {
            let driver = Arc::clone(&self.driver);
            Box::pin(async move { driver.lanes.socket().writable().await })
        });
        if writable.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.writable = None;
        let blocked = mem::take(&mut *blocked);
        self.drive(blocked, Instant::now());
        true
    }

    /// Lets connections act whose time has come.
    fn fire(&mut self) -> bool {
        let now = Instant::now();
        let mut fired = false;
        while let Some((deadline, handle)) = self.driver.timers.pop(now) {
            let connection = self.driver.protocol().connections.get(&handle).cloned();
            if let Some(connection) = connection {
                connection.fire(deadline, now);
            }
            fired = true;
        }
        fired
    }

    fn drive(&self, handles: Vec<ConnectionHandle>, now: Instant) {
        for handle in handles {
            let connection = self.driver.protocol().connections.get(&handle).cloned();
            if let Some(connection) = connection {
                connection.drive(now);
            }
        }
    }

    /// Sleeps until the next deadline; ready when it has come.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(next) = self.driver.timers.next() else {
            return Poll::Pending;
        };
        if self.until != Some(next) {
            self.sleep.as_mut().reset(next.into());
            self.until = Some(next);
        }
        self.sleep.as_mut().poll(cx)
    }
}
