//! The routers and control services of a lab, as children of its supervisor.

use super::{NotReady, PROGRAM, Report};
use crate::{
    dir::{LabDir, Service, Settings, State},
    logs::LOG_FILE,
    netns::{self, NetNs},
    process::{Handle, ProcessId},
    protocol::Ended,
};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::{
    fs::{File, OpenOptions},
    io,
    os::{fd::AsFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// How long all services together may take to answer.
const START: Duration = Duration::from_secs(30);
/// How often a service that is starting is tried.
const TRY: Duration = Duration::from_millis(3);
/// Bytes of a log's end that are shown when its service fails.
const TAIL: u64 = 2000;

/// One process of an AS.
struct Running {
    owner: usize,
    service: Service,
    /// `router of 1-ff00:0:110`.
    name: String,
    socket: PathBuf,
    log: PathBuf,
    child: Child,
    handle: Handle,
    ended: Option<ExitStatus>,
}

pub(super) struct Services(Vec<Running>);

impl Services {
    /// Starts all that the lab runs itself, and notes their processes in
    /// `state`.
    pub fn spawn(
        dir: &LabDir,
        settings: &Settings,
        state: &mut State,
        namespaces: &[NetNs],
    ) -> Result<Services, Report> {
        let program = match std::env::var_os(PROGRAM) {
            Some(program) => PathBuf::from(program),
            None => std::env::current_exe()?,
        };
        let mut all = Vec::with_capacity(2 * namespaces.len());
        for (owner, (as_, ns)) in state.ases.iter_mut().zip(namespaces).enumerate() {
            let as_dir = dir.as_dir(&as_.folder);
            for service in as_.services() {
                let name = as_.service_name(service);
                let log = as_.log(&as_dir, service);
                let mut command = Command::new(&program);
                command.args([service.command(), "run"]).arg(as_dir.path());
                let socket = match service {
                    Service::Router(index) => {
                        if let Some(id) = as_.router_id(index) {
                            command.args(["--id", id]);
                        }
                        as_.router_socket(&as_dir, index)
                    }
                    Service::Control => {
                        if let Some(lifetime) = settings.segment_lifetime {
                            let lifetime = hawser_topology::format_duration(lifetime);
                            command.args(["--segment-lifetime", &lifetime]);
                        }
                        as_dir.control_socket()
                    }
                };
                let child = start(command, &log, ns).map_err(|e| {
                    Report::NotReady(NotReady {
                        service: name.clone(),
                        reason: format!("cannot start {}: {e}", program.display()),
                        log: String::new(),
                    })
                })?;
                // Not reaped yet, so the number is its own even if it has ended.
                let process = ProcessId::of(child.id() as i32)?;
                *as_.process_mut(service) = Some(process);
                all.push(Running {
                    owner,
                    service,
                    name,
                    socket,
                    log,
                    child,
                    handle: Handle::of_child(process)?,
                    ended: None,
                });
            }
        }
        Ok(Services(all))
    }

    /// Waits until each has answered on its socket.
    pub fn wait_ready(&mut self) -> Result<(), Report> {
        let deadline = Instant::now() + START;
        for service in &mut self.0 {
            service.wait_ready(deadline)?;
        }
        Ok(())
    }

    /// Those that have not been reaped.
    pub fn running(&self) -> impl Iterator<Item = &Handle> {
        self.0
            .iter()
            .filter(|s| s.ended.is_none())
            .map(|s| &s.handle)
    }

    /// Takes note of those that have ended. They are not started again: a
    /// fault that mends itself would go unseen.
    pub fn reap(&mut self) -> io::Result<()> {
        for service in self.0.iter_mut().filter(|s| s.ended.is_none()) {
            if let Some(status) = service.child.try_wait()? {
                tracing::warn!("the {} ended: {status}", service.name);
                service.ended = Some(status);
            }
        }
        Ok(())
    }

    pub fn ended(&self) -> Vec<Ended> {
        self.0
            .iter()
            .filter_map(|s| {
                Some(Ended {
                    owner: s.owner,
                    service: s.service,
                    how: s.ended?.to_string(),
                })
            })
            .collect()
    }
}

impl Running {
    fn wait_ready(&mut self, deadline: Instant) -> Result<(), Report> {
        let failed = |s: &Running, reason: String| {
            Report::NotReady(NotReady {
                service: s.name.clone(),
                reason,
                log: tail(&s.log).unwrap_or_else(|e| e.to_string()),
            })
        };
        loop {
            let error = match self.ask() {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if let Some(status) = self.child.try_wait()? {
                self.ended = Some(status);
                return Err(failed(self, status.to_string()));
            }
            if Instant::now() > deadline {
                return Err(failed(self, error));
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
            Service::Control => {
                use hawser_control::live::{Reply, Request, call};
                match call(&self.socket, &Request::Status) {
                    Ok(Reply::Status(_)) => Ok(()),
                    Ok(other) => Err(format!("it answered {other:?}")),
                    Err(e) => Err(e.to_string()),
                }
            }
        }
    }
}

/// Starts a service inside the namespace of its AS, to live no longer than the
/// calling thread, which is the supervisor's only lasting one.
fn start(mut command: Command, log: &Path, ns: &NetNs) -> io::Result<Child> {
    command.env(LOG_FILE, log);
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let ns = ns.as_fd().try_clone_to_owned()?;
    let parent = rustix::process::getpid();
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    // SAFETY: between fork and exec it only makes system calls; nothing
    // allocates or locks.
    unsafe {
        command.pre_exec(move || {
            netns::enter_net(ns.as_fd())?;
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
