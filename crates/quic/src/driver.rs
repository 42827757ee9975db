//! QUIC's protocol at work: packets in, packets out, timers.
//!
//! One thread receives for all connections of an endpoint. It hands a whole receive to the
//! connections that it is for, then lets each of them answer once; where there are processors to
//! spare, more threads share that work, each with connections of its own. A task that writes to a
//! stream sends at once; only what the socket has no room for waits for the receiving thread.
//!
//! A driver is *open*, then *closed* for new connections by [`Driver::close`], which closes the
//! others, and *retired* by [`Driver::retire`], once neither the endpoint nor a connection is used
//! any more. The thread ends when it is retired and its last connection has drained. If the thread
//! cannot receive, or it or a worker panics, the driver is *abandoned*: all connections end at
//! once, and peers are not informed. The thread naps while packets flow; otherwise it waits for
//! packets, the earliest of the [`Timers`], or its [`Parker`].
//!
//! The lock of a connection comes before that of [`Protocol`]; under `Protocol` no connection is
//! locked. Under them come those of the timers, of the connections of unknown peers, of the choice
//! of congestion control, and of what packets are sent with: the lanes, and the paths of the host.
//! `blocked` and the queue of a worker are locked alone. Nothing is awaited under any of them.
//! Packets are sent under the lock of their connection, or under that of `Protocol` where the
//! endpoint itself answers, by calls that do not block. Tasks that wait for a connection are woken
//! after its lock is released; those that wait until all drain are woken under both.

mod address;
mod buffer;
mod clock;
mod connection;
mod parker;
mod task;
mod timers;
mod unknown;
mod window;
pub(crate) mod workers;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;
use std::{fmt, io, mem, ptr};

use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::{Candidate, Flow, FlowId, LaneSender, Lanes};
use noq_proto::{
    ClientConfig, ConnectionEvent, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent,
    Incoming, ServerConfig, Transmit,
};
use tokio::sync::{Notify, mpsc};

use self::address::address_of;
pub(crate) use self::address::flow_at;
pub(crate) use self::connection::{Connection, Lease, StreamFault};
use self::parker::Parker;
pub(crate) use self::task::run;
use self::timers::Timers;
use self::unknown::Shared;
use self::window::Budget;
pub(crate) use self::window::{MAX_WINDOW, MIN_WINDOW};
pub(crate) use self::workers::Workers;

/// The connections of an endpoint whose peers are unknown.
type Unknown = Shared<ScionAddr, Weak<Connection>>;

/// The connections of one endpoint, and what they share.
pub(crate) struct Driver {
    lanes: Lanes,
    protocol: Mutex<Protocol>,
    timers: Timers,
    budget: Budget,
    /// Connections whose peers the application does not know yet.
    unknown: Unknown,
    /// Least that a connection may have sent and not yet acknowledged, in bytes.
    least_send_window: u64,
    /// Connections with packets that the socket had no room for.
    blocked: Mutex<Vec<ConnectionHandle>>,
    /// Where the thread waits.
    parker: Parker,
    /// Notified when the last connection has begun to drain.
    drained: Notify,
}

struct Protocol {
    endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, Member>,
    /// Connections that are not draining.
    active: usize,
    /// No new connections.
    closed: bool,
    /// Nothing uses the endpoint: the task ends with the last connection.
    retired: bool,
    /// Sends what belongs to no connection.
    sender: LaneSender,
}

/// A connection of the endpoint.
struct Member {
    connection: Arc<Connection>,
    is_draining: bool,
}

impl Driver {
    /// The driver of an endpoint that sends over `lanes`.
    pub(crate) fn new(
        lanes: Lanes,
        config: EndpointConfig,
        server: ServerConfig,
        least_send_window: u64,
    ) -> io::Result<Arc<Self>> {
        let sender = lanes.sender();
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), true);
        Ok(Arc::new(Self {
            lanes,
            protocol: Mutex::new(Protocol {
                endpoint,
                connections: HashMap::new(),
                active: 0,
                closed: false,
                retired: false,
                sender,
            }),
            timers: Timers::default(),
            budget: Budget::default(),
            unknown: Unknown::default(),
            least_send_window,
            blocked: Mutex::default(),
            parker: Parker::new()?,
            drained: Notify::new(),
        }))
    }

    /// The lanes it sends over.
    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    fn protocol(&self) -> MutexGuard<'_, Protocol> {
        lock(&self.protocol)
    }

    /// Begins to set up a connection over the flow `flow`; `None` when the endpoint is closed.
    pub(crate) fn connect(
        self: &Arc<Self>,
        config: ClientConfig,
        flow: FlowId,
        server_name: &str,
    ) -> Option<Result<Lease, String>> {
        let now = Instant::now();
        let mut protocol = self.protocol();
        if protocol.closed {
            return None;
        }
        let begun = (protocol.endpoint).connect(now, config, address_of(flow), server_name);
        let (handle, state) = match begun {
            Ok(begun) => begun,
            Err(error) => return Some(Err(error.to_string())),
        };
        let connection = Connection::new(Arc::clone(self), handle, state, flow);
        protocol.add(handle, &connection);
        drop(protocol);
        connection.drive(now);
        Some(Ok(Lease(connection)))
    }

    /// Goes on with a connection that a peer begins over `flow`.
    pub(crate) fn accept(
        self: &Arc<Self>,
        incoming: Incoming,
        flow: &Flow,
        config: ServerConfig,
    ) -> Result<Lease, String> {
        let now = Instant::now();
        let mut protocol = self.protocol();
        let mut response = Vec::new();
        let config = Some(Arc::new(config));
        match (protocol.endpoint).accept(incoming, now, &mut response, config) {
            Ok((handle, state)) => {
                let connection = Connection::new(Arc::clone(self), handle, state, flow.id);
                protocol.add(handle, &connection);
                drop(protocol);
                connection.drive(now);
                connection.count_as_unknown(flow.remote, now);
                Ok(Lease(connection))
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    protocol.respond(&self.lanes, &transmit, &response, None);
                }
                Err(error.cause.to_string())
            }
        }
    }

    /// Turns away a connection that a peer begins.
    pub(crate) fn refuse(&self, incoming: Incoming) {
        let (mut protocol, mut response) = (self.protocol(), Vec::new());
        let transmit = protocol.endpoint.refuse(incoming, &mut response);
        protocol.respond(&self.lanes, &transmit, &response, None);
    }

    /// Lets a peer that begins a connection validate its address first.
    pub(crate) fn retry(&self, incoming: Incoming) {
        let (mut protocol, mut response) = (self.protocol(), Vec::new());
        // It fails only where no retry is allowed.
        match protocol.endpoint.retry(incoming, &mut response) {
            Ok(transmit) => protocol.respond(&self.lanes, &transmit, &response, None),
            Err(error) => protocol.endpoint.ignore(error.into_incoming()),
        }
    }

    /// Forgets a connection that a peer begins; the peer tries again.
    pub(crate) fn ignore(&self, incoming: Incoming) {
        self.protocol().endpoint.ignore(incoming);
    }

    /// Closes all connections, and allows no new ones.
    pub(crate) fn close(&self, code: u32, reason: &str) {
        let mut protocol = self.protocol();
        protocol.closed = true;
        let members = protocol.connections.values();
        let connections: Vec<_> = members.map(|one| Arc::clone(&one.connection)).collect();
        drop(protocol);
        for connection in connections {
            connection.close(code, reason);
        }
        self.wake();
    }

    /// Ends all connections without informing their peers, and allows no new ones: nothing is received
    /// any more, and no timer expires.
    pub(crate) fn abandon(&self, reason: &str) {
        let mut protocol = self.protocol();
        protocol.closed = true;
        protocol.active = 0;
        let connections: Vec<_> = protocol.connections.drain().collect();
        drop(protocol);
        for (_, member) in connections {
            member.connection.abandon(reason);
        }
        self.drained.notify_waiters();
        self.wake();
    }

    /// Waits until the peers of all connections are informed of the end.
    pub(crate) async fn wait_draining(&self) {
        loop {
            let drained = self.drained.notified();
            if self.protocol().active == 0 {
                return;
            }
            drained.await;
        }
    }

    /// Lets the task end with the last connection: nothing uses the endpoint any more.
    pub(crate) fn retire(&self) {
        self.protocol().retired = true;
        self.wake();
    }

    /// Lets the thread look again at what there is to do.
    fn wake(&self) {
        self.parker.unpark();
    }

    /// What a connection has to tell the endpoint. Called with the connection locked.
    fn on_event(&self, handle: ConnectionHandle, event: EndpointEvent) -> Option<ConnectionEvent> {
        let mut protocol = self.protocol();
        let gone = event.is_drained();
        if (event.is_draining() || gone) && protocol.drain(handle) {
            self.drained.notify_waiters();
        }
        let answer = protocol.endpoint.handle_event(handle, event);
        if gone {
            protocol.connections.remove(&handle);
            if protocol.has_ended() {
                drop(protocol);
                self.wake();
            }
        }
        answer
    }

    /// Forgets a connection that is not worked any more.
    fn forget(&self, connection: &Connection) {
        // Its number may be another one's by now.
        let protocol = self.protocol();
        let member = protocol.connections.get(&connection.handle());
        let is_member = member.is_some_and(|one| ptr::eq(&*one.connection, connection));
        drop(protocol);
        if is_member {
            self.on_event(connection.handle(), EndpointEvent::drained());
        }
    }

    /// Notes that the socket had no room for packets of a connection.
    fn on_blocked(&self, handle: ConnectionHandle) {
        lock(&self.blocked).push(handle);
        self.wake();
    }
}

impl Protocol {
    fn add(&mut self, handle: ConnectionHandle, connection: &Arc<Connection>) {
        let member = Member {
            connection: Arc::clone(connection),
            is_draining: false,
        };
        self.connections.insert(handle, member);
        self.active += 1;
    }

    fn connection(&self, handle: ConnectionHandle) -> Option<Arc<Connection>> {
        let member = self.connections.get(&handle)?;
        Some(Arc::clone(&member.connection))
    }

    /// Notes that a connection drains. Returns whether it is the last one that did not.
    fn drain(&mut self, handle: ConnectionHandle) -> bool {
        let member = self.connections.get_mut(&handle);
        if member.is_none_or(|member| mem::replace(&mut member.is_draining, true)) {
            return false;
        }
        self.active -= 1;
        self.active == 0
    }

    /// Whether the thread has nothing to do any more.
    fn has_ended(&self) -> bool {
        self.retired && self.connections.is_empty()
    }

    /// Sends what the endpoint itself answers to a packet, whose path is `candidate` if that may
    /// replace its flow's. It is lost when the socket has no room.
    fn respond(
        &mut self,
        lanes: &Lanes,
        transmit: &Transmit,
        bytes: &[u8],
        candidate: Option<&Candidate>,
    ) {
        let flow = flow_at(transmit.destination).and_then(|flow| lanes.answer(flow, candidate));
        if let Some(flow) = flow {
            let _ = self
                .sender
                .try_send(&flow, &bytes[..transmit.size], transmit.size, 0);
        }
    }
}

/// Locks `mutex`. A connection that a panic leaves half way is abandoned; nothing else that is locked
/// here can be left so.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lanes.fmt(f)
    }
}

/// A packet for a connection.
struct Received {
    event: ConnectionEvent,
    candidate: Option<Arc<Candidate>>,
}

/// A connection that a peer begins.
pub(crate) struct Begun {
    pub(crate) incoming: Incoming,
    /// The path of its first packet, if that may replace its flow's.
    pub(crate) candidate: Option<Arc<Candidate>>,
}

/// Where connections that peers begin are put.
pub(crate) type BegunSender = mpsc::Sender<Begun>;
