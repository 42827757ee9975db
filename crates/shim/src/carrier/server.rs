//! Drives the [sessions](crate::session) that other hosts open to this host's servers: their connections,
//! lanes and streams, and the list of the hosts that may connect.

mod allowed;
mod greeting;
mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hawser_quic::Connection;
use hawser_session::Timer;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use self::allowed::Followed;
use self::greeting::{Greeted, Greeting, greet};
use self::session::DrivenSession;
use super::inbox::{Channel, INBOX, Inbox};
use super::node::Node;
use super::report;
use super::streams::Instance;
use super::underlay::{PlainIp, Underlay};
use crate::address::Block;
use crate::link::ToHolder;
use crate::plane::lane::{LaneEvent, LaneKey};
use crate::protocol::{Message, Role};
use crate::report::SessionReport;
use crate::session::{
    Opening, Refusal, ServerAction, ServerSession, ServerSessions, ServerSettings, SessionId,
};

/// Connections at once whose first message has not come, or which are being refused; further ones wait
/// in the endpoint, which bounds them.
const GREETING: usize = 1024;

/// Drives all sessions that other hosts open.
pub(crate) struct Server {
    node: Node,
    sessions: ServerSessions,
    driven: HashMap<SessionId, DrivenSession>,
    greeting: JoinSet<Greeting>,
    /// The connection whose lane is opened.
    opening: Option<(LaneKey, Greeted)>,
    received: Inbox,
    /// A lane has at most one event of each kind on its way here.
    events: Channel<(LaneKey, LaneEvent)>,
    timer: Timer,
}

impl Server {
    pub(crate) fn new(node: Node) -> Self {
        let settings = ServerSettings {
            carriers: node.carriers(),
            cipher: node.cipher(),
            announced: node.plain_ip().and_then(PlainIp::announced),
        };
        Self {
            node,
            sessions: ServerSessions::new(settings),
            driven: HashMap::new(),
            greeting: JoinSet::new(),
            opening: None,
            received: mpsc::channel(INBOX),
            // Lanes bound what they report.
            events: mpsc::unbounded_channel(),
            timer: Timer::default(),
        }
    }

    /// Serves until an endpoint is closed, that of SCION or that of plain IP.
    pub(crate) async fn run(
        mut self,
        mut reports: mpsc::UnboundedReceiver<oneshot::Sender<Vec<SessionReport>>>,
    ) {
        let mut allowed = Followed::new(self.node.allowed().cloned());
        let node = self.node.clone();
        let scion = node.scion();
        let plain_ip = node.plain_ip().and_then(PlainIp::served);
        loop {
            self.carry_out();
            self.timer.set(self.sessions.next_due());
            tokio::select! {
                connection = scion.quic.accept(), if self.greeting.len() < GREETING => {
                    match connection {
                        Some(connection) => self.greet(connection, scion.clone()),
                        None => return,
                    }
                }
                accepted = accept(plain_ip), if self.greeting.len() < GREETING => match accepted {
                    Some((connection, underlay)) => self.greet(connection, underlay),
                    None => return,
                },
                Some(greeted) = self.greeting.join_next() => match greeted {
                    Ok(Greeting::Opens(greeted)) => self.open(*greeted),
                    Ok(Greeting::NotAllowed(greeted)) => self.turn_away(*greeted),
                    // A panic of a task was reported.
                    Ok(Greeting::Refused) | Err(_) => {}
                },
                Some((lane, message)) = self.received.1.recv() => self.on_message(lane, message),
                Some((lane, event)) = self.events.1.recv() => {
                    // What the peer sent before a lane ended tells why.
                    for _ in 0..self.received.1.len() {
                        if let Ok((lane, message)) = self.received.1.try_recv() {
                            self.on_message(lane, message);
                            self.carry_out();
                        }
                    }
                    self.on_event(lane, event);
                }
                Some(answer) = reports.recv() => {
                    let _ = answer.send(self.report());
                }
                () = self.timer.expired() => {}
                still = allowed.next(), if !self.sessions.is_empty() => {
                    self.sessions.on_allowed_keys(|key| still.contains(key));
                }
            }
        }
    }

    fn greet(&mut self, connection: Connection, underlay: Underlay) {
        let greeted = greet(self.node.clone(), connection, underlay);
        self.greeting.spawn(greeted);
    }

    /// Opens the lane of a connection of a host that is allowed.
    fn open(&mut self, greeted: Greeted) {
        let connection = greeted.control.connection();
        let lane = self.node.plane().next_lane();
        let opening = Opening {
            lane,
            peer: connection.peer(),
            key: connection.peer_key(),
            open: greeted.open,
            port: greeted.underlay.port(),
        };
        self.opening = Some((lane, greeted));
        self.sessions.on_open(opening);
        self.carry_out();
    }

    /// Handles a connection of a host that is not allowed.
    fn turn_away(&mut self, greeted: Greeted) {
        let key = greeted.control.connection().peer_key();
        let lane = self.node.plane().next_lane();
        self.opening = Some((lane, greeted));
        self.sessions.on_not_allowed(lane, key);
        self.carry_out();
    }

    fn on_message(&mut self, key: LaneKey, message: Message) {
        let Some(id) = self.sessions.session_of(key) else {
            return;
        };
        let Some(session) = self.driven.get(&id) else {
            return;
        };
        match message {
            Message::Segment { bound, segment } => {
                let is_new = session.learn(bound, key);
                self.node.plane().inject(&session.table, bound, &segment);
                if is_new {
                    self.report_bindings(id);
                }
            }
            Message::Packet { packet } => {
                self.node.plane().receive_packet(&session.table, &packet);
            }
            message => {
                self.report_bindings(id);
                self.sessions.on_message(key, message, Instant::now());
            }
        }
    }

    fn on_event(&mut self, key: LaneKey, event: LaneEvent) {
        match event {
            LaneEvent::Failed(error) => self.sessions.on_failed(key, error, Instant::now()),
            LaneEvent::Stalled => self.sessions.on_stalled(key),
            LaneEvent::Recovered => self.sessions.on_recovered(key),
            // The side that dials opens them.
            LaneEvent::StreamsLost(_) => {}
            LaneEvent::Up | LaneEvent::Bound => {
                let Some(id) = self.sessions.session_of(key) else {
                    return;
                };
                if let Some(lane) = self.driven.get(&id).and_then(|one| one.lanes.get(&key)) {
                    // Before it is looked at which slots it has.
                    lane.on_bound_handled();
                    self.node.report_mtu(lane);
                }
                self.report_bindings(id);
            }
        }
    }

    /// Reports which lanes are under the slots of a session now.
    fn report_bindings(&mut self, id: SessionId) {
        if let Some(session) = self.driven.get(&id) {
            self.sessions.on_bindings(id, session.table.bindings());
        }
    }

    /// Carries out all that is to be done now.
    fn carry_out(&mut self) {
        loop {
            let actions = self.sessions.advance(Instant::now());
            if actions.is_empty() {
                return;
            }
            actions.into_iter().for_each(|action| self.obey(action));
        }
    }

    fn obey(&mut self, action: ServerAction) {
        match action {
            ServerAction::Accept {
                lane,
                session,
                cipher,
                answer,
            } => {
                let greeted = self.take_opening(lane);
                if let Some(greeted) = greeted.map(|greeted| greeted.sealed(cipher)) {
                    self.accept(lane, session, greeted, answer);
                }
            }
            ServerAction::Refuse { lane, refusal } => self.refuse(lane, &refusal),
            ServerAction::Send { lane, message } => {
                if let Some(lane) = self.session(lane).and_then(|one| one.lanes.get(&lane)) {
                    lane.send(message);
                }
            }
            ServerAction::Close {
                lane,
                session,
                reason,
            } => self.close(session, lane, &reason),
            ServerAction::SuspendPath(lane) => {
                if let Some(instance) = self.streams_of(lane) {
                    instance.streams.suspend_path(lane.0);
                }
            }
            ServerAction::ResumePath(lane) => {
                if let Some(instance) = self.streams_of(lane) {
                    instance.streams.resume_path(lane.0);
                }
            }
            ServerAction::Publish {
                session,
                peer,
                live,
            } => {
                if let Some(session) = self.driven.get(&session) {
                    self.node.tell(ToHolder::Slots {
                        peer: session.table.peer.address(0),
                        role: Role::Server,
                        live,
                        name: report::peer(peer),
                    });
                }
            }
            ServerAction::End {
                session,
                peer,
                reason,
                refusal,
            } => {
                if refusal.is_some() {
                    tracing::warn!(%peer, "a session was ended: {reason}");
                }
                if let Some(session) = self.driven.remove(&session) {
                    session.end(&self.node, reason, refusal.as_ref());
                }
            }
        }
    }

    /// The session of a lane.
    fn session(&self, lane: LaneKey) -> Option<&DrivenSession> {
        self.driven.get(&self.sessions.session_of(lane)?)
    }

    fn streams_of(&self, lane: LaneKey) -> Option<Arc<Instance>> {
        self.session(lane)?.accepted.current()
    }

    /// The connection that opens a lane.
    fn take_opening(&mut self, key: LaneKey) -> Option<Greeted> {
        let opening = self.opening.take_if(|(lane, _)| *lane == key)?;
        Some(opening.1)
    }

    /// Makes the lane of a connection.
    fn accept(&mut self, key: LaneKey, id: SessionId, greeted: Greeted, answer: Message) {
        let Some(peer) = self.sessions.get(id).map(ServerSession::peer) else {
            return;
        };
        let driven = self.driven.entry(id).or_insert_with(|| {
            let block = Block::of(&id.key, id.tag);
            DrivenSession::new(self.node.plane().session(block, Role::Server))
        });
        let inboxes = (self.received.0.clone(), self.events.0.clone());
        driven.add(&self.node, key, greeted, answer, peer.to_string(), inboxes);
        self.report_bindings(id);
    }

    /// Refuses a connection.
    fn refuse(&mut self, key: LaneKey, refusal: &Refusal) {
        if let Some(greeted) = self.take_opening(key) {
            let peer = report::peer(greeted.control.connection().peer());
            tracing::warn!(peer, "a connection was refused: {}", refusal.text);
            let refusal = refusal.message();
            // Bounded as long as they are kept.
            self.greeting.spawn(async move {
                greeted.control.refuse(&refusal).await;
                Greeting::Refused
            });
        }
    }

    /// Closes a lane that has failed.
    fn close(&mut self, id: SessionId, key: LaneKey, reason: &str) {
        let peer = self.sessions.get(id).map(ServerSession::peer);
        let Some((session, peer)) = self.driven.get_mut(&id).zip(peer) else {
            return;
        };
        tracing::debug!(%peer, reason, "a path failed");
        let unbound = session.close(self.node.plane(), key, reason);
        self.sessions.on_unbound(id, unbound);
        self.report_bindings(id);
    }

    fn report(&self) -> Vec<SessionReport> {
        let all = self.driven.iter().filter_map(|(id, driven)| {
            let session = self.sessions.get(*id)?;
            Some(driven.report(id.key, session))
        });
        all.collect()
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
