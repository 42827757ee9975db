//! The router process: sockets around the data plane, and its threads.

use std::io::{ErrorKind, Write};
use std::num::NonZeroU16;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;
use std::{iter, thread};

use hawser_topology::AsDir;

use crate::error::RouterError;
use crate::io::Signals;
use crate::live::{Counters, Reply, Request};
use crate::reload::reload;
use crate::server::Server;
use crate::setup::Setup;
use crate::switch::Switch;
use crate::worker::{Worker, lock, wait_for_ports};

/// How a router runs.
#[derive(Debug, Clone)]
pub struct Options {
    threads: NonZeroU16,
    seed: Option<u64>,
    enforce_mtu: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: NonZeroU16::MIN,
            seed: None,
            enforce_mtu: false,
        }
    }
}

impl Options {
    /// Forwards packets in `threads` threads, 1 by default. All packets of a flow (flow label and
    /// hosts) are processed by one thread, in order.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZeroU16) -> Self {
        self.threads = threads;
        self
    }

    /// Draws jitter and loss from `seed`, by default from a random one.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Answers packets larger than the MTU that `topology.json` announces for a link with "packet
    /// too big". By default they are forwarded, as by scionproto's router, and the system fragments
    /// them where they do not fit the underlay: its services send such packets.
    #[must_use]
    pub fn with_enforced_mtu(mut self, enforce: bool) -> Self {
        self.enforce_mtu = enforce;
        self
    }
}

/// A border router of an AS.
pub struct Router {
    /// One for each thread. The first one has the BFD sessions.
    switches: Vec<Mutex<Switch>>,
    server: Server,
    identity: Identity,
}

/// Which router of its AS a router is, and how it was started.
struct Identity {
    /// Where its topology is from: the folder that it was started with, or last went over to.
    folder: PathBuf,
    name: Option<String>,
    enforce_mtu: bool,
}

impl Identity {
    /// Goes over to the topology in `folder`.
    fn reload(&mut self, switches: &[Mutex<Switch>], folder: PathBuf) -> Result<(), RouterError> {
        let dir = AsDir::new(folder);
        reload(switches, &dir, self.name.as_deref(), self.enforce_mtu)?;
        dir.path().clone_into(&mut self.folder);
        Ok(())
    }

    /// Goes over to what is in its folder now, as SIGHUP asks for. Returns whether it has.
    fn reload_on_signal(&mut self, switches: &[Mutex<Switch>]) -> bool {
        match self.reload(switches, self.folder.clone()) {
            Ok(()) => {
                tracing::info!("SIGHUP: went over to {}", self.folder.display());
                true
            }
            Err(error) => {
                tracing::error!("SIGHUP changed nothing, the router goes on as before: {error}");
                false
            }
        }
    }
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
    pub fn open(dir: &AsDir, name: Option<&str>, options: &Options) -> Result<Self, RouterError> {
        let topology = dir.topology()?;
        let setup = Setup::new(dir, &topology, name)?.with_enforced_mtu(options.enforce_mtu);
        let socket = setup.control_socket();
        // If the router already runs, the error says so, and not only that an address is taken.
        if UnixStream::connect(&socket).is_ok() {
            return Err(RouterError::Running { socket });
        }
        let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
        let switches = setup.open(options.threads.get().into(), seed)?;
        let switches = switches.into_iter().map(Mutex::new).collect();
        // Opened last: the process that started this one takes the socket for a sign that it is ready.
        let server = Server::listen(&socket).map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => RouterError::Running { socket },
            _ => RouterError::Control { socket, source },
        })?;
        let identity = Identity {
            folder: dir.path().to_owned(),
            name: name.map(str::to_owned),
            enforce_mtu: options.enforce_mtu,
        };
        Ok(Self {
            switches,
            server,
            identity,
        })
    }

    /// Forwards packets until SIGTERM, SIGINT or [`Request::Stop`]. On SIGHUP it goes over to what is
    /// in its folder, as on [`Request::Reload`]; what it cannot use changes nothing, and is logged.
    /// `signals` must be those of this thread.
    ///
    /// # Errors
    /// [`RouterError::Wait`] when the system cannot wait for packets or start a thread.
    pub fn run(mut self, signals: &Signals) -> Result<(), RouterError> {
        let (switches, identity) = (&self.switches, &mut self.identity);
        let server = &mut self.server;
        thread::scope(|scope| {
            // Each thread has one end of a connection. The end of a thread, or of the first one,
            // closes it, which wakes the other. The first one also writes to it, to wake a thread.
            let mut ends = Vec::new();
            let mut threads = Vec::new();
            for (number, switch) in switches.iter().enumerate().skip(1) {
                let (ours, theirs) = UnixStream::pair()?;
                ours.set_nonblocking(true)?;
                theirs.set_nonblocking(true)?;
                ends.push(ours);
                let thread = thread::Builder::new().name(format!("router-{number}"));
                let work = move || Worker::new(switch, [theirs.as_raw_fd()])?.run(&theirs);
                threads.push(thread.spawn_scoped(scope, work)?);
            }
            let wakes = ends.iter().map(AsRawFd::as_raw_fd);
            let wakes = iter::once(signals.descriptor()).chain(wakes);
            let ended = Worker::new(&switches[0], wakes)
                .and_then(|worker| lead(worker, switches, server, identity, (signals, &ends)));
            drop(ends);
            let all = threads.into_iter().map(|thread| {
                let failed = |_| Err(std::io::Error::other("a thread of the router panicked"));
                thread.join().unwrap_or_else(failed)
            });
            all.fold(ended, std::io::Result::and)
        })
        .map_err(RouterError::Wait)
    }
}

/// Works in the first thread, and serves the router's control socket, until a signal, a request to
/// stop, or the end of another thread.
fn lead(
    mut worker: Worker<'_>,
    switches: &[Mutex<Switch>],
    server: &mut Server,
    identity: &mut Identity,
    (signals, others): (&Signals, &[UnixStream]),
) -> std::io::Result<()> {
    // Has the other threads go over to other ports.
    let go_over = || {
        for mut other in others {
            // If it is full, the thread is woken already; if it is closed, that is seen next.
            let _ = other.write(&[0]);
        }
        wait_for_ports(&switches[1..]);
    };
    loop {
        let now = Instant::now();
        worker.wait.set_clients(server.descriptors(now));
        worker.wait(server.next_due(now))?;
        match worker.wait.woken() {
            None => {}
            Some(0) => {
                let asked = signals.take();
                if asked.end {
                    tracing::info!("ended by a signal");
                    return Ok(());
                }
                if asked.reload && identity.reload_on_signal(switches) {
                    go_over();
                }
            }
            Some(_) => return Ok(()),
        }
        if worker.wait.client_is_ready() {
            let ends = serve(switches, server, identity, go_over);
            if ends {
                tracing::info!("ended on request");
                return Ok(());
            }
        }
        worker.work();
        let changes = lock(&switches[0]).take_bfd_changes();
        for (origin, up) in changes {
            for switch in &switches[1..] {
                lock(switch).set_bfd_up(origin, up);
            }
        }
    }
}

/// Answers requests; calls `go_over` before it says that the router has other ports. Returns whether the
/// router must stop.
fn serve(
    switches: &[Mutex<Switch>],
    server: &mut Server,
    identity: &mut Identity,
    go_over: impl Fn(),
) -> bool {
    let mut ends = false;
    server.serve(Instant::now(), |request| match request {
        Request::Counters => {
            let mut all = Counters::default();
            for switch in switches {
                all.add(&lock(switch).counters());
            }
            Reply::Counters(all)
        }
        Request::SetLink { id, state } => {
            let mut found = true;
            for switch in switches {
                found &= lock(switch).set_link(id, &state);
            }
            match found {
                true => Reply::Done,
                false => Reply::Error {
                    message: format!("this router has no interface {id}"),
                },
            }
        }
        Request::Reload { folder } => match identity.reload(switches, folder) {
            Ok(()) => {
                go_over();
                Reply::Done
            }
            Err(error) => Reply::Error {
                message: error.to_string(),
            },
        },
        Request::Stop => {
            ends = true;
            Reply::Done
        }
    });
    ends
}
