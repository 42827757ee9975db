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
                self.take_offers(Instant::now());
                None
            }
            outcome = self.dials.next() => Some(outcome),
        }
    }

    /// Gives the paths that are offered now to the path manager.
    fn take_offers(&mut self, now: Instant) {
        let offered = self.offers.borrow_and_update();
        let fits = |path: &R::Path| self.remote.fits(path);
        self.paths.offer(&offered, fits, now);
    }

    /// Starts and cancels dials as ordered, and returns the orders about subflows that are connected. Must
    /// be called after each event, inside a tokio runtime. It takes what is offered meanwhile into account,
    /// so that whoever asks afterwards whether there is a path is not answered before the offers are read.
    pub fn orders(&mut self, now: Instant) -> Vec<Order> {
        if self.offers.has_changed().unwrap_or_default() {
            self.take_offers(now);
        }
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

#[cfg(test)]
mod tests {
    use hawser_manager::PathOptions;
    use hawser_path::{Interface, Metadata};

    use super::*;

    /// Cannot be reached over any path: each dial lasts for ever.
    struct Unreachable;

    impl Remote for Unreachable {
        type Path = Arc<Path>;
        type Outcome = ();

        fn fits(&self, _: &Self::Path) -> Result<(), String> {
            Ok(())
        }

        fn dial(&self, _: Self::Path) -> impl Future<Output = ()> + Send + 'static {
            std::future::pending()
        }
    }

    /// A path of one link, from interface `id` of AS 1 to that of AS 2.
    fn path(id: u16) -> Arc<Path> {
        let ases = ["1-ff00:0:1", "1-ff00:0:2"].map(|isd_as| isd_as.parse().unwrap());
        let link = ases.map(|isd_as| Interface { isd_as, id }).to_vec();
        Arc::new(Path::new(ases[0], ases[1], link, Metadata::default()).unwrap())
    }

    fn dialer(offers: watch::Receiver<Arc<Vec<Arc<Path>>>>) -> Dialer<Unreachable> {
        Dialer::new(Unreachable, PathSet::new(PathOptions::default()), offers)
    }

    #[tokio::test]
    async fn offers_count_whatever_else_happened_first() {
        let (offer, offers) = watch::channel(Arc::new(vec![path(1)]));
        let mut dialer = dialer(offers);
        // Nobody has awaited `next`: another event of the session came before.
        assert!(dialer.orders(Instant::now()).is_empty());
        assert!(dialer.paths.is_usable() && dialer.is_dialing());

        offer.send_replace(Arc::new(vec![path(1), path(2)]));
        dialer.orders(Instant::now());
        assert!(dialer.paths.path(path(2).fingerprint()).is_some());
    }

    #[tokio::test]
    async fn offers_count_once() {
        let (offer, offers) = watch::channel(Arc::new(vec![path(1)]));
        let mut dialer = dialer(offers);
        assert!(dialer.next().await.is_none());
        let again = tokio::time::timeout(std::time::Duration::from_millis(1), dialer.next()).await;
        assert!(again.is_err());
        // Nor do they end with whoever made them.
        drop(offer);
        dialer.orders(Instant::now());
        assert!(dialer.paths.is_usable());
    }
}
