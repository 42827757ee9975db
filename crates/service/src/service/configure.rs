//! What changes while a service runs.

use std::sync::{Arc, PoisonError};

use super::{Core, Service, now};
use crate::config::Config;
use crate::job::{FailureKind, Job, JobFailure, JobState};
use crate::queue::Outcome;
use crate::users::Users;

impl Service {
    /// Takes the users and the limits of a configuration in place of the former ones. Transfers that
    /// run for users that are no more, or send what is no longer theirs, are ended.
    pub async fn configure(&self, config: Config) {
        let users = Arc::new(self.users().renewed(&config));
        {
            let mut current = self.0.users.write().unwrap_or_else(PoisonError::into_inner);
            *current = Arc::clone(&users);
        }
        self.locked(move |service, core| {
            core.queue.set_limits(config.limits());
            let running = core
                .queue
                .jobs()
                .filter(|job| job.state == JobState::Running);
            let refused: Vec<_> = running
                .filter_map(|job| Some((job.clone(), refusal(&users, job)?)))
                .collect();
            for (job, failure) in refused {
                service.refuse(core, &job, failure);
            }
            // Limits may let others run.
            service.0.wake.notify_one();
        })
        .await;
    }

    fn refuse(&self, core: &mut Core, job: &Job, failure: JobFailure) {
        let outcome = Outcome::Permanent(failure);
        if let Some(ended) = core.queue.end(job.id, outcome, job.progress, now()) {
            if let Err(error) = core.log.append(&ended) {
                // It counts all the same: after a restart it is refused before it runs.
                self.trouble(error);
            }
            self.put(core, ended);
        }
    }
}

/// Why a job may not run, if it may not.
pub(super) fn refusal(users: &Users, job: &Job) -> Option<JobFailure> {
    let submission = &job.submission;
    let text = match users.by_name(&submission.user) {
        None => format!("{:?} is no user any more", submission.user),
        Some(user) => user.place(&submission.source).err()?.to_string(),
    };
    let kind = FailureKind::Source;
    Some(JobFailure { kind, text })
}
