//! The holder's side of its connection to the carrier, which may come and go.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hawser_tun::Queue;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::capture::{self, Capture};
use super::network::Network;
use super::relays::{Expected, Relays};
use super::report::HolderReport;
use super::serve::Served;
use super::{HolderError, Mptcp, outgoing};
use crate::address::Slot;
use crate::handover::HandoverSender;
use crate::link::{Found, Link, Role, ToCarrier, ToHolder};

/// How long the carrier may take to end, and then connections.
const ENDED: Duration = Duration::from_secs(1);
/// How long a carrier waits for an earlier one whose end has not been noticed yet.
const VACATED: Duration = Duration::from_secs(1);
/// How long a program's connection waits for a carrier and for the session with the other host.
const WAITED: Duration = Duration::from_secs(15);

/// Interval at which the carrier is informed of what MPTCP carries.
const MEASURED: Duration = Duration::from_secs(1);
/// Interval at which the carrier is informed of which hosts there are connections to: much less than
/// the time after which it ends an unused session.
const USED: Duration = Duration::from_secs(30);

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
    state: Mutex<State>,
    mptcp: Mptcp,
    relays: Relays,
    served: watch::Sender<Served>,
    attached: Notify,
    detached: Notify,
    /// The outcome of the first capture, once it is known.
    captured: watch::Sender<Option<Result<(), Arc<HolderError>>>>,
}

struct State {
    /// `None` once the holder ends.
    capture: Option<Capture>,
    /// The port of the listener for other hosts' connections, once there is one.
    forwarded: Option<u16>,
    carrier: Option<Attached>,
    /// Requests without an answer.
    requests: HashMap<u64, oneshot::Sender<Answer>>,
    next_request: u64,
    live: HashMap<(Ipv6Addr, Role), Vec<Slot>>,
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
}

impl Carriers {
    pub(super) fn new(capture: Capture, mptcp: Mptcp) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::new(State {
                capture: Some(capture),
                forwarded: None,
                carrier: None,
                requests: HashMap::new(),
                next_request: 0,
                live: HashMap::new(),
            }),
            mptcp,
            relays: Relays::default(),
            served: watch::Sender::default(),
            attached: Notify::new(),
            detached: Notify::new(),
            captured: watch::Sender::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel's MPTCP.
    pub(super) fn network(&self) -> Option<&Network> {
        self.0.mptcp.network()
    }

    /// The connections that are relayed.
    pub(super) fn relays(&self) -> &Relays {
        &self.0.relays
    }

    /// What other hosts may connect to.
    pub(super) fn served(&self) -> Served {
        self.0.served.borrow().clone()
    }

    pub(super) fn report(&self) -> HolderReport {
        self.0.relays.report(self.is_attached())
    }

    /// A copy of the queue of the device for captured packets.
    pub(super) fn captured(&self) -> Result<Queue, HolderError> {
        match &self.state().capture {
            Some(capture) => capture.queue(),
            None => Err(HolderError::Ending),
        }
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
        let _ = tokio::time::timeout(ENDED, self.detached()).await;
        self.0.relays.end_all("the shim is taken down");
        let _ = tokio::time::timeout(ENDED, self.0.relays.idle()).await;
        self.state().capture = None;
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
        let _ = tokio::time::timeout(VACATED, self.detached()).await;
    }

    /// Waits until what is mapped is captured for the first time.
    pub(super) async fn first_capture(&self) -> Result<(), Arc<HolderError>> {
        let mut captured = self.0.captured.subscribe();
        match captured.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            _ => Err(Arc::new(HolderError::Ending)),
        }
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
    ) -> Result<(), HolderError> {
        {
            let mut state = self.state();
            if state.carrier.is_some() {
                return Err(HolderError::Attached);
            }
            state.carrier = Some(Attached {
                requests: link.sender(),
                handover: Arc::new(handover),
            });
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
                this.on_message(message);
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

    fn on_message(&self, message: ToHolder) {
        match message {
            ToHolder::Slots { peer, role, live } => {
                self.state().live.insert((peer, role), live.clone());
                if let Some(subflows) = self.0.mptcp.subflows() {
                    subflows.set(peer, role, live);
                }
            }
            ToHolder::Capture { prefixes, routed } => {
                let mut state = self.state();
                let Some(capture) = &mut state.capture else {
                    return;
                };
                let set = capture.set(prefixes, routed, &self.0.relays.hosts());
                if let Some(carrier) = &state.carrier {
                    let captured = set.as_ref().map(|_| ()).map_err(ToString::to_string);
                    // It may have ended.
                    let _ = carrier.requests.send(ToCarrier::Captured(captured));
                }
                drop(state);
                if let Err(error) = &set {
                    tracing::error!("{error}");
                }
                let outcome = set.map_err(Arc::new);
                self.0.captured.send_if_modified(|first| {
                    let is_first = first.is_none();
                    first.get_or_insert(outcome);
                    is_first
                });
            }
            ToHolder::Forward(forwards) => {
                if let Err(error) = self.forward(forwards) {
                    tracing::error!("{error}");
                }
            }
            ToHolder::Serve(served) => {
                self.0.served.send_replace(served);
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
            ToHolder::Measure => self.measure(),
            ToHolder::StreamEnded {
                was_set_up,
                failure,
            } => self.0.relays.stream_ended(was_set_up, failure),
            ToHolder::Ended { peer, role, reason } => {
                self.state().live.remove(&(peer, role));
                self.0.relays.end(peer, role, &reason);
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
                Answer::Peer(expected, live.and_then(|live| live.first().copied()))
            }
            Found::Stream => Answer::Stream,
            Found::Direct => Answer::Direct,
            Found::Failed(reason) => Answer::Failed(reason),
        }
    }

    /// Captures connections of other hosts, or no longer.
    fn forward(&self, forwards: bool) -> Result<(), HolderError> {
        let mut state = self.state();
        if forwards && state.forwarded.is_none() {
            let listener = capture::listen_for_others()?;
            let port = listener.local_addr().map(|address| address.port());
            let port = port.map_err(HolderError::system("listen for other hosts' connections"))?;
            state.forwarded = Some(port);
            outgoing::run(vec![listener], self);
        }
        let port = state.forwarded.filter(|_| forwards);
        match &mut state.capture {
            Some(capture) => capture.forward(port),
            None => Ok(()),
        }
    }

    /// Informs a carrier of which hosts programs are connected to, until it ends.
    fn report_use(&self, carrier: mpsc::UnboundedSender<ToCarrier>) {
        let relays = self.0.relays.clone();
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(USED);
            loop {
                tick.tick().await;
                let peers = relays.peers();
                if carrier.send(ToCarrier::InUse(peers)).is_err() {
                    return;
                }
            }
        });
    }

    /// Informs the carrier of what MPTCP carries, until it ends.
    fn measure(&self) {
        let Some(carrier) = self.state().carrier.clone() else {
            return;
        };
        let relays = self.0.relays.clone();
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(MEASURED);
            loop {
                tick.tick().await;
                if carrier
                    .requests
                    .send(ToCarrier::Carried(relays.carried()))
                    .is_err()
                {
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
        let found = tokio::time::timeout(WAITED, found).await;
        match found.map_err(|_| "the shim is not up")? {
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
