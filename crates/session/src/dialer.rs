//! The dials to one remote, as its path manager orders them.

use std::collections::VecDeque;
use std::future::Future;
use std::iter;
use std::sync::Arc;
use std::time::Instant;

use hawser_manager::{Carried, Order, PathSet, SubflowId};
use hawser_path::Path;
use tokio::sync::watch;

use crate::dials::Dials;
use crate::policy::{PolicyChanges, SharedPolicy};
use crate::timer::Timer;

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
    /// Outcomes that are there and not returned yet.
    ready: VecDeque<(SubflowId, R::Outcome)>,
    /// Due when the path manager is.
    timer: Timer,
    policy: PolicyChanges,
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
            ready: VecDeque::new(),
            timer: Timer::default(),
            policy: PolicyChanges::default(),
        }
    }

    /// Uses only paths that `policy` allows, whenever it changes, in place of the policy of the path set.
    pub fn with_policy(mut self, policy: &SharedPolicy) -> Self {
        let (current, changes) = policy.follow();
        self.paths.set_policy(current);
        self.policy = changes;
        self
    }

    /// Waits until something happens that may lead to orders. Returns the outcome of a dial that is still
    /// wanted; `None` when other paths are offered or allowed, or when orders are due. Cancel safe.
    pub async fn next(&mut self) -> Option<(SubflowId, R::Outcome)> {
        if let Some(outcome) = self.ready.pop_front() {
            return Some(outcome);
        }
        self.timer.set(self.paths.next_due());
        tokio::select! {
            Ok(()) = self.offers.changed() => {
                self.take_offers(tokio::time::Instant::now().into_std());
                None
            }
            policy = self.policy.next() => {
                self.paths.set_policy(policy);
                None
            }
            outcome = self.dials.next() => Some(outcome),
            () = self.timer.expired() => None,
        }
    }

    /// Gives the paths that are offered now to the path manager.
    fn take_offers(&mut self, now: Instant) {
        let offered = self.offers.borrow_and_update();
        let fits = |path: &R::Path| self.remote.fits(path);
        self.paths.offer(&offered, fits, now);
    }

    /// Weighs the paths if that is due, by what `carried` says of each subflow; starts and cancels dials as
    /// ordered, and returns the orders about subflows that are connected. Must be called after each event,
    /// inside a tokio runtime.
    ///
    /// Earlier events come first. Offers are read, so that a caller which then asks whether a path exists
    /// gets a current answer. While outcomes of dials wait for [`next`](Self::next) to return them, there
    /// are no orders: a dial that has succeeded is not late.
    pub fn orders(&mut self, carried: impl Fn(SubflowId) -> Carried, now: Instant) -> Vec<Order> {
        if self.offers.has_changed().unwrap_or_default() {
            self.take_offers(now);
        }
        self.ready.extend(iter::from_fn(|| self.dials.try_next()));
        if !self.ready.is_empty() {
            return Vec::new();
        }
        self.paths.tick(carried, now);
        let (remote, paths, dials) = (&self.remote, &mut self.paths, &mut self.dials);
        let mut orders = paths.orders(now);
        orders.retain(|order| {
            let dial = || Some(remote.dial(paths.path(order.path)?.clone()));
            !dials.obey(order.subflow, order.action, dial)
        });
        orders
    }

    /// Whether a dial is under way.
    pub fn is_dialing(&self) -> bool {
        !self.dials.is_empty() || !self.ready.is_empty()
    }

    /// Cancels all dials.
    pub fn cancel(&mut self) {
        self.dials.cancel_all();
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests;
