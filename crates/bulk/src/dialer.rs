//! The client's side of a session: obeys the path manager.

mod opening;
mod target;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::Path;
use hawser_manager::{Action, Carried, Failure, Order, PathSet, SubflowId};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

pub(crate) use self::opening::Opening;
use self::target::DialError;
pub(crate) use self::target::Target;
use crate::data::{Measured, SubflowKey};
use crate::error::TransferError;
use crate::joined::Joined;
use crate::report::TransferEvent;

/// A connection was set up, or was not.
#[derive(Debug)]
enum Dialed {
    Joined(SubflowId, Box<Joined>, u64),
    Failed(SubflowId, DialError),
}

/// Dials the paths that the path manager orders, for one session.
pub(crate) struct Dialer {
    target: Arc<Target>,
    paths: PathSet<Path>,
    offers: watch::Receiver<Arc<Vec<Path>>>,
    dials: HashMap<SubflowId, AbortHandle>,
    /// The subflows that are connected, by both of their names.
    open: HashMap<SubflowKey, SubflowId>,
    results: (
        mpsc::UnboundedSender<Dialed>,
        mpsc::UnboundedReceiver<Dialed>,
    ),
    joined: mpsc::UnboundedSender<Joined>,
    fatal: Option<TransferError>,
    /// The credit of the first answer.
    pub(crate) credit: Option<u64>,
}

/// What the session does as the path manager orders.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub closed: Vec<SubflowKey>,
    pub held: Vec<(SubflowKey, bool)>,
}

impl Dialer {
    /// Connections that are set up go to `joined`.
    pub(crate) fn new(
        target: Arc<Target>,
        paths: PathSet<Path>,
        joined: mpsc::UnboundedSender<Joined>,
    ) -> Self {
        let mut offers = target.node.host().watch(target.peer.isd_as);
        offers.mark_changed();
        Self {
            target,
            paths,
            offers,
            dials: HashMap::new(),
            open: HashMap::new(),
            results: mpsc::unbounded_channel(),
            joined,
            fatal: None,
            credit: None,
        }
    }

    /// Waits until something happened that may lead to orders.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            Ok(()) = self.offers.changed() => self.offer(),
            Some(dialed) = self.results.1.recv() => self.on_dialed(dialed),
        }
    }

    fn offer(&mut self) {
        let offered = self.offers.borrow_and_update();
        let (endpoint, peer) = (self.target.node.quic(), self.target.peer);
        let fits = |path: &Path| endpoint.fits(peer, path).map_err(|error| error.to_string());
        self.paths.offer(&offered, fits, Instant::now());
    }

    fn on_dialed(&mut self, dialed: Dialed) {
        match dialed {
            // One that was cancelled while its outcome was on its way here: the path manager knows nothing
            // of it, and would never have it closed. Dropped, its connection closes.
            Dialed::Joined(subflow, ..) | Dialed::Failed(subflow, DialError::Path(_))
                if self.dials.remove(&subflow).is_none() => {}
            Dialed::Joined(subflow, joined, credit) => {
                // It counts as connected once content gets through.
                if let Some(rtt) = joined.rtt {
                    self.paths.answered(subflow, rtt);
                }
                self.open.insert(joined.subflow, subflow);
                self.credit.get_or_insert(credit);
                // The session takes it until it ends.
                let _ = self.joined.send(*joined);
            }
            Dialed::Failed(subflow, error) => {
                self.dials.remove(&subflow);
                match error {
                    DialError::Path(error) => {
                        (self.paths).lost(subflow, Failure::Failed, error, Instant::now());
                    }
                    DialError::Fatal(error) => self.fatal = Some(error),
                }
            }
        }
    }

    /// Reports that content gets through.
    pub(crate) fn connected(&mut self, subflow: SubflowKey, rtt: Duration, now: Instant) {
        if let Some(id) = self.open.get(&subflow) {
            self.paths.connected(*id, Some(rtt), now);
        }
    }

    pub(crate) fn stalled(&mut self, subflow: SubflowKey, now: Instant) {
        if let Some(id) = self.open.get(&subflow) {
            self.paths.stalled(*id, now);
        }
    }

    pub(crate) fn recovered(&mut self, subflow: SubflowKey) {
        if let Some(id) = self.open.get(&subflow) {
            self.paths.recovered(*id);
        }
    }

    /// Reports that a connection ended.
    pub(crate) fn lost(&mut self, subflow: SubflowKey, error: String, now: Instant) {
        if let Some(id) = self.open.remove(&subflow) {
            self.paths.lost(id, Failure::Closed, error, now);
        }
    }

    /// Ends time slots that are over.
    pub(crate) fn tick(&mut self, measured: impl Fn(SubflowKey) -> Option<Measured>) {
        let by_id: HashMap<SubflowId, Measured> = (self.open.iter())
            .filter_map(|(key, id)| Some((*id, measured(*key)?)))
            .collect();
        let carried = |id| {
            let measured = by_id.get(&id).copied().unwrap_or_default();
            Carried {
                bytes: measured.delivered,
                usable: measured.usable,
            }
        };
        self.paths.tick(carried, Instant::now());
    }

    /// Why no path works, if none does.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.paths.trouble()
    }

    /// Whether some path may be dialed, now or later.
    pub(crate) fn is_usable(&self) -> bool {
        self.paths.is_usable()
    }

    /// Dials and closes as ordered, and reports decisions to `events`.
    pub(crate) fn orders(
        &mut self,
        events: &mpsc::UnboundedSender<TransferEvent>,
    ) -> Result<Effects, TransferError> {
        if let Some(error) = self.fatal.take() {
            return Err(error);
        }
        let mut effects = Effects::default();
        for order in self.paths.orders(Instant::now()) {
            let key = self.open.iter().find(|(_, id)| **id == order.subflow);
            let key = key.map(|(key, _)| *key);
            match order.action {
                Action::Dial => self.dial(&order),
                Action::Hold | Action::Resume => {
                    let held = order.action == Action::Hold;
                    effects.held.extend(key.map(|key| (key, held)));
                }
                Action::Close { .. } => {
                    if let Some(dial) = self.dials.remove(&order.subflow) {
                        dial.abort();
                    }
                    if let Some(key) = key {
                        self.open.remove(&key);
                        effects.closed.push(key);
                    }
                }
            }
        }
        for (fingerprint, decision) in self.paths.changes() {
            let path = self.paths.path(fingerprint).cloned();
            let _ = events.send(TransferEvent::Decided(fingerprint, path, decision));
        }
        Ok(effects)
    }

    fn dial(&mut self, order: &Order) {
        let Some(path) = self.paths.path(order.path).cloned() else {
            return;
        };
        let (target, results) = (Arc::clone(&self.target), self.results.0.clone());
        let subflow = order.subflow;
        let task = tokio::spawn(async move {
            let dialed = match target.dial(path).await {
                Ok((joined, credit)) => Dialed::Joined(subflow, Box::new(joined), credit),
                Err(error) => Dialed::Failed(subflow, error),
            };
            // The session may have ended.
            let _ = results.send(dialed);
        });
        self.dials.insert(subflow, task.abort_handle());
    }
}

impl Drop for Dialer {
    fn drop(&mut self) {
        self.dials.values().for_each(AbortHandle::abort);
    }
}
