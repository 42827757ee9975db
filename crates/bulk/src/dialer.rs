//! The client's side of a session: obeys the path manager.

mod agreement;
mod failure;
mod opening;
mod target;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use hawser_endhost::Path;
use hawser_manager::{Carried, Failure, Order, PathSet, SubflowId};
use hawser_session::{Remote, SharedPolicy};
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use self::agreement::Agreement;
use self::failure::DialError;
pub(crate) use self::opening::Opening;
pub(crate) use self::target::Target;
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
    fatal: Option<TransferError>,
}

/// A connection that was dialed.
pub(crate) struct Dialed {
    /// Its name in the path manager's orders.
    pub subflow: SubflowId,
    pub joined: Joined,
    /// The credit that the server has named.
    pub credit: u64,
}

impl Dialer {
    /// A `policy` takes the place of that of `paths`.
    pub(crate) fn new(
        target: Arc<Target>,
        paths: PathSet<Path>,
        policy: Option<&SharedPolicy>,
    ) -> Self {
        let offers = target.node.host().watch(target.peer.isd_as);
        let dialer = hawser_session::Dialer::new(Server(target), paths, offers);
        Self {
            dialer: match policy {
                Some(policy) => dialer.with_policy(policy),
                None => dialer,
            },
            fatal: None,
        }
    }

    /// The path manager, for reports of what becomes of subflows.
    pub(crate) fn paths(&mut self) -> &mut PathSet<Path> {
        &mut self.dialer.paths
    }

    /// Waits until something happened that may lead to orders. Returns a connection that was set up, if
    /// it was that. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Dialed> {
        let (subflow, outcome) = self.dialer.next().await?;
        match outcome {
            Ok((joined, credit)) => {
                // It counts as connected once content gets through.
                if let Some(rtt) = joined.rtt {
                    self.dialer.paths.answered(subflow, rtt);
                }
                return Some(Dialed {
                    subflow,
                    joined,
                    credit,
                });
            }
            Err(DialError::Path(error)) => {
                let paths = &mut self.dialer.paths;
                paths.lost(subflow, Failure::Failed, error, Instant::now());
            }
            Err(DialError::Fatal(error)) => self.fatal = Some(error),
        }
        None
    }

    /// Weighs the paths by what was `carried` over each subflow, if that is due; dials as ordered, and
    /// returns the orders about subflows that are connected. Reports decisions to `events`.
    pub(crate) fn orders(
        &mut self,
        carried: impl Fn(SubflowId) -> Carried,
        events: &UnboundedSender<TransferEvent>,
    ) -> Result<Vec<Order>, TransferError> {
        if let Some(error) = self.fatal.take() {
            return Err(error);
        }
        let orders = self.dialer.orders(carried, Instant::now());
        for (fingerprint, decision) in self.dialer.paths.changes() {
            let path = self.dialer.paths.path(fingerprint).cloned();
            let _ = events.send(TransferEvent::Decided(fingerprint, path, decision));
        }
        Ok(orders)
    }
}
