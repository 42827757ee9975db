//! What users ask of a service.

use std::path::{Component, Path};

use hawser_bulk::content::{ScanError, ScanOptions, scan_shared};
use hawser_endhost::ScionAddr;
use thiserror::Error;

use super::{Core, Service, blocking, now};
use crate::job::{Job, JobId, Submission};
use crate::log::JobLogError;
use crate::queue::{CancelError, SubmitError};
use crate::users::{Place, PlaceError, User};

/// Longest name at a server, in bytes.
const MAX_NAME: usize = 4000;

/// A job that a user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// The file or folder.
    pub source: String,
    /// The server.
    pub server: ScionAddr,
    /// The name there; empty or with `/` at the end for the name that it has here.
    pub destination: String,
    /// Its priority.
    pub priority: i8,
}

/// Why a request is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no such job.
    #[error("there is no transfer {0}")]
    Unknown(JobId),
    /// It is another user's.
    #[error("transfer {0} is another user's")]
    NotYours(JobId),
    /// It has ended.
    #[error("transfer {0} has ended already")]
    Ended(JobId),
    /// The source may not be sent.
    #[error("source: {0}")]
    Source(#[from] PlaceError),
    /// The destination is named from the root, which is not the server's folder.
    #[error(
        "destination: {0:?} is absolute: write it relative to the server's folder, without `/` before it"
    )]
    Absolute(String),
    /// The destination is no name.
    #[error("destination: {0:?} is no path below the server's folder: write one without `..`")]
    Destination(String),
    /// Limits do not allow it.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// It could not be written down.
    #[error("{0}: nothing was changed")]
    Log(#[from] JobLogError),
}

impl Service {
    /// Submits a job for `user`. It is on disk when this returns.
    ///
    /// # Errors
    /// [`RequestError`] when the user may not, or it cannot be written down.
    pub async fn submit(&self, user: &User, new: NewJob) -> Result<Job, RequestError> {
        let source = user.place(&new.source)?;
        let destination = destination(&new.destination, &source)?;
        let submission = Submission {
            user: user.name.clone(),
            source: new.source,
            server: new.server,
            destination,
            priority: new.priority,
        };
        // The disk of a user may hang: the service must not wait for it.
        blocking(move || source.check()).await?;
        self.locked(move |service, core| {
            let job = core.queue.submit(submission, now())?;
            service.commit(core, job.clone())?;
            Ok(job)
        })
        .await
    }

    /// A job of `user`.
    ///
    /// # Errors
    /// [`RequestError`] when there is none, or it is another's.
    pub async fn job(&self, user: &User, id: JobId) -> Result<Job, RequestError> {
        let user = user.clone();
        self.locked(move |_, core| owned(core, &user, id).cloned())
            .await
    }

    /// The jobs of `user`; of an admin, all.
    pub async fn jobs(&self, user: &User) -> Vec<Job> {
        let user = user.clone();
        self.locked(move |_, core| {
            let mine = core.queue.jobs().filter(|job| is_of(job, &user));
            mine.cloned().collect()
        })
        .await
    }

    /// Cancels a job.
    ///
    /// # Errors
    /// [`RequestError`] when there is none, it is another's, or it has ended.
    pub async fn cancel(&self, user: &User, id: JobId) -> Result<Job, RequestError> {
        let user = user.clone();
        self.locked(move |service, core| {
            owned(core, &user, id)?;
            let job = core.queue.cancel(id, now())?;
            service.commit(core, job.clone())?;
            Ok(job)
        })
        .await
    }

    /// Gives a job another priority, which counts when it starts.
    ///
    /// # Errors
    /// As [`cancel`](Self::cancel), and when the user may not give that one.
    pub async fn prioritize(
        &self,
        user: &User,
        id: JobId,
        priority: i8,
    ) -> Result<Job, RequestError> {
        let user = user.clone();
        self.locked(move |service, core| {
            owned(core, &user, id)?;
            let job = core.queue.with_priority(core.queue.to_run(id)?, priority)?;
            service.commit(core, job.clone())?;
            Ok(job)
        })
        .await
    }

    /// The bytes of a file, or of all files of a folder: in the user's folders, or in the folder with
    /// what was received. `None` if there is nothing.
    ///
    /// # Errors
    /// [`PlaceError`] when it may not be looked at; [`PlaceError::Special`] when it is neither a file
    /// nor a folder.
    pub async fn size(&self, user: &User, text: &str) -> Result<Option<u64>, PlaceError> {
        let received = self.received().and_then(|folder| {
            let below = Path::new(text);
            let below = below.strip_prefix(folder).unwrap_or(below);
            let below = below.strip_prefix("/").unwrap_or(below);
            Place::new(folder.to_owned(), below)
        });
        let places = match (user.place(text), received) {
            (Ok(own), received) => [Some(own), received],
            (Err(_), Some(received)) => [Some(received), None],
            (Err(error), None) => return Err(error),
        };
        blocking(move || {
            for place in places.into_iter().flatten() {
                match place.check() {
                    Ok(()) => return size(&place),
                    Err(PlaceError::Absent(_)) => {}
                    Err(PlaceError::Store(error)) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        })
        .await
    }

    /// The counters and gauges, in Prometheus' text format.
    pub async fn metrics(&self) -> String {
        self.locked(|service, core| service.0.counters.text(core.queue.jobs()))
            .await
    }
}

impl From<CancelError> for RequestError {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::Unknown(id) => Self::Unknown(id),
            CancelError::Ended(id) => Self::Ended(id),
        }
    }
}

fn is_of(job: &Job, user: &User) -> bool {
    user.admin || job.submission.user == user.name
}

fn owned<'a>(core: &'a Core, user: &User, id: JobId) -> Result<&'a Job, RequestError> {
    let job = core.queue.job(id).ok_or(RequestError::Unknown(id))?;
    match is_of(job, user) {
        true => Ok(job),
        false => Err(RequestError::NotYours(id)),
    }
}

/// The name at the server: relative, without a trailing slash.
fn destination(text: &str, source: &Place) -> Result<String, RequestError> {
    let wrong = || RequestError::Destination(text.to_owned());
    let mut names = Vec::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) => names.push(name.to_str().ok_or_else(wrong)?),
            Component::CurDir => {}
            Component::RootDir => return Err(RequestError::Absolute(text.to_owned())),
            _ => return Err(wrong()),
        }
    }
    if text.is_empty() || text.ends_with('/') {
        names.push(source.name().ok_or_else(wrong)?);
    }
    let name = names.join("/");
    match name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
        true => Err(wrong()),
        false => Ok(name),
    }
}

fn size(place: &Place) -> Result<Option<u64>, PlaceError> {
    let scan = match scan_shared(&place.root, &place.relative, ScanOptions::default()) {
        Ok(scan) => scan,
        Err(ScanError::Nothing) => return Ok(Some(0)),
        Err(ScanError::Store(error)) if error.is_not_found() => return Ok(None),
        Err(ScanError::Store(error)) => return Err(error.into()),
        Err(_) => return Err(PlaceError::Special(place.root.join(&place.relative))),
    };
    let entries = scan.manifest.entries();
    Ok(Some(entries.iter().map(|entry| entry.size()).sum()))
}
