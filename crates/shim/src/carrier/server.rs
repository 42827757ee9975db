//! Sessions that other hosts open, for this one's servers.

mod revoked;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hawser_endhost::patience::wait;
use hawser_endhost::{ScionAddr, on_plain_ip};
use hawser_keys::{PeerKey, Revocations};
use hawser_quic::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use self::revoked::Followed;
use super::control::Control;
use super::lane::{LaneEvent, LaneKey, SealedLane};
use super::node::{Node, Side};
use super::report::{self, Failovers, Lost, PathReport, SessionReport};
use super::streams::{self, Accepted, Connections};
use super::table::SlotTable;
use super::underlay::{PlainIp, Underlay};
use super::{Channel, INBOX, Inbox};
use crate::address::Block;
use crate::choice::CarrierSet;
use crate::link::{Role, ToHolder};
use crate::protocol::{Message, Open, RefusalCode, Status};
use crate::session::Published;

/// Longest wait for the first message of a connection, without the time in which this process did not
/// run.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most sessions at once.
const SESSIONS: usize = 1024;
/// How long a session without a lane is kept: its peer may find another path, or be started again.
const KEPT: Duration = Duration::from_secs(600);
/// Connections at once whose first message has not come; further ones wait in the endpoint, which bounds
/// them.
const GREETING: usize = 1024;
/// Interval at which sessions without a lane are removed.
const TICK: Duration = Duration::from_secs(1);

/// A session, as its peer names it.
type Name = (PeerKey, u64);

/// A connection whose first message is right.
struct Greeted {
    control: Control,
    underlay: Underlay,
    open: Open,
}

/// All sessions that other hosts open.
pub(crate) struct Server {
    node: Node,
    sessions: HashMap<Name, Session>,
    lanes: HashMap<LaneKey, Name>,
    received: Inbox,
    /// A lane has at most one event of each kind on its way here.
    events: Channel<(LaneKey, LaneEvent)>,
    revocations: Revocations<PeerKey>,
}

struct Session {
    peer: ScionAddr,
    table: Arc<SlotTable>,
    lanes: BTreeMap<LaneKey, Arc<SealedLane>>,
    published: Published,
    failovers: Failovers,
    lost: Lost,
    /// The streams that the peer opens, and those of them that are connections.
    accepted: Arc<Accepted>,
    connections: Connections,
    /// What the peer has its connections carried by.
    carriers: CarrierSet,
    /// When the last lane ended.
    alone_since: Option<tokio::time::Instant>,
}

impl Server {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            node,
            sessions: HashMap::new(),
            lanes: HashMap::new(),
            received: mpsc::channel(INBOX),
            events: mpsc::unbounded_channel(),
            revocations: Revocations::default(),
        }
    }

    /// Serves until an endpoint is closed, that of SCION or that of plain IP.
    pub(crate) async fn run(
        mut self,
        mut reports: mpsc::UnboundedReceiver<oneshot::Sender<Vec<SessionReport>>>,
    ) {
        let mut greeting: JoinSet<Greeting> = JoinSet::new();
        let mut tick = tokio::time::interval(TICK);
        let mut allowed = Followed::new(self.node.allowed().cloned());
        let node = self.node.clone();
        let scion = node.scion();
        let plain_ip = node.plain_ip().and_then(PlainIp::served);
        loop {
            tokio::select! {
                connection = scion.quic.accept(), if greeting.len() < GREETING => match connection {
                    Some(connection) => {
                        greeting.spawn(greet(node.clone(), connection, scion.clone()));
                    }
                    None => return,
                },
                accepted = accept(plain_ip), if greeting.len() < GREETING => match accepted {
                    Some((connection, underlay)) => {
                        greeting.spawn(greet(node.clone(), connection, underlay));
                    }
                    None => return,
                },
                Some(greeted) = greeting.join_next() => {
                    match greeted {
                        Ok(Greeting::Opens(greeted)) => self.join(*greeted),
                        Ok(Greeting::NotAllowed(control)) => {
                            let refusal = self.refuse_key(&control);
                            // Strangers' connections are bounded as long as they are kept.
                            greeting.spawn(async move {
                                refuse(control, refusal).await;
                                Greeting::Refused
                            });
                        }
                        // A panic of a task was reported.
                        Ok(Greeting::Refused) | Err(_) => {}
                    }
                }
                Some((lane, message)) = self.received.1.recv() => self.on_message(lane, message),
                Some((lane, event)) = self.events.1.recv() => {
                    // What the peer sent before a lane ended tells why.
                    for _ in 0..self.received.1.len() {
                        if let Ok((lane, message)) = self.received.1.try_recv() {
                            self.on_message(lane, message);
                        }
                    }
                    self.on_event(lane, event);
                }
                Some(answer) = reports.recv() => {
                    let _ = answer.send(self.sessions.iter().map(Session::report).collect());
                }
                _ = tick.tick() => self.forget(),
                still = allowed.next(), if !self.sessions.is_empty() => self.revoke(&still),
            }
        }
    }

    /// Takes a connection into its session.
    fn join(&mut self, greeted: Greeted) {
        let Greeted {
            control,
            underlay,
            open,
        } = greeted;
        let connection = control.connection.clone();
        let (mut remote, name) = (connection.peer(), (connection.peer_key(), open.tag));
        remote.host.set_port(open.port);
        let refusal = |code, text: &str| Message::Refuse {
            code,
            text: text.to_owned(),
        };
        let keys = self
            .node
            .cipher(open.cipher)
            .map(|cipher| self.node.lane_keys(&connection, Side::Server, Some(cipher)));
        let carriers = self.node.carriers();
        let refusal = match &keys {
            _ if open.carriers.intersection(carriers).is_empty() => Some(refusal(
                RefusalCode::CARRIER,
                "its shim carries no connections by MPTCP: use --carrier quic",
            )),
            None => Some(refusal(
                RefusalCode::PROTOCOL,
                "the cipher is not accepted here",
            )),
            Some(_) if !self.sessions.contains_key(&name) && self.sessions.len() >= SESSIONS => {
                Some(refusal(
                    RefusalCode::TOO_MANY,
                    "there are too many sessions",
                ))
            }
            Some(_) => None,
        };
        let keys = match (refusal, keys) {
            (None, Some(Ok(keys))) => keys,
            (Some(refusal), _) => {
                tokio::spawn(refuse(control, refusal));
                return;
            }
            // The connection has ended.
            _ => return,
        };
        let plane = self.node.plane();
        let session = self.sessions.entry(name).or_insert_with(|| Session {
            peer: connection.peer(),
            table: plane.session(Block::of(&name.0, name.1), Role::Server),
            lanes: BTreeMap::new(),
            published: Published::default(),
            failovers: Failovers::default(),
            lost: Lost::default(),
            accepted: Arc::default(),
            connections: Connections::default(),
            carriers: open.carriers.intersection(carriers),
            alone_since: None,
        });
        session.alone_since = None;
        if on_plain_ip(session.peer).is_some() {
            session.peer = connection.peer();
        }
        // The lane bounds it.
        let (messages, outgoing) = mpsc::unbounded_channel();
        let (table, events) = (Arc::clone(&session.table), self.events.0.clone());
        let lane = plane.add(
            underlay.lanes().sender(),
            keys,
            remote,
            table,
            messages,
            events,
        );
        lane.set_rtt(connection.stats().rtt);
        let port = underlay.port();
        lane.send(Message::Accept { port, carriers });
        if let Some(address) = self.node.plain_ip().and_then(PlainIp::announced) {
            lane.send(Message::Announce { address });
        }
        // Until datagrams get through, the slot is carried by the connection.
        let bound = open.bound();
        session.table.learn(bound, &lane);
        let opened = {
            let (node, connections) = (self.node.clone(), session.connections.clone());
            let from = session.peer.to_string();
            move || accept_streams(from.clone(), connections.clone(), node.clone())
        };
        let accepted = Arc::clone(&session.accepted);
        tokio::spawn(streams::accept_path(
            accepted,
            Arc::clone(&lane),
            connection,
            opened,
        ));
        tokio::spawn(control.run(Arc::clone(&lane), outgoing, self.received.0.clone()));
        self.lanes.insert(lane.key, name);
        session.lanes.insert(lane.key, lane);
        session.publish(&self.node);
    }

    fn on_message(&mut self, key: LaneKey, message: Message) {
        let Some(session) = self
            .lanes
            .get(&key)
            .and_then(|name| self.sessions.get(name))
        else {
            return;
        };
        match message {
            Message::Segment { bound, segment } => {
                if let Some(lane) = session.lanes.get(&key) {
                    session.table.learn(bound, lane);
                }
                self.node.plane().inject(&session.table, bound, &segment);
            }
            Message::Packet { packet } => {
                self.node.plane().receive_packet(&session.table, &packet);
            }
            Message::Down { slot, epoch } => {
                let binding = session.table.binding(slot).filter(|one| one.epoch == epoch);
                if let Some(binding) = binding {
                    self.leave(binding.lane.key, "the other side receives nothing over it");
                }
            }
            Message::Bye => self.end(key),
            _ => self.leave(key, "it breaks the protocol"),
        }
    }

    fn on_event(&mut self, key: LaneKey, event: LaneEvent) {
        match event {
            LaneEvent::Failed(error) => self.leave(key, &error),
            // The side that dials finds other paths, and opens streams.
            LaneEvent::Stalled | LaneEvent::Recovered => {
                let name = self.lanes.get(&key);
                let session = name.and_then(|name| self.sessions.get(name));
                if let Some(instance) = session.and_then(|session| session.accepted.current()) {
                    match event {
                        LaneEvent::Stalled => instance.streams.suspend_path(key.0),
                        _ => instance.streams.resume_path(key.0),
                    }
                }
            }
            LaneEvent::StreamsLost(_) => {}
            LaneEvent::Up | LaneEvent::Bound => {
                let name = self.lanes.get(&key);
                if let Some(session) = name.and_then(|name| self.sessions.get_mut(name)) {
                    if let Some(lane) = session.lanes.get(&key) {
                        // Before it is looked at which slots it has.
                        lane.on_bound_handled();
                        self.node.report_mtu(lane);
                    }
                    session.publish(&self.node);
                }
            }
        }
    }

    /// Removes a lane that has failed, and informs its peer over the other lanes.
    fn leave(&mut self, key: LaneKey, reason: &str) {
        let Some(name) = self.lanes.remove(&key) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&name) else {
            return;
        };
        let Some(lane) = session.lanes.remove(&key) else {
            return;
        };
        tracing::debug!(peer = %session.peer, reason, "a path failed");
        session.failovers.record(&lane, None, reason);
        let streams = session.accepted.current();
        let sent = streams.map_or(0, |instance| instance.streams.sent_over(key.0));
        session.lost.add(PathReport::of(&lane, None, sent));
        for (slot, epoch) in self.node.plane().remove(&lane) {
            for other in session.lanes.values() {
                other.send(Message::Down { slot, epoch });
            }
        }
        if session.lanes.is_empty() {
            session.alone_since = Some(tokio::time::Instant::now());
        }
        session.publish(&self.node);
    }

    /// Removes the session of a lane, as the other side has ended it.
    fn end(&mut self, key: LaneKey) {
        let name = self.lanes.get(&key);
        let Some((name, session)) = name.and_then(|name| self.sessions.remove_entry(name)) else {
            return;
        };
        self.lanes.retain(|_, of| *of != name);
        session.end(&self.node, "the other host has ended it", None);
    }

    /// Removes sessions without a lane.
    fn forget(&mut self) {
        let node = &self.node;
        self.sessions.retain(|_, session| {
            let alone = session.alone_since;
            let is_kept = alone.is_none_or(|since| since.elapsed() < KEPT);
            if !is_kept {
                session.end(node, "the other host has gone", None);
            }
            is_kept
        });
    }
}

impl Session {
    /// Ends its connections, streams and lanes; with a `refusal`, which the other host gets, at once,
    /// though there is still something to be delivered here.
    fn end(&self, node: &Node, reason: &str, refusal: Option<&Message>) {
        match refusal {
            None => self.accepted.leave(),
            Some(_) => {
                if let Some(instance) = self.accepted.current() {
                    instance.streams.end(Status::Untrusted);
                    instance.end();
                }
            }
        }
        let plane = node.plane();
        for lane in self.lanes.values() {
            refusal
                .into_iter()
                .for_each(|refusal| lane.close_with(refusal.clone()));
            plane.remove(lane);
        }
        plane.remove_session(&self.table);
        node.tell(ToHolder::Ended {
            peer: self.table.peer.address(0),
            role: Role::Server,
            reason: reason.to_owned(),
            at_once: refusal.is_some(),
        });
    }

    /// Has the holder use the slots that are live.
    fn publish(&mut self, node: &Node) {
        if let Some(live) = self.published.update(self.table.live()) {
            node.tell(ToHolder::Slots {
                peer: self.table.peer.address(0),
                role: Role::Server,
                live,
                name: report::peer(self.peer),
            });
        }
    }

    fn report((name, session): (&Name, &Self)) -> SessionReport {
        let lanes = session.lanes.values();
        let address = session.table.peer.address(0);
        let streams = session.accepted.current();
        let sent = |key: LaneKey| {
            let streams = streams.as_ref();
            streams.map_or(0, |instance| instance.streams.sent_over(key.0))
        };
        SessionReport {
            peer: report::peer(session.peer),
            key: Some(name.0.to_string()),
            role: Role::Server,
            address: Some(address),
            carrier: session.carriers.to_string(),
            streams: session.connections.report(address, Role::Server),
            paths: lanes
                .map(|lane| PathReport::of(lane, None, sent(lane.key)))
                .collect(),
            shared: Vec::new(),
            lost: session.lost.to_reports(),
            failovers: session.failovers.clone(),
            unsent_packets: session.table.unsent.load(Ordering::Relaxed),
            decisions: Vec::new(),
            error: None,
            totals: None,
        }
    }
}

/// Waits for a connection over plain IP; for ever if this host does not serve there. `None` when the
/// endpoint is closed.
async fn accept(plain_ip: Option<&Underlay>) -> Option<(Connection, Underlay)> {
    let Some(underlay) = plain_ip else {
        return std::future::pending().await;
    };
    Some((underlay.quic.accept().await?, underlay.clone()))
}

/// Serves the streams that the host `from` opens.
fn accept_streams(
    from: String,
    connections: Connections,
    node: Node,
) -> mpsc::UnboundedSender<streams::Stream> {
    // Bounded by how many streams the peer may have open.
    let (opened, mut accepted) = mpsc::unbounded_channel::<streams::Stream>();
    tokio::spawn(async move {
        while let Some(stream) = accepted.recv().await {
            let (from, connections, node) = (from.clone(), connections.clone(), node.clone());
            let Some(permit) = node.budget().take() else {
                stream.reset(Status::Unreachable);
                let failure = Some(format!("from {from}: {}", node.budget().exhausted()));
                node.tell(ToHolder::StreamEnded {
                    was_set_up: false,
                    failure,
                });
                continue;
            };
            tokio::spawn(async move {
                let _permit = permit;
                streams::serve(stream, from, connections, node).await;
            });
        }
    });
    opened
}

/// Refuses a connection, and keeps it until the peer has received why.
async fn refuse(mut control: Control, refusal: Message) {
    let refused = async {
        if control.write(&refusal).await.is_ok() {
            control.finish().await;
        }
    };
    // A peer that takes nothing does not learn it.
    let _ = wait(FIRST_MESSAGE_TIMEOUT, refused).await;
}

/// What became of the first message of a connection.
enum Greeting {
    /// It opens a session, or another lane of one.
    Opens(Box<Greeted>),
    /// The key of the other host is not allowed.
    NotAllowed(Control),
    /// It was refused for another reason.
    Refused,
}

/// Handles the first message of a connection.
async fn greet(node: Node, connection: Connection, underlay: Underlay) -> Greeting {
    let (peer, key) = (connection.peer(), connection.peer_key());
    let first = async {
        let mut control = Control::accept(connection).await?;
        let message = control.read().await?;
        Ok::<_, super::control::ControlError>((control, message))
    };
    let refused = match wait(FIRST_MESSAGE_TIMEOUT, first).await {
        Some(Ok((control, Message::Open(open)))) if node.allows(&key) => {
            return Greeting::Opens(Box::new(Greeted {
                control,
                underlay,
                open,
            }));
        }
        Some(Ok((control, Message::Open(_)))) => return Greeting::NotAllowed(control),
        Some(Ok((control, _))) => {
            let text = "the first message is not Open".to_owned();
            let refusal = Message::Refuse {
                code: RefusalCode::PROTOCOL,
                text: text.clone(),
            };
            refuse(control, refusal).await;
            text
        }
        Some(Err(error)) => error.to_string(),
        None => "it sends no first message".to_owned(),
    };
    let peer = report::peer(peer);
    tracing::warn!(peer, "a connection was refused: {refused}");
    Greeting::Refused
}
