//! The routers and control services of a lab, as children of its supervisor.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{self, NetNs};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::backoff::Backoff;
use super::starter::Starter;
use super::{NotReady, PROGRAM, Report};
use crate::dir::LabDir;
use crate::logs::LOG_FILE;
use crate::process::{Handle, ProcessId};
use crate::protocol::History;
use crate::settings::Settings;
use crate::state::{Service, State};
use crate::{UpError, live, reap};

/// How long all services together may take to answer.
const START: Duration = Duration::from_secs(30);
/// How often a service that is starting is tried.
const TRY: Duration = Duration::from_millis(3);
/// How often a service that the user has started by hand is looked after.
const BY_HAND: Duration = Duration::from_secs(1);
/// Bytes of a log's end that are shown when its service fails.
const TAIL: u64 = 2000;

/// One process of an AS, or the place of one that has ended.
struct Running {
    owner: usize,
    service: Service,
    /// `router of 1-ff00:0:110`.
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    socket: PathBuf,
    log: PathBuf,
    /// None when it has ended.
    process: Option<Process>,
    backoff: Backoff,
    /// When it is started again; None while it runs.
    due: Option<Instant>,
    /// How it ended last.
    ended: Option<String>,
    restarts: u32,
}

struct Process {
    child: Child,
    handle: Handle,
    since: Instant,
}

pub(super) struct Services(Vec<Running>);

impl Services {
    /// Starts all that the lab runs itself, and notes their processes in `state`.
    pub fn spawn(
        dir: &LabDir,
        settings: &Settings,
        state: &mut State,
        namespaces: &[NetNs],
        starter: &Starter,
    ) -> Result<Self, Report> {
        let program = match std::env::var_os(PROGRAM) {
            Some(program) => PathBuf::from(program),
            None => std::env::current_exe()?,
        };
        let mut all = Vec::with_capacity(2 * namespaces.len());
        for (owner, as_) in state.ases.iter().enumerate() {
            let as_dir = dir.as_dir(&as_.folder);
            for service in as_.services() {
                let mut args: Vec<OsString> =
                    vec![service.command().into(), "run".into(), as_dir.path().into()];
                let socket = match service {
                    Service::Router(index) => {
                        if let Some(id) = as_.router_id(index) {
                            args.extend(["--id".into(), id.into()]);
                        }
                        as_.router_socket(&as_dir, index)
                    }
                    Service::Control => {
                        if let Some(lifetime) = settings.segment_lifetime {
                            let lifetime = hawser_topology::format_duration(lifetime);
                            args.extend(["--segment-lifetime".into(), lifetime.into()]);
                        }
                        as_dir.control_socket()
                    }
                };
                all.push(Running {
                    owner,
                    service,
                    name: as_.service_name(service),
                    program: program.clone(),
                    args,
                    socket,
                    log: as_.log(&as_dir, service),
                    process: None,
                    backoff: Backoff::default(),
                    due: None,
                    ended: None,
                    restarts: 0,
                });
            }
        }
        for service in &mut all {
            starter.check()?;
            let started = service.start(namespaces, state);
            started.map_err(|e| {
                let reason = format!("cannot start {}: {e}", program.display());
                service.not_ready(reason)
            })?;
        }
        Ok(Self(all))
    }

    /// Waits until each has answered on its socket.
    pub fn wait_ready(&mut self, starter: &Starter) -> Result<(), Report> {
        let deadline = Instant::now() + START;
        for service in &mut self.0 {
            starter.check()?;
            service.wait_ready(deadline)?;
        }
        Ok(())
    }

    /// Those that have not been reaped.
    pub fn running(&self) -> impl Iterator<Item = &Handle> {
        let processes = self.0.iter().filter_map(|s| s.process.as_ref());
        processes.map(|process| &process.handle)
    }

    /// When the next one is to be started again.
    pub fn next_start(&self) -> Option<Instant> {
        self.0.iter().filter_map(|s| s.due).min()
    }

    /// Takes note of those that have ended.
    pub fn reap(&mut self) -> io::Result<()> {
        self.0.iter_mut().try_for_each(Running::reap)
    }

    /// Takes note of those that have ended, and starts those again whose time has come. Returns
    /// whether `state` has changed.
    pub fn tend(&mut self, namespaces: &[NetNs], state: &mut State) -> io::Result<bool> {
        self.reap()?;
        let now = Instant::now();
        let mut changed = false;
        for service in &mut self.0 {
            if service.due.is_none_or(|due| due > now) {
                continue;
            }
            if live::answers(&service.socket) {
                // The user has started one by hand.
                service.due = Some(now + BY_HAND);
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

    /// Ends a service and starts it again, at once. Returns when it is ready.
    pub fn restart(
        &mut self,
        owner: usize,
        service: Service,
        namespaces: &[NetNs],
        state: &mut State,
    ) -> Result<(), String> {
        let wanted = |s: &&mut Running| s.owner == owner && s.service == service;
        let Some(service) = self.0.iter_mut().find(wanted) else {
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
        let ready = service.wait_ready(Instant::now() + START);
        ready.map_err(|report| UpError::from(report).to_string())
    }

    /// How those have fared that have ended by themselves.
    pub fn histories(&self) -> Vec<History> {
        let now = Instant::now();
        self.0
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

impl Running {
    /// Starts its process, and notes it in `state`.
    fn start(&mut self, namespaces: &[NetNs], state: &mut State) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        let child = start(command, &self.log, &namespaces[self.owner])?;
        // Not reaped yet, so the number is its own even if it has ended.
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

    /// If it has ended, says when it is to be started again.
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

    fn not_ready(&self, reason: String) -> Report {
        Report::NotReady(NotReady {
            service: self.name.clone(),
            reason,
            log: tail(&self.log).unwrap_or_else(|e| e.to_string()),
        })
    }

    fn wait_ready(&mut self, deadline: Instant) -> Result<(), Report> {
        loop {
            let error = match self.ask() {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            self.reap()?;
            if let (None, Some(how)) = (&self.process, &self.ended) {
                return Err(self.not_ready(how.clone()));
            }
            if Instant::now() > deadline {
                return Err(self.not_ready(error));
            }
            std::thread::sleep(TRY);
        }
    }

    /// One question that it answers when all is well.
    fn ask(&self) -> Result<(), String> {
        match self.service {
            Service::Router(_) => {
                use hawser_router::live::{Reply, Request, call};
                match call(&self.socket, &Request::Counters) {
                    Ok(Reply::Counters(_)) => Ok(()),
                    Ok(other) => Err(format!("it answered {other:?}")),
                    Err(e) => Err(e.to_string()),
                }
            }
            // It takes its addresses before it listens there. A question would have it read the
            // whole network.
            Service::Control => match live::answers(&self.socket) {
                true => Ok(()),
                false => Err("it does not listen on its socket".to_owned()),
            },
        }
    }
}

/// Starts a service inside the namespace of its AS, to live no longer than the calling thread,
/// which is the supervisor's only lasting one.
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

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> io::Result<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // Cut in the middle of a line: its rest says nothing.
    let whole = match start {
        0 => &text,
        _ => text.split_once('\n').map_or(&*text, |(_, rest)| rest),
    };
    Ok(whole.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_is_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "one\ntwo\n").unwrap();
        assert_eq!(tail(&log).unwrap(), "one\ntwo");
        let long: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&log, long).unwrap();
        let end = tail(&log).unwrap();
        assert!(
            end.starts_with("line ") && end.ends_with("line 999"),
            "{end}"
        );
        assert!(end.len() < TAIL as usize);
    }
}
