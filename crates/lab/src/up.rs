//! Bringing a lab up.

use crate::{
    Lab,
    dir::LabDir,
    down::{self, DownError},
    name,
    place::{PlaceError, Root, SOCKET_PATH_MAX},
    plan::{Plan, PlanError},
    supervisor::{NotReady, PROGRAM, Report, tail},
};
use hawser_topology::{AsDirError, Network, TopologyError};
use std::{
    fs::{DirBuilder, File},
    io::{self, BufRead, BufReader},
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{ChildStdout, Command, Stdio},
};

/// How to bring a lab up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The lab's name, `default` unless said otherwise.
    pub name: String,
    /// The program that runs the lab's parts: as `router run DIR`, `control run
    /// DIR`, and `internal lab-supervisor DIR` (see [`supervise`]).
    ///
    /// [`supervise`]: crate::supervise
    pub program: PathBuf,
}

impl Options {
    /// A lab of the default name, run by `program`.
    pub fn new(program: impl Into<PathBuf>) -> Options {
        Options {
            name: name::DEFAULT_NAME.to_owned(),
            program: program.into(),
        }
    }

    /// Gives it another name: 1 to 32 of `a-z`, `A-Z`, `0-9`, `-`, `_`, `.`,
    /// beginning with a letter or digit.
    pub fn with_name(mut self, name: impl Into<String>) -> Options {
        self.name = name.into();
        self
    }
}

/// Why a lab did not come up. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// There is no place to keep its state, or its name is wrong.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The network cannot be laid out.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of an AS cannot be written.
    #[error(transparent)]
    AsDir(#[from] AsDirError),
    /// The network cannot be written.
    #[error(transparent)]
    Network(#[from] TopologyError),
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
        up: Box<UpError>,
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
            Report::NoUserNamespace { reason } => UpError::NoUserNamespace(reason),
            Report::NotReady(NotReady {
                service,
                reason,
                log,
            }) => UpError::NotReady {
                service,
                reason,
                log,
            },
            Report::Failed { reason } => UpError::Failed(reason),
            Report::Ready => UpError::Failed("it is up".to_owned()),
        }
    }
}

pub(crate) fn up(network: &Network, options: &Options) -> Result<Lab, UpError> {
    let root = Root::find();
    let dir = LabDir::new(root.lab(&options.name)?);
    let plan = Plan::of(network)?;
    let longest = dir.longest_socket(&plan);
    let length = longest.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        return Err(UpError::LongPath {
            path: longest,
            length,
        });
    }
    let _lock = root.lock(&options.name)?;
    if dir.path().symlink_metadata().is_ok() {
        return Err(UpError::Exists(options.name.clone()));
    }
    match write(&dir, &plan, network).and_then(|()| run(&dir, &options.program)) {
        Ok(()) => Ok(Lab::new(options.name.clone(), root, dir)),
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
fn write(dir: &LabDir, plan: &Plan, network: &Network) -> Result<(), UpError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| UpError::Write { path, source }
    };
    let make = |path: &Path| {
        DirBuilder::new()
            .mode(0o700)
            .create(path)
            .map_err(failed(path))
    };
    make(dir.path())?;
    dir.write_network(network)?;
    for as_ in &plan.ases {
        let as_dir = dir.as_dir(&as_.folder);
        make(as_dir.path())?;
        let mut key = [0; 16];
        rustix::io::retry_on_intr(|| {
            rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())
        })
        .map_err(|e| failed(as_dir.path())(e.into()))?;
        as_dir.write_topology(&as_.topology)?;
        as_dir.write_master_key(&key)?;
        as_dir.write_links(&as_.links)?;
    }
    Ok(())
}

/// Starts the supervisor, and waits for its word that all is well.
fn run(dir: &LabDir, program: &Path) -> Result<(), UpError> {
    let failed = |source| UpError::Program {
        program: program.to_owned(),
        source,
    };
    let program = program.canonicalize().map_err(failed)?;
    let stdout = start(dir, &program).map_err(failed)?;
    let mut line = String::new();
    let report = BufReader::new(stdout)
        .read_line(&mut line)
        .and_then(|_| Ok(serde_json::from_str(&line)?));
    match report {
        Ok(Report::Ready) => Ok(()),
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

/// Starts the supervisor as a process that is nobody's child, in a session of
/// its own, so that it outlives this one and its terminal.
fn start(dir: &LabDir, program: &Path) -> io::Result<ChildStdout> {
    let log = File::create(dir.log())?;
    let mut command = Command::new(program);
    command
        .args(["internal", "lab-supervisor"])
        .arg(dir.path())
        .env(PROGRAM, program)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log);
    if std::env::var_os("RUST_LOG").is_none() {
        // For it and for the services: there is nobody to disturb.
        command.env("RUST_LOG", "info");
    }
    // SAFETY: between fork and exec it only makes system calls. The second
    // fork is of a process with one thread; its parent leaves at once by
    // `_exit`, running nothing that it has in common with this process.
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
