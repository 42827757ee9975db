//! The dials to one remote, as its path manager orders them.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use hawser_manager::{Action, Order, PathSet, SubflowId};
use hawser_path::Path;
use tokio::sync::watch;

use crate::dials::Dials;

/// How a remote is dialed.
pub trait Remote {
    /// A path with everything needed to dial over it.
    type Path: AsRef<Path> + Clone;
    /// What comes of a dial: a connection, or why there is none.
    type Outcome: Send + 'static;

    /// Checks that a path can be dialed at all.
    ///
    /// # Errors
    /// The reason if it cannot.
    fn fits(&self, path: &Self::Path) -> Result<(), String>;

    /// Dials over a path.
    fn dial(&self, path: Self::Path) -> impl Future<Output = Self::Outcome> + Send + 'static;
}

/// The paths to one remote, and the dials over them. The transfer owns the connections that come of the
/// dials, and reports what happens to them to [`paths`](Self::paths).
#[derive(Debug)]
pub struct Dialer<R: Remote> {
    /// How it is dialed.
    pub remote: R,
    /// Which paths are used, and why.
    pub paths: PathSet<R::Path>,
    offers: watch::Receiver<Arc<Vec<R::Path>>>,
    dials: Dials<SubflowId, R::Outcome>,
}

impl<R: Remote> Dialer<R> {
    /// Dials `remote` over the paths in `offers`, as `paths` orders.
    pub fn new(
        remote: R,
        paths: PathSet<R::Path>,
        mut offers: watch::Receiver<Arc<Vec<R::Path>>>,
    ) -> Self {
        offers.mark_changed();
        Self {
            remote,
            paths,
            offers,
            dials: Dials::default(),
        }
    }

    /// Waits until something happens that may lead to orders. Returns the outcome of a dial that is still
    /// wanted; `None` when other paths are offered. Cancel safe.
    pub async fn next(&mut self) -> Option<(SubflowId, R::Outcome)> {
        tokio::select! {
            Ok(()) = self.offers.changed() => {
                let offered = self.offers.borrow_and_update();
                let fits = |path: &R::Path| self.remote.fits(path);
                self.paths.offer(&offered, fits, Instant::now());
                None
            }
            outcome = self.dials.next() => Some(outcome),
        }
    }

    /// Starts and cancels dials as ordered, and returns the orders about subflows that are connected. Must
    /// be called after each event, inside a tokio runtime.
    pub fn orders(&mut self, now: Instant) -> Vec<Order> {
        let mut orders = self.paths.orders(now);
        orders.retain(|order| match order.action {
            Action::Dial => {
                if let Some(path) = self.paths.path(order.path) {
                    let dial = self.remote.dial(path.clone());
                    self.dials.start(order.subflow, dial);
                }
                false
            }
            Action::Close { .. } => !self.dials.cancel(order.subflow),
            Action::Hold | Action::Resume => true,
        });
        orders
    }

    /// Whether a dial is under way.
    pub fn is_dialing(&self) -> bool {
        !self.dials.is_empty()
    }

    /// Cancels all dials.
    pub fn cancel(&mut self) {
        self.dials.cancel_all();
    }
}
