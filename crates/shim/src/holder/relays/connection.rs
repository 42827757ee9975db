//! A connection that is relayed, from when its session is known to its end.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::net::TcpStream;
use tokio::sync::watch;

use super::{End, Entry, Relays, Seen, Session};
use crate::holder::relay;
use crate::holder::report::ConnectionEvent;
use crate::link::Role;

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
    pub peer: Arc<TcpStream>,
}

/// A connection that is relayed, until this is dropped.
pub(in crate::holder) struct Relayed {
    number: u64,
    relays: Relays,
    ended: watch::Receiver<Option<End>>,
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
        let written = Arc::new(AtomicBool::new(false));
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
            written: Arc::clone(&written),
        };
        state.all.insert(self.number, entry);
        drop(state);
        Relayed {
            number: self.number,
            relays: self.relays.clone(),
            ended: self.ended.clone(),
            written,
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
    /// To be set once all that the program has sent was written to the other holder.
    pub(in crate::holder) fn written(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.written)
    }

    /// Puts `peer` in the place of the connection to the other holder.
    pub(in crate::holder) fn replace(&self, peer: &Arc<TcpStream>) {
        if let Some(entry) = self.relays.state().all.get_mut(&self.number) {
            entry.peer = Arc::clone(peer);
            entry.seen = Seen::default();
        }
    }

    /// Has the connection to the other holder end with a reset.
    pub(in crate::holder) fn reset(&self) {
        if let Some(entry) = self.relays.state().all.get(&self.number) {
            relay::reset(&entry.peer);
        }
    }

    /// Runs `relay` until it ends, or what the connection needs does.
    ///
    /// # Errors
    /// What has ended.
    pub(in crate::holder) async fn run<T>(&self, relay: impl Future<Output = T>) -> Result<T, End> {
        let mut ended = self.ended.clone();
        let end = async {
            loop {
                let end = ended.borrow_and_update().clone();
                match end {
                    Some(end) => return end,
                    // The sender is there as long as this.
                    None if ended.changed().await.is_err() => std::future::pending().await,
                    None => {}
                }
            }
        };
        tokio::select! {
            done = relay => Ok(done),
            end = end => Err(end),
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
