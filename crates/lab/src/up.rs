//! Bringing a lab up.

use std::fs::{DirBuilder, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use hawser_topology::{As, FileError, IsdAsn, Network, as_folder};
use hawser_trust::{AsRole, WriteError};

use crate::dir::LabDir;
use crate::down::{self, DownError};
use crate::logs::LOG_FILE;
use crate::place::{Lock, PlaceError, Root, SOCKET_PATH_MAX};
use crate::plan::{Plan, PlanError};
use crate::process::ProcessId;
use crate::settings::Settings;
use crate::supervisor::{NotReady, PROGRAM, Report, tail};
use crate::{Lab, name};

/// How to bring a lab up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The lab's name, `default` unless said otherwise.
    pub name: String,
    /// The program that runs the lab's parts: as `router run DIR`, `control run DIR`, and `internal
    /// lab-supervisor DIR` (see [`supervise`]).
    ///
    /// [`supervise`]: crate::supervise
    pub program: PathBuf,
    /// ASes whose border routers are left to the user, to be run by
    /// [`Lab::command`]: everything else of them is there.
    pub no_router: Vec<IsdAsn>,
    /// ASes whose control service and daemon are left to the user.
    pub no_control: Vec<IsdAsn>,
    /// How long path segments live, where the control service is not to choose.
    pub segment_lifetime: Option<Duration>,
    /// The process that the lab ends with, however that process ends; None for a lab that stays
    /// until it is taken down.
    pub owner: Option<u32>,
}

impl Options {
    /// A lab of the default name, run by `program`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            name: name::DEFAULT_NAME.to_owned(),
            program: program.into(),
            no_router: Vec::new(),
            no_control: Vec::new(),
            segment_lifetime: None,
            owner: None,
        }
    }

    /// Gives it another name: 1 to 32 of `a-z`, `A-Z`, `0-9`, `-`, `_`, `.`, beginning with a
    /// letter or digit.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Leaves the border routers of these ASes to the user.
    pub fn with_no_router(mut self, ases: impl Into<Vec<IsdAsn>>) -> Self {
        self.no_router = ases.into();
        self
    }

    /// Leaves the control service and daemon of these ASes to the user.
    pub fn with_no_control(mut self, ases: impl Into<Vec<IsdAsn>>) -> Self {
        self.no_control = ases.into();
        self
    }

    /// Has path segments live that long, at least a second.
    pub fn with_segment_lifetime(mut self, lifetime: Duration) -> Self {
        self.segment_lifetime = Some(lifetime);
        self
    }

    /// Has the lab taken down when the process of that number ends, also by SIGKILL.
    pub fn with_owner(mut self, pid: u32) -> Self {
        self.owner = Some(pid);
        self
    }

    fn settings(&self) -> Result<Settings, UpError> {
        let owner = self.owner.map(|pid| {
            let process = i32::try_from(pid).ok().map(ProcessId::of);
            process
                .and_then(Result::ok)
                .filter(ProcessId::is_alive)
                .ok_or(UpError::NoOwner(pid))
        });
        Ok(Settings {
            no_router: self.no_router.clone(),
            no_control: self.no_control.clone(),
            segment_lifetime: self.segment_lifetime,
            owner: owner.transpose()?,
        })
    }
}

/// Why a lab did not come up. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// Remains of an earlier lab of that name cannot be cleared away.
    #[error(transparent)]
    Remains(#[from] DownError),
    /// There is no place to keep its state, or its name is wrong.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The network cannot be laid out.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A service is to be left to the user in an AS that is not there.
    #[error("the network has no AS {0}, whose router or control service is not to be run")]
    UnknownAs(IsdAsn),
    /// The process that the lab is to end with does not run.
    #[error("there is no process {0} for the lab to end with")]
    NoOwner(u32),
    /// There is one of that name.
    #[error(
        "there is a lab {0:?} already: take it down with `hawser lab down --name {0}`, or give this one another name with --name"
    )]
    Exists(String),
    /// Unix sockets cannot have paths as long as the lab's would be.
    #[error(
        "{path} is {length} bytes long, and a Unix socket's path may have {SOCKET_PATH_MAX}: set XDG_RUNTIME_DIR to a shorter path, or shorten the lab's name", path = path.display()
    )]
    LongPath {
        /// The longest path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
    /// A file of the lab cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Keys and certificates cannot be made or written.
    #[error(transparent)]
    Trust(#[from] WriteError),
    /// The program cannot be run.
    #[error("cannot run {program}: {source}", program = program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An ordinary user may not have namespaces here.
    #[error(
        "user namespaces are not allowed here ({0}): run as root, or allow them (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu; give a container CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    )]
    NoUserNamespace(String),
    /// A router or control service ended, or did not answer.
    #[error("the {service} did not come up: {reason}{}", indented(log))]
    NotReady {
        /// Which, as `router of 1-ff00:0:110`.
        service: String,
        /// How it ended, or why it could not be asked.
        reason: String,
        /// The last lines of its log.
        log: String,
    },
    /// Namespaces, links or the like could not be made.
    #[error("the lab did not come up: {0}")]
    Failed(String),
    /// It did not come up, and could not be cleared away.
    #[error("{up}; clearing it away failed too: {down}")]
    Left {
        /// Why it did not come up.
        up: Box<Self>,
        /// Why it could not be cleared away.
        down: DownError,
    },
}

fn indented(log: &str) -> String {
    match log {
        "" => String::new(),
        log => format!("; its log ends:\n  {}", log.replace('\n', "\n  ")),
    }
}

impl From<Report> for UpError {
    fn from(report: Report) -> Self {
        match report {
            Report::NoUserNamespace { reason } => Self::NoUserNamespace(reason),
            Report::NotReady(NotReady {
                service,
                reason,
                log,
            }) => Self::NotReady {
                service,
                reason,
                log,
            },
            Report::Failed { reason } => Self::Failed(reason),
            Report::Ready { .. } => Self::Failed("it is up".to_owned()),
        }
    }
}

/// A lab that has come up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Up {
    /// The lab.
    pub lab: Lab,
    /// Whether remains of an earlier lab of that name, whose supervisor had been killed, were
    /// cleared away first.
    pub cleared: bool,
    /// Links whose routers, both run by the lab, do not hear each other, as `1-ff00:0:110#1 -
    /// 1-ff00:0:111#1`.
    pub dead_links: Vec<String>,
}

pub(crate) fn up(network: &Network, options: &Options) -> Result<Up, UpError> {
    let root = Root::find();
    let dir = LabDir::new(root.lab(&options.name)?);
    let plan = Plan::of(network)?;
    let left = options.no_router.iter().chain(&options.no_control);
    for isd_as in left {
        if network.find(*isd_as).is_none() {
            return Err(UpError::UnknownAs(*isd_as));
        }
    }
    let longest = dir.longest_socket(&plan);
    let length = longest.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        return Err(UpError::LongPath {
            path: longest,
            length,
        });
    }
    let lock = root.lock(&options.name)?;
    let settings = options.settings()?;
    let remains = dir.path().symlink_metadata().is_ok();
    if remains {
        // A supervisor that is starting shares the lock: here it runs, or has ended, or was never
        // started.
        match dir.read_state() {
            Ok(state) if state.is_running() => {
                return Err(UpError::Exists(options.name.clone()));
            }
            _ => down::clear(&dir)?,
        }
    }
    let written = write(&dir, &plan, network, &settings);
    match written.and_then(|()| run(&dir, &options.program, &lock)) {
        Ok(dead_links) => Ok(Up {
            lab: Lab::new(options.name.clone(), root, dir),
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

/// Writes everything that the lab's processes read.
fn write(dir: &LabDir, plan: &Plan, network: &Network, settings: &Settings) -> Result<(), UpError> {
    let make = |path: &Path| {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.map_err(FileError::at(path))
    };
    make(dir.path())?;
    dir.write_network(network)?;
    dir.write_settings(settings)?;
    for as_ in &plan.ases {
        let as_dir = dir.as_dir(&as_.folder);
        make(as_dir.path())?;
        as_dir.write_topology(&as_.topology)?;
        let random_key = || random_key().map_err(FileError::at(as_dir.path()));
        as_dir.write_master_key(&random_key()?)?;
        as_dir.write_next_master_key(&random_key()?)?;
        as_dir.write_links(&as_.links)?;
    }
    let roles: Vec<AsRole> = network.ases.iter().map(role).collect();
    let folder = |isd_as| dir.as_dir(&as_folder(isd_as)).path().to_owned();
    Ok(hawser_trust::write(&roles, folder)?)
}

fn random_key() -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    rustix::io::retry_on_intr(|| {
        rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())
    })?;
    Ok(key)
}

fn role(as_: &As) -> AsRole {
    AsRole {
        isd_as: as_.isd_as,
        core: as_.core,
        voting: as_.voting,
        authoritative: as_.authoritative,
        issuing: as_.issuing,
        cert_issuer: as_.cert_issuer,
    }
}

/// Starts the supervisor, and waits for its report that all runs, with the links that are dead.
fn run(dir: &LabDir, program: &Path, lock: &Lock) -> Result<Vec<String>, UpError> {
    let failed = |source| UpError::Program {
        program: program.to_owned(),
        source,
    };
    let program = program.canonicalize().map_err(failed)?;
    let stdout = start(dir, &program, lock).map_err(failed)?;
    let mut line = String::new();
    let report = BufReader::new(stdout)
        .read_line(&mut line)
        .and_then(|_| Ok(serde_json::from_str(&line)?));
    match report {
        Ok(Report::Ready { dead_links }) => Ok(dead_links),
        Ok(other) => Err(other.into()),
        Err(_) => {
            let log = tail(&dir.log()).unwrap_or_default();
            Err(UpError::Failed(format!(
                "its supervisor ended{}",
                indented(&log)
            )))
        }
    }
}

/// Starts the supervisor as a process that is nobody's child, in a session of its own, so that it
/// outlives this one and its terminal. Its standard input is the lab's lock, which it shares until
/// the lab is up: when this process is killed meanwhile, the next command waits until it has
/// cleared up.
fn start(dir: &LabDir, program: &Path, lock: &Lock) -> io::Result<ChildStdout> {
    let log = File::create(dir.log())?;
    let mut command = Command::new(program);
    command
        .args(["internal", "lab-supervisor"])
        .arg(dir.path())
        .env(PROGRAM, program)
        .env(LOG_FILE, dir.log())
        .current_dir("/")
        .stdin(lock.share()?)
        .stdout(Stdio::piped())
        .stderr(log);
    if std::env::var_os("RUST_LOG").is_none() {
        // For it and for the services: there is nobody to disturb.
        command.env("RUST_LOG", "info");
    }
    // SAFETY: between fork and exec it only makes system calls. The second fork is of a process
    // with one thread; its parent leaves at once by `_exit`, running nothing that it has in common
    // with this process.
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
    child
        .stdout
        .take()
        .ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}
