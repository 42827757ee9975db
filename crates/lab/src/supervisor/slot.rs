//! One router, control service or emulator of a lab: what is started.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hawser_kernel::namespace::{self, NetNs};
use hawser_supervisor::{Launch, listens};
use hawser_topology::{AsDir, IsdAsn};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::build::{self, Namespaces};
use crate::logs::LOG_FILE;
use crate::process::ProcessId;
use crate::report::{StartError, log_end};
use crate::state::{AsState, LabState, Service};

/// Interval of checks whether a service that the user has started by hand still runs.
const BY_HAND_POLL: Duration = Duration::from_secs(1);

/// One service of an AS.
pub(super) struct Slot {
    pub isd_as: IsdAsn,
    pub service: Service,
    /// The name in messages, for example `router of 1-ff00:0:110`.
    pub name: String,
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub socket: PathBuf,
    log: PathBuf,
    /// How it ended the last time, if it ended without a request, or why it was not started.
    pub ended: Option<String>,
    /// Whether its AS has it no more; another service may take its number.
    pub is_retired: bool,
    /// How often an earlier service of its number was started again.
    pub earlier_restarts: u32,
}

impl Slot {
    /// A service that is not started yet.
    pub fn new(service: Service, as_: &AsState, dir: &AsDir, program: &Path) -> Self {
        let mut args: Vec<OsString> = service.command().map(OsString::from).into();
        args.push(dir.path().into());
        if let Some(id) = as_.router_id(service) {
            args.extend(["--id".into(), id.into()]);
        }
        Self {
            isd_as: as_.isd_as,
            service,
            name: as_.service_name(service),
            program: program.to_owned(),
            args,
            socket: as_.socket(dir, service),
            log: as_.log(dir, service),
            ended: None,
            is_retired: false,
            earlier_restarts: 0,
        }
    }

    /// Starts the process, and enters it in `state`.
    pub fn launch(&self, namespaces: &Namespaces, state: &mut LabState) -> io::Result<Launch> {
        if listens(&self.socket) {
            // The user has started the service by hand.
            return Ok(Launch::Postponed(BY_HAND_POLL));
        }
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        let namespace = build::namespace(namespaces, self.isd_as)?;
        let as_ = state.as_mut(self.isd_as).ok_or(io::ErrorKind::NotFound)?;
        let mut child = start(command, &self.log, namespace)?;
        // The child has not been reaped, so the number is still its own even if it has ended.
        match ProcessId::of(child.id().cast_signed()) {
            Ok(process) => {
                *as_.process_mut(self.service) = Some(process);
                let socket = Some(self.socket.clone());
                Ok(Launch::Started { child, socket })
            }
            Err(error) => {
                // It may have ended already.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub fn not_ready(&self, reason: String) -> StartError {
        StartError::NotReady {
            service: self.name.clone(),
            reason,
            log: log_end(&self.log),
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
