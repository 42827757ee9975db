//! The service: the queue, its file, and the attempts that run.
//!
//! [`Service::run`] starts jobs. It looks for one when a job or the configuration has changed, an attempt
//! has ended or a wait is over, and forgets old jobs each hour. A task makes each attempt, reports its
//! progress, and records its end. An attempt is interrupted when its job is cancelled or refused, and when
//! the service ends. A new state of a job is on disk before it counts; the end or refusal of an attempt
//! counts also if it cannot be written, and progress is not written.
//!
//! Locks: `core` has the queue, its file and what interrupts attempts, `progress` what attempts have
//! reported since the queue was last looked at, `users` the users as they are now, `attempts` wrong tokens.
//! `progress` is taken under `core` or alone, the others alone, and none is held across an await. The file
//! is written and synced under `core`, which is therefore taken on threads for blocking work alone: no task
//! waits for the disk with another's write.

mod api;
mod configure;
mod counters;
mod runner;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_endhost::ScionAddr;
use hawser_http::{Attempts, TokenHash};
use hawser_keys::PeerKey;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, oneshot};

pub use self::api::{NewJob, RequestError};
pub use self::counters::Counters;
use crate::carrier::Carrier;
use crate::config::Config;
use crate::event::ServiceEvent;
use crate::job::{Job, JobId, JobProgress, JobState};
use crate::log::{JobLog, JobLogError};
use crate::queue::Queue;
use crate::users::Users;

/// A service. Cloning shares it.
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    core: Mutex<Core>,
    /// At most one for each attempt that runs, and for those that ended since.
    progress: Mutex<HashMap<JobId, JobProgress>>,
    /// There may be a job to start.
    wake: Notify,
    carrier: Arc<dyn Carrier>,
    users: RwLock<Arc<Users>>,
    /// The folder with what is received; `None` for nothing.
    received: Option<PathBuf>,
    /// Where others send to, once they can.
    receiving: OnceLock<ScionAddr>,
    /// How long ended jobs are kept, in seconds.
    keep: u64,
    counters: Counters,
    /// Wrong tokens, at times since the service began.
    attempts: Attempts,
    begun: Instant,
    events: UnboundedSender<ServiceEvent>,
}

/// What changes.
struct Core {
    queue: Queue,
    log: JobLog,
    /// Dropping the value interrupts the attempt.
    running: HashMap<JobId, oneshot::Sender<()>>,
}

impl Service {
    /// A service with the jobs of `log`, of which `queue` was made. The user [`OWNER`](crate::OWNER) has the token
    /// `owner`. What happens goes to `events`.
    #[must_use]
    pub fn new(
        config: &Config,
        owner: TokenHash,
        (queue, log): (Queue, JobLog),
        carrier: Arc<dyn Carrier>,
        events: UnboundedSender<ServiceEvent>,
    ) -> Self {
        Self(Arc::new(Inner {
            core: Mutex::new(Core {
                queue,
                log,
                running: HashMap::new(),
            }),
            progress: Mutex::default(),
            wake: Notify::new(),
            carrier,
            users: RwLock::new(Arc::new(Users::new(config, owner))),
            received: config
                .receive
                .as_ref()
                .map(|receive| receive.folder.clone()),
            receiving: OnceLock::new(),
            keep: u64::from(config.transfers.keep_days) * 24 * 3600,
            counters: Counters::default(),
            attempts: Attempts::default(),
            begun: Instant::now(),
            events,
        }))
    }

    /// The users, as they are now.
    #[must_use]
    pub fn users(&self) -> Arc<Users> {
        let users = self.0.users.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&users)
    }

    /// The folder with what this host receives; `None` for nothing.
    #[must_use]
    pub fn received(&self) -> Option<&Path> {
        self.0.received.as_deref()
    }

    /// Where others send to; `None` while they cannot.
    #[must_use]
    pub fn receiving(&self) -> Option<ScionAddr> {
        self.0.receiving.get().copied()
    }

    /// Lets it be known that others can send to this address of the host with this key.
    pub(crate) fn receives_at(&self, address: ScionAddr, key: PeerKey) {
        if self.0.receiving.set(address).is_ok() {
            self.report(ServiceEvent::Receiving(address, key));
        }
    }

    /// Counts a wrong token against the address `from`. If there were too many, returns how long it has
    /// to wait instead.
    pub fn wrong_token(&self, from: IpAddr) -> Option<Duration> {
        self.0.attempts.count(from, self.0.begun.elapsed())
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// The time, in seconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        now()
    }

    /// The queue, with the progress that was reported. May wait for the disk.
    fn core(&self) -> MutexGuard<'_, Core> {
        let mut core = self.0.core.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, progress) in self.progress().drain() {
            core.queue.set_progress(id, progress);
        }
        core
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<JobId, JobProgress>> {
        let progress = self.0.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` where it may wait for the disk with the jobs.
    async fn locked<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self, &mut Core) -> T + Send + 'static,
    ) -> T {
        let service = self.clone();
        blocking(move || work(&service, &mut service.core())).await
    }

    pub(crate) fn report(&self, event: ServiceEvent) {
        // The caller may have dropped its end: then nothing is reported.
        let _ = self.0.events.send(event);
    }

    pub(crate) fn trouble(&self, what: impl std::fmt::Display) {
        self.report(ServiceEvent::Trouble(what.to_string()));
    }

    /// Writes a version of a job, and then lets it count.
    fn commit(&self, core: &mut Core, job: Job) -> Result<(), JobLogError> {
        core.log.append(&job)?;
        self.put(core, job);
        Ok(())
    }

    fn put(&self, core: &mut Core, job: Job) {
        let before = core.queue.job(job.id).map(|job| job.state);
        self.0.counters.count(before, &job);
        if job.state != JobState::Running {
            core.running.remove(&job.id);
        }
        self.report(ServiceEvent::Job(Box::new(job.clone())));
        core.queue.put(job);
        self.0.wake.notify_one();
    }
}

/// Calls `work` where it may wait for a disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
pub(crate) mod tests;
