//! A session that this host opens with another one.
//!
//! # Its life
//!
//! 1. *Looking*: the session is made when the first program connects. The paths to the other host are
//!    [looked up](ClientSession::looked_up) and [offered](ClientSession::offer); the path manager in it
//!    orders dials, which it hands on as actions. Requests wait.
//! 2. *Known*: the first dial has [succeeded](ClientSession::on_connected), and shows the key of the other
//!    host. Each connected lane is put under a slot and opened; the slots that MPTCP may use are published
//!    before the requests are answered. Lanes come and go as paths do; without any, requests wait again.
//! 3. *Over*: it has failed, the other host has refused it, trust has ended, or nobody wants it any more.
//!    Every request that waits is refused, and the last action is [`Action::End`]. Later events change
//!    nothing.
//!
//! One task drives it (`carrier::client`): it reports events, calls
//! [`advance`](ClientSession::advance) after each of them and at [`next_due`](ClientSession::next_due),
//! and carries out the actions in their order. Nothing in here is locked.

mod action;
mod error;
mod events;
mod facts;
mod hold;
mod lanes;
mod load;
#[cfg(test)]
mod operations;
mod plain_ip;
mod shared;
mod slots;
#[cfg(test)]
mod tests;
mod waiting;
#[cfg(test)]
mod world;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_endhost::ScionAddr;
use hawser_keys::PeerKey;
use hawser_manager::{Action as Ordered, Cause, PathOptions, PathSet, SubflowId};
use hawser_path::{Interface, Path, Reason};

pub(crate) use self::action::{Action, Connect, RequestId};
pub(crate) use self::error::{DialError, Ending, SessionError};
pub(crate) use self::events::Connected;
pub(crate) use self::facts::Facts;
pub(crate) use self::lanes::LaneOrigin;
use self::lanes::{Lane, Lanes};
pub(crate) use self::load::Figures;
use self::load::Load;
use self::plain_ip::PlainIpDialer;
use self::waiting::Waiting;
use crate::address::{Block, SLOTS};
use crate::choice::{CarrierKind, CarrierSet};
use crate::session::lane_key::LaneKey;

/// Interval at which what the lanes carry is measured.
const TICK: Duration = Duration::from_millis(50);
/// By how much the round trip of a path may exceed that of the best one: MPTCP delivers in order, and the
/// kernel keeps no more than a few megabytes of what waits for a slower subflow.
const MAX_LAG: Duration = Duration::from_millis(150);
/// Which share of its packets a path may lose: with more, the kernel's TCP carries little over it, and
/// what it carries late holds up the other subflows.
const MAX_LOSS: f64 = 0.05;
/// Time for SCION to connect first, before plain IP is tried in its place.
pub(crate) const HEAD_START: Duration = Duration::from_secs(1);
/// How long a lane that is to be closed still carries its slot while another one is dialed.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a session begins with.
pub(crate) struct Settings {
    /// The other host.
    pub peer: ScionAddr,
    /// Tells the other host's addresses in this session from those in others.
    pub tag: u64,
    /// What carries the connections of programs.
    pub carrier: CarrierKind,
    /// The carriers that this host has.
    pub carriers: CarrierSet,
    /// Where the other host may listen on plain IP, if that may be used.
    pub plain_ip: Option<SocketAddr>,
    /// How paths are chosen.
    pub paths: PathOptions,
}

/// A session that this host opens. `P` is what is needed to dial a path.
pub(crate) struct ClientSession<P> {
    peer: ScionAddr,
    tag: u64,
    /// The key of the other host, once a lane was connected.
    key: Option<PeerKey>,
    carrier: CarrierKind,
    /// The carriers of this host; of both, once the other one has said which it has.
    carriers: CarrierSet,
    paths: PathSet<P>,
    /// The subflows that are being dialed.
    dialing: BTreeSet<SubflowId>,
    /// The lane over plain IP, if that may be used.
    plain_ip: Option<PlainIpDialer>,
    lanes: Lanes<P>,
    load: Load,
    waiting: Waiting,
    facts: Facts,
    actions: Vec<Action<P>>,
    /// When the lanes are measured next; `None` once the session is over.
    tick: Option<Instant>,
}

impl<P: AsRef<Path> + Clone> ClientSession<P> {
    /// A session without a path.
    pub(crate) fn new(settings: Settings, now: Instant) -> Self {
        let mut paths = settings.paths;
        // Streams judge a path for each block.
        if settings.carrier == CarrierKind::Mptcp {
            paths.most_lag = Some(MAX_LAG);
            paths.most_loss = Some(MAX_LOSS);
        }
        if settings.plain_ip.is_some() {
            // Plain IP takes one.
            paths.subflows = paths.subflows.min(usize::from(SLOTS) - 1);
        }
        Self {
            peer: settings.peer,
            tag: settings.tag,
            key: None,
            carrier: settings.carrier,
            carriers: settings.carriers,
            paths: PathSet::new(paths),
            dialing: BTreeSet::new(),
            plain_ip: settings.plain_ip.map(PlainIpDialer::new),
            lanes: Lanes::default(),
            load: Load::default(),
            waiting: Waiting::new(now),
            facts: Facts::default(),
            actions: Vec::new(),
            tick: Some(now),
        }
    }

    /// When [`advance`](Self::advance) must be called even if nothing happens; `None` once the session is
    /// over.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let tick = self.tick?;
        Some(self.paths.next_due().map_or(tick, |due| due.min(tick)))
    }

    /// Decides what is to be done now. Must be called after events, once all that have happened are
    /// reported, and again after its actions were carried out, until there are none.
    ///
    /// `figures` returns what was measured of a lane; `is_used` says whether the session has streams.
    pub(crate) fn advance(
        &mut self,
        figures: impl Fn(LaneKey) -> Figures,
        is_used: bool,
        now: Instant,
    ) -> Vec<Action<P>> {
        if self.tick.is_some_and(|tick| tick <= now) {
            self.measure(figures, is_used, now);
        }
        if !self.is_over() {
            self.follow_orders(now);
            self.dial_plain_ip(now);
            self.place_lanes();
            self.publish();
            self.answer_waiting();
        }
        std::mem::take(&mut self.actions)
    }

    /// Whether the session has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.tick.is_none()
    }

    /// The key of the other host, once a lane was connected.
    pub(crate) fn key(&self) -> Option<PeerKey> {
        self.key
    }

    /// The other host's addresses, once a lane was connected.
    pub(crate) fn block(&self) -> Option<Block> {
        Some(Block::of(&self.key?, self.tag))
    }

    /// Whether requests wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What the status report says of the session.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The interfaces that several of the paths in use share.
    pub(crate) fn shared(&self) -> Vec<Interface> {
        shared::shared(self.lanes.used_paths())
            .into_keys()
            .collect()
    }

    /// Takes the figures of all lanes, closes those whose time is over, and gives up if no path comes
    /// about.
    fn measure(&mut self, figures: impl Fn(LaneKey) -> Figures, is_used: bool, now: Instant) {
        self.tick = Some(now + TICK);
        for lane in self.lanes.due(now) {
            self.remove(lane);
        }
        let mut load = Load::default();
        for (key, lane) in self.lanes.iter_mut() {
            let LaneOrigin::Path(subflow) = lane.origin else {
                continue;
            };
            let figures = figures(*key);
            let count = lane.hold.tick(now);
            if count > 0 {
                self.actions.push(Action::Probe { lane: *key, count });
            }
            lane.rtt = figures.rtt.or(lane.rtt);
            if let Some(rtt) = figures.rtt {
                self.paths.measured(subflow, rtt, now);
            }
            self.paths
                .arrived(subflow, figures.sent, figures.arrived, now);
            load.add(subflow, figures.carried, lane.hold.is_trial());
        }
        self.load.replace(load);
        if self.key.is_none() && (is_used || !self.waiting.is_empty()) {
            self.judge_wait(now);
        }
    }

    /// Ends the session if no path can come about any more, or none has for too long.
    fn judge_wait(&mut self, now: Instant) {
        let trouble = self.paths.trouble();
        let trouble = trouble.or_else(|| self.facts.last_error.clone());
        let is_hopeful = self
            .plain_ip
            .as_ref()
            .is_some_and(PlainIpDialer::is_hopeful);
        let is_hopeful = is_hopeful || self.paths.is_usable() || !self.dialing.is_empty();
        if let Some(error) = self.waiting.judge(self.peer, is_hopeful, trouble, now) {
            self.end(Some(error));
        }
    }

    /// Does what the path manager orders.
    fn follow_orders(&mut self, now: Instant) {
        let is_dialing = !self.dialing.is_empty();
        let load = &self.load;
        self.paths.tick(|subflow| load.of(subflow), now);
        for order in self.paths.orders(now) {
            let subflow = order.subflow;
            match order.action {
                Ordered::Dial => {
                    // Only paths that are offered are dialed.
                    if let Some(path) = self.paths.path(order.path).cloned() {
                        self.dialing.insert(subflow);
                        self.actions.push(Action::DialPath { subflow, path });
                    }
                }
                Ordered::Close { .. } if self.dialing.remove(&subflow) => {
                    self.actions.push(Action::CancelDial(subflow));
                }
                Ordered::Hold => self.on_hold(subflow, |lane| lane.hold.hold(&order.cause)),
                Ordered::Resume => self.on_hold(subflow, |lane| lane.hold.resume(now)),
                Ordered::Close { .. } => {
                    let is_denied = matches!(order.cause, Cause::Decided(Reason::Policy { .. }));
                    self.close(subflow, is_dialing && !is_denied, now);
                }
            }
        }
        self.facts.decide(self.paths.changes());
    }

    /// Changes whether MPTCP's subflows may use a lane. Streams need no such thing: they judge a path for
    /// each block.
    fn on_hold(&mut self, subflow: SubflowId, change: impl FnOnce(&mut Lane<P>)) {
        if let Some((_, lane)) = self.lanes.find_mut(LaneOrigin::Path(subflow)) {
            change(lane);
        }
    }

    /// Closes the lane of a subflow: at once, or once its slot has another one, if it `may_wait`.
    fn close(&mut self, subflow: SubflowId, may_wait: bool, now: Instant) {
        match self.lanes.find_mut(LaneOrigin::Path(subflow)) {
            // Its slot goes to the lane that is being dialed, without a moment without a path.
            Some((_, lane)) if may_wait => lane.closes = Some(now + REPLACE_TIMEOUT),
            Some((key, _)) => self.remove(key),
            None => {}
        }
    }

    /// Dials over plain IP if that is due.
    fn dial_plain_ip(&mut self, now: Instant) {
        let is_hopeful = self.facts.last_error.is_none() && self.waiting.age(now) < HEAD_START;
        let guesses = self.key.is_none() && !is_hopeful;
        let plain_ip = self.plain_ip.as_mut();
        let to = plain_ip.and_then(|plain_ip| plain_ip.dial(guesses, now));
        self.actions.extend(to.map(Action::DialPlainIp));
    }

    /// Puts lanes that have given their slots up, and deliver after all, under slots that are free. The
    /// other side follows the first packet.
    fn place_lanes(&mut self) {
        for (lane, slot, epoch) in self.lanes.place() {
            self.actions.push(Action::Bind { lane, slot, epoch });
        }
    }

    /// Has the holder use the slots that are live.
    fn publish(&mut self) {
        if self.key.is_some()
            && let Some(slots) = self.lanes.publish()
        {
            self.actions.push(Action::Publish(slots));
        }
    }

    /// Answers the requests that wait for a path, if there is one.
    fn answer_waiting(&mut self) {
        let Some(peer) = self.block().filter(|_| !self.lanes.is_empty()) else {
            return;
        };
        let found = match self.carrier {
            // Until the peer has said which it has: one that does not have this one refuses.
            carrier if !self.carriers.has(carrier) => {
                Err(format!("--carrier {carrier} cannot be used here"))
            }
            CarrierKind::Mptcp => Ok(Connect::Mptcp(peer)),
            CarrierKind::Quic => Ok(Connect::Quic(peer)),
        };
        self.answer_all(&found);
    }

    fn answer_all(&mut self, found: &Result<Connect, String>) {
        for request in self.waiting.take() {
            let found = found.clone();
            self.actions.push(Action::Answer { request, found });
        }
    }

    /// Ends the session: with this error, or in order.
    fn end(&mut self, error: Option<SessionError>) {
        if self.tick.take().is_none() {
            return;
        }
        self.dialing.clear();
        let ending = Ending::of(error.as_ref());
        let reason = error.map(|error| error.to_string());
        let reason = reason.unwrap_or_else(|| "it was unused, or the shim has ended".to_owned());
        self.answer_all(&Err(reason.clone()));
        self.actions.push(Action::End { ending, reason });
    }
}
