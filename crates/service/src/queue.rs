//! The jobs, their limits, and which of them runs next.
//!
//! No I/O and no clock. What is to change is first returned as the job's next version, so that the
//! caller can write it to disk, and takes effect with [`Queue::put`].
//!
//! The life of a job. It is *queued* when it is submitted, and *running* once [`Queue::start`] has chosen
//! it and that is on disk. An attempt that delivers everything makes it *done*. One that fails makes it
//! *waiting* for the next, for ten minutes at most, or *failed*: where the next would fail too, or after
//! too many attempts or too long a time without anything delivered. Until then it may be *cancelled*. What
//! was running when the service ended is queued again. Done, failed and cancelled jobs never change, and
//! are forgotten after a time that the caller chooses.
//!
//! [`UserLimits`] bound the jobs of a user that are to run or run; those that have ended are bounded by
//! time alone. The queue is a part of what `Service` locks, and has no lock itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hawser_backoff::Backoff;
use thiserror::Error;

use crate::job::{Job, JobFailure, JobId, JobProgress, JobState, Submission};

/// The first wait after a failed attempt, in seconds.
const MIN_BACKOFF: u64 = 5;
/// The longest wait between attempts, in seconds.
const LONGEST_WAIT: u64 = 600;
/// The waits after failed attempts.
const BACKOFF: Backoff = Backoff::new(
    Duration::from_secs(MIN_BACKOFF),
    Duration::from_secs(LONGEST_WAIT),
);

/// The limits of the service.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Most jobs that run at once.
    pub running: usize,
    /// Attempts in a row that may fail without delivering anything, before the job fails; `None` for
    /// as many as there is time for.
    pub attempts: Option<u32>,
    /// How long a job is tried again while nothing is delivered, in seconds.
    pub retry: u64,
    /// The users. Jobs of others do not run.
    pub users: HashMap<String, UserLimits>,
}

/// The limits of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLimits {
    /// Most of the user's jobs that run at once.
    pub running: usize,
    /// Most of the user's jobs that are to run.
    pub queued: usize,
    /// The highest priority that the user may give.
    pub priority: i8,
}

/// Why a job is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The user is in no section of the configuration.
    #[error("{0:?} is no user of this service")]
    Unknown(String),
    /// The user has as many jobs to run as allowed.
    #[error("{0} jobs are queued, the most that are allowed: try again when one has run")]
    Full(usize),
    /// The priority is higher than allowed.
    #[error("priority {given} is above {most}, the highest that is allowed")]
    Priority {
        /// The given one.
        given: i8,
        /// The highest.
        most: i8,
    },
}

/// Why a job cannot be cancelled or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CancelError {
    /// There is none of this number.
    #[error("there is no transfer {0}")]
    Unknown(JobId),
    /// It has ended.
    #[error("transfer {0} has ended already")]
    Ended(JobId),
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was delivered.
    Done,
    /// It failed, and may work later.
    Transient(JobFailure),
    /// It failed, and would fail again.
    Permanent(JobFailure),
}

/// The jobs of a service.
#[derive(Debug, Clone)]
pub struct Queue {
    limits: Limits,
    jobs: BTreeMap<JobId, Job>,
    next: JobId,
}

impl Queue {
    /// A queue of `jobs`, of which the running ones were interrupted and are queued again. The next
    /// job is numbered `next`, or higher if that is taken.
    #[must_use]
    pub fn new(limits: Limits, jobs: impl IntoIterator<Item = Job>, next: JobId) -> Self {
        let mut queue = Self {
            limits,
            jobs: BTreeMap::new(),
            next: next.max(JobId(1)),
        };
        for mut job in jobs {
            if job.state == JobState::Running {
                job.state = JobState::Queued;
            }
            queue.put(job);
        }
        queue
    }

    /// Sets other limits. Jobs that run already go on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The jobs, in the order of their numbers.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.jobs.values()
    }

    /// The job of a number.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// The number of the next job.
    #[must_use]
    pub const fn next_id(&self) -> JobId {
        self.next
    }

    /// Adds a job, or replaces its last version.
    pub fn put(&mut self, job: Job) {
        self.next = self.next.max(JobId(job.id.0.saturating_add(1)));
        self.jobs.insert(job.id, job);
    }

    /// Removes the jobs that ended before `time`, and returns how many.
    pub fn forget_ended_before(&mut self, time: u64) -> usize {
        let before = self.jobs.len();
        self.jobs
            .retain(|_, job| !job.state.is_final() || job.ended.is_none_or(|ended| ended >= time));
        before - self.jobs.len()
    }

    /// Updates what a running job has delivered.
    pub fn set_progress(&mut self, id: JobId, progress: JobProgress) {
        if let Some(job) = self.jobs.get_mut(&id)
            && job.state == JobState::Running
        {
            job.progress = progress;
        }
    }

    /// The job for `submission`.
    ///
    /// # Errors
    /// [`SubmitError`] when the user's limits do not allow it.
    pub fn submit(&self, submission: Submission, now: u64) -> Result<Job, SubmitError> {
        let user = &submission.user;
        let limits = self.limits.users.get(user);
        let limits = limits.ok_or_else(|| SubmitError::Unknown(user.clone()))?;
        let waits = |job: &&Job| !job.state.is_final() && job.state != JobState::Running;
        let mine = self.jobs().filter(|job| job.submission.user == *user);
        if mine.filter(waits).count() >= limits.queued {
            return Err(SubmitError::Full(limits.queued));
        }
        check_priority(submission.priority, *limits)?;
        Ok(Job {
            id: self.next,
            submission,
            state: JobState::Queued,
            failed_attempts: 0,
            failing_since: None,
            error: None,
            progress: JobProgress::default(),
            submitted: now,
            started: None,
            ended: None,
        })
    }

    /// The job that is to run now, as running: of those that limits allow to run, one of the highest
    /// priority; of these, one of a user with the fewest running jobs; of these, the oldest.
    #[must_use]
    pub fn start(&self, now: u64) -> Option<Job> {
        let mut running: HashMap<&str, usize> = HashMap::new();
        for job in self.jobs().filter(|job| job.state == JobState::Running) {
            *running.entry(&job.submission.user).or_default() += 1;
        }
        if running.values().sum::<usize>() >= self.limits.running {
            return None;
        }
        let of_user = |job: &Job| running.get(&*job.submission.user).copied().unwrap_or(0);
        let may_run = |job: &&Job| {
            let due = match job.state {
                JobState::Queued => true,
                JobState::Waiting { until } => until <= now,
                _ => false,
            };
            let limits = self.limits.users.get(&job.submission.user);
            due && limits.is_some_and(|limits| of_user(job) < limits.running)
        };
        let first = |job: &&Job| (Reverse(job.submission.priority), of_user(job), job.id);
        let mut job = self.jobs().filter(may_run).min_by_key(first)?.clone();
        job.state = JobState::Running;
        job.started = job.started.or(Some(now));
        Some(job)
    }

    /// When the first of the waiting jobs may run again.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        let due = |job: &Job| match job.state {
            JobState::Waiting { until } => Some(until),
            _ => None,
        };
        self.jobs().filter_map(due).min()
    }

    /// The job after an attempt, which had delivered `progress`; `None` if it does not run.
    #[must_use]
    pub fn end(&self, id: JobId, outcome: Outcome, progress: JobProgress, now: u64) -> Option<Job> {
        let job = self.jobs.get(&id)?;
        if job.state != JobState::Running {
            return None;
        }
        let mut job = job.clone();
        let sent = progress.verified_bytes > progress.existing_bytes;
        // An attempt that got nowhere says nothing about what is there.
        if progress.bytes > 0 {
            job.progress = progress;
        }
        (job.state, job.error) = match outcome {
            Outcome::Done => (JobState::Done, None),
            Outcome::Permanent(failure) => (JobState::Failed, Some(failure)),
            Outcome::Transient(failure) => {
                if sent {
                    (job.failed_attempts, job.failing_since) = (0, None);
                }
                job.failed_attempts += 1;
                let since = *job.failing_since.get_or_insert(now);
                // Seconds that are left; the last attempt is at their end.
                let left = self.limits.retry.saturating_sub(now.saturating_sub(since));
                let attempts = self.limits.attempts;
                let wait = BACKOFF.pause_after(job.failed_attempts).as_secs();
                let is_last = attempts.is_some_and(|most| job.failed_attempts >= most);
                let state = match is_last || left == 0 {
                    true => JobState::Failed,
                    false => JobState::Waiting {
                        until: now + wait.min(left),
                    },
                };
                (state, Some(failure))
            }
        };
        job.ended = job.state.is_final().then_some(now);
        Some(job)
    }

    /// The job, cancelled.
    ///
    /// # Errors
    /// [`CancelError`] when there is none, or it has ended.
    pub fn cancel(&self, id: JobId, now: u64) -> Result<Job, CancelError> {
        let mut job = self.to_run(id)?.clone();
        job.state = JobState::Cancelled;
        job.ended = Some(now);
        Ok(job)
    }

    /// The job with another priority.
    ///
    /// # Errors
    /// [`SubmitError::Priority`] when its user may not give it.
    pub fn with_priority(&self, job: &Job, priority: i8) -> Result<Job, SubmitError> {
        let user = &job.submission.user;
        let limits = self.limits.users.get(user);
        let limits = limits.ok_or_else(|| SubmitError::Unknown(user.clone()))?;
        check_priority(priority, *limits)?;
        let mut job = job.clone();
        job.submission.priority = priority;
        Ok(job)
    }

    /// The job, if it has not ended.
    ///
    /// # Errors
    /// [`CancelError`] when there is none, or it has ended.
    pub fn to_run(&self, id: JobId) -> Result<&Job, CancelError> {
        match self.jobs.get(&id) {
            None => Err(CancelError::Unknown(id)),
            Some(job) if job.state.is_final() => Err(CancelError::Ended(id)),
            Some(job) => Ok(job),
        }
    }
}

fn check_priority(given: i8, limits: UserLimits) -> Result<(), SubmitError> {
    let most = limits.priority;
    match given <= most {
        true => Ok(()),
        false => Err(SubmitError::Priority { given, most }),
    }
}

#[cfg(test)]
mod tests;
