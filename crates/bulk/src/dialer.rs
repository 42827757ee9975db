//! The client's side of a session: obeys the path manager.

mod opening;
mod target;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::Path;
use hawser_manager::{Action, Carried, Failure, PathSet, SubflowId};
use hawser_session::{Remote, SharedPolicy};
use tokio::sync::mpsc;

pub(crate) use self::opening::Opening;
use self::target::DialError;
pub(crate) use self::target::Target;
use crate::data::{Measured, SubflowKey};
use crate::error::TransferError;
use crate::joined::Joined;
use crate::report::TransferEvent;

/// A server, as it is dialed.
struct Server(Arc<Target>);

impl Remote for Server {
    type Path = Path;
    /// A connection that has begun or joined the session, with the server's credit.
    type Outcome = Result<(Joined, u64), DialError>;

    fn fits(&self, path: &Path) -> Result<(), String> {
        let fits = self.0.node.quic().fits(self.0.peer, path);
        fits.map_err(|error| error.to_string())
    }

    fn dial(&self, path: Path) -> impl Future<Output = Self::Outcome> + Send + 'static {
        let target = Arc::clone(&self.0);
        async move { target.dial(path).await }
    }
}

/// Dials the paths that the path manager orders, for one session.
pub(crate) struct Dialer {
    dialer: hawser_session::Dialer<Server>,
    /// The subflows that are connected, by both of their names.
    open: HashMap<SubflowKey, SubflowId>,
    joined: mpsc::UnboundedSender<Joined>,
    fatal: Option<TransferError>,
    /// The credit of the first answer.
    pub(crate) credit: Option<u64>,
}

/// What the session does as the path manager orders.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// The subflows that are closed, and whether what is in flight over them is waited for.
    pub closed: Vec<(SubflowKey, bool)>,
    /// The subflows over which nothing new is sent, or again.
    pub held: Vec<(SubflowKey, bool)>,
}

impl Dialer {
    /// Connections that are set up go to `joined`. A `policy` takes the place of that of `paths`.
    pub(crate) fn new(
        target: Arc<Target>,
        paths: PathSet<Path>,
        policy: Option<&SharedPolicy>,
        joined: mpsc::UnboundedSender<Joined>,
    ) -> Self {
        let offers = target.node.host().watch(target.peer.isd_as);
        let dialer = hawser_session::Dialer::new(Server(target), paths, offers);
        Self {
            dialer: match policy {
                Some(policy) => dialer.with_policy(policy),
                None => dialer,
            },
            open: HashMap::new(),
            joined,
            fatal: None,
            credit: None,
        }
    }

    /// Waits until something happened that may lead to orders.
    pub(crate) async fn next(&mut self) {
        match self.dialer.next().await {
            Some((subflow, Ok((joined, credit)))) => {
                // It counts as connected once content gets through.
                if let Some(rtt) = joined.rtt {
                    self.dialer.paths.answered(subflow, rtt);
                }
                self.open.insert(joined.subflow, subflow);
                self.credit.get_or_insert(credit);
                // The session takes it until it ends.
                let _ = self.joined.send(joined);
            }
            Some((subflow, Err(DialError::Path(error)))) => {
                let paths = &mut self.dialer.paths;
                paths.lost(subflow, Failure::Failed, error, Instant::now());
            }
            Some((_, Err(DialError::Fatal(error)))) => self.fatal = Some(error),
            None => {}
        }
    }

    /// Reports that content gets through.
    pub(crate) fn connected(&mut self, subflow: SubflowKey, rtt: Duration, now: Instant) {
        if let Some(id) = self.open.get(&subflow) {
            self.dialer.paths.connected(*id, Some(rtt), now);
        }
    }

    pub(crate) fn stalled(&mut self, subflow: SubflowKey, now: Instant) {
        if let Some(id) = self.open.get(&subflow) {
            self.dialer.paths.stalled(*id, now);
        }
    }

    pub(crate) fn recovered(&mut self, subflow: SubflowKey) {
        if let Some(id) = self.open.get(&subflow) {
            self.dialer.paths.recovered(*id);
        }
    }

    /// Reports that a connection ended.
    pub(crate) fn lost(&mut self, subflow: SubflowKey, error: String, now: Instant) {
        if let Some(id) = self.open.remove(&subflow) {
            self.dialer.paths.lost(id, Failure::Closed, error, now);
        }
    }

    /// Why no path works, if none does.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.dialer.paths.trouble()
    }

    /// Whether some path may be dialed, now or later.
    pub(crate) fn is_usable(&self) -> bool {
        self.dialer.paths.is_usable()
    }

    /// Weighs the paths by what was `measured` of each subflow, if that is due; dials and closes as ordered,
    /// and reports decisions to `events`.
    pub(crate) fn orders(
        &mut self,
        measured: impl Fn(SubflowKey) -> Option<Measured>,
        events: &mpsc::UnboundedSender<TransferEvent>,
    ) -> Result<Effects, TransferError> {
        if let Some(error) = self.fatal.take() {
            return Err(error);
        }
        let mut effects = Effects::default();
        let open = &self.open;
        let carried = |id| {
            let key = open.iter().find(|(_, open)| **open == id);
            let measured = key.and_then(|(key, _)| measured(*key)).unwrap_or_default();
            Carried {
                bytes: measured.delivered,
                usable: measured.usable,
            }
        };
        for order in self.dialer.orders(carried, Instant::now()) {
            let key = self.open.iter().find(|(_, id)| **id == order.subflow);
            let key = key.map(|(key, _)| *key);
            match order.action {
                // The dialer carries it out.
                Action::Dial => {}
                Action::Hold | Action::Resume => {
                    let held = order.action == Action::Hold;
                    effects.held.extend(key.map(|key| (key, held)));
                }
                Action::Close { drain } => {
                    if let Some(key) = key {
                        self.open.remove(&key);
                        effects.closed.push((key, drain));
                    }
                }
            }
        }
        for (fingerprint, decision) in self.dialer.paths.changes() {
            let path = self.dialer.paths.path(fingerprint).cloned();
            let _ = events.send(TransferEvent::Decided(fingerprint, path, decision));
        }
        Ok(effects)
    }
}
