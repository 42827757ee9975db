//! The routers, control services and emulators of a lab, which are children of its supervisor.

use std::error::Error;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{self, NetNs};
use hawser_topology::AsDir;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::backoff::Backoff;
use super::starter::Starter;
use crate::dir::LabDir;
use crate::logs::LOG_FILE;
use crate::process::{Handle, ProcessId};
use crate::protocol::History;
use crate::report::{PROGRAM, StartError, log_end};
use crate::state::{AsState, LabState, Service, Settings};
use crate::{live, reap};

/// Longest time from the start of all services until the last one answers.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which a starting service is polled.
const START_POLL: Duration = Duration::from_millis(3);
/// Interval of checks whether a service that the user has started by hand still runs.
const BY_HAND_POLL: Duration = Duration::from_secs(1);

/// One service of an AS, and its process.
struct Slot {
    /// Index of the AS.
    owner: usize,
    service: Service,
    /// The name in messages, for example `router of 1-ff00:0:110`.
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    socket: PathBuf,
    log: PathBuf,
    /// The process; `None` if it has ended.
    process: Option<Process>,
    backoff: Backoff,
    /// Time of the next start; `None` while it runs.
    due: Option<Instant>,
    /// How it ended the last time, if it ended without a request.
    ended: Option<String>,
    restarts: u32,
}

struct Process {
    child: Child,
    handle: Handle,
    since: Instant,
}

pub(super) struct Services {
    program: PathBuf,
    slots: Vec<Slot>,
}

impl Services {
    /// Starts all services that the lab runs, and enters their processes in `state`.
    pub fn spawn(
        dir: &LabDir,
        settings: &Settings,
        state: &mut LabState,
        namespaces: &[NetNs],
        starter: &Starter,
    ) -> Result<Self, Box<dyn Error>> {
        let program = match std::env::var_os(PROGRAM) {
            Some(program) => PathBuf::from(program),
            None => std::env::current_exe()?,
        };
        let mut slots = Vec::with_capacity(2 * namespaces.len());
        for (owner, as_) in state.ases.iter().enumerate() {
            let as_dir = dir.as_dir(as_.isd_as);
            let services = as_.services().into_iter();
            slots.extend(services.map(|service| {
                let mut slot = Slot::new(owner, service, as_, &as_dir, &program);
                if let (Service::Control, Some(lifetime)) = (service, settings.segment_lifetime) {
                    let lifetime = hawser_topology::format_duration(lifetime);
                    let flag = ["--segment-lifetime".into(), lifetime.into()];
                    slot.args.extend(flag);
                }
                if matches!(service, Service::Router(_)) && settings.enforce_mtu {
                    slot.args.push("--enforce-mtu".into());
                }
                // The control service answers them elsewhere.
                if service == Service::Router(0) && as_.no_control && !settings.no_echo {
                    slot.args.push("--echo".into());
                }
                slot
            }));
        }
        for service in &mut slots {
            starter.check()?;
            service.start(namespaces, state).map_err(|e| {
                service.not_ready(format!("cannot start {}: {e}", program.display()))
            })?;
        }
        Ok(Self { program, slots })
    }

    /// Starts the emulator of an AS that has none. Returns when it is ready.
    pub fn add_emulator(
        &mut self,
        owner: usize,
        dir: &LabDir,
        namespaces: &[NetNs],
        state: &mut LabState,
    ) -> Result<(), Box<dyn Error>> {
        let as_ = &mut state.ases[owner];
        as_.emulates = true;
        let as_dir = dir.as_dir(as_.isd_as);
        let mut slot = Slot::new(owner, Service::Emulator, as_, &as_dir, &self.program);
        slot.start(namespaces, state)?;
        self.slots.push(slot);
        let mut slot = self.slots.last_mut().into_iter();
        let deadline = Instant::now() + START_TIMEOUT;
        slot.try_for_each(|slot| slot.wait_ready(deadline))
    }

    /// Waits until all services answer on their sockets.
    pub fn wait_ready(&mut self, starter: &Starter) -> Result<(), Box<dyn Error>> {
        let deadline = Instant::now() + START_TIMEOUT;
        for service in &mut self.slots {
            starter.check()?;
            service.wait_ready(deadline)?;
        }
        Ok(())
    }

    /// The processes that have not been reaped.
    pub fn running(&self) -> impl Iterator<Item = &Handle> {
        let processes = self.slots.iter().filter_map(|s| s.process.as_ref());
        processes.map(|process| &process.handle)
    }

    /// When the next service is due for a restart.
    pub fn next_start(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|s| s.due).min()
    }

    /// Reaps the processes that have ended.
    pub fn reap(&mut self) -> io::Result<()> {
        self.slots.iter_mut().try_for_each(Slot::reap)
    }

    /// Reaps the processes that have ended, and restarts the services that are due. Returns whether
    /// `state` has changed.
    pub fn tend(&mut self, namespaces: &[NetNs], state: &mut LabState) -> io::Result<bool> {
        self.reap()?;
        let now = Instant::now();
        let mut changed = false;
        for service in &mut self.slots {
            if service.due.is_none_or(|due| due > now) {
                continue;
            }
            if live::answers(&service.socket) {
                // The user has started the service by hand.
                service.due = Some(now + BY_HAND_POLL);
                continue;
            }
            match service.start(namespaces, state) {
                Ok(()) => {
                    service.restarts += 1;
                    changed = true;
                    tracing::info!("the {} is started again", service.name);
                }
                Err(error) => {
                    tracing::warn!("the {} cannot be started: {error}", service.name);
                    service.due = Some(now + service.backoff.next(Duration::ZERO));
                }
            }
        }
        Ok(changed)
    }

    /// Restarts a service at once. Returns when it is ready.
    pub fn restart(
        &mut self,
        owner: usize,
        service: Service,
        namespaces: &[NetNs],
        state: &mut LabState,
    ) -> Result<(), String> {
        let wanted = |s: &&mut Slot| s.owner == owner && s.service == service;
        let Some(service) = self.slots.iter_mut().find(wanted) else {
            return Err(
                "the lab does not run this service: restart it where it was started".into(),
            );
        };
        let name = service.name.clone();
        let failed = |e: io::Error| format!("the {name} cannot be restarted: {e}");
        if let Some(process) = &service.process {
            reap::end(std::slice::from_ref(&process.handle)).map_err(failed)?;
            service.reap().map_err(failed)?;
        } else if let Some(process) = live::listener(&service.socket) {
            return Err(format!(
                "the {name} was started by hand, as process {}: end it, and the lab starts its own",
                process.pid
            ));
        }
        service.backoff = Backoff::default();
        service.ended = None;
        service.start(namespaces, state).map_err(failed)?;
        let ready = service.wait_ready(Instant::now() + START_TIMEOUT);
        ready.map_err(|error| error.to_string())
    }

    /// The history of the services that have ended without a request.
    pub fn histories(&self) -> Vec<History> {
        let now = Instant::now();
        self.slots
            .iter()
            .filter_map(|s| {
                Some(History {
                    owner: s.owner,
                    service: s.service,
                    ended: s.ended.clone()?,
                    restarts: s.restarts,
                    restart_in: s.due.map(|due| due.saturating_duration_since(now)),
                })
            })
            .collect()
    }
}

impl Slot {
    /// A service that is not started yet.
    fn new(owner: usize, service: Service, as_: &AsState, dir: &AsDir, program: &Path) -> Self {
        let mut args: Vec<OsString> = service.command().map(OsString::from).into();
        args.push(dir.path().into());
        if let Some(id) = as_.router_id(service) {
            args.extend(["--id".into(), id.into()]);
        }
        Self {
            owner,
            service,
            name: as_.service_name(service),
            program: program.to_owned(),
            args,
            socket: as_.socket(dir, service),
            log: as_.log(dir, service),
            process: None,
            backoff: Backoff::default(),
            due: None,
            ended: None,
            restarts: 0,
        }
    }

    /// Starts the process, and enters it in `state`.
    fn start(&mut self, namespaces: &[NetNs], state: &mut LabState) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        let child = start(command, &self.log, &namespaces[self.owner])?;
        // The child has not been reaped, so the number is still its own even if it has ended.
        let process = ProcessId::of(child.id() as i32)?;
        *state.ases[self.owner].process_mut(self.service) = Some(process);
        self.process = Some(Process {
            child,
            handle: Handle::of_child(process)?,
            since: Instant::now(),
        });
        self.due = None;
        Ok(())
    }

    /// Reaps the process if it has ended, and schedules the restart.
    fn reap(&mut self) -> io::Result<()> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        if let Some(status) = process.child.try_wait()? {
            let wait = self.backoff.next(process.since.elapsed());
            tracing::warn!(
                "the {} ended ({status}): started again in {wait:?}",
                self.name
            );
            self.due = Some(Instant::now() + wait);
            self.ended = Some(status.to_string());
            self.process = None;
        }
        Ok(())
    }

    fn not_ready(&self, reason: String) -> StartError {
        StartError::NotReady {
            service: self.name.clone(),
            reason,
            log: log_end(&self.log),
        }
    }

    fn wait_ready(&mut self, deadline: Instant) -> Result<(), Box<dyn Error>> {
        loop {
            let error = match self.ask() {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            self.reap()?;
            if let (None, Some(how)) = (&self.process, &self.ended) {
                return Err(self.not_ready(how.clone()).into());
            }
            if Instant::now() > deadline {
                return Err(self.not_ready(error).into());
            }
            std::thread::sleep(START_POLL);
        }
    }

    /// Checks with a request or connection whether the service is ready.
    fn ask(&self) -> Result<(), String> {
        match self.service {
            Service::Router(_) => live::counters(&self.socket).map(drop),
            // They are ready before they listen there. A request would make a control service
            // read the whole network.
            Service::Control | Service::Emulator => match live::answers(&self.socket) {
                true => Ok(()),
                false => Err("it does not listen on its socket".to_owned()),
            },
        }
    }
}

/// Starts a service inside the namespace of its AS. The kernel kills it when the calling thread
/// ends, so this must be called on the supervisor's main thread.
fn start(mut command: Command, log: &Path, ns: &NetNs) -> io::Result<Child> {
    command.env(LOG_FILE, log);
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let ns = ns.as_fd().try_clone_to_owned()?;
    let parent = rustix::process::getpid();
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    // SAFETY: between fork and exec it only makes system calls; nothing allocates or locks.
    unsafe {
        command.pre_exec(move || {
            namespace::enter_net(ns.as_fd())?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The supervisor may have ended before that was set.
            match getppid() == Some(parent) {
                true => Ok(()),
                false => Err(io::ErrorKind::NotConnected.into()),
            }
        })
    };
    command.spawn()
}
