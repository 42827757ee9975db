//! The jobs on disk.
//!
//! One line for each version of a job, as JSON, a tab and a checksum; the last one counts. A line is on
//! disk before what it says is answered or done, so a crash at any time loses nothing that was
//! promised: at most the last line is incomplete, and is cut off. A line that is there and does not
//! have its checksum is damaged, and the file refused. The queue is in memory as a whole and has one
//! writer, so a database would add nothing but its size; this file can be read with any tool.

mod line;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use hawser_file::LockedFile;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::job::{Job, JobId};

/// The file, the one that replaces it, and the one that is locked, in the folder.
pub(crate) const FILE: &str = "jobs.jsonl";
const NEW: &str = "jobs.jsonl.new";
const LOCK: &str = "lock";
/// The version of the format.
const VERSION: u32 = 2;
/// The version whose lines have no checksums: such a file is written anew when it is opened.
const UNCHECKED_VERSION: u32 = 1;
/// Lines beyond two for each job, before the file is written anew.
const SPARE_LINES: usize = 1000;

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    hawser_jobs: u32,
    /// The number of the next job, also when the last ones are forgotten.
    next: JobId,
}

/// Why the jobs cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobLogError {
    /// A failed system call.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The action that failed, as in "open".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another service uses the folder.
    #[error("{0} is in use by another daemon: stop it, or name another folder with --state")]
    InUse(PathBuf),
    /// The service has ended.
    #[error("the daemon is stopping")]
    Closed,
    /// A line is damaged, and not by a crash.
    #[error(
        "{path}, line {line} is damaged: {reason}; restore the file from a backup, or remove the line to go without that version of a job"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// It is not known what the lines of the file are, as the first one is damaged.
    #[error(
        "{path} is damaged: {reason}; restore it from a backup, or move it away to start without jobs"
    )]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// What is wrong with its beginning.
        reason: String,
    },
    /// The file is of a newer hawser.
    #[error("{path} has format {found}, and this hawser reads {VERSION}: use a newer hawser")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

impl JobLogError {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// What was on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The last version of each job, in no particular order.
    pub jobs: Vec<Job>,
    /// The number of the next job.
    pub next: JobId,
    /// Bytes of an incomplete last line, which were cut off.
    pub cut: usize,
}

/// The file with the jobs, open for appending.
#[derive(Debug)]
pub struct JobLog {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    /// Bytes that are complete.
    length: u64,
    lines: usize,
    /// Whether the file may end with an incomplete line, which is to be cut off before the next one.
    is_cut: bool,
    /// Until the log is closed.
    lock: Option<LockedFile>,
}

impl JobLog {
    /// Opens the log in `folder`, which is made if it does not exist, and reads it.
    ///
    /// # Errors
    /// [`JobLogError`] when the folder cannot be used, another service uses it, or the file is
    /// damaged.
    pub fn open(folder: &Path) -> Result<(Self, Loaded), JobLogError> {
        fs::create_dir_all(folder).map_err(|error| JobLogError::io("make", folder, error))?;
        let lock_path = folder.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path);
        let lock = lock.map_err(|error| JobLogError::io("open", &lock_path, error))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JobLogError::InUse(folder.to_owned()),
            TryLockError::Error(error) => JobLogError::io("lock", &lock_path, error),
        })?;
        let lock = LockedFile::new(lock);
        let path = folder.join(FILE);
        let loaded = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(JobLogError::io("find", &path, error)),
            Ok(_) => Some(read(&path)?),
        };
        let (loaded, lines, (file, length)) = match loaded {
            Some(found) if found.is_checked => {
                let opened = open_at(&path, found.length)?;
                (found.loaded, found.lines, opened)
            }
            found => {
                let loaded = found.map_or_else(Loaded::default, |found| found.loaded);
                let jobs: Vec<&Job> = loaded.jobs.iter().collect();
                let written = write_new(folder, loaded.next, &jobs)?;
                let lines = jobs.len();
                (loaded, lines, written)
            }
        };
        let log = Self {
            folder: folder.to_owned(),
            path,
            file,
            length,
            lines,
            is_cut: false,
            lock: Some(lock),
        };
        Ok((log, loaded))
    }

    /// Leaves the folder to the next service. Nothing is written from then on.
    pub fn close(&mut self) {
        self.lock = None;
    }

    fn check_open(&self) -> Result<(), JobLogError> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(JobLogError::Closed),
        }
    }

    /// Appends a version of a job. It is on disk when this returns.
    ///
    /// # Errors
    /// [`JobLogError`] when it cannot be written: then the job is as it was.
    pub fn append(&mut self, job: &Job) -> Result<(), JobLogError> {
        self.check_open()?;
        let failed = |error| JobLogError::io("write", &self.path, error);
        let line = line::write(job).map_err(failed)?;
        if self.is_cut {
            // What a failed write left could not be removed then. The file is opened anew, as the
            // system may report the failure again.
            (self.file, _) = open_at(&self.path, self.length)?;
            self.is_cut = false;
        }
        let written = self.file.write_all(&line);
        match written.and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.length += line.len() as u64;
                self.lines += 1;
                Ok(())
            }
            Err(error) => {
                self.is_cut = true;
                if let Ok((file, _)) = open_at(&self.path, self.length) {
                    (self.file, self.is_cut) = (file, false);
                }
                Err(JobLogError::io("write", &self.path, error))
            }
        }
    }

    /// Whether most lines are of versions that do not count any more.
    #[must_use]
    pub const fn is_worn(&self, jobs: usize) -> bool {
        self.lines > 2 * jobs + SPARE_LINES
    }

    /// Writes the file anew, with these jobs only.
    ///
    /// # Errors
    /// [`JobLogError`] when it cannot be written: then the old file stays.
    pub fn rewrite<'a>(
        &mut self,
        jobs: impl Iterator<Item = &'a Job>,
        next: JobId,
    ) -> Result<(), JobLogError> {
        self.check_open()?;
        let jobs: Vec<&Job> = jobs.collect();
        (self.file, self.length) = write_new(&self.folder, next, &jobs)?;
        self.lines = jobs.len();
        self.is_cut = false;
        Ok(())
    }
}

/// What a file has.
#[derive(Debug)]
struct Found {
    loaded: Loaded,
    /// Length of its complete lines.
    length: u64,
    /// Number of these with jobs.
    lines: usize,
    /// Whether lines have checksums.
    is_checked: bool,
}

impl Default for Loaded {
    fn default() -> Self {
        Self {
            jobs: Vec::new(),
            next: JobId(1),
            cut: 0,
        }
    }
}

/// Reads the file.
fn read(path: &Path) -> Result<Found, JobLogError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| JobLogError::io("read", path, error))?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Found, JobLogError> {
    let damaged = |index: usize, reason: String| JobLogError::Damaged {
        path: path.to_owned(),
        line: index + 1,
        reason,
    };
    let no_header = |reason: String| JobLogError::NoHeader {
        path: path.to_owned(),
        reason,
    };
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    // The file appeared under its name with a complete first line.
    let (_, first) = lines
        .next()
        .ok_or_else(|| no_header("it is empty".into()))?;
    let (header, is_checked): (Header, bool) = match line::read(first) {
        Ok(header) => (header, true),
        Err(line::LineError::Unchecked) => {
            let header = serde_json::from_slice(first);
            let header = header.map_err(|error| no_header(error.to_string()))?;
            (header, false)
        }
        Err(error) => return Err(no_header(error.to_string())),
    };
    let expected = match is_checked {
        true => VERSION,
        false => UNCHECKED_VERSION,
    };
    match header.hawser_jobs {
        found if found == expected => {}
        found if found > VERSION => {
            let path = path.to_owned();
            return Err(JobLogError::Version { path, found });
        }
        _ => return Err(no_header("the first line has not its checksum".into())),
    }
    let mut jobs = BTreeMap::new();
    let (mut complete, mut job_lines) = (first.len(), 0);
    for (index, line) in lines {
        let is_last = complete + line.len() == bytes.len();
        let read = match is_checked {
            true => line::read(line),
            false => line::read_unchecked(line),
        };
        let job: Job = match read {
            Ok(job) => job,
            // The last write was cut off by a crash.
            Err(line::LineError::Incomplete) if is_last => break,
            Err(error) => return Err(damaged(index, error.to_string())),
        };
        complete += line.len();
        job_lines += 1;
        jobs.insert(job.id, job);
    }
    let after_last = jobs
        .last_key_value()
        .map_or(0, |(id, _): (&JobId, _)| id.0.saturating_add(1));
    let loaded = Loaded {
        next: header.next.max(JobId(after_last)),
        jobs: jobs.into_values().collect(),
        cut: bytes.len() - complete,
    };
    Ok(Found {
        loaded,
        length: complete as u64,
        lines: job_lines,
        is_checked,
    })
}

/// Opens the file to append at `length`; what is behind is removed.
fn open_at(path: &Path, length: u64) -> Result<(File, u64), JobLogError> {
    let open = || {
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(length)?;
        file.sync_data()?;
        Ok((file, length))
    };
    open().map_err(|error| JobLogError::io("open", path, error))
}

/// Writes a file with these jobs in place of the old one.
fn write_new(folder: &Path, next: JobId, jobs: &[&Job]) -> Result<(File, u64), JobLogError> {
    let path = folder.join(NEW);
    let write = || {
        let mut bytes = line::write(&Header {
            hawser_jobs: VERSION,
            next,
        })?;
        for job in jobs {
            bytes.extend(line::write(job)?);
        }
        let mut file = File::create(&path)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        fs::rename(&path, folder.join(FILE))?;
        File::open(folder)?.sync_all()?;
        Ok((file, bytes.len() as u64))
    };
    write().map_err(|error| {
        // A disk that is full is not to keep what is of no use.
        let _ = fs::remove_file(&path);
        JobLogError::io("write", &path, error)
    })
}

#[cfg(test)]
mod tests;
