//! The process that a lab lives in.
//!
//! It holds the lab's namespaces and is the parent of its services, which the kernel kills when it
//! ends, however it ends. So there is nothing of a lab that could outlive its processes.

mod backoff;
mod links;
mod services;
mod starter;

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{self, NetNs};
use hawser_kernel::rpc;
use hawser_topology::Side;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use self::services::Services;
pub(crate) use self::services::tail;
use self::starter::Starter;
use crate::build;
use crate::dir::LabDir;
use crate::place::Lock;
use crate::plan::Plan;
use crate::process::{Handle, ProcessId};
use crate::protocol::{LimitState, Reply, Request};
use crate::reap::{self, Certainty};
use crate::settings::Settings;
use crate::state::State;

/// How long a command may take to send its request: it holds up all others.
const PATIENCE: Duration = Duration::from_secs(2);

/// By this variable the supervisor is told the program that runs the services: itself, but for a
/// wrapper that it was started through.
pub(crate) const PROGRAM: &str = "HAWSER_PROGRAM";

/// What the supervisor tells the command that started it, as one JSON line on standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// All services have answered. Links of which the routers do not hear each other are named, as
    /// `1-ff00:0:110#1 - 1-ff00:0:111#1`.
    Ready { dead_links: Vec<String> },
    /// This user may not have user namespaces.
    NoUserNamespace { reason: String },
    /// A service ended, or did not answer.
    NotReady(NotReady),
    /// Something else.
    Failed { reason: String },
}

/// A service that did not come up.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NotReady {
    /// `router of 1-ff00:0:110`.
    pub service: String,
    pub reason: String,
    /// The last lines of its log.
    pub log: String,
}

impl<E: std::error::Error> From<E> for Report {
    fn from(error: E) -> Self {
        Self::Failed {
            reason: error.to_string(),
        }
    }
}

/// Runs the supervisor of the lab in `dir` until the lab is taken down, or its owner has ended.
///
/// For the program that [`Options::program`] names: it must call this when run as `internal
/// lab-supervisor DIR`, on its main thread, before it has started another thread
/// (user_namespaces(7) demands that), and must print nothing to standard output, on which the one
/// who started it awaits a report. Standard input is the lab's lock. It must end right after, with
/// the code returned.
///
/// [`Options::program`]: crate::Options::program
pub fn supervise(dir: &Path) -> ExitCode {
    let dir = LabDir::new(dir);
    let starter = match Starter::new(&dir) {
        Ok(starter) => starter,
        Err(error) => {
            tracing::error!("the lab does not come up: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (mut supervisor, dead_links) = match Supervisor::start(&dir, &starter) {
        Ok(started) => started,
        Err(report) => {
            tracing::error!("the lab does not come up: {report:?}");
            match starter.report(&report) {
                // It clears up, and tells the user.
                Ok(()) => starter.leave(),
                Err(_) => remove(&dir),
            }
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = starter.report(&Report::Ready { dead_links }) {
        tracing::error!("the command that brings the lab up has ended: {error}");
        supervisor.end();
        return ExitCode::FAILURE;
    }
    starter.leave();
    match supervisor.serve() {
        Ok(End::Stopped) => ExitCode::SUCCESS,
        Ok(End::Ownerless) => {
            tracing::info!("the owner of the lab has ended");
            supervisor.end_alone();
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!("the supervisor ends: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Removes the lab's folder.
fn remove(dir: &LabDir) {
    if let Err(error) = std::fs::remove_dir_all(dir.path()) {
        tracing::error!("cannot remove {}: {error}", dir.path().display());
    }
}

/// Why a lab ends.
enum End {
    /// It was told to, and nothing runs in it any more.
    Stopped,
    /// Its owner has ended.
    Ownerless,
}

struct Supervisor {
    dir: LabDir,
    plan: Plan,
    /// Whether the devices of each link are up.
    up: Vec<bool>,
    state: State,
    namespaces: Vec<NetNs>,
    user_ns: Option<rustix::fd::OwnedFd>,
    services: Services,
    listener: UnixListener,
    owner: Owner,
}

/// Logs how long each part of coming up takes.
struct Phase(Instant);

impl Phase {
    fn new() -> Self {
        Self(Instant::now())
    }

    fn ends(&mut self, what: &str) {
        tracing::info!("{what}, after {:.3} s", self.0.elapsed().as_secs_f64());
        self.0 = Instant::now();
    }
}

/// The process that the lab ends with.
enum Owner {
    /// There is none.
    Nobody,
    Process(Handle),
    /// It has ended already.
    Gone,
}

impl Owner {
    fn of(settings: &Settings) -> io::Result<Self> {
        Ok(match settings.owner.map(|owner| owner.open()) {
            None => Self::Nobody,
            Some(handle) => handle?.map_or(Self::Gone, Owner::Process),
        })
    }
}

impl Supervisor {
    /// The lab, up, and the links that are dead nevertheless.
    fn start(dir: &LabDir, starter: &Starter) -> Result<(Self, Vec<String>), Report> {
        let network = dir.read_network()?;
        let plan = Plan::of(&network)?;
        let settings = dir.read_settings()?;
        let rootless = !namespace::is_privileged();
        let mut state = State::new(&plan, &settings, rootless)?;
        dir.write_state(&state)?;
        let mut user_ns = None;
        if rootless {
            namespace::become_root_of_own().map_err(|e| Report::NoUserNamespace {
                reason: e.to_string(),
            })?;
            user_ns = Some(namespace::open_own_user()?);
        }
        raise_file_limit(&state);

        let mut phase = Phase::new();
        let namespaces = build::namespaces(&plan)?;
        for (as_, ns) in state.ases.iter_mut().zip(&namespaces) {
            as_.net_ns = Some(ns.id()?);
        }
        dir.write_state(&state)?;
        phase.ends("the namespaces are there");
        build::links(&plan, &network, &namespaces)?;
        phase.ends("the links are there");
        let listener = UnixListener::bind(dir.socket())?;

        let mut services = Services::spawn(dir, &settings, &mut state, &namespaces, starter)?;
        dir.write_state(&state)?;
        phase.ends("the services are started");
        services.wait_ready(starter)?;
        phase.ends("the services are ready");
        let dead_links = links::wait(dir, &state, &network, starter)?;
        phase.ends("the links are up");
        tracing::info!(
            "{} ASes and {} links are up",
            plan.ases.len(),
            plan.links.len() - dead_links.len()
        );
        let supervisor = Self {
            dir: dir.clone(),
            up: vec![true; plan.links.len()],
            plan,
            state,
            namespaces,
            user_ns,
            services,
            listener,
            owner: Owner::of(&settings)?,
        };
        Ok((supervisor, dead_links))
    }

    /// Answers requests and tends the services, until told to stop, or the lab's owner has ended.
    fn serve(&mut self) -> io::Result<End> {
        self.listener.set_nonblocking(true)?;
        loop {
            if self.wait()? {
                return Ok(End::Ownerless);
            }
            if self.services.tend(&self.namespaces, &mut self.state)?
                && let Err(error) = self.dir.write_state(&self.state)
            {
                tracing::error!("{error}");
            }
            match self.listener.accept() {
                Ok((stream, _)) => match self.converse(stream) {
                    Ok(true) => return Ok(End::Stopped),
                    Ok(false) => {}
                    Err(error) => tracing::warn!("a command went away: {error}"),
                },
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Waits for a request, the end of a service, or the time to start one again; true when the
    /// owner has ended.
    fn wait(&self) -> io::Result<bool> {
        let owner = match &self.owner {
            Owner::Gone => return Ok(true),
            Owner::Nobody => None,
            Owner::Process(handle) => Some(handle),
        };
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        let processes = owner.into_iter().chain(self.services.running());
        fds.extend(processes.map(|handle| PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN)));
        let timeout = self.services.next_start().map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            // A due time is at most half a minute away.
            Timespec::try_from(left).unwrap_or_default()
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(owner.is_some() && !fds[1].revents().is_empty())
    }

    /// Ends the lab when nobody else will. The caller holds its lock.
    fn end(&mut self) {
        if let Err(error) = self.stop() {
            tracing::error!("cannot end all processes of the lab: {error}");
        }
        remove(&self.dir);
    }

    /// The same without the lock.
    fn end_alone(mut self) {
        if let Err(error) = self.stop() {
            tracing::error!("cannot end all processes of the lab: {error}");
        }
        // A command that holds the lock shall not wait for an answer.
        let Self { dir, listener, .. } = self;
        drop(listener);
        match Lock::of(dir.path()) {
            Ok(_lock) => remove(&dir),
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Answers one request; true when it was to stop.
    fn converse(&mut self, stream: UnixStream) -> io::Result<bool> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (request, _) = rpc::receive(&stream)?;
        let stopping = matches!(request, Request::Stop);
        let reply = self.answer(request);
        let fds = match &reply {
            Ok((_, Some(owner))) => {
                let user = self.user_ns.as_ref().map(|fd| fd.as_fd());
                [Some(self.namespaces[*owner].as_fd()), user]
            }
            _ => [None, None],
        };
        let fds: Vec<_> = fds.into_iter().flatten().collect();
        let stopped = stopping && reply.is_ok();
        let reply = match reply {
            Ok((reply, _)) => reply,
            Err(message) => Reply::Error { message },
        };
        rpc::send(&stream, &reply, &fds).or_else(|e| match stopped {
            true => Ok(()),
            false => Err(e),
        })?;
        Ok(stopped)
    }

    /// The reply, and whose namespaces go with it.
    fn answer(&mut self, request: Request) -> Result<(Reply, Option<usize>), String> {
        let reply = match request {
            Request::Enter { owner } if owner < self.namespaces.len() => {
                return Ok((Reply::Entered, Some(owner)));
            }
            Request::Enter { owner } => return Err(format!("there is no AS at {owner}")),
            Request::Limits => Reply::Limits(self.limits()?),
            Request::SetLink { link, .. } if link >= self.plan.links.len() => {
                return Err(format!("there is no link at {link}"));
            }
            Request::SetLink { link, limit, up } => {
                let (plan, namespaces) = (&self.plan, &self.namespaces);
                build::set_limit(plan, namespaces, link, limit).map_err(|e| e.to_string())?;
                if self.up[link] != up {
                    build::set_link_up(plan, namespaces, link, up).map_err(|e| e.to_string())?;
                    self.up[link] = up;
                }
                Reply::Done
            }
            Request::Services => Reply::Services(self.services.histories()),
            Request::Restart { owner, service } => {
                let (state, namespaces) = (&mut self.state, &self.namespaces);
                self.services.restart(owner, service, namespaces, state)?;
                self.dir
                    .write_state(&self.state)
                    .map_err(|e| e.to_string())?;
                Reply::Done
            }
            Request::Stop => {
                self.stop().map_err(|e| e.to_string())?;
                Reply::Done
            }
        };
        Ok((reply, None))
    }

    fn limits(&self) -> Result<Vec<[Option<LimitState>; 2]>, String> {
        let mut limits = vec![[None; 2]; self.plan.links.len()];
        for (owner, ns) in self.namespaces.iter().enumerate() {
            let ends = self
                .plan
                .links
                .iter()
                .zip(&mut limits)
                .flat_map(|(link, limits)| {
                    let [a, b] = limits;
                    [(link.end(Side::A), a), (link.end(Side::B), b)]
                });
            let ends: Vec<_> = ends.filter(|(end, _)| end.owner == owner).collect();
            ns.run(|| {
                for (end, limit) in ends {
                    *limit = hawser_limit::read(&end.device)
                        .map_err(|e| e.to_string())?
                        .map(|(limit, counters)| LimitState::new(limit, counters));
                }
                Ok::<_, String>(())
            })
            .map_err(|e| e.to_string())??;
        }
        Ok(limits)
    }

    /// Ends everything that runs in the lab, but for this process.
    fn stop(&mut self) -> io::Result<()> {
        // Own children first reaped here, so that none is left a zombie.
        let services: Vec<ProcessId> = self.state.services().collect();
        reap::clear(&self.state.namespaces(), Certainty::Held)?;
        reap::end(&reap::open(services)?)?;
        self.services.reap()
    }
}

/// Each AS takes a namespace, and each of its processes two files; the usual limit of 1024 files
/// ends at some 300 ASes. Where it cannot be raised, opening will say so.
fn raise_file_limit(state: &State) {
    let services: usize = state.ases.iter().map(|a| a.services().len()).sum();
    let needed = (2 * state.ases.len() + 2 * services + 256) as u64;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let wanted = Rlimit {
            current: Some(limit.maximum.map_or(needed, |most| most.min(needed))),
            ..limit
        };
        if let Err(error) = rustix::process::setrlimit(Resource::Nofile, wanted) {
            tracing::warn!("cannot raise the limit of open files: {error}");
        }
    }
}
