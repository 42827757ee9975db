//! The supervisor: the process that a lab exists with.
//!
//! It keeps the lab's namespaces open and is the parent of its services, which the kernel kills
//! when the supervisor ends for any reason. So no part of a lab outlives its processes.
//!
//! Its life. *Starting*: it makes the namespaces and links, starts the services, and waits until they are
//! ready and the links are up. Between these steps it looks whether the command that started it still runs.
//! When a step fails it reports that, and the command clears up; if there is none any more, it does so
//! itself. *Serving*: one loop waits for a request, a process, the time of a restart, or the end of the
//! owner. It reaps and restarts services, writes the state when processes have changed (again after a
//! second if that failed), and answers one request, while others wait. *Ended*: by a request, which is
//! answered once all processes have ended, and whose sender removes the folder; or with the owner, when it
//! ends all processes, closes the socket, takes the lab's lock and removes the folder itself.
//!
//! A change of the lab is a request for a plan, and one for each of its steps; in between others are
//! answered. What exists of the lab is known here alone, and no step is half taken in: a command that is
//! killed, or one of another network, continues from it.
//!
//! All of this is one thread, and nothing in it is locked. A command has two seconds to send its request; a
//! restart or a step may take half a minute. Memory is bounded by the network: two descriptors for each AS and each
//! process, and one connection.

mod hosts;
mod services;
mod slot;
mod starter;
mod steps;
mod teardown;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{self, NetNs};
use hawser_kernel::rpc::{self, Acceptor};
use hawser_limit::Limiter;
use hawser_supervisor::Handle;
use hawser_topology::{FileError, IsdAsn, LinkState, Side};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};

use self::services::Services;
use self::starter::Starter;
use self::teardown::{clear_up, end_services, remove};
use crate::build::Namespaces;
use crate::change::{Made, Target};
use crate::dir::LabDir;
use crate::place::Lock;
use crate::plan::{LinkId, Plan};
use crate::protocol::{LimitState, Reply, Request};
use crate::reap::Certainty;
use crate::report::{StartError, UpProgress};
use crate::state::{LabState, Settings};
use crate::{bfd, build, names};

/// The machine's own names, which the lab's are added to.
const HOSTS: &str = "/etc/hosts";
/// Longest wait for the request of a command, during which all other commands wait.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Time after which a state that could not be written, as on a full disk, is written again.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// Runs the supervisor of the lab in `dir` until the lab is taken down, or its owner has ended.
///
/// The program that [`Options::program`] names must call this when run as `internal lab-supervisor
/// DIR`, on its main thread and before it starts another thread (user_namespaces(7) demands that).
/// It must not write to standard output, from which the command that started it reads a report.
/// Standard input is the lab's lock. The program must then exit at once with the returned code.
///
/// [`Options::program`]: crate::Options::program
pub fn supervise(dir: &Path) -> ExitCode {
    let dir = LabDir::new(dir);
    match run(&dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &LabDir) -> Result<(), Box<dyn Error>> {
    let starter = Starter::new(dir)?;
    let (mut supervisor, dead_links) = match Supervisor::start(dir, &starter) {
        Ok(started) => started,
        Err(error) => {
            let error = match error.downcast::<StartError>() {
                Ok(error) => *error,
                Err(error) => StartError::Failed(error.to_string()),
            };
            let text = error.to_string();
            match starter.report(Err(error)) {
                // The command clears up, and reports the error to the user.
                Ok(()) => starter.release(),
                Err(_) => clear_up(dir),
            }
            return Err(text.into());
        }
    };
    if let Err(error) = starter.report(Ok(dead_links)) {
        remove(dir, supervisor.stop());
        return Err(format!("the command that brings the lab up has ended: {error}").into());
    }
    starter.release();
    match supervisor.serve()? {
        End::Stopped => Ok(()),
        End::Ownerless => {
            tracing::info!("the owner of the lab has ended");
            supervisor.end();
            Ok(())
        }
    }
}

/// The reason why [`Supervisor::serve`] returns.
enum End {
    /// A command has stopped the lab, and all its processes have ended.
    Stopped,
    /// The lab's owner has ended.
    Ownerless,
}

struct Supervisor {
    dir: LabDir,
    settings: Settings,
    made: Made,
    /// What the lab is being changed to, since a change was planned.
    target: Option<Target>,
    state: LabState,
    namespaces: Namespaces,
    /// The namespaces of added hosts that the lab has made.
    hosts: BTreeMap<(IsdAsn, String), NetNs>,
    user_ns: Option<rustix::fd::OwnedFd>,
    services: Services,
    acceptor: Acceptor,
    owner: Owner,
    /// When the state is written again, after it could not be.
    unwritten: Option<Instant>,
}

/// Logs how long each part of the start takes.
struct Phase(Instant);

impl Phase {
    fn end(&mut self, what: &str) {
        tracing::info!("{what}, after {:.3} s", self.0.elapsed().as_secs_f64());
        self.0 = Instant::now();
    }
}

/// The owner of the lab, a process with which the lab ends.
enum Owner {
    None,
    Process(Handle),
    /// The owner has already ended.
    Gone,
}

impl Owner {
    fn of(settings: &Settings) -> io::Result<Self> {
        Ok(match settings.owner.map(|owner| owner.open()) {
            None => Self::None,
            Some(handle) => handle?.map_or(Self::Gone, Self::Process),
        })
    }
}

impl Supervisor {
    /// Starts the lab. Also returns the links without a BFD session.
    fn start(dir: &LabDir, starter: &Starter) -> Result<(Self, Vec<String>), Box<dyn Error>> {
        let network = dir.read_network()?;
        let plan = Plan::of(&network)?;
        let settings = dir.read_settings()?;
        let rootless = !namespace::is_privileged();
        let mut state = LabState::new(&plan, &settings, rootless)?;
        dir.write_state(&state)?;
        let mut user_ns = None;
        if rootless {
            namespace::become_root_of_own()
                .map_err(|e| StartError::NoUserNamespace(e.to_string()))?;
            user_ns = Some(namespace::open_own_user()?);
        }
        raise_file_limit(&state);

        let mut phase = Phase(Instant::now());
        starter.progress(UpProgress::Building)?;
        let namespaces = build::namespaces(&plan, || starter.check())?;
        for as_ in &mut state.ases {
            as_.net_ns = Some(build::namespace(&namespaces, as_.isd_as)?.id()?);
        }
        dir.write_state(&state)?;
        phase.end("the namespaces exist");
        build::links(&plan, &namespaces, || starter.check())?;
        if settings.no_offload {
            build::disable_offloads(&plan, &namespaces)?;
        }
        phase.end("the links exist");
        let listener = UnixListener::bind(dir.socket())?;
        listener.set_nonblocking(true)?;

        starter.progress(UpProgress::Starting)?;
        let mut services = Services::spawn(dir, &settings, &mut state, &namespaces, starter)?;
        dir.write_state(&state)?;
        phase.end("the services are started");
        starter.progress(UpProgress::Waiting)?;
        services.wait_ready(&namespaces, &mut state, starter)?;
        phase.end("the services are ready");
        let down = bfd::wait(dir, &state, &network.links, || starter.check())?;
        let dead = network.links.iter().filter(|link| {
            let mut ends = [&link.a, &link.b].into_iter();
            ends.any(|end| down.contains(&(end.isd_as, end.id)))
        });
        let dead_links: Vec<String> = dead.map(|l| format!("{} - {}", l.a, l.b)).collect();
        phase.end("the links are up");
        tracing::info!(
            "{} ASes and {} links are up",
            plan.ases.len(),
            plan.links.len() - dead_links.len()
        );
        let owner = Owner::of(&settings)?;
        let mut supervisor = Self {
            dir: dir.clone(),
            settings,
            made: Made::new(plan, network),
            target: None,
            state,
            namespaces,
            hosts: BTreeMap::new(),
            user_ns,
            services,
            acceptor: Acceptor::new(listener),
            owner,
            unwritten: None,
        };
        supervisor.write_names()?;
        Ok((supervisor, dead_links))
    }

    /// Answers requests and restarts services, until a request stops the lab, or its owner has
    /// ended.
    fn serve(&mut self) -> io::Result<End> {
        loop {
            if self.wait()? {
                return Ok(End::Ownerless);
            }
            let changed = self
                .services
                .keep_alive(&self.namespaces, &mut self.state)?;
            let is_due = self.unwritten.is_some_and(|at| at <= Instant::now());
            if (changed || is_due)
                && let Err(error) = self.write_state()
            {
                tracing::error!("{error}");
            }
            match self.acceptor.accept(Instant::now()) {
                Ok(Some(stream)) => match self.converse(stream) {
                    Ok(true) => return Ok(End::Stopped),
                    Ok(false) => {}
                    Err(error) => tracing::warn!("the connection of a command broke: {error}"),
                },
                Ok(None) => {}
                Err(error) => tracing::warn!("a command cannot be accepted: {error}"),
            }
        }
    }

    /// Writes the state; if that fails, it is tried again later.
    fn write_state(&mut self) -> Result<(), FileError> {
        let written = self.dir.write_state(&self.state);
        let written = written.and_then(|()| self.write_names());
        let failed = written.is_err();
        self.unwritten = failed.then(|| Instant::now() + WRITE_AGAIN);
        written
    }

    /// Writes the file of names, if they are others than before. It is written in place, as programs that run
    /// see the file that was there when they were started.
    fn write_names(&mut self) -> Result<(), FileError> {
        let own = std::fs::read_to_string(HOSTS).unwrap_or_default();
        let ases = self.made.ases.values().map(|made| {
            let mut states = self.state.ases.iter();
            (
                &made.plan,
                states.find(|one| one.isd_as == made.plan.isd_as),
            )
        });
        let text = names::file(&own, ases);
        let path = self.dir.names();
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        std::fs::write(&path, text).map_err(FileError::at(&path))
    }

    /// Waits for a request, the end of a service, or the time of a restart; returns `true` if the
    /// owner has ended.
    fn wait(&self) -> io::Result<bool> {
        let owner = match &self.owner {
            Owner::Gone => return Ok(true),
            Owner::None => None,
            Owner::Process(handle) => Some(handle),
        };
        // The owner first: its entry is looked at below.
        let mut fds = Vec::new();
        fds.extend(owner.map(|handle| PollFd::new(handle, PollFlags::IN)));
        fds.push(PollFd::new(&self.services, PollFlags::IN));
        let now = Instant::now();
        let listener = self.acceptor.to_poll(now);
        fds.extend(listener.map(|listener| PollFd::new(listener, PollFlags::IN)));
        let due = self.services.next_due().into_iter();
        let due = due.chain(self.acceptor.next_due(now));
        let timeout = due.chain(self.unwritten).min().map(|due| {
            let left = due.saturating_duration_since(Instant::now());
            // The time is at most 30 s, which fits into a timespec.
            Timespec::try_from(left).unwrap_or_default()
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(owner.is_some() && !fds[0].revents().is_empty())
    }

    /// Ends the lab when its owner has ended.
    fn end(mut self) {
        let ended = self.stop();
        // Closes the socket first: a command that holds the lock must not wait for a reply.
        let Self { dir, acceptor, .. } = self;
        drop(acceptor);
        match Lock::of(dir.path()) {
            Ok(_lock) => remove(&dir, ended),
            Err(error) => tracing::error!("{error}"),
        }
    }

    /// Ends all processes of the lab except this one.
    fn stop(&mut self) -> io::Result<()> {
        end_services(&self.state, Certainty::Held)?;
        // If process 1 does not reap orphans, a child that is not reaped here stays a zombie.
        self.services.reap()
    }

    /// Answers one request; returns whether it stopped the lab.
    fn converse(&mut self, stream: UnixStream) -> io::Result<bool> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let (request, fds) = rpc::receive(&stream)?;
        let stopping = matches!(request, Request::Stop);
        let entered = match &request {
            Request::Enter { isd_as, host } => Some((*isd_as, host.clone())),
            _ => None,
        };
        let answer = self.answer(request, fds);
        let stopped = stopping && answer.is_ok();
        let mut fds = Vec::new();
        if let (Some((isd_as, host)), Ok(_)) = (entered, &answer) {
            let namespace = match host {
                None => self.namespaces.get(&isd_as),
                Some(host) => self.hosts.get(&(isd_as, host)),
            };
            fds.extend(namespace.map(|namespace| namespace.as_fd()));
            fds.extend(self.user_ns.as_ref().map(|fd| fd.as_fd()));
        }
        let reply = answer.unwrap_or_else(|message| Reply::Error { message });
        let sent = rpc::send(&stream, &reply, &fds);
        // A stopped lab ends even if the reply cannot be sent.
        match stopped {
            true => Ok(true),
            false => sent.map(|()| false),
        }
    }

    /// The reply to a request, which came with these descriptors.
    fn answer(&mut self, request: Request, fds: Vec<OwnedFd>) -> Result<Reply, String> {
        Ok(match request {
            Request::Enter { isd_as, .. } if !self.namespaces.contains_key(&isd_as) => {
                return Err(format!("there is no AS {isd_as}"));
            }
            Request::Enter {
                isd_as,
                host: Some(name),
            } => {
                self.check_made(isd_as, &name)?;
                Reply::Entered
            }
            Request::Enter { host: None, .. } => Reply::Entered,
            Request::AddHost { isd_as, name } => {
                let added = self.add_host(isd_as, name, fds.into_iter().next());
                Reply::Host(added.map_err(|e| e.to_string())?)
            }
            Request::RemoveHost { isd_as, name } => {
                let removed = self.remove_host(isd_as, &name);
                removed.map_err(|e| e.to_string())?;
                Reply::Done
            }
            Request::RunElsewhere { isd_as } => {
                self.run_elsewhere(isd_as).map_err(|e| e.to_string())?;
                Reply::Done
            }
            Request::EndedHosts => {
                Reply::EndedHosts(self.ended_hosts().map_err(|e| e.to_string())?)
            }
            Request::Limits => Reply::Limits(self.limits().map_err(|e| e.to_string())?),
            Request::SetLink { link, sides, state } => {
                let set = self.set_link(link, (&sides, state));
                set.map_err(|e| e.to_string())?;
                Reply::Done
            }
            Request::Services => Reply::Services(self.services.histories()),
            Request::Restart { isd_as, service } => {
                let (services, state) = (&mut self.services, &mut self.state);
                let restarted = services.restart(isd_as, service, &self.namespaces, state);
                // Processes may have been started also if it failed.
                self.write_state().map_err(|e| e.to_string())?;
                restarted?;
                Reply::Done
            }
            Request::Plan => Reply::Steps(self.plan().map_err(|e| e.to_string())?),
            Request::Step(step) => {
                let note = self.step(&step).map_err(|e| e.to_string())?;
                Reply::Stepped { note }
            }
            Request::Stop => {
                self.stop().map_err(|e| e.to_string())?;
                Reply::Done
            }
        })
    }

    /// The lab runs no services of an AS, which is to be added.
    fn run_elsewhere(&mut self, isd_as: IsdAsn) -> Result<(), FileError> {
        let Settings {
            no_router,
            no_control,
            ..
        } = &mut self.settings;
        for ases in [no_router, no_control] {
            if !ases.contains(&isd_as) {
                ases.push(isd_as);
            }
        }
        self.dir.write_settings(&self.settings)
    }

    /// Changes the limit on these ends of a link, and sets its devices up or down.
    fn set_link(
        &mut self,
        id: LinkId,
        (sides, wanted): (&[Side], LinkState),
    ) -> Result<(), Box<dyn Error>> {
        let Some(link) = self.made.links.get(&id) else {
            return Err(format!("there is no link {id}").into());
        };
        build::set_limit(&self.namespaces, &link.plan, (sides, &wanted.shape))?;
        if wanted.shape.is_emulated() {
            self.emulate(id)?;
        }
        let Self {
            made, namespaces, ..
        } = self;
        let Some(link) = made.links.get_mut(&id) else {
            return Ok(());
        };
        if link.up != wanted.up {
            let of = |isd_as: IsdAsn| {
                let as_ = made.ases.get(&isd_as).map(|as_| &as_.plan);
                as_.ok_or_else(|| format!("there is no AS {isd_as}"))
            };
            let ends = [of(link.plan.a.isd_as)?, of(link.plan.b.isd_as)?];
            build::set_link_up(namespaces, &link.plan, ends, wanted.up)?;
            link.up = wanted.up;
        }
        // The command writes the same to the files.
        for side in sides {
            let end = link.plan.end(*side);
            let as_ = made.ases.get_mut(&end.isd_as);
            if let Some(state) = as_.and_then(|as_| as_.plan.links.get_mut(&end.id)) {
                *state = wanted;
            }
        }
        let (isd_as, id) = id.0;
        if let Some((at, _)) = made.published.link_at(isd_as, id)
            && sides.len() == Side::BOTH.len()
        {
            made.published.links[at].shape = wanted.shape;
        }
        Ok(())
    }

    /// Diverts plain IP of a link to the emulators of both ASes, which it starts if they do not run.
    fn emulate(&mut self, id: LinkId) -> Result<(), Box<dyn Error>> {
        if let Some(link) = self.made.links.get_mut(&id) {
            for (side, is_diverted) in Side::BOTH.into_iter().zip(&mut link.is_diverted) {
                if !*is_diverted {
                    build::divert(&self.namespaces, &link.plan, side)?;
                    *is_diverted = true;
                }
            }
        }
        let added = id.ends().into_iter().try_for_each(|(isd_as, _)| {
            let (services, state) = (&mut self.services, &mut self.state);
            let as_ = state.as_mut(isd_as);
            match as_.is_none_or(|as_| as_.emulates && as_.emulator.is_some()) {
                true => Ok(()),
                false => services.add_emulator(isd_as, &self.dir, &self.namespaces, state),
            }
        });
        // Processes may have been started also if it failed.
        self.write_state()?;
        added
    }

    /// The limits of the two ends of each link. Enters each namespace once.
    fn limits(&self) -> io::Result<Vec<(LinkId, [Option<LimitState>; 2])>> {
        let mut limits: BTreeMap<LinkId, [Option<LimitState>; 2]> = BTreeMap::new();
        for (isd_as, ns) in &self.namespaces {
            let links = self.made.links.iter();
            let ends = links.flat_map(|(id, link)| {
                let ends = [(*id, 0, &link.plan.a), (*id, 1, &link.plan.b)];
                ends.into_iter().filter(|(_, _, end)| end.isd_as == *isd_as)
            });
            let ends: Vec<_> = ends.collect();
            let limits = &mut limits;
            ns.run(|| {
                let mut limiter = Limiter::open().map_err(io::Error::other)?;
                for (id, side, end) in ends {
                    let read = limiter.read(&end.device).map_err(io::Error::other)?;
                    limits.entry(id).or_default()[side] = read.first().map(LimitState::new);
                }
                Ok(())
            })
            .flatten()?;
        }
        Ok(limits.into_iter().collect())
    }
}

/// Raises the limit of open files: each AS needs two, and each of its processes two, so that the
/// usual limit of 1024 is reached at about 300 ASes. If it cannot be raised, opening a file fails
/// later.
fn raise_file_limit(state: &LabState) {
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
