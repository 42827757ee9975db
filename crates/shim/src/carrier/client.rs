//! Drives a [session](crate::session) that this host opens: dials, connections, lanes, and those who ask.
//!
//! One task runs the driver. It waits for its turn (`carrier::clients`), then for paths to the other host;
//! requests wait in their channel meanwhile. Then it loops: it reports dials, offered paths and use to the
//! session, carries out the session's actions, and sleeps until a request, an event, or the session's time.
//! When the session is over, or nobody can make requests any more, requests that were not taken are
//! refused, and the driver ends. It cancels the dials, waits until the streams that programs have ended are
//! delivered, tells the other host over every lane, closes the lanes, and informs the holder last; all of
//! it within [`GOODBYE`]. Nothing is delivered after a revocation or a failure.
//!
//! The driver owns the dials, the lanes with their connections, the streams, and the answers that are owed.
//! The messages of all its lanes have [`INBOX`] places; while these are full, nothing is read from the
//! connections. Each lane bounds the events that it reports.
//!
//! Nothing in the driver is locked. It takes the locks of lanes, of streams and of its usage for single
//! calls, one at a time, and none across an await.

mod actions;
mod answer;
mod dial;
mod end;
mod lane;
mod report;
mod trust;

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use hawser_endhost::{Path, ScionAddr};
use hawser_manager::PathOptions;
use hawser_path::Policy;
use hawser_session::{Dials, Timer};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

pub(super) use self::answer::Answer;
use self::dial::Outcome;
pub(super) use self::end::GOODBYE;
use self::lane::{DrivenLane, Streaming};
use super::destinations::Target;
use super::inbox::{Channel, INBOX, Inbox};
use super::node::Node;
use super::report::RetiredPaths;
use super::streams;
use super::usage::Usage;
use crate::PLAIN_IP_PORT;
use crate::budget::Permit;
use crate::handover::Handed;
use crate::plane::lane::{LaneEvent, LaneKey, LaneTable};
use crate::protocol::Message;
use crate::report::{Failovers, SessionReport};
use crate::session::{
    ClientSession, Connected, Ending, HEAD_START, LaneOrigin, RequestId, Settings,
};

/// What others ask of a session.
pub(crate) enum Request {
    /// Asks where a connection goes; the answer comes once a path is connected.
    Connect(Answer),
    /// A program's connection that goes to a stream, and what it may have.
    Carry(Handed, Permit),
    /// Which paths may be used, from now on.
    Policy(Option<Policy>),
    /// The peers with which programs of this host have connections by MPTCP.
    InUse(Vec<Ipv6Addr>),
    /// Answered with what there is to see.
    Report(oneshot::Sender<SessionReport>),
}

/// Drives a session that this host opens.
pub(crate) struct ClientDriver {
    node: Node,
    target: Target,
    session: ClientSession<Path>,
    /// The paths to the other host that are offered.
    offers: watch::Receiver<Arc<Vec<Path>>>,
    dials: Dials<LaneOrigin, Outcome>,
    lanes: BTreeMap<LaneKey, DrivenLane>,
    /// The slots as the threads that carry packets see them, once a path is connected.
    table: Option<Arc<LaneTable>>,
    inboxes: Inboxes,
    /// Those who wait for an answer; there are as many as programs connect at once.
    answers: Answers,
    streaming: Streaming,
    /// Ends when the key of the other host is no longer trusted.
    trust: JoinSet<()>,
    usage: InUse,
    ended: EndedLanes,
    timer: Timer,
}

/// What arrives from lanes and their connections.
struct Inboxes {
    received: Inbox,
    /// A lane has at most one event of each kind on its way here.
    events: Channel<(LaneKey, LaneEvent)>,
}

/// Those who wait for an answer.
#[derive(Default)]
struct Answers {
    all: HashMap<RequestId, Answer>,
    next: u64,
}

impl Answers {
    fn add(&mut self, answer: Answer) -> RequestId {
        let request = RequestId(self.next);
        self.next += 1;
        self.all.insert(request, answer);
        request
    }
}

/// When the session was used.
struct InUse {
    usage: Arc<Usage>,
    /// Packets of the session, as of the last look.
    packets: u64,
}

/// What lanes that have ended leave for reports.
#[derive(Default)]
struct EndedLanes {
    failovers: Failovers,
    lost: RetiredPaths,
}

impl ClientDriver {
    /// A session with `target`. When it was used is added to `usage`. Must be called inside a tokio
    /// runtime.
    pub(crate) fn new(node: Node, target: Target, paths: PathOptions, usage: Arc<Usage>) -> Self {
        let peer = target.shim;
        let guess = SocketAddr::new(peer.host.ip(), PLAIN_IP_PORT);
        let settings = Settings {
            peer,
            tag: target.tag(),
            carrier: node.carrier(),
            carriers: node.carriers(),
            plain_ip: node.plain_ip().map(|_| guess),
            paths,
        };
        let mut offers = node.host().watch(peer.isd_as);
        offers.mark_changed();
        Self {
            node,
            target,
            session: ClientSession::new(settings, Instant::now()),
            offers,
            dials: Dials::default(),
            lanes: BTreeMap::new(),
            table: None,
            inboxes: Inboxes {
                received: mpsc::channel(INBOX),
                // Lanes bound what they report.
                events: mpsc::unbounded_channel(),
            },
            answers: Answers::default(),
            streaming: Streaming::default(),
            trust: JoinSet::new(),
            usage: InUse { usage, packets: 0 },
            ended: EndedLanes::default(),
            timer: Timer::default(),
        }
    }

    fn peer(&self) -> ScionAddr {
        self.target.shim
    }

    /// Runs the session until it fails, or nobody can make requests any more: then it ends in order.
    pub(crate) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let (ending, reason) = self.work(&mut requests).await;
        if ending != Ending::InOrder {
            tracing::warn!("a session ended: {reason}");
        }
        refuse(requests, &reason);
        self.end(ending, reason).await;
    }

    /// Works until the session ends: how, and why.
    async fn work(&mut self, requests: &mut mpsc::UnboundedReceiver<Request>) -> (Ending, String) {
        self.look_up().await;
        loop {
            let now = self.report_changes();
            if let Some(end) = self.carry_out(now) {
                return end;
            }
            self.timer.set(self.session.next_due());
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.on_request(request),
                    None => self.session.release(),
                },
                Ok(()) = self.offers.changed() => self.offers.mark_changed(),
                (origin, outcome) = self.dials.next() => self.on_dialed(origin, outcome),
                Some((lane, message)) = self.inboxes.received.1.recv() => {
                    self.on_message(lane, message);
                }
                Some((lane, event)) = self.inboxes.events.1.recv() => {
                    // What the peer sent before a lane ended tells why.
                    for _ in 0..self.inboxes.received.1.len() {
                        if let Ok((lane, message)) = self.inboxes.received.1.try_recv() {
                            self.on_message(lane, message);
                        }
                    }
                    self.on_event(lane, event);
                }
                Some(_) = self.trust.join_next() => self.session.distrust(),
                () = self.timer.expired() => {}
            }
        }
    }

    /// Waits for the paths to the peer; with plain IP, no longer than that waits for SCION.
    async fn look_up(&mut self) {
        let paths = self.node.host().paths(self.peer().isd_as);
        let found = match self.node.plain_ip() {
            None => Some(paths.await),
            Some(_) => tokio::time::timeout(HEAD_START, paths).await.ok(),
        };
        if let Some(found) = found {
            let found = found.map(drop).map_err(|error| error.to_string());
            self.session.looked_up(found);
        }
    }

    /// Reports what has happened until now, before anything is decided: a dial that has succeeded is not
    /// late, and whoever asks whether there is a path gets a current answer.
    fn report_changes(&mut self) -> Instant {
        while let Some((origin, outcome)) = self.dials.try_next() {
            self.on_dialed(origin, outcome);
        }
        let now = Instant::now();
        if self.offers.has_changed().unwrap_or_default() {
            let offered = self.offers.borrow_and_update().clone();
            let (quic, peer) = (&self.node.scion().quic, self.target.shim);
            let fits = |path: &Path| quic.fits(peer, path).map_err(|error| error.to_string());
            self.session.offer(&offered, fits, now);
        }
        self.watch_use(now);
        now
    }

    /// Records whether streams or packets use the session.
    fn watch_use(&mut self, now: Instant) {
        let packets = self
            .table
            .as_ref()
            .map_or(0, |table| table.contacts.packets());
        let has_packets = std::mem::replace(&mut self.usage.packets, packets) != packets;
        if has_packets || !self.streaming.connections.is_empty() || self.session.has_waiting() {
            self.usage.usage.touch(now);
        }
    }

    fn on_request(&mut self, request: Request) {
        match request {
            Request::Connect(answer) => {
                let request = self.answers.add(answer);
                self.session.on_request(request);
            }
            Request::Carry(handed, permit) => {
                let Streaming {
                    instance,
                    connections,
                } = &self.streaming;
                let (streams, connections) = (instance.streams.clone(), connections.clone());
                let carried =
                    streams::carry(handed, self.peer(), streams, connections, self.node.clone());
                tokio::spawn(async move {
                    let _permit = permit;
                    carried.await;
                });
            }
            Request::Policy(policy) => self.session.set_policy(policy),
            Request::InUse(peers) => {
                let block = self.session.block();
                if block.is_some_and(|block| peers.contains(&block.address(0))) {
                    self.usage.usage.touch(Instant::now());
                }
            }
            Request::Report(answer) => {
                let _ = answer.send(self.report());
            }
        }
    }

    /// Makes the lane of a dial that has succeeded.
    fn on_dialed(&mut self, origin: LaneOrigin, outcome: Outcome) {
        let now = Instant::now();
        let dialed = match outcome {
            Ok(dialed) => dialed,
            Err(error) => return self.session.on_not_connected(origin, error, now),
        };
        let key = dialed.control.connection().peer_key();
        match self.make_lane(dialed) {
            Ok((lane, path, rtt)) => {
                let connected = Connected {
                    lane,
                    key,
                    path,
                    rtt,
                };
                self.session.on_connected(origin, connected, now);
            }
            Err(error) => self.session.on_not_connected(origin, error, now),
        }
    }

    fn on_message(&mut self, key: LaneKey, message: Message) {
        let Some(lane) = self.lanes.get(&key) else {
            return;
        };
        match message {
            Message::Segment { bound, segment } => {
                let plane = self.node.plane();
                plane.inject(&lane.lane.table, bound, &segment);
            }
            Message::Packet { packet } => {
                self.node.plane().receive_packet(&lane.lane.table, &packet);
            }
            message => self.session.on_message(key, message, Instant::now()),
        }
    }

    fn on_event(&mut self, key: LaneKey, event: LaneEvent) {
        let now = Instant::now();
        let streams = &self.streaming.instance.streams;
        match event {
            LaneEvent::Up => self.session.on_up(key),
            LaneEvent::Failed(error) => {
                tracing::debug!(peer = %self.peer(), lane = key.0, error, "a lane failed");
                self.session.on_failed(key, error, now);
            }
            LaneEvent::Stalled if self.lanes.contains_key(&key) => {
                streams.suspend_path(key.0);
                self.session.on_stalled(key, now);
            }
            LaneEvent::Recovered if self.lanes.contains_key(&key) => {
                streams.resume_path(key.0);
                self.session.on_recovered(key);
            }
            LaneEvent::StreamsLost(number) if number == self.streaming.instance.number => {
                tracing::warn!(peer = %self.peer(), "the other host has lost the streams");
                self.streaming.renew();
                let lanes: Vec<LaneKey> = self.lanes.keys().copied().collect();
                lanes.into_iter().for_each(|lane| self.carry_over(lane));
            }
            LaneEvent::Stalled | LaneEvent::Recovered | LaneEvent::StreamsLost(_) => {}
            LaneEvent::Bound => {}
        }
    }
}

/// Refuses the requests that nobody has taken. Later ones begin another session.
fn refuse(mut requests: mpsc::UnboundedReceiver<Request>, reason: &str) {
    requests.close();
    while let Ok(request) = requests.try_recv() {
        match request {
            Request::Connect(answer) => answer.give(Err(reason.to_owned())),
            Request::Carry(handed, _) => handed.refuse(),
            Request::InUse(_) | Request::Report(_) | Request::Policy(_) => {}
        }
    }
}
