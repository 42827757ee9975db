//! Bringing a lab up.

use std::fs::{DirBuilder, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use hawser_topology::{As, FileError, IsdAsn, Network};
use hawser_trust::{AsRole, WriteError};

use crate::dir::LabDir;
use crate::down;
use crate::error::DownError;
use crate::logs::LOG_FILE;
use crate::place::{Lock, PlaceError, Root, SOCKET_PATH_MAX};
use crate::plan::{Plan, PlanError};
use crate::process::ProcessId;
use crate::report::{Message, PROGRAM, StartError, UpProgress, log_end};
use crate::state::Settings;
use crate::{Lab, name, stray};

/// The options for bringing a lab up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The lab's name: 1 to 32 of `a-z`, `A-Z`, `0-9`, `-`, `_`, `.`, beginning with a letter or
    /// digit.
    pub name: String,
    /// The program that runs the lab's processes, with the arguments `router run DIR`, `control run
    /// DIR`, and `internal lab-supervisor DIR` (see [`supervise`]).
    ///
    /// [`supervise`]: crate::supervise
    pub program: PathBuf,
    /// ASes whose border routers the user runs, with [`Lab::command`]; the lab creates all other
    /// parts of them.
    pub no_router: Vec<IsdAsn>,
    /// ASes whose control service and daemon the user runs.
    pub no_control: Vec<IsdAsn>,
    /// Lifetime of path segments, at least a second; `None` for the control service's default.
    pub segment_lifetime: Option<Duration>,
    /// Number of the process with which the lab ends, even if that is killed; `None` for a lab that
    /// runs until it is taken down.
    pub owner: Option<u32>,
    /// Whether every packet crosses the lab's devices (links and loopback) by itself, as over network
    /// cards without segmentation and receive offloads. Otherwise they hand a packet of many
    /// segments (GSO, up to 64 KiB) over whole.
    pub no_offload: bool,
    /// Whether border routers answer packets above the MTU of a link with "packet too big".
    /// Otherwise they forward them, and the kernel fragments them.
    pub enforce_mtu: bool,
    /// Whether nothing answers echo requests (UDP 30041) to hosts of the ASes of `no_control`, where a
    /// dispatcher of the user does. Otherwise their border routers do.
    pub no_echo: bool,
}

impl Options {
    /// Options for a lab with the default name, run by `program`, with all services and offloads, and
    /// without an owner.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            name: name::DEFAULT_NAME.to_owned(),
            program: program.into(),
            no_router: Vec::new(),
            no_control: Vec::new(),
            segment_lifetime: None,
            owner: None,
            no_offload: false,
            enforce_mtu: false,
            no_echo: false,
        }
    }

    fn settings(&self) -> Result<Settings, UpError> {
        let owner = self.owner.map(|pid| {
            let process = i32::try_from(pid).ok().map(ProcessId::of);
            process
                .and_then(Result::ok)
                .filter(ProcessId::is_alive)
                .ok_or_else(|| {
                    UpError::Refused(format!("there is no process {pid} for the lab to end with"))
                })
        });
        Ok(Settings {
            no_router: self.no_router.clone(),
            no_control: self.no_control.clone(),
            segment_lifetime: self.segment_lifetime,
            owner: owner.transpose()?,
            no_offload: self.no_offload,
            enforce_mtu: self.enforce_mtu,
            no_echo: self.no_echo,
        })
    }
}

/// The reason why a lab did not come up. Except with [`UpError::Left`], no part of the lab remains.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// The remains of an earlier lab of that name cannot be removed.
    #[error(transparent)]
    Remains(#[from] DownError),
    /// The folder of all labs cannot be used, or the name is not valid.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The network exceeds a bound of labs.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The options do not match the network or this machine, or a lab of that name exists.
    #[error("{0}")]
    Refused(String),
    /// A file of the lab cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Keys and certificates cannot be created or written.
    #[error(transparent)]
    Trust(#[from] WriteError),
    /// The program cannot be run.
    #[error("cannot run {program}: {source}", program = program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The supervisor could not start the lab.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The lab did not come up, and its remains could not be removed.
    #[error("{up}; clearing it away failed too: {down}")]
    Left {
        /// Why it did not come up.
        up: Box<Self>,
        /// Why its remains could not be removed.
        down: DownError,
    },
}

/// A lab that has come up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Up {
    /// The lab.
    pub lab: Lab,
    /// Whether the remains of an earlier lab of that name, whose supervisor had been killed, were
    /// removed first.
    pub cleared: bool,
    /// Links without a BFD session between their routers, if the lab runs both, in the form
    /// `1-ff00:0:110#1 - 1-ff00:0:111#1`.
    pub dead_links: Vec<String>,
}

impl Lab {
    /// Brings a network up. Returns when all routers and control services answer; the lab then runs
    /// until it is taken down, or its owner ends ([`Options::owner`]). First removes the remains of
    /// a lab of that name whose supervisor was killed.
    ///
    /// # Errors
    /// [`UpError`].
    pub fn up(network: &Network, options: &Options) -> Result<Up, UpError> {
        Self::up_with(network, options, |_| ())
    }

    /// As [`Lab::up`]; calls `progress` before each step.
    ///
    /// # Errors
    /// [`UpError`].
    pub fn up_with(
        network: &Network,
        options: &Options,
        mut progress: impl FnMut(UpProgress),
    ) -> Result<Up, UpError> {
        let root = Root::find();
        let dir = LabDir::new(root.lab(&options.name)?);
        let plan = Plan::of(network)?;
        check(network, options, &dir.longest_socket(&plan))?;
        let lock = root.lock(&options.name)?;
        let settings = options.settings()?;
        let remains = dir.path().symlink_metadata().is_ok();
        if remains {
            // A starting supervisor shares the lock, so at this point it runs, has ended, or was
            // never started.
            let running = match dir.read_state() {
                Ok(state) => state.is_running(),
                // Nothing that may run is ended unasked.
                Err(error) if error.is_damaged() => return Err(error.into()),
                Err(_) => stray::is_running(&dir).map_err(FileError::at(dir.path()))?,
            };
            match running {
                true => {
                    return Err(UpError::Refused(format!(
                        "there is a lab {0:?} already: take it down with `hawser lab down --name {0}`, or give this one another name with --name",
                        options.name
                    )));
                }
                false => down::clear(&dir)?,
            }
        }
        progress(UpProgress::Writing);
        let written = write(&dir, &plan, network, &settings);
        match written.and_then(|()| run(&dir, &options.program, &lock, progress)) {
            Ok(dead_links) => Ok(Up {
                lab: Self {
                    name: options.name.clone(),
                    root,
                    dir,
                },
                cleared: remains,
                dead_links,
            }),
            Err(up) => match down::clear(&dir) {
                Ok(()) => Err(up),
                Err(down) => Err(UpError::Left {
                    up: Box::new(up),
                    down,
                }),
            },
        }
    }
}

/// Checks the options against the network, and the length of the longest socket path.
fn check(network: &Network, options: &Options, socket: &Path) -> Result<(), UpError> {
    let mut by_hand = options.no_router.iter().chain(&options.no_control);
    if let Some(isd_as) = by_hand.find(|isd_as| network.find(**isd_as).is_none()) {
        return Err(UpError::Refused(format!(
            "the network has no AS {isd_as}, whose router or control service is not to be run"
        )));
    }
    let length = socket.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        return Err(UpError::Refused(format!(
            "{} is {length} bytes long, and a Unix socket's path may have {SOCKET_PATH_MAX}: set XDG_RUNTIME_DIR to a shorter path, or shorten the lab's name",
            socket.display()
        )));
    }
    Ok(())
}

/// Writes all files that the lab's processes read.
fn write(dir: &LabDir, plan: &Plan, network: &Network, settings: &Settings) -> Result<(), UpError> {
    let make = |path: &Path| {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.map_err(FileError::at(path))
    };
    make(dir.path())?;
    dir.write_network(network)?;
    dir.write_settings(settings)?;
    for as_ in &plan.ases {
        let as_dir = dir.as_dir(as_.isd_as);
        make(as_dir.path())?;
        as_dir.write_topology(&as_.topology)?;
        let random_key = || random_key().map_err(FileError::at(as_dir.path()));
        as_dir.write_master_key(&random_key()?)?;
        as_dir.write_next_master_key(&random_key()?)?;
        as_dir.write_links(&as_.links)?;
    }
    let roles: Vec<AsRole> = network.ases.iter().map(role).collect();
    let folder = |isd_as| dir.as_dir(isd_as).path().to_owned();
    Ok(hawser_trust::write(&roles, folder)?)
}

fn random_key() -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    rustix::io::retry_on_intr(|| {
        rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())
    })?;
    Ok(key)
}

pub(crate) fn role(as_: &As) -> AsRole {
    AsRole {
        isd_as: as_.isd_as,
        core: as_.core,
        voting: as_.voting,
        authoritative: as_.authoritative,
        issuing: as_.issuing,
        cert_issuer: as_.cert_issuer,
    }
}

/// Starts the supervisor, and waits for its report. Returns the links without a BFD session.
fn run(
    dir: &LabDir,
    program: &Path,
    lock: &Lock,
    mut progress: impl FnMut(UpProgress),
) -> Result<Vec<String>, UpError> {
    let failed = |source| UpError::Program {
        program: program.to_owned(),
        source,
    };
    let program = program.canonicalize().map_err(failed)?;
    let stdout = start(dir, &program, lock).map_err(failed)?;
    for line in BufReader::new(stdout).lines() {
        match line.and_then(|line| Ok(serde_json::from_str(&line)?)) {
            Ok(Message::Progress(step)) => progress(step),
            Ok(Message::Report(report)) => return Ok(report?),
            Err(_) => break,
        }
    }
    let ended = format!("its supervisor ended{}", log_end(&dir.log()));
    Err(StartError::Failed(ended).into())
}

/// Starts the supervisor as an orphaned process in a new session, so that it outlives this process
/// and its terminal. Its standard input is the lab's lock, which it shares until the lab is up: if
/// this process is killed meanwhile, the next command waits until the supervisor has cleared up.
fn start(dir: &LabDir, program: &Path, lock: &Lock) -> io::Result<ChildStdout> {
    let log = File::create(dir.log())?;
    let mut command = Command::new(program);
    command
        .args(stray::SUPERVISOR)
        .arg(dir.path())
        .env(PROGRAM, program)
        .env(LOG_FILE, dir.log())
        .current_dir("/")
        .stdin(lock.share()?)
        .stdout(Stdio::piped())
        .stderr(log);
    if std::env::var_os("RUST_LOG").is_none() {
        // The supervisor and its services inherit this level; they log to files.
        command.env("RUST_LOG", "info");
    }
    // SAFETY: between fork and exec it only makes system calls. The process that forks a second
    // time has one thread; it ends at once by `_exit`, which runs no exit handlers of this process.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => Ok(()),
                _ => libc::_exit(0),
            }
        })
    };
    let mut child = command.spawn()?;
    child.wait()?;
    child.stdout.ok_or(io::ErrorKind::BrokenPipe.into())
}
