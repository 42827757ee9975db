//! The process that a lab lives in.
//!
//! It holds the lab's namespaces and is the parent of its services, which the
//! kernel kills when it ends, however it ends. So there is nothing of a lab
//! that could outlive its processes.

mod services;

use crate::{
    build,
    dir::{LabDir, State},
    netns::{self, NetNs},
    plan::Plan,
    process::ProcessId,
    protocol::{self, LimitState, Reply, Request},
    reap::{self, Certainty},
};
use hawser_topology::Side;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::AsFd,
    io::Errno,
    process::{Resource, Rlimit},
};
use serde::{Deserialize, Serialize};
use services::Services;
pub(crate) use services::tail;
use std::{
    io::{self, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    process::ExitCode,
    time::Duration,
};

/// How long a command may take to send its request: it holds up all others.
const PATIENCE: Duration = Duration::from_secs(2);

/// By this variable the supervisor is told the program that runs the services:
/// itself, but for a wrapper that it was started through.
pub(crate) const PROGRAM: &str = "HAWSER_PROGRAM";

/// What the supervisor tells the command that started it, as one JSON line on
/// standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// All services have answered.
    Ready,
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
        Report::Failed {
            reason: error.to_string(),
        }
    }
}

/// Runs the supervisor of the lab in `dir` until the lab is taken down.
///
/// For the program that [`Options::program`] names: it must call this when run
/// as `internal lab-supervisor DIR`, on its main thread, before it has started
/// another thread (user_namespaces(7) demands that), and must print nothing to
/// standard output, on which the one who started it awaits a report. It must
/// end right after, with the code returned.
///
/// [`Options::program`]: crate::Options::program
pub fn supervise(dir: &Path) -> ExitCode {
    let dir = LabDir::new(dir);
    let mut supervisor = match Supervisor::start(&dir) {
        Ok(supervisor) => supervisor,
        Err(report) => {
            tracing::error!("the lab does not come up: {report:?}");
            // Nobody there to hear it: the log has it.
            let _ = tell(&report);
            return ExitCode::FAILURE;
        }
    };
    // Whoever started the lab has gone, and does not know that it is up.
    if let Err(error) = tell(&Report::Ready) {
        tracing::error!("nobody waits for the lab any more: {error}");
        return ExitCode::FAILURE;
    }
    match supervisor.serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("the supervisor ends: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the report, and closes the way it went.
fn tell(report: &Report) -> io::Result<()> {
    let mut out = io::stdout();
    serde_json::to_writer(&mut out, report)?;
    out.write_all(b"\n")?;
    out.flush()?;
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}

struct Supervisor {
    plan: Plan,
    /// Whether the devices of each link are up.
    up: Vec<bool>,
    state: State,
    namespaces: Vec<NetNs>,
    user_ns: Option<rustix::fd::OwnedFd>,
    services: Services,
    listener: UnixListener,
}

impl Supervisor {
    fn start(dir: &LabDir) -> Result<Supervisor, Report> {
        let network = dir.read_network()?;
        let plan = Plan::of(&network)?;
        let settings = dir.read_settings()?;
        let rootless = !netns::is_privileged();
        let mut state = State::new(&plan, &settings, rootless)?;
        dir.write_state(&state)?;
        let mut user_ns = None;
        if rootless {
            netns::become_root_of_own().map_err(|e| Report::NoUserNamespace {
                reason: e.to_string(),
            })?;
            user_ns = Some(netns::open_namespace("/proc/self/ns/user")?);
        }
        raise_file_limit(&state);

        let namespaces = build::namespaces(&plan)?;
        for (as_, ns) in state.ases.iter_mut().zip(&namespaces) {
            as_.net_ns = Some(ns.id()?);
        }
        dir.write_state(&state)?;
        build::links(&plan, &network, &namespaces)?;
        let listener = UnixListener::bind(dir.socket())?;

        let mut services = Services::spawn(dir, &settings, &mut state, &namespaces)?;
        dir.write_state(&state)?;
        services.wait_ready()?;
        tracing::info!(
            "{} ASes and {} links are up",
            plan.ases.len(),
            plan.links.len()
        );
        Ok(Supervisor {
            up: vec![true; plan.links.len()],
            plan,
            state,
            namespaces,
            user_ns,
            services,
            listener,
        })
    }

    /// Answers requests and reaps services, until told to stop.
    fn serve(&mut self) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        loop {
            {
                let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
                fds.extend(
                    self.services
                        .running()
                        .map(|handle| PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN)),
                );
                match poll(&mut fds, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            self.services.reap()?;
            match self.listener.accept() {
                Ok((stream, _)) => match self.converse(stream) {
                    Ok(true) => return Ok(()),
                    Ok(false) => {}
                    Err(error) => tracing::warn!("a command went away: {error}"),
                },
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Answers one request; true when it was to stop.
    fn converse(&mut self, mut stream: UnixStream) -> io::Result<bool> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (request, _) = protocol::receive(&stream)?;
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
        protocol::send(&mut stream, &reply, &fds).or_else(|e| match stopped {
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
            Request::Ended => Reply::Ended(self.services.ended()),
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

/// Each AS takes a namespace, and each of its processes two files; the usual
/// limit of 1024 files ends at some 300 ASes. Where it cannot be raised,
/// opening will say so.
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
