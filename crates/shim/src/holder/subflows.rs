//! The subflows of all connections: created over slots that are live, destroyed over those that
//! are not.
//!
//! One thread, `shim-mptcp`, does all of it. It *manages*: it takes requests and the events of the kernel's
//! path manager, makes the changes that [`Plan`] wants, and waits for the next of them, or for the time of
//! a retry. When the path manager's socket fails, or the thread panics, it has *failed*: it says so in the
//! status report, opens the path manager again each [`REOPEN_INTERVAL`] until that works, and then looks up
//! which subflows the relayed connections have, as it also does when events were lost. It ends when no
//! [`Subflows`] is left, which it notices within about a second.
//!
//! A connection is in the plan from the kernel's event that it is established until the one that it is
//! closed. Each of its subflows is *early* (created by the other side over a slot that is not known to be
//! live yet), *live* or *dead*; `plan` says when a dead one is destroyed. The connections and the slots of
//! their sessions bound the memory; a request comes for each message of the carrier about a session.
//!
//! The plan belongs to the thread, without a lock. The lock of `relays` is taken for single calls, and no
//! other one under it.

mod plan;
#[cfg(test)]
mod tests;

use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_backoff::Backoff;
use hawser_mptcp::{Event, Events, Info, PathManager, PathManagerError, TcpState, Token};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use self::plan::{Change, Plan, Session};
use super::error::HolderError;
use super::network::Network;
use super::relays::Relays;
use crate::address::{Block, Slot};
use crate::protocol::Role;
use crate::protocol::segment::PORT;

/// First pause before subflows that could not be created are tried again: a connection takes further
/// ones only once its first data is acknowledged.
const MIN_BACKOFF: Duration = Duration::from_millis(10);
/// Longest pause.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Time after which the kernel's path manager is opened anew when it has failed.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// The subflows of all connections, managed by a thread. Cloning shares it; the thread ends with the
/// last clone.
#[derive(Clone)]
pub(super) struct Subflows {
    requests: mpsc::Sender<Request>,
    waker: Arc<OwnedFd>,
}

/// What the thread is to do.
enum Request {
    /// Take these slots of a session as live; `None` once it has ended.
    SetLive(Session, Option<Vec<Slot>>),
    #[cfg(test)]
    Panic,
}

/// Why the thread stops managing subflows.
enum Stopped {
    /// The last [`Subflows`] has ended.
    Ended,
    /// It cannot go on, for this reason.
    Failed(String),
}

impl Subflows {
    /// Begins to manage the connections of `network`, which are relayed by `relays`.
    pub(super) fn start(network: &Network, relays: Relays) -> Result<Self, HolderError> {
        let (manager, events) = network.path_manager()?;
        let failed = HolderError::system("manage MPTCP's subflows");
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let waker = Arc::new(waker.map_err(io::Error::from).map_err(&failed)?);
        let (sender, requests) = mpsc::channel();
        let task = Task {
            network: network.clone(),
            relays,
            manager,
            own: network.own(),
            plan: Plan::default(),
            requests,
            waker: Arc::clone(&waker),
        };
        let thread = thread::Builder::new().name("shim-mptcp".into());
        thread.spawn(|| task.run(events)).map_err(failed)?;
        Ok(Self {
            requests: sender,
            waker,
        })
    }

    /// Sets the slots of a session that subflows may use.
    pub(super) fn set(&self, peer: Ipv6Addr, role: Role, slots: Vec<Slot>) {
        self.request(Request::SetLive((peer, role), Some(slots)));
    }

    /// Forgets a session that has ended.
    pub(super) fn forget(&self, peer: Ipv6Addr, role: Role) {
        self.request(Request::SetLive((peer, role), None));
    }

    fn request(&self, request: Request) {
        // The thread lasts as long as this.
        let _ = self.requests.send(request);
        self.wake();
    }

    fn wake(&self) {
        // It fails only when it was written to very often and not read.
        let _ = rustix::io::write(&*self.waker, &1u64.to_ne_bytes());
    }
}

impl Drop for Subflows {
    fn drop(&mut self) {
        self.wake();
    }
}

struct Task {
    network: Network,
    relays: Relays,
    manager: PathManager,
    own: Block,
    plan: Plan,
    requests: mpsc::Receiver<Request>,
    waker: Arc<OwnedFd>,
}

impl Task {
    /// Manages subflows until the last [`Subflows`] has ended. What fails is begun anew: without this
    /// thread no connection would get another subflow.
    fn run(mut self, mut events: Events) {
        loop {
            let worked = catch_unwind(AssertUnwindSafe(|| self.work(&mut events)));
            let mut reason = match worked {
                Ok(Stopped::Ended) => return,
                Ok(Stopped::Failed(reason)) => reason,
                Err(_) => "its thread panicked".to_owned(),
            };
            loop {
                let text = format!("MPTCP's path manager has failed: {reason}");
                tracing::error!("{text}");
                self.relays.set_problem(Some(text));
                thread::sleep(REOPEN_INTERVAL);
                match self.network.path_manager() {
                    Ok((manager, anew)) => {
                        (self.manager, events) = (manager, anew);
                        break;
                    }
                    Err(error) => reason = error.to_string(),
                }
                if let Err(Stopped::Ended) = self.take_requests() {
                    return;
                }
            }
            self.adopt_all();
            self.relays.set_problem(None);
            tracing::info!("MPTCP's path manager works again");
        }
    }

    fn work(&mut self, events: &mut Events) -> Stopped {
        let mut backoff = Backoff::new(MIN_BACKOFF, MAX_BACKOFF);
        let mut retry = Instant::now() + MAX_BACKOFF;
        loop {
            if let Err(stopped) = self.take_requests().and_then(|()| self.take(events)) {
                return stopped;
            }
            let now = Instant::now();
            if now >= retry {
                self.plan.retry();
                retry = now + backoff.fail();
            }
            let changes = self.plan.changes(now);
            // Those of connections that have just begun.
            if self.plan.has_begun() {
                backoff.reset();
                retry = now + backoff.fail();
            }
            for change in changes {
                self.make(change);
            }
            let due = self.plan.next_due().map_or(retry, |due| due.min(retry));
            if let Err(error) = self.wait(events, due.saturating_duration_since(Instant::now())) {
                return Stopped::Failed(error.to_string());
            }
        }
    }

    /// Takes all requests that are there.
    fn take_requests(&mut self) -> Result<(), Stopped> {
        loop {
            match self.requests.try_recv() {
                Ok(Request::SetLive(session, Some(slots))) => self.plan.set_live(session, slots),
                Ok(Request::SetLive(session, None)) => self.plan.forget(session),
                #[cfg(test)]
                Ok(Request::Panic) => panic!("as the test wants"),
                Err(mpsc::TryRecvError::Empty) => return Ok(()),
                Err(mpsc::TryRecvError::Disconnected) => return Err(Stopped::Ended),
            }
        }
    }

    /// Waits for an event, a change of slots, or until `timeout` is over.
    fn wait(&self, events: &Events, timeout: Duration) -> io::Result<()> {
        let mut fds = [
            PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN),
        ];
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut count = [0; 8];
        // Nothing to read when something else ended the wait.
        let _ = rustix::io::read(&*self.waker, &mut count);
        Ok(())
    }

    /// Takes all events that are there.
    fn take(&mut self, events: &mut Events) -> Result<(), Stopped> {
        loop {
            match events.try_next_event() {
                Ok(Some(event)) => self.on_event(event),
                Ok(None) => return Ok(()),
                Err(PathManagerError::Socket(error)) => {
                    return Err(Stopped::Failed(error.to_string()));
                }
                Err(error) => tracing::warn!(%error, "an MPTCP event was skipped"),
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        tracing::trace!(?event, "an MPTCP event");
        let (plan, now) = (&mut self.plan, Instant::now());
        match event {
            Event::Established(connection) => {
                let (local, remote) = (connection.local, connection.remote);
                let role = match connection.server_side {
                    true => Role::Server,
                    false => Role::Client,
                };
                plan.established(connection.token, role, (local, remote), now);
            }
            Event::SubflowEstablished(subflow) => {
                plan.subflow_established(subflow.token, (subflow.local, subflow.remote));
            }
            Event::SubflowClosed { subflow, errno, .. } => {
                // The other host's kernel resets what belongs to no connection that it knows.
                let is_refused = errno == Some(Errno::CONNREFUSED.raw_os_error());
                let ends = (subflow.local, subflow.remote);
                plan.subflow_closed(subflow.token, ends, is_refused, now);
            }
            Event::Closed { token } => plan.closed(token),
            Event::Overflow => {
                tracing::warn!("MPTCP events were lost: what there is is looked up");
                self.adopt_all();
            }
            _ => {}
        }
    }

    /// Looks up which subflows the connections have that are relayed. One that is being opened meanwhile
    /// may keep the subflows it has.
    fn adopt_all(&mut self) {
        for (session, socket) in self.relays.sockets() {
            // It may have just ended, or have fallen back to plain TCP.
            let Ok(info) = Info::read(&*socket) else {
                continue;
            };
            let works = info
                .subflows
                .iter()
                .filter(|one| one.state == TcpState::Established);
            let ends: Vec<_> = works.map(|one| (one.local, one.remote)).collect();
            let remote = match session.1 {
                Role::Client => (session.0, PORT).into(),
                // Nothing is created from here.
                Role::Server => (session.0, 0).into(),
            };
            self.plan.adopt(info.token, session, remote, &ends);
        }
    }

    /// Finds out which subflows of a connection the other side has accepted.
    fn prove(&mut self, token: Token) {
        // It may just have ended.
        let Some(info) = self.relays.info(token) else {
            return;
        };
        let now = Instant::now();
        for subflow in info.subflows.iter().filter(|one| one.is_accepted()) {
            (self.plan).proven(token, (subflow.local, subflow.remote), now);
        }
    }

    fn make(&mut self, change: Change) {
        tracing::trace!(?change, "a subflow is changed");
        let (token, made) = match change {
            Change::Create {
                token,
                slot,
                remote,
            } => {
                let from = SocketAddr::from((self.own.address(slot), 0));
                let made = (self.manager).create_subflow(token, slot, from, remote, false);
                if made.is_err() {
                    self.plan.failed(token, slot);
                }
                (token, made)
            }
            // Nothing tells whether another subflow of it has ended: all are kept.
            Change::Destroy { token, .. } if self.relays.is_half_closed(token) => return,
            Change::Destroy { token, ends } => {
                let made = self.manager.destroy_subflow(token, ends.0, ends.1);
                (token, made)
            }
            Change::Prove { token } => return self.prove(token),
            Change::End { token } => return self.relays.end_unknown(token),
        };
        match made {
            Ok(()) => {}
            Err(PathManagerError::NoConnection { .. }) => self.plan.closed(token),
            // The connection, or the subflow, may just have ended.
            Err(error) => tracing::debug!(%error, ?change, "a subflow was not changed"),
        }
    }
}
