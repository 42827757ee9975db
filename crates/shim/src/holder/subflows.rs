//! The subflows of all connections: created over slots that are live, destroyed over those that
//! are not.

mod plan;

use std::net::{Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_mptcp::{Event, Events, PathManager, PathManagerError};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use self::plan::{Change, Plan};
use super::HolderError;
use super::network::Network;
use crate::address::{Block, Slot};
use crate::link::Role;

/// After how long subflows that could not be created are tried again: at first soon, as a connection
/// takes further ones only once its first data is acknowledged, then less often.
const RETRIED: Range<Duration> = Duration::from_millis(10)..Duration::from_secs(1);

/// The subflows of all connections, managed by a thread. Cloning shares it; the thread ends with the
/// last clone.
#[derive(Clone)]
pub(super) struct Subflows {
    live: mpsc::Sender<Live>,
    waker: Arc<OwnedFd>,
}

/// The live slots of a session.
struct Live {
    peer: Ipv6Addr,
    role: Role,
    /// `None` once the session has ended.
    slots: Option<Vec<Slot>>,
}

impl Subflows {
    /// Begins to manage the connections of `network`.
    pub(super) fn start(network: &Network) -> Result<Self, HolderError> {
        let (manager, events) = network.path_manager()?;
        let failed = HolderError::system("manage MPTCP's subflows");
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let waker = Arc::new(waker.map_err(io::Error::from).map_err(&failed)?);
        let (sender, live) = mpsc::channel();
        let task = Task {
            manager,
            own: network.own(),
            plan: Plan::default(),
            live,
            waker: Arc::clone(&waker),
        };
        let work = move || {
            if let Err(error) = task.run(events) {
                tracing::error!(%error, "MPTCP's path manager has ended");
            }
        };
        let thread = thread::Builder::new().name("shim-mptcp".into());
        thread.spawn(work).map_err(failed)?;
        Ok(Self {
            live: sender,
            waker,
        })
    }

    /// Sets the slots of a session that subflows may use.
    pub(super) fn set(&self, peer: Ipv6Addr, role: Role, slots: Vec<Slot>) {
        self.send(peer, role, Some(slots));
    }

    /// Forgets a session that has ended.
    pub(super) fn forget(&self, peer: Ipv6Addr, role: Role) {
        self.send(peer, role, None);
    }

    fn send(&self, peer: Ipv6Addr, role: Role, slots: Option<Vec<Slot>>) {
        let _ = self.live.send(Live { peer, role, slots });
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
    manager: PathManager,
    own: Block,
    plan: Plan,
    live: mpsc::Receiver<Live>,
    waker: Arc<OwnedFd>,
}

impl Task {
    fn run(mut self, mut events: Events) -> io::Result<()> {
        let mut pause = RETRIED.end;
        let mut retry = Instant::now() + pause;
        loop {
            loop {
                match self.live.try_recv() {
                    Ok(Live { peer, role, slots }) => match slots {
                        Some(slots) => self.plan.set_live((peer, role), slots),
                        None => self.plan.forget((peer, role)),
                    },
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => return Ok(()),
                }
            }
            self.take(&mut events)?;
            if Instant::now() >= retry {
                self.plan.retry();
                pause = (pause * 2).min(RETRIED.end);
                retry = Instant::now() + pause;
            }
            let changes = self.plan.changes();
            // Those of connections that have just begun.
            if self.plan.has_begun() {
                pause = RETRIED.start;
                retry = Instant::now() + pause;
            }
            for change in changes {
                self.make(change);
            }
            self.wait(&events, retry.saturating_duration_since(Instant::now()))?;
        }
    }

    /// Waits for an event, a change of slots, or the next retry.
    fn wait(&self, events: &Events, timeout: Duration) -> io::Result<()> {
        let mut fds = [
            PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN),
        ];
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut count = [0; 8];
        // Nothing to read when something else ended the wait.
        let _ = rustix::io::read(&*self.waker, &mut count);
        Ok(())
    }

    /// Takes all events that are there.
    fn take(&mut self, events: &mut Events) -> io::Result<()> {
        loop {
            match events.try_next_event() {
                Ok(Some(event)) => self.on_event(event),
                Ok(None) => return Ok(()),
                Err(PathManagerError::Socket(error)) => return Err(error),
                Err(error) => tracing::warn!(%error, "an MPTCP event was skipped"),
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        let plan = &mut self.plan;
        match event {
            Event::Established(connection) => {
                let (local, remote) = (connection.local, connection.remote);
                let role = match connection.server_side {
                    true => Role::Server,
                    false => Role::Client,
                };
                plan.established(connection.token, role, (local, remote));
            }
            Event::SubflowEstablished(subflow) => {
                plan.subflow_established(subflow.token, (subflow.local, subflow.remote));
            }
            Event::SubflowClosed { subflow, .. } => {
                plan.subflow_closed(subflow.token, (subflow.local, subflow.remote));
            }
            Event::Closed { token } => plan.closed(token),
            Event::Overflow => {
                tracing::warn!("MPTCP events were lost: some subflows may be missing");
            }
            _ => {}
        }
    }

    fn make(&mut self, change: Change) {
        let made = match change {
            Change::Create {
                token,
                slot,
                remote,
            } => {
                let from = SocketAddr::from((self.own.address(slot), 0));
                (self.manager).create_subflow(token, slot, from, remote, false)
            }
            Change::Destroy { token, ends } => self.manager.destroy_subflow(token, ends.0, ends.1),
        };
        if let Err(error) = made {
            if let Change::Create { token, slot, .. } = change {
                self.plan.failed(token, slot);
            }
            // The connection, or the subflow, may just have ended.
            tracing::debug!(%error, ?change, "a subflow was not changed");
        }
    }
}
