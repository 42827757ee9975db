//! Starts jobs, and takes note of how they end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio::task::{Id, JoinSet};

use super::{Core, Service, now};
use crate::carrier::{Attempt, Task};
use crate::job::{FailureKind, Job, JobFailure, JobId, JobProgress};
use crate::log::JobLogError;
use crate::queue::Outcome;
use crate::users::User;

/// Wait before the file is written again after it could not be.
const DISK_AGAIN: Duration = Duration::from_secs(10);
/// Interval at which ended jobs are forgotten.
const FORGET: Duration = Duration::from_secs(3600);
/// Longest wait for interrupted attempts.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

impl Service {
    /// Runs jobs until `stop` is ready. Attempts that run then are interrupted; their jobs run again
    /// when the service does. Jobs can be looked at after that, but not changed: the folder is left to
    /// the next service.
    pub async fn run(&self, stop: impl Future) {
        let mut stop = std::pin::pin!(stop);
        let mut attempts = JoinSet::new();
        let mut of_task: HashMap<Id, JobId> = HashMap::new();
        let mut forget = Instant::now();
        loop {
            if forget <= Instant::now() {
                forget = Instant::now() + FORGET;
                self.locked(|service, core| service.forget(core)).await;
            }
            let (started, due) = self
                .locked(|service, core| (service.start(core), core.queue.next_due()))
                .await;
            let mut again = forget.saturating_duration_since(Instant::now());
            match started {
                Ok(Some((job, interrupted))) => {
                    let id = job.id;
                    let attempt = attempts.spawn(self.clone().attempt(job, interrupted));
                    of_task.insert(attempt.id(), id);
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    self.trouble(format_args!(
                        "{error}: no transfer is started until that works"
                    ));
                    again = again.min(DISK_AGAIN);
                }
            }
            if let Some(due) = due {
                let left = due.saturating_sub(now()).max(1);
                again = again.min(Duration::from_secs(left));
            }
            tokio::select! {
                _ = &mut stop => break,
                () = self.0.wake.notified() => {}
                () = tokio::time::sleep(again) => {}
                Some(ended) = attempts.join_next_with_id() => match ended {
                    Ok((task, ())) => {
                        of_task.remove(&task);
                    }
                    Err(error) => if let Some(id) = of_task.remove(&error.id()) {
                        let text = format!("an internal error: {error}");
                        let failure = JobFailure { kind: FailureKind::Other, text };
                        self.end(id, Outcome::Permanent(failure), JobProgress::default()).await;
                    },
                },
            }
        }
        self.locked(|_, core| core.running.clear()).await;
        let ended = async { while attempts.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_TIMEOUT, ended).await;
        self.locked(|_, core| core.log.close()).await;
    }

    /// The job that is to run now, and what interrupts it.
    fn start(&self, core: &mut Core) -> Result<Option<(Job, oneshot::Receiver<()>)>, JobLogError> {
        let Some(job) = core.queue.start(now()) else {
            return Ok(None);
        };
        self.commit(core, job.clone())?;
        let (stop, interrupted) = oneshot::channel();
        core.running.insert(job.id, stop);
        Ok(Some((job, interrupted)))
    }

    /// Makes an attempt, and takes note of its end.
    async fn attempt(self, job: Job, stop: oneshot::Receiver<()>) {
        let submission = &job.submission;
        let users = self.users();
        let user = users.by_name(&submission.user);
        // The configuration may have changed since.
        let source = match user.map(|user| user.place(&submission.source)) {
            Some(Ok(source)) => source,
            wrong => {
                let text = match wrong {
                    Some(Err(error)) => error.to_string(),
                    _ => format!("{:?} is no user any more", submission.user),
                };
                let kind = FailureKind::Source;
                let outcome = Outcome::Permanent(JobFailure { kind, text });
                return self.end(job.id, outcome, job.progress).await;
            }
        };
        let destination = &submission.destination;
        // With its slash, the folder is one whether or not it exists there.
        let (folder, name) = destination.split_at(destination.rfind('/').map_or(0, |at| at + 1));
        let (progress, mut reported) = watch::channel(JobProgress::default());
        let carried = self.0.carrier.carry(Task {
            source,
            server: submission.server,
            folder: folder.to_owned(),
            name: name.to_owned(),
            limit: user.and_then(User::limit).cloned(),
            progress,
            stop,
        });
        tokio::pin!(carried);
        let attempt = loop {
            tokio::select! {
                attempt = &mut carried => break attempt,
                Ok(()) = reported.changed() => {
                    let progress = *reported.borrow_and_update();
                    self.progress().insert(job.id, progress);
                }
            }
        };
        let progress = *reported.borrow();
        let sent = progress
            .verified_bytes
            .saturating_sub(progress.existing_bytes);
        self.0.counters.sent(sent);
        if let Attempt::Ended(outcome) = attempt {
            self.end(job.id, outcome, progress).await;
        }
    }

    async fn end(&self, id: JobId, outcome: Outcome, progress: JobProgress) {
        self.locked(move |service, core| {
            let Some(job) = core.queue.end(id, outcome, progress, now()) else {
                return;
            };
            if let Err(error) = core.log.append(&job) {
                // It counts all the same: at worst it runs once more after a restart.
                service.trouble(error);
            }
            service.put(core, job);
        })
        .await;
    }

    /// Forgets old jobs, and writes the file anew if that makes it much smaller.
    fn forget(&self, core: &mut Core) {
        core.queue
            .forget_ended_before(now().saturating_sub(self.0.keep));
        let Core { queue, log, .. } = core;
        if log.is_worn(queue.jobs().count())
            && let Err(error) = log.rewrite(queue.jobs(), queue.next_id())
        {
            self.trouble(error);
        }
    }
}
