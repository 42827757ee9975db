//! A connection that is relayed, from when its session is known to its end.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hawser_mptcp::{Info, TcpState};
use tokio::sync::watch;

use super::{End, Entry, Relays, Seen, Session, is_half_closed};
use crate::holder::report::ConnectionEvent;
use crate::protocol::Role;
use crate::relay::{self, Watched};

/// Interval at which it is looked whether a connection has a subflow again.
const JOIN_INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which it is looked whether a connection has any subflow that can have no others, and how
/// often it must have none.
const CUT_INTERVAL: Duration = Duration::from_secs(5);
const CUT_LOOKS: u32 = 2;

/// A connection that is to begin, until this is dropped: it learns of the end of its session from now
/// on.
pub(in crate::holder) struct Expected {
    pub(super) number: u64,
    pub(super) session: Session,
    pub(super) relays: Relays,
    pub(super) ended: watch::Receiver<Option<End>>,
}

/// A connection that begins.
pub(in crate::holder) struct New {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// The connection to the other holder.
    pub peer: Arc<Watched>,
}

/// A connection that is relayed, until this is dropped.
pub(in crate::holder) struct Relayed {
    number: u64,
    relays: Relays,
    ended: watch::Receiver<Option<End>>,
    peer: Mutex<Arc<Watched>>,
    finished: Arc<AtomicBool>,
    written: Arc<AtomicBool>,
}

impl Expected {
    /// Its session.
    pub(in crate::holder) fn session(&self) -> Session {
        self.session
    }

    /// The other host's address.
    pub(in crate::holder) fn peer(&self) -> Ipv6Addr {
        self.session.0
    }

    /// Begins the connection. If its session has ended meanwhile, it ends as soon as it is run.
    pub(in crate::holder) fn begin(self, new: New) -> Relayed {
        let [finished, written] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let peer = Mutex::new(Arc::clone(&new.peer));
        let mut state = self.relays.state();
        let end = state.expected.remove(&self.number).map(|(_, end)| end);
        if self.session.1 == Role::Client {
            state.notify(|| ConnectionEvent::Began {
                destination: new.destination,
                peer: Some(self.session.0),
            });
        }
        if self.ended.borrow().is_none() {
            state.totals.entry(self.session).or_default().connections += 1;
        }
        let entry = Entry {
            session: self.session,
            source: new.source,
            destination: new.destination,
            peer: new.peer,
            began: Instant::now(),
            // Nothing else takes it while this is here.
            end: end.unwrap_or_default(),
            seen: Seen::default(),
            token: None,
            finished: Arc::clone(&finished),
            written: Arc::clone(&written),
        };
        state.all.insert(self.number, entry);
        drop(state);
        Relayed {
            number: self.number,
            relays: self.relays.clone(),
            ended: self.ended.clone(),
            peer,
            finished,
            written,
        }
    }

    /// Runs what is to be done before it begins, until that ends, or what the connection needs does.
    ///
    /// # Errors
    /// What has ended.
    pub(in crate::holder) async fn run<T>(
        &self,
        before: impl Future<Output = T>,
    ) -> Result<T, End> {
        tokio::select! {
            done = before => Ok(done),
            end = wait_for_end(self.ended.clone()) => Err(end),
        }
    }

    /// Why its session or the shim has ended, if one has.
    pub(in crate::holder) fn end(&self) -> Option<String> {
        self.ended.borrow().as_ref().map(End::reason)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        // It may have begun.
        self.relays.state().expected.remove(&self.number);
    }
}

impl Relayed {
    /// Ends this side's direction of the connection to the other holder, `peer`. A connection that has no
    /// subflow at the moment would get none any more: it waits for one.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(in crate::holder) async fn finish(&self, peer: &Watched) -> io::Result<()> {
        // An error is that of the connection.
        while Info::read(peer).is_ok_and(|info| !has_subflow(&info)) {
            tokio::time::sleep(JOIN_INTERVAL).await;
        }
        self.finished.store(true, Ordering::Release);
        relay::finish(peer)
    }

    /// Waits until there is something that the connection cannot deliver any more: one side has ended its
    /// direction, and there is no subflow. What has arrived is read first.
    async fn cut(&self) {
        let mut looks = 0;
        while looks < CUT_LOOKS {
            tokio::time::sleep(CUT_INTERVAL).await;
            let peer = Arc::clone(&self.peer.lock().unwrap_or_else(PoisonError::into_inner));
            let is_cut = is_half_closed(&peer, &self.finished)
                && Info::read(&*peer).is_ok_and(|info| info.subflows.is_empty())
                && relay::is_incomplete(&*peer);
            looks = if is_cut { looks + 1 } else { 0 };
        }
    }

    /// All that the program or server has sent was written to the other holder.
    pub(in crate::holder) fn set_written(&self) {
        self.written.store(true, Ordering::Relaxed);
    }

    /// Puts `peer` in the place of the connection to the other holder.
    pub(in crate::holder) fn replace(&self, peer: &Arc<Watched>) {
        if let Some(entry) = self.relays.state().all.get_mut(&self.number) {
            entry.peer = Arc::clone(peer);
            entry.seen = Seen::default();
            entry.token = None;
        }
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(peer);
    }

    /// Has the connection to the other holder end with a reset.
    pub(in crate::holder) fn reset(&self) {
        if let Some(entry) = self.relays.state().all.get(&self.number) {
            relay::reset(&*entry.peer);
        }
    }

    /// Runs `relay` until it ends, or what the connection needs does.
    ///
    /// # Errors
    /// What has ended.
    pub(in crate::holder) async fn run<T>(&self, relay: impl Future<Output = T>) -> Result<T, End> {
        tokio::select! {
            done = relay => Ok(done),
            end = wait_for_end(self.ended.clone()) => Err(end),
            () = self.cut() => Err(End::Cut),
        }
    }

    /// What it needs that has ended, if so.
    pub(in crate::holder) fn end(&self) -> Option<End> {
        self.ended.borrow().clone()
    }

    /// Runs what is left to do after the end of the session, until the shim ends, or if the session has
    /// ended at once: then it is `None`.
    pub(in crate::holder) async fn run_on<T>(&self, rest: impl Future<Output = T>) -> Option<T> {
        let mut ended = self.ended.clone();
        tokio::select! {
            done = rest => Some(done),
            _ = ended.wait_for(|end| matches!(end, Some(End::AtOnce(_)))) => None,
        }
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        let mut guard = self.relays.state();
        let state = &mut *guard;
        state.ended += 1;
        if let Some(mut entry) = state.all.remove(&self.number) {
            // The last chance to count; what is unknown by now is not counted.
            let _ = entry.count(&mut state.totals);
        }
    }
}

/// Waits until something ends that a connection needs.
async fn wait_for_end(mut ended: watch::Receiver<Option<End>>) -> End {
    loop {
        let end = ended.borrow_and_update().clone();
        match end {
            Some(end) => return end,
            // The sender is there as long as the connection.
            None if ended.changed().await.is_err() => std::future::pending().await,
            None => {}
        }
    }
}

fn has_subflow(info: &Info) -> bool {
    let mut all = info.subflows.iter();
    all.any(|one| one.state == TcpState::Established)
}
