//! One service of an AS, as a child process that is started again when it ends.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::backoff::Backoff;
use crate::event::{Event, ServiceName};

/// The first wait before a service that ended is started again: short, for one that was killed.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
/// The longest wait, for a service that fails each time.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// After a run of at least this time the wait is short again.
const STEADY: Duration = Duration::from_secs(10);
/// Time between two looks whether a service that starts is ready.
const POLL: Duration = Duration::from_millis(20);
/// Longest time that a service takes to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// Longest line of a service that is passed on, in characters.
const LONGEST_LINE: usize = 1000;

/// What is started, and how it shows that it is ready.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub name: ServiceName,
    /// The folder of the version of the configuration.
    pub folder: PathBuf,
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The Unix socket that it listens on when it is ready.
    pub socket: PathBuf,
}

/// A service that is kept running. What is started may change: that counts from the next start on.
#[derive(Debug)]
pub(crate) struct Kept {
    spec: Mutex<Spec>,
    /// The folder from which the process that runs was started.
    folder: Mutex<PathBuf>,
    again: Notify,
}

impl Kept {
    pub fn new(spec: Spec) -> Self {
        Self {
            folder: Mutex::new(spec.folder.clone()),
            spec: Mutex::new(spec),
            again: Notify::new(),
        }
    }

    /// What is started next.
    pub fn spec(&self) -> Spec {
        lock(&self.spec).clone()
    }

    /// Sets what is started next.
    pub fn set_spec(&self, spec: Spec) {
        *lock(&self.spec) = spec;
    }

    /// The folder that the process which runs uses.
    pub fn folder(&self) -> PathBuf {
        lock(&self.folder).clone()
    }

    /// Has the process end, and the next one start at once.
    pub fn start_again(&self) {
        self.again.notify_one();
    }

    /// What is started now.
    fn begin(&self) -> Spec {
        let spec = self.spec();
        lock(&self.folder).clone_from(&spec.folder);
        spec
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a run of a service ended.
enum End {
    /// By itself.
    Itself(String),
    /// To be started again at once.
    Again,
    Stopped,
}

/// The state of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    Starting,
    Ready,
    /// It has ended, and is started again after a wait.
    Ended(String),
}

/// Runs the service until `stop` is true, and reports its status to `status`.
pub(crate) async fn keep(
    kept: Arc<Kept>,
    events: UnboundedSender<Event>,
    status: impl Fn(Status),
    mut stop: watch::Receiver<bool>,
) {
    let mut backoff = Backoff::new(MIN_BACKOFF, MAX_BACKOFF);
    loop {
        status(Status::Starting);
        let begun = Instant::now();
        let spec = kept.begin();
        let how = match run_once(&spec, &events, &status, &kept.again, &mut stop).await {
            End::Itself(how) => how,
            End::Again => continue,
            End::Stopped => return,
        };
        if begun.elapsed() >= STEADY {
            backoff.worked();
        }
        let again_after = backoff.failed();
        status(Status::Ended(how.clone()));
        let service = spec.name.clone();
        // Without a receiver nobody wants to know.
        let _ = events.send(Event::Ended {
            service,
            how,
            again_after,
        });
        tokio::select! {
            () = sleep(again_after) => {}
            () = stopped(&mut stop) => return,
        }
    }
}

/// Waits until `stop` is true, or nobody can make it so.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|&stop| stop).await;
}

/// Runs the service once.
async fn run_once(
    spec: &Spec,
    events: &UnboundedSender<Event>,
    status: &impl Fn(Status),
    again: &Notify,
    stop: &mut watch::Receiver<bool>,
) -> End {
    let spawned = Command::new(&spec.program)
        .args(&spec.args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            return End::Itself(format!("cannot run {}: {error}", spec.program.display()));
        }
    };
    let last = Arc::new(Mutex::new(None));
    let reading = child.stderr.take().map(|from| {
        let (service, events, last) = (spec.name.clone(), events.clone(), Arc::clone(&last));
        tokio::spawn(read_lines(from, service, events, last))
    });
    let ready = async {
        while UnixStream::connect(&spec.socket).await.is_err() {
            sleep(POLL).await;
        }
    };
    let ended = tokio::select! {
        ended = child.wait() => Some(ended),
        () = ready => None,
        () = stopped(stop) => {
            terminate(child).await;
            return End::Stopped;
        }
        () = again.notified() => {
            terminate(child).await;
            return End::Again;
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            status(Status::Ready);
            tokio::select! {
                ended = child.wait() => ended,
                () = stopped(stop) => {
                    terminate(child).await;
                    return End::Stopped;
                }
                () = again.notified() => {
                    terminate(child).await;
                    return End::Again;
                }
            }
        }
    };
    // A grandchild could hold the pipe open: the last line is waited for, but not forever.
    if let Some(reading) = reading {
        let _ = timeout(GRACE, reading).await;
    }
    let last = lock(&last).take();
    End::Itself(match (last, ended) {
        (Some(line), _) => line,
        (None, Ok(ended)) => ended.to_string(),
        (None, Err(error)) => error.to_string(),
    })
}

/// Passes lines on, and remembers the last one.
async fn read_lines(
    from: ChildStderr,
    service: ServiceName,
    events: UnboundedSender<Event>,
    last: Arc<Mutex<Option<String>>>,
) -> io::Result<()> {
    let mut lines = BufReader::new(from).lines();
    while let Some(line) = lines.next_line().await? {
        let line: String = line.chars().take(LONGEST_LINE).collect();
        let plain = line.strip_prefix("hawser: ").unwrap_or(&line).to_owned();
        *lock(&last) = Some(plain);
        let service = service.clone();
        let _ = events.send(Event::Said { service, line });
    }
    Ok(())
}

/// Ends a process with SIGTERM, or after a while with SIGKILL, and reaps it.
async fn terminate(mut child: Child) {
    // The number is its own until it is reaped.
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        // It may have ended just now.
        let _ = kill_process(pid, Signal::TERM);
    }
    if timeout(GRACE, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}
