//! The holder's side of its connection to the carrier, which may come and go.

#[cfg(test)]
pub(super) mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hawser_endhost::patience::wait;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::captures::Captures;
use super::error::HolderError;
use super::lender::Lender;
use super::mptcp::Mptcp;
use super::network::Network;
use super::opening::CONNECT_TIMEOUT;
use super::relays::{Expected, Relays, Session};
use crate::address::Slot;
use crate::budget::Budget;
use crate::handover::HandoverSender;
use crate::link::{Found, Link, ToCarrier, ToHolder};
use crate::protocol::Role;
use crate::report::HolderReport;
use crate::served::{self, Served};

/// How long the carrier may take to end, and then connections: more than a carrier that runs needs, as it
/// may get no processor for a while.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a carrier waits for an earlier one whose end has not been noticed yet.
const VACATE_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest wait until another host can be reached again, and then over as many slots as before.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Longest wait until the carrier speaks of a session of which a connection has arrived.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which the carrier is informed of which hosts there are connections to: much less than
/// the time after which it ends an unused session.
const USE_INTERVAL: Duration = Duration::from_secs(30);

/// Where a connection goes.
pub(super) enum Connect {
    /// To a host, from this slot.
    Peer(Expected, Slot),
    /// To the carrier.
    Stream(Arc<HandoverSender>),
    /// Not over SCION.
    Direct,
}

/// What carriers reported, and requests to them. Cloning shares it.
#[derive(Clone)]
pub(super) struct Carriers(Arc<Inner>);

struct Inner {
    state: Mutex<CarriersState>,
    captures: Captures,
    /// Whether programs are captured in a namespace of their own.
    is_enclosed: bool,
    mptcp: Mptcp,
    relays: Relays,
    budget: Budget,
    served: watch::Sender<Served>,
    attached: Notify,
    detached: Notify,
    /// Notified when the slots of a session change.
    moved: Notify,
    /// Accepts connections at listeners for captured ones.
    accept: Accept,
}

/// Accepts captured connections at listeners.
type Accept = fn(Vec<TcpListener>, &Carriers);

struct CarriersState {
    carrier: Option<Attached>,
    /// Requests without an answer.
    requests: HashMap<u64, oneshot::Sender<Answer>>,
    next_request: u64,
    live: HashMap<Session, Live>,
}

/// What is known of a session.
#[derive(Default)]
struct Live {
    /// The slots that the other host can be reached over. While it cannot be reached, those it was last
    /// reached over: connections that begin then wait there. None until a carrier that has been started
    /// anew has said so.
    slots: Vec<Slot>,
    /// How many there were with the carrier before.
    before: usize,
    /// The other host, for messages.
    name: String,
}

/// The carrier's answer to a request.
enum Answer {
    /// To a host, from this slot if one was live.
    Peer(Expected, Option<Slot>),
    /// To the carrier.
    Stream,
    /// Not over SCION.
    Direct,
    /// Nowhere, for this reason.
    Failed(String),
}

/// A carrier that works with the holder.
#[derive(Clone)]
struct Attached {
    requests: mpsc::UnboundedSender<ToCarrier>,
    handover: Arc<HandoverSender>,
    /// Lends it connections, if it has the kernel's MPTCP.
    lender: Option<Lender>,
}

impl Carriers {
    /// Without a carrier. Connections of other hosts, once they are captured, are taken by `accept`.
    pub(super) fn new(
        captures: Captures,
        mptcp: Mptcp,
        is_enclosed: bool,
        relays: Relays,
        accept: Accept,
    ) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::new(CarriersState {
                carrier: None,
                requests: HashMap::new(),
                next_request: 0,
                live: HashMap::new(),
            }),
            captures,
            is_enclosed,
            mptcp,
            relays,
            budget: Budget::of_process(),
            served: watch::Sender::default(),
            attached: Notify::new(),
            detached: Notify::new(),
            moved: Notify::new(),
            accept,
        }))
    }

    fn state(&self) -> MutexGuard<'_, CarriersState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel's MPTCP.
    pub(super) fn network(&self) -> Option<&Network> {
        self.0.mptcp.network()
    }

    /// Lends connections to the carrier, if there is one that may have them.
    pub(super) fn lender(&self) -> Option<Lender> {
        self.state().carrier.as_ref()?.lender.clone()
    }

    /// The connections that are relayed.
    pub(super) fn relays(&self) -> &Relays {
        &self.0.relays
    }

    /// What is captured.
    pub(super) fn captures(&self) -> &Captures {
        &self.0.captures
    }

    /// Whether programs are captured in the network namespace of this process.
    pub(super) fn is_on_host(&self) -> bool {
        !self.0.is_enclosed
    }

    /// How many connections there may be.
    pub(super) fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// The other host of a session, for messages.
    pub(super) fn name(&self, session: Session) -> Option<String> {
        let state = self.state();
        let live = state.live.get(&session)?;
        Some(live.name.clone()).filter(|name| !name.is_empty())
    }

    /// What other hosts may connect to.
    pub(super) fn served(&self) -> Served {
        self.0.served.borrow().clone()
    }

    /// Whether other hosts may connect to `destination`.
    pub(super) fn serves(&self, destination: SocketAddr) -> bool {
        served::find(&self.0.served.borrow(), destination).is_some()
    }

    pub(super) fn report(&self) -> HolderReport {
        self.0.relays.report(self.is_attached())
    }

    /// Ends the carrier, all connections, and then all captures: without them, the kernel would not
    /// tell programs that their connections have ended.
    ///
    /// The carrier is first: other hosts learn from it that the sessions end, and let their servers
    /// have what has arrived up to the end of a connection. The resets that the kernel sends for those
    /// whose servers have not answered would stop that.
    pub(super) async fn release(&self) {
        if let Some(carrier) = &self.state().carrier {
            // It may have ended.
            let _ = carrier.requests.send(ToCarrier::Down);
        }
        // What does not end in this time ends with the process.
        let _ = wait(END_TIMEOUT, self.detached()).await;
        self.0.relays.end_all("the shim is taken down");
        let _ = wait(END_TIMEOUT, self.0.relays.idle()).await;
        self.blocking(|this| this.captures().release()).await;
    }

    /// Does what may wait for the kernel.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let (this, runtime) = (self.clone(), Handle::current());
        let work = move || {
            // Listeners belong to it.
            let _runtime = runtime.enter();
            work(&this)
        };
        // A panic was reported.
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Waits until no carrier works with the holder.
    pub(super) async fn detached(&self) {
        loop {
            let detached = self.0.detached.notified();
            if !self.is_attached() {
                return;
            }
            detached.await;
        }
    }

    /// Waits until no carrier works with the holder, but not for long: one that has just been
    /// killed may not have been noticed yet, and another takes its place.
    pub(super) async fn vacated(&self) {
        // One that is still there afterwards is refused company.
        let _ = tokio::time::timeout(VACATE_TIMEOUT, self.detached()).await;
    }

    /// Whether a carrier works with the holder.
    pub(super) fn is_attached(&self) -> bool {
        self.state().carrier.is_some()
    }

    /// Works with the carrier at the other end of `link`.
    pub(super) fn attach(
        &self,
        mut link: Link<ToCarrier, ToHolder>,
        handover: HandoverSender,
        lender: Option<Lender>,
    ) -> Result<(), HolderError> {
        {
            let mut state = self.state();
            if state.carrier.is_some() {
                return Err(HolderError::Attached);
            }
            state.carrier = Some(Attached {
                requests: link.sender(),
                handover: Arc::new(handover),
                lender,
            });
            // Other hosts come back over new lanes.
            let live = state.live.iter_mut();
            for (_, live) in live.filter(|((_, role), _)| *role == Role::Server) {
                live.before = live.slots.len();
                live.slots.clear();
            }
        }
        self.0.attached.notify_waiters();
        // Connections that an earlier carrier has left need their sessions; the answers do not matter.
        for destination in self.0.relays.destinations() {
            let _ = self.request(destination);
        }
        self.report_use(link.sender());
        let this = self.clone();
        tokio::spawn(async move {
            while let Some(message) = link.receive().await {
                this.on_message(message).await;
            }
            let mut state = this.state();
            state.carrier = None;
            // Those who wait ask the next carrier.
            state.requests.clear();
            this.0.detached.notify_waiters();
            tracing::info!("the carrier has ended; connections wait for another");
        });
        Ok(())
    }

    async fn on_message(&self, message: ToHolder) {
        match message {
            ToHolder::Slots {
                peer,
                role,
                live,
                name,
            } => {
                let mut state = self.state();
                let known = state.live.entry((peer, role)).or_default();
                known.name = name;
                if !live.is_empty() {
                    known.slots.clone_from(&live);
                }
                drop(state);
                self.0.moved.notify_waiters();
                if let Some(subflows) = self.0.mptcp.subflows() {
                    subflows.set(peer, role, live);
                }
            }
            ToHolder::Capture { prefixes, routed } => {
                let set = move |this: &Self| {
                    let hosts = this.0.relays.hosts();
                    this.captures().set(prefixes, routed, &hosts)
                };
                let Some(Some(set)) = self.blocking(set).await else {
                    return;
                };
                let captured = set.map_err(|error| error.to_string());
                if let Some(carrier) = &self.state().carrier {
                    // It may have ended.
                    let _ = carrier.requests.send(ToCarrier::Captured(captured));
                }
            }
            ToHolder::Forward(forwards) => self.forward(forwards).await,
            ToHolder::Serve(served) => {
                self.0.served.send_replace(served);
                self.0.relays.end_unserved(|to| self.serves(to));
            }
            ToHolder::Mtu(bytes) => {
                let network = self.0.mptcp.network();
                if let Some(Err(error)) = network.map(|network| network.set_mtu(bytes)) {
                    tracing::error!("{error}");
                }
            }
            ToHolder::Connected { id, found } => {
                let waiting = self.state().requests.remove(&id);
                if let Some(waiting) = waiting {
                    // The program may have given up.
                    let _ = waiting.send(self.take(found));
                }
            }
            ToHolder::StreamEnded {
                was_set_up,
                failure,
            } => self.0.relays.stream_ended(was_set_up, failure),
            ToHolder::Ended {
                peer,
                role,
                reason,
                at_once,
            } => {
                self.0.relays.end((peer, role), &reason, at_once);
                self.state().live.remove(&(peer, role));
                if let Some(subflows) = self.0.mptcp.subflows() {
                    subflows.forget(peer, role);
                }
            }
        }
    }

    /// Has a connection to what was found expected from now on: the carrier's next message may be that
    /// the session has ended, and why.
    fn take(&self, found: Found) -> Answer {
        match found {
            Found::Peer(peer) => {
                let session = (peer, Role::Client);
                let expected = self.0.relays.expect(session);
                let state = self.state();
                let live = state.live.get(&session);
                Answer::Peer(expected, live.and_then(|live| live.slots.first().copied()))
            }
            Found::Stream => Answer::Stream,
            Found::Direct => Answer::Direct,
            Found::Failed(reason) => Answer::Failed(reason),
        }
    }

    /// Captures connections of other hosts, or no longer.
    async fn forward(&self, forwards: bool) {
        let forward = move |this: &Self| this.captures().forward(forwards);
        match self.blocking(forward).await {
            Some(Ok(listener)) => (self.0.accept)(Vec::from_iter(listener), self),
            Some(Err(error)) => tracing::error!("{error}"),
            None => {}
        }
    }

    /// Waits until the other host of a session can be reached again, over as many slots as before, if the
    /// carrier has been started anew; no longer than [`RECONNECT_TIMEOUT`].
    pub(super) async fn reconnected(&self, session: Session) {
        let reached = async |least: fn(&Live) -> usize| {
            loop {
                let moved = self.0.moved.notified();
                let mut moved = pin!(moved);
                moved.as_mut().enable();
                let is_reached = {
                    let state = self.state();
                    let live = state.live.get(&session);
                    live.is_none_or(|live| live.slots.len() >= least(live))
                };
                if is_reached {
                    return;
                }
                moved.await;
            }
        };
        let _ = tokio::time::timeout(RECONNECT_TIMEOUT, reached(|_| 1)).await;
        let _ = tokio::time::timeout(SETTLE_TIME, reached(|live| live.before)).await;
    }

    /// Whether there is this session, of which a connection has arrived. The carrier may be about to say
    /// so.
    pub(super) async fn has_session(&self, session: Session) -> bool {
        let known = async {
            loop {
                let moved = self.0.moved.notified();
                let mut moved = pin!(moved);
                moved.as_mut().enable();
                if self.state().live.contains_key(&session) {
                    return;
                }
                moved.await;
            }
        };
        wait(SESSION_TIMEOUT, known).await.is_some()
    }

    /// Informs a carrier of which hosts programs are connected to, until it ends.
    fn report_use(&self, carrier: mpsc::UnboundedSender<ToCarrier>) {
        let relays = self.0.relays.clone();
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(USE_INTERVAL);
            loop {
                tick.tick().await;
                let peers = relays.peers();
                if carrier.send(ToCarrier::InUse(peers)).is_err() {
                    return;
                }
            }
        });
    }

    /// Finds where connections to `destination` go.
    ///
    /// # Errors
    /// Why they go nowhere.
    pub(super) async fn find(&self, destination: SocketAddr) -> Result<Connect, String> {
        let found = async {
            loop {
                let attached = self.0.attached.notified();
                match self.request(destination) {
                    // The carrier may end before it answers.
                    Some(answered) => {
                        if let Ok(found) = answered.await {
                            return found;
                        }
                    }
                    None => attached.await,
                }
            }
        };
        let found = wait(CONNECT_TIMEOUT, found).await;
        let found = found.ok_or_else(|| match self.is_attached() {
            true => format!("no path works within {} s", CONNECT_TIMEOUT.as_secs()),
            false => "the shim is not up".to_owned(),
        });
        match found? {
            Answer::Peer(expected, Some(slot)) => Ok(Connect::Peer(expected, slot)),
            Answer::Peer(expected, None) => {
                let ended = expected.end();
                Err(ended.unwrap_or_else(|| "no path is connected".to_owned()))
            }
            Answer::Stream => {
                let carrier = self.state().carrier.clone();
                let carrier = carrier.ok_or("the shim is not up")?;
                Ok(Connect::Stream(carrier.handover))
            }
            Answer::Direct => Ok(Connect::Direct),
            Answer::Failed(reason) => Err(reason),
        }
    }

    fn request(&self, destination: SocketAddr) -> Option<oneshot::Receiver<Answer>> {
        let mut state = self.state();
        let id = state.next_request;
        let carrier = state.carrier.clone()?;
        let request = ToCarrier::Connect { id, destination };
        carrier.requests.send(request).ok()?;
        state.next_request += 1;
        let (answer, answered) = oneshot::channel();
        state.requests.insert(id, answer);
        Some(answered)
    }
}
