//! The file of a store: how it is made, opened and checked.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Builder, Database, DatabaseError};

use super::{migrate, read};
use crate::error::OpenError;
use crate::state::State;

/// Opens a database in an open file.
type Opener = fn(&Path) -> Result<Database, DatabaseError>;

/// The file of a store.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    opener: Opener,
}

impl DatabaseFile {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            opener: |path| checked().open(path),
        }
    }

    /// With another way to open it.
    #[cfg(test)]
    pub fn with_opener(path: &Path, opener: Opener) -> Self {
        Self {
            path: path.to_owned(),
            opener,
        }
    }

    /// Makes the file with an empty state, whole or not at all.
    pub fn make(&self) -> Result<(), OpenError> {
        let path = &self.path;
        // A file of this process alone until it is whole.
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let made = self.make_as(&new);
        let removed = fs::remove_file(&new);
        made?;
        removed.map_err(|error| self.unreadable(&error))
    }

    fn make_as(&self, new: &Path) -> Result<(), OpenError> {
        let failed = |error: &dyn Display| self.unreadable(error);
        // Other users must not read the hashes of tokens, even if the umask lets them.
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600);
        options.open(new).map_err(|error| failed(&error))?;
        let database = checked().create(new).map_err(|error| failed(&error))?;
        migrate::make(&database).map_err(|reason| failed(&reason))?;
        database.close().map_err(|error| failed(&error))?;
        match fs::hard_link(new, &self.path) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other.map_err(|error| failed(&error))?,
        }
        let folder = self.path.parent().map_or(Path::new("."), |folder| folder);
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed(&error))
    }

    /// Opens the file and reads the state in it. An older format becomes that of today.
    pub fn open(&self) -> Result<(Database, State), OpenError> {
        let path = &self.path;
        let found = fs::metadata(path).map_err(|error| self.unreadable(&error))?;
        if found.len() == 0 {
            return Err(self.damaged("it is empty".to_owned()));
        }
        // A file that something else wrote to may still make redb panic.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let database = (self.opener)(path).map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => OpenError::InUse(path.clone()),
                DatabaseError::Storage(redb::StorageError::Io(error))
                    if error.kind() != io::ErrorKind::InvalidData
                        && error.kind() != io::ErrorKind::UnexpectedEof =>
                {
                    self.unreadable(&error)
                }
                error => self.damaged(error.to_string()),
            })?;
            migrate::migrate(&database, path)?;
            let state = read(&database).map_err(|reason| self.damaged(reason))?;
            Ok((database, state))
        }));
        opened.unwrap_or_else(|_| Err(self.damaged("its pages contradict each other".to_owned())))
    }

    fn unreadable(&self, error: &dyn Display) -> OpenError {
        OpenError::Unreadable {
            path: self.path.clone(),
            reason: error.to_string(),
        }
    }

    fn damaged(&self, reason: String) -> OpenError {
        OpenError::Damaged {
            path: self.path.clone(),
            reason,
        }
    }
}

/// Has every page checked when a database is opened: a damaged one is refused, not trusted.
pub(super) fn checked() -> Builder {
    let mut builder = Builder::new();
    builder.set_check_integrity_on_open(true);
    builder
}
