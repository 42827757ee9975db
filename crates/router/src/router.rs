//! The router process: sockets around the data plane.

use std::io::ErrorKind;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use hawser_kernel::pace::{NAP, Pace};
use hawser_topology::AsDir;
use rustix::thread::set_current_timer_slack;

use crate::error::RouterError;
use crate::io::{Signals, Waiting};
use crate::live::{Reply, Request};
use crate::server::Server;
use crate::setup::Setup;
use crate::switch::Switch;

/// After this time without a packet the router releases memory, and blocks until the next one.
const REST: Duration = Duration::from_secs(1);

/// A border router of an AS.
pub struct Router {
    switch: Switch,
    server: Server,
}

impl Router {
    /// Opens the border router `name` of the AS in `dir`, which contains `topology.json`, the
    /// hop-field key, and optionally `links.json`; without the latter every link is up, without
    /// delay, loss or rate. `name` may be `None` if the AS has only one router. All sockets are
    /// bound when it returns.
    ///
    /// # Errors
    /// [`RouterError`] when the folder is not usable, has no such border router, or an address is
    /// taken.
    pub fn open(dir: &AsDir, name: Option<&str>) -> Result<Self, RouterError> {
        Self::open_with_seed(dir, name, fastrand::u64(..))
    }

    /// As [`open`](Self::open), with jitter and loss drawn from `seed`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_seed(dir: &AsDir, name: Option<&str>, seed: u64) -> Result<Self, RouterError> {
        let topology = dir.topology()?;
        let setup = Setup::new(dir, &topology, name)?;
        // The control socket comes first: if the router already runs, the error then says so, and
        // not only that an address is taken.
        let socket = setup.control_socket();
        let server = Server::listen(&socket).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => RouterError::Running { socket },
            _ => RouterError::Control { socket, source },
        })?;
        let switch = setup.open(seed)?;
        Ok(Self { switch, server })
    }

    /// Forwards packets until SIGTERM, SIGINT or [`Request::Stop`]. While it runs, the two signals
    /// are blocked in this thread.
    ///
    /// # Errors
    /// [`RouterError::Wait`] when the system cannot wait for packets.
    pub fn run(mut self) -> Result<(), RouterError> {
        let signals = Signals::block().map_err(RouterError::Wait)?;
        // The minimum timer slack: a wait ends on time and not up to 50 µs later.
        set_current_timer_slack(Some(NonZeroU64::MIN))
            .map_err(|error| RouterError::Wait(error.into()))?;
        let mut wait = Waiting::new(signals.descriptor(), self.switch.descriptors());
        let mut ready = Vec::new();
        let mut pace = Pace::default();
        let mut since = Instant::now();
        // When the router became idle; `None` once memory was released.
        let mut idle_since = None;
        loop {
            wait.set_clients(self.server.descriptors());
            let due = self.switch.next_due();
            let until_due = due.map(|due| due.saturating_duration_since(since));
            let timeout = if pace.naps() {
                std::thread::sleep(until_due.map_or(NAP, |time| time.min(NAP)));
                Some(Duration::ZERO)
            } else {
                let rest = idle_since.map(|idle: Instant| REST.saturating_sub(since - idle));
                until_due.into_iter().chain(rest).min()
            };
            wait.wait(timeout).map_err(RouterError::Wait)?;
            let now = Instant::now();

            if wait.signalled() {
                tracing::info!("ended by a signal");
                return Ok(());
            }
            if wait.client_is_ready() && self.serve() {
                tracing::info!("ended on request");
                return Ok(());
            }
            wait.ready_ports(&mut ready);
            let packets = self.switch.receive(&mut ready, now);
            self.switch.send_due(now);
            pace.note(packets, now - since);
            if packets > 0 || self.switch.holds_packets() {
                idle_since = Some(now);
            } else if idle_since.is_some_and(|idle| now - idle >= REST) {
                self.switch.release_memory();
                idle_since = None;
            }
            since = Instant::now();
        }
    }

    /// Answers requests; returns whether the router must stop.
    fn serve(&mut self) -> bool {
        let mut end = false;
        let switch = &mut self.switch;
        self.server.serve(|request| match request {
            Request::Counters => Reply::Counters(switch.counters()),
            Request::SetLink { id, state } if switch.set_link(id, &state) => Reply::Done,
            Request::SetLink { id, .. } => Reply::Error {
                message: format!("this router has no interface {id}"),
            },
            Request::Stop => {
                end = true;
                Reply::Done
            }
        });
        end
    }
}
