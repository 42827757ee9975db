//! A session that this host opens, for its programs: obeys the path manager.

mod answer;
mod connections;
mod dial;
mod end;
mod hold;
mod lanes;
mod shared;
mod trust;
mod weigh;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::patience::Patience;
use hawser_endhost::{Path, ScionAddr};
use hawser_keys::PeerKey;
use hawser_manager::{Action, Cause, Failure, PathOptions, PathSet, SubflowId};
use hawser_path::{Decision, Fingerprint, Interface, Policy, Reason};
use hawser_quic::Connection;
use hawser_session::Dialer;
use tokio::sync::{mpsc, oneshot};

pub(super) use self::answer::Answer;
use self::connections::new_streams;
use self::dial::{Dialed, Peer, SessionError};
use self::end::Ending;
pub(super) use self::end::GOODBYE;
use self::hold::Hold;
use self::weigh::Load;
use super::beside::Beside;
use super::clients::Usage;
use super::destinations::Target;
use super::lane::{LaneEvent, LaneKey, SealedLane};
use super::node::Node;
use super::report::{Failovers, Lost, SessionReport};
use super::streams::{self, Connections, Instance};
use super::table::SlotTable;
use super::underlay::Underlay;
use super::{Channel, INBOX, Inbox};
use crate::PLAIN_IP_PORT;
use crate::address::{Block, SLOTS, Slot};
use crate::budget::Permit;
use crate::choice::{CarrierKind, CarrierSet};
use crate::handover::Handed;
use crate::link::{Role, ToHolder};
use crate::slots::{Published, Slots};

/// Interval at which what the lanes carry is measured.
const TICK: Duration = Duration::from_millis(50);
/// By how much the round trip of a path may exceed that of the best one: MPTCP delivers in order, and the
/// kernel keeps no more than a few megabytes of what waits for a slower subflow.
const MOST_LAG: Duration = Duration::from_millis(150);
/// Which share of its packets a path may lose: with more, the kernel's TCP carries little over it, and
/// what it carries late holds up the other subflows.
const MOST_LOSS: f64 = 0.05;
/// How long a program waits for the first path, without the time in which this process did not run.
const FIRST_PATH_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for SCION to connect first, before plain IP is tried in its place.
const HEAD_START: Duration = Duration::from_secs(1);
/// How long a lane that is to be closed still carries its slot while another one is dialed.
const REPLACED: Duration = Duration::from_secs(2);

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

/// Where a connection goes.
pub(crate) enum Connect {
    /// To the peer with these addresses, by MPTCP.
    Mptcp(Block),
    /// To a stream to it.
    Quic(Block),
}

impl Connect {
    /// The peer.
    pub(crate) fn peer(self) -> Block {
        match self {
            Self::Mptcp(peer) | Self::Quic(peer) => peer,
        }
    }
}

/// What a lane is to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Over a path, as the path manager ordered.
    Path(SubflowId),
    /// Over plain IP, to this address.
    PlainIp(SocketAddr),
}

/// A connected lane.
struct OpenLane {
    lane: Arc<SealedLane>,
    connection: Connection,
    of: Use,
    underlay: Underlay,
    path: Path,
    /// When it is closed, if the path manager wants that.
    closes: Option<Instant>,
    /// Whether nothing comes back over it.
    stalled: bool,
    /// Whether MPTCP may use it.
    hold: Hold,
}

/// A session that this host opens.
pub(crate) struct ClientSession {
    node: Node,
    peer: ScionAddr,
    /// Tells the peer's addresses in this session from those in others.
    tag: u64,
    dialer: Dialer<Peer>,
    /// The lane over plain IP, if that may be used.
    beside: Option<Beside>,
    /// At most one outcome of a dial over plain IP, and one end of trust.
    dialed: Channel<Dialed>,
    /// The key of the peer and the session's table, once a path is connected.
    known: Option<(PeerKey, Arc<SlotTable>)>,
    open: BTreeMap<LaneKey, OpenLane>,
    slots: Slots<LaneKey>,
    published: Published,
    received: Inbox,
    /// A lane has at most one event of each kind on its way here.
    events: Channel<(LaneKey, LaneEvent)>,
    waiting: Vec<Answer>,
    /// The carriers of both sides, once the peer has said which it has.
    carriers: Option<CarrierSet>,
    usage: Arc<Usage>,
    /// Packets of the session, as of the last tick.
    packets: u64,
    load: Load,
    streams: Arc<Instance>,
    connections: Connections,
    decisions: BTreeMap<Fingerprint, Decision>,
    failovers: Failovers,
    lost: Lost,
    /// Shared interfaces of which there was a warning.
    warned: BTreeSet<Interface>,
    began: Instant,
    /// The wait for the first path.
    first: Patience,
    last_error: Option<String>,
}

impl ClientSession {
    /// When the session was used is added to `usage`. Must be called inside a tokio runtime.
    pub(crate) fn new(
        node: Node,
        target: Target,
        mut options: PathOptions,
        usage: Arc<Usage>,
    ) -> Self {
        // Streams judge a path for each block.
        if node.carrier() == CarrierKind::Mptcp {
            options.most_lag = Some(MOST_LAG);
            options.most_loss = Some(MOST_LOSS);
        }
        let peer = target.shim;
        let guess = SocketAddr::new(peer.host.ip(), PLAIN_IP_PORT);
        let beside = node.plain_ip().map(|_| Beside::new(guess));
        if beside.is_some() {
            // Plain IP takes one.
            options.subflows = options.subflows.min(usize::from(SLOTS) - 1);
        }
        let remote = Peer {
            node: node.clone(),
            peer,
            key: None,
        };
        let offers = node.host().watch(peer.isd_as);
        Self {
            dialer: Dialer::new(remote, PathSet::new(options), offers),
            node,
            peer,
            tag: target.tag(),
            beside,
            dialed: mpsc::unbounded_channel(),
            known: None,
            open: BTreeMap::new(),
            slots: Slots::new(),
            published: Published::default(),
            received: mpsc::channel(INBOX),
            events: mpsc::unbounded_channel(),
            waiting: Vec::new(),
            carriers: None,
            usage,
            packets: 0,
            load: Load::default(),
            streams: new_streams(),
            connections: Connections::default(),
            decisions: BTreeMap::new(),
            failovers: Failovers::default(),
            lost: Lost::default(),
            warned: BTreeSet::new(),
            began: Instant::now(),
            first: Patience::new(Instant::now()),
            last_error: None,
        }
    }

    /// Runs the session until it fails, or nobody can make requests any more: then it ends in order.
    pub(crate) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let ended = self.work(&mut requests).await;
        if let Err(error) = &ended {
            tracing::warn!("a session ended: {error}");
        }
        let ending = Ending::of(&ended);
        let reason = ended.err().map(|error| error.to_string());
        let reason = reason.unwrap_or_else(|| "it was unused, or the shim has ended".to_owned());
        self.refuse(requests, &reason);
        self.end(ending, reason).await;
    }

    async fn work(
        &mut self,
        requests: &mut mpsc::UnboundedReceiver<Request>,
    ) -> Result<(), SessionError> {
        self.look_up().await?;
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.answer(request),
                    None => return Ok(()),
                },
                dialed = self.dialer.next() => self.on_path_dialed(dialed)?,
                Some(dialed) = self.dialed.1.recv() => self.on_dialed(dialed)?,
                Some((lane, message)) = self.received.1.recv() => self.on_message(lane, message)?,
                Some((lane, event)) = self.events.1.recv() => {
                    // What the peer sent before a lane ended tells why.
                    for _ in 0..self.received.1.len() {
                        if let Ok((lane, message)) = self.received.1.try_recv() {
                            self.on_message(lane, message)?;
                        }
                    }
                    self.on_event(lane, event);
                }
                _ = tick.tick() => self.tick()?,
            }
            self.follow_orders();
            self.dial_plain_ip();
            self.place_lanes();
            self.publish();
        }
    }

    /// Waits for the paths to the peer. Without any it fails here, with the reason, unless there is
    /// plain IP.
    async fn look_up(&mut self) -> Result<(), SessionError> {
        let paths = self.node.host().paths(self.peer.isd_as);
        let found = match self.beside {
            None => paths.await,
            Some(_) => match tokio::time::timeout(HEAD_START, paths).await {
                Ok(found) => found,
                Err(_) => return Ok(()),
            },
        };
        let Err(error) = found else { return Ok(()) };
        let reason = error.to_string();
        if self.beside.is_none() {
            return Err(SessionError::NoPath {
                peer: self.peer,
                reason,
            });
        }
        self.last_error = Some(reason);
        Ok(())
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::Connect(answer) => {
                self.waiting.push(answer);
                self.answer_waiting();
            }
            Request::Carry(handed, permit) => {
                let (streams, connections) = (self.streams.streams.clone(), &self.connections);
                let (connections, node) = (connections.clone(), self.node.clone());
                let carried = streams::carry(handed, self.peer, streams, connections, node);
                tokio::spawn(async move {
                    let _permit = permit;
                    carried.await;
                });
            }
            Request::Policy(policy) => self.dialer.paths.set_policy(policy),
            Request::InUse(peers) => self.in_use(&peers),
            Request::Report(answer) => {
                let _ = answer.send(self.report());
            }
        }
    }

    /// Does what the path manager orders.
    fn follow_orders(&mut self) {
        let is_dialing = self.dialer.is_dialing();
        let load = &self.load;
        for order in (self.dialer).orders(|subflow| load.of(subflow), Instant::now()) {
            match order.action {
                // The dialer carries it out.
                Action::Dial => {}
                Action::Hold => self.on_hold(order.subflow, |hold| hold.hold(&order.cause)),
                Action::Resume => self.on_hold(order.subflow, |hold| hold.resume(Instant::now())),
                Action::Close { .. } => {
                    let is_denied = matches!(order.cause, Cause::Decided(Reason::Policy { .. }));
                    self.close(order.subflow, is_dialing && !is_denied);
                }
            }
        }
        for (fingerprint, decision) in self.dialer.paths.changes() {
            self.decisions.insert(fingerprint, decision);
        }
    }

    /// Changes whether MPTCP's subflows may use a lane. Streams need no such thing: they judge a path for
    /// each block.
    fn on_hold(&mut self, subflow: SubflowId, change: impl FnOnce(&mut Hold)) {
        let of = Use::Path(subflow);
        if let Some(one) = self.open.values_mut().find(|one| one.of == of) {
            change(&mut one.hold);
        }
    }

    /// Closes the lane of a subflow: at once, or once its slot has another one, if `may_wait`.
    fn close(&mut self, subflow: SubflowId, may_wait: bool) {
        let of = Use::Path(subflow);
        let found = self.open.iter_mut().find(|(_, one)| one.of == of);
        let Some((&key, lane)) = found else { return };
        if !may_wait {
            self.remove(key);
        } else {
            // Its slot goes to the lane that is being dialed, without a moment without a path.
            lane.closes = Some(Instant::now() + REPLACED);
        }
    }

    /// Records that a lane has ended, or was not connected.
    fn lost(&mut self, of: Use, failure: Failure, error: String) {
        let now = Instant::now();
        match of {
            Use::Path(subflow) => self.dialer.paths.lost(subflow, failure, error, now),
            Use::PlainIp(_) => self.beside.iter_mut().for_each(|one| one.lost(now)),
        }
    }

    fn tick(&mut self) -> Result<(), SessionError> {
        let now = Instant::now();
        self.watch_use();
        let due = self
            .open
            .iter()
            .filter(|(_, one)| one.closes.is_some_and(|at| at <= now));
        let due: Vec<LaneKey> = due.map(|(key, _)| *key).collect();
        for key in due {
            self.remove(key);
        }
        self.weigh(now);
        let is_needed = !self.waiting.is_empty() || !self.connections.is_empty();
        if self.known.is_none() && is_needed {
            let trouble = self
                .dialer
                .paths
                .trouble()
                .or_else(|| self.last_error.clone());
            let peer = self.peer;
            let is_hopeful = self.beside.as_ref().is_some_and(Beside::is_hopeful);
            if !self.dialer.paths.is_usable() && !self.dialer.is_dialing() && !is_hopeful {
                let reason = trouble.unwrap_or_else(|| "none is offered".to_owned());
                return Err(SessionError::NoPath { peer, reason });
            }
            if self.first.is_over(FIRST_PATH_TIMEOUT, now) {
                return Err(SessionError::Silent {
                    peer,
                    after: FIRST_PATH_TIMEOUT,
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
        if let Some(mut live) = self.published.update(self.usable_slots()) {
            // Connections are opened over the first one.
            let rtt = |slot: &Slot| table.binding(*slot).and_then(|one| one.lane.rtt());
            live.sort_by_key(|slot| rtt(slot).unwrap_or(Duration::MAX));
            self.node.tell(ToHolder::Slots {
                peer: table.peer.address(0),
                role: Role::Client,
                live,
                name: self.peer.to_string(),
            });
        }
    }
}
