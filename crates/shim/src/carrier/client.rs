//! A session that this host opens, for its programs: obeys the path manager.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::{Path, ScionAddr};
use hawser_keys::{PeerKey, ServerKeyError};
use hawser_manager::{Action, Carried, Failure, Order, PathOptions, PathSet, SubflowId};
use hawser_path::{Decision, Fingerprint};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::Channel;
use super::control::Control;
use super::destinations::Target;
use super::lane::{LaneEvent, LaneKey, SealedLane};
use super::node::{Node, Side};
use super::report::{DecisionReport, Failovers, PathReport, SessionReport};
use super::table::SlotTable;
use crate::address::{Block, Slot};
use crate::link::{Role, ToHolder};
use crate::protocol::{Message, Open};
use crate::slots::{Published, Slots};

/// Interval at which paths are weighed.
const TICK: Duration = Duration::from_millis(50);
/// How long a program waits for the first path.
const FIRST: Duration = Duration::from_secs(10);
/// How long a lane that is to be closed still carries its slot while another one is dialed.
const REPLACED: Duration = Duration::from_secs(2);

/// Why a session cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SessionError {
    #[error("no path to {peer} works: {reason}")]
    NoPath { peer: ScionAddr, reason: String },
    #[error("{peer} does not answer within {} s: {reason}", .after.as_secs())]
    Silent {
        peer: ScionAddr,
        after: Duration,
        reason: String,
    },
    #[error(transparent)]
    Key(#[from] ServerKeyError),
    #[error(
        "{peer} shows the key {key}, another one than over other paths: somebody may be in between"
    )]
    OtherKey { peer: ScionAddr, key: PeerKey },
    #[error("{peer} refuses: {text}")]
    Refused { peer: ScionAddr, text: String },
    #[error("{peer} breaks the protocol: it sends a message at the wrong time")]
    Protocol { peer: ScionAddr },
}

/// What others ask of a session.
pub(crate) enum Request {
    /// Answered with the address of the peer once a path is connected.
    Connect(oneshot::Sender<Result<Block, String>>),
    /// Answered with what there is to see.
    Report(oneshot::Sender<SessionReport>),
}

/// The outcome of a dial.
enum Dialed {
    Connected(SubflowId, Box<Control>),
    Failed(SubflowId, String),
    Fatal(SessionError),
}

/// A connected lane.
struct OpenLane {
    lane: Arc<SealedLane>,
    subflow: SubflowId,
    path: Path,
    /// When it is closed, if the path manager wants that.
    closes: Option<Instant>,
    /// Whether nothing comes back over it.
    stalled: bool,
}

/// A session that this host opens.
pub(crate) struct ClientSession {
    node: Node,
    peer: ScionAddr,
    /// Tells the peer's addresses in this session from those in others.
    tag: u64,
    paths: PathSet<Path>,
    offers: watch::Receiver<Arc<Vec<Path>>>,
    dials: HashMap<SubflowId, AbortHandle>,
    dialed: Channel<Dialed>,
    /// The key of the peer and the session's table, once a path is connected.
    known: Option<(PeerKey, Arc<SlotTable>)>,
    open: BTreeMap<LaneKey, OpenLane>,
    slots: Slots<LaneKey>,
    published: Published,
    received: Channel<(LaneKey, Message)>,
    events: Channel<(LaneKey, LaneEvent)>,
    waiting: Vec<oneshot::Sender<Result<Block, String>>>,
    decisions: BTreeMap<Fingerprint, Decision>,
    failovers: Failovers,
    began: Instant,
    last_error: Option<String>,
}

impl ClientSession {
    pub(crate) fn new(node: Node, target: Target, options: PathOptions) -> Self {
        let peer = target.shim;
        let mut offers = node.host().watch(peer.isd_as);
        offers.mark_changed();
        Self {
            node,
            peer,
            tag: target.tag(),
            paths: PathSet::new(options),
            offers,
            dials: HashMap::new(),
            dialed: mpsc::unbounded_channel(),
            known: None,
            open: BTreeMap::new(),
            slots: Slots::new(),
            published: Published::default(),
            received: mpsc::unbounded_channel(),
            events: mpsc::unbounded_channel(),
            waiting: Vec::new(),
            decisions: BTreeMap::new(),
            failovers: Failovers::default(),
            began: Instant::now(),
            last_error: None,
        }
    }

    /// Runs the session until it fails, or nobody can make requests any more.
    pub(crate) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let ended = self.work(&mut requests).await;
        let reason = ended.err().map(|error| error.to_string());
        let reason = reason.unwrap_or_else(|| "the shim has ended".to_owned());
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Err(reason.clone()));
        }
        // Those that arrived meanwhile begin another session.
        requests.close();
        while let Ok(request) = requests.try_recv() {
            if let Request::Connect(answer) = request {
                let _ = answer.send(Err(reason.clone()));
            }
        }
        let lanes: Vec<LaneKey> = self.open.keys().copied().collect();
        for lane in lanes {
            self.remove(lane);
        }
        if let Some((_, table)) = self.known.take() {
            self.node.plane().remove_session(&table);
            self.node.tell(ToHolder::Ended {
                peer: table.peer.address(0),
                role: Role::Client,
                reason,
            });
        }
    }

    async fn work(
        &mut self,
        requests: &mut mpsc::UnboundedReceiver<Request>,
    ) -> Result<(), SessionError> {
        // Without any path it fails here, with the reason.
        if let Err(error) = self.node.host().paths(self.peer.isd_as).await {
            let reason = error.to_string();
            return Err(SessionError::NoPath {
                peer: self.peer,
                reason,
            });
        }
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.answer(request),
                    None => return Ok(()),
                },
                Ok(()) = self.offers.changed() => self.offer(),
                Some(dialed) = self.dialed.1.recv() => self.on_dialed(dialed)?,
                Some((lane, message)) = self.received.1.recv() => self.on_message(lane, message)?,
                Some((lane, event)) = self.events.1.recv() => self.on_event(lane, event),
                _ = tick.tick() => self.tick()?,
            }
            self.follow_orders();
            self.publish();
        }
    }

    fn answer(&mut self, request: Request) {
        match (request, &self.known) {
            (Request::Connect(answer), Some((_, table))) if !self.open.is_empty() => {
                let _ = answer.send(Ok(table.peer));
            }
            (Request::Connect(answer), _) => self.waiting.push(answer),
            (Request::Report(answer), _) => {
                let _ = answer.send(self.report());
            }
        }
    }

    fn offer(&mut self) {
        let offered = self.offers.borrow_and_update();
        let (node, peer) = (&self.node, self.peer);
        let fits = |path: &Path| {
            node.quic()
                .fits(peer, path)
                .map_err(|error| error.to_string())
        };
        self.paths.offer(&offered, fits, Instant::now());
    }

    /// Does what the path manager orders.
    fn follow_orders(&mut self) {
        for order in self.paths.orders(Instant::now()) {
            match order.action {
                Action::Dial => self.dial(&order),
                // MPTCP weighs paths by itself.
                Action::Hold | Action::Resume => {}
                Action::Close { .. } => self.close(order.subflow),
            }
        }
        for (fingerprint, decision) in self.paths.changes() {
            self.decisions.insert(fingerprint, decision);
        }
    }

    fn close(&mut self, subflow: SubflowId) {
        if let Some(dial) = self.dials.remove(&subflow) {
            dial.abort();
        }
        let found = self.open.iter_mut().find(|(_, one)| one.subflow == subflow);
        let Some((&key, lane)) = found else { return };
        if self.dials.is_empty() {
            self.remove(key);
        } else {
            // Its slot goes to the lane that is being dialed, without a moment without a path.
            lane.closes = Some(Instant::now() + REPLACED);
        }
    }

    fn dial(&mut self, order: &Order) {
        let Some(path) = self.paths.path(order.path).cloned() else {
            return;
        };
        let (node, peer, subflow) = (self.node.clone(), self.peer, order.subflow);
        let (results, expected) = (self.dialed.0.clone(), self.known.as_ref().map(|one| one.0));
        let task = tokio::spawn(async move {
            let dialed = match dial(&node, peer, path, expected).await {
                Ok(Ok(control)) => Dialed::Connected(subflow, Box::new(control)),
                Ok(Err(failed)) => Dialed::Failed(subflow, failed),
                Err(fatal) => Dialed::Fatal(fatal),
            };
            // The session may have ended.
            let _ = results.send(dialed);
        });
        self.dials.insert(subflow, task.abort_handle());
    }

    fn on_dialed(&mut self, dialed: Dialed) -> Result<(), SessionError> {
        match dialed {
            Dialed::Connected(subflow, control) => {
                self.dials.remove(&subflow);
                self.connected(subflow, *control);
            }
            Dialed::Failed(subflow, error) => {
                self.dials.remove(&subflow);
                self.last_error = Some(error.clone());
                let now = Instant::now();
                (self.paths).lost(subflow, Failure::Failed, error, now);
            }
            Dialed::Fatal(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes a connection into the session.
    fn connected(&mut self, subflow: SubflowId, control: Control) {
        let connection = control.connection.clone();
        let (Some(path), Ok(keys)) = (
            connection.path(),
            self.node.lane_keys(&connection, Side::Client, None),
        ) else {
            let error = "the connection has ended".to_owned();
            (self.paths).lost(subflow, Failure::Failed, error, Instant::now());
            return;
        };
        let cipher = keys.cipher.to_u8();
        let plane = self.node.plane();
        let key = connection.peer_key();
        let (_, table) = self.known.get_or_insert_with(|| {
            let peer = Block::of(&key, self.tag);
            (key, plane.session(peer, Role::Client))
        });
        let table = Arc::clone(table);
        let (messages, outgoing) = mpsc::unbounded_channel();
        let lane = plane.add(
            keys,
            self.peer,
            Arc::clone(&table),
            messages,
            self.events.0.clone(),
        );
        // A lane that is to be closed, or does not deliver, gives its slot up.
        let leaves = (self.open.values()).find(|one| one.closes.is_some() || one.stalled);
        if let Some(one) = leaves {
            if one.stalled {
                (self.failovers).record(&one.lane, Some(&one.path), "nothing comes back over it");
            }
            self.slots.lose(one.lane.key);
        }
        let Some((slot, epoch)) = self.slots.take(lane.key) else {
            // The path manager dials no more paths than there are slots.
            plane.remove(&lane);
            return;
        };
        let open = Open {
            cipher,
            port: plane.local_addr().host.port(),
            // Sessions for several targets may lead to one host.
            tag: self.node.tag() ^ self.tag,
            slot,
            epoch,
        };
        lane.send(Message::Open(open));
        if let Ok(largest) = plane.largest(self.peer, &path) {
            lane.set_datagram(largest.into());
        }
        self.node.report_mtu(&lane);
        lane.set_rtt(connection.stats().rtt);
        table.bind(slot, epoch, &lane);
        let received = self.received.0.clone();
        tokio::spawn(control.run(Arc::clone(&lane), outgoing, received));
        let rtt = Some(connection.stats().rtt);
        self.paths.connected(subflow, rtt, Instant::now());
        let open = OpenLane {
            lane: Arc::clone(&lane),
            subflow,
            path,
            closes: None,
            stalled: false,
        };
        self.open.insert(lane.key, open);
        // The holder has the slots before it is given the address.
        self.publish();
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Ok(table.peer));
        }
    }

    fn on_message(&mut self, key: LaneKey, message: Message) -> Result<(), SessionError> {
        let peer = self.peer;
        let Some(one) = self.open.get(&key) else {
            return Ok(());
        };
        match message {
            Message::Accept { port } if one.lane.lane().is_none() => {
                let mut remote = peer;
                remote.host.set_port(port);
                let opened = self.node.plane().open(&one.lane, remote, one.path.clone());
                if let Err(error) = opened {
                    self.leave(key, error.to_string());
                }
            }
            Message::Segment { bound, segment } => {
                self.node.plane().inject(&one.lane.table, bound, &segment);
            }
            Message::Down { slot, epoch } => {
                if let Some(suspect) = self.slots.lane(slot, epoch) {
                    let reason = "the other side receives nothing over it";
                    self.leave(suspect, reason.to_owned());
                }
            }
            Message::Refuse { code, text } => {
                if !code.may_pass() {
                    return Err(SessionError::Refused { peer, text });
                }
                self.leave(key, text);
            }
            Message::Accept { .. } | Message::Open(_) => {
                return Err(SessionError::Protocol { peer });
            }
        }
        Ok(())
    }

    fn on_event(&mut self, key: LaneKey, event: LaneEvent) {
        match event {
            LaneEvent::Failed(error) => self.leave(key, error),
            LaneEvent::Stalled | LaneEvent::Recovered => {
                let is_stalled = matches!(event, LaneEvent::Stalled);
                if let Some(one) = self.open.get_mut(&key) {
                    one.stalled = is_stalled;
                    match is_stalled {
                        true => self.paths.stalled(one.subflow, Instant::now()),
                        false => self.paths.recovered(one.subflow),
                    }
                }
            }
            LaneEvent::Up | LaneEvent::Bound => {}
        }
    }

    /// Removes a lane whose path or connection failed.
    fn leave(&mut self, key: LaneKey, error: String) {
        if let Some(one) = self.open.get(&key) {
            (self.failovers).record(&one.lane, Some(&one.path), &error);
        }
        if let Some(one) = self.remove(key) {
            tracing::debug!(peer = %self.peer, path = %one.path.fingerprint(), error, "a path failed");
            self.last_error = Some(error.clone());
            (self.paths).lost(one.subflow, Failure::Closed, error, Instant::now());
        }
    }

    /// Removes a lane. The other side learns of it over the other lanes: its own path may be dead.
    fn remove(&mut self, key: LaneKey) -> Option<OpenLane> {
        let one = self.open.remove(&key)?;
        self.slots.lose(key);
        for (slot, epoch) in self.node.plane().remove(&one.lane) {
            for other in self.open.values() {
                other.lane.send(Message::Down { slot, epoch });
            }
        }
        Some(one)
    }

    fn tick(&mut self) -> Result<(), SessionError> {
        let now = Instant::now();
        let due = self
            .open
            .iter()
            .filter(|(_, one)| one.closes.is_some_and(|at| at <= now));
        let due: Vec<LaneKey> = due.map(|(key, _)| *key).collect();
        for key in due {
            self.remove(key);
        }
        self.paths.tick(|_| Carried::default(), now);
        if self.known.is_none() && !self.waiting.is_empty() {
            let trouble = self.paths.trouble().or_else(|| self.last_error.clone());
            let peer = self.peer;
            if !self.paths.is_usable() && self.dials.is_empty() {
                let reason = trouble.unwrap_or_else(|| "none is offered".to_owned());
                return Err(SessionError::NoPath { peer, reason });
            }
            if self.began.elapsed() >= FIRST {
                return Err(SessionError::Silent {
                    peer,
                    after: FIRST,
                    reason: trouble.unwrap_or_else(|| "no path is connected".to_owned()),
                });
            }
        }
        Ok(())
    }

    /// Has the holder use the slots that are live.
    fn publish(&mut self) {
        let Some((_, table)) = &self.known else {
            return;
        };
        if let Some(mut live) = self.published.update(self.slots.live()) {
            // Connections are opened over the first one.
            let rtt = |slot: &Slot| table.binding(*slot).and_then(|one| one.lane.rtt());
            live.sort_by_key(|slot| rtt(slot).unwrap_or(Duration::MAX));
            self.node.tell(ToHolder::Slots {
                peer: table.peer.address(0),
                role: Role::Client,
                live,
            });
        }
    }

    fn report(&self) -> SessionReport {
        let paths = self
            .open
            .values()
            .map(|one| PathReport::of(&one.lane, Some(&one.path)));
        SessionReport {
            peer: self.peer.to_string(),
            key: self.known.as_ref().map(|(key, _)| key.to_string()),
            role: Role::Client,
            address: self.known.as_ref().map(|(_, table)| table.peer.address(0)),
            paths: paths.collect(),
            failovers: self.failovers.clone(),
            decisions: (self.decisions.iter())
                .map(|(path, decision)| DecisionReport::new(*path, decision))
                .collect(),
            error: self.last_error.clone(),
            totals: None,
        }
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        self.dials.values().for_each(AbortHandle::abort);
    }
}

/// Connects to `peer` over `path`. The inner error is the path's, the outer one the peer's.
async fn dial(
    node: &Node,
    peer: ScionAddr,
    path: Path,
    expected: Option<PeerKey>,
) -> Result<Result<Control, String>, SessionError> {
    let connection = match node.quic().connect(peer, path).await {
        Ok(connection) => connection,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let key = connection.peer_key();
    node.check(peer, key)?;
    if expected.is_some_and(|expected| expected != key) {
        return Err(SessionError::OtherKey { peer, key });
    }
    let control = Control::open(connection).await;
    Ok(control.map_err(|error| error.to_string()))
}
