//! The folder of all labs, and the locks: only one command at a time may change a lab.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hawser_topology::FileError;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::name::{self, NameError};

/// Longest path of a Unix socket in bytes: `sun_path` of unix(7) has 108 bytes with the terminating
/// zero.
pub(crate) const SOCKET_PATH_MAX: usize = 107;

/// Interval at which a lock is tried that another command holds.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The reason why the folder of all labs cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The name of the lab is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A folder or file cannot be used.
    #[error("{0}; set XDG_RUNTIME_DIR to a folder of your own")]
    File(#[from] FileError),
    /// Another user could have created the folder.
    #[error(
        "{path} is not a folder of your own, closed to others: remove it, or set XDG_RUNTIME_DIR to one that is", path = path.display()
    )]
    NotOwned {
        /// The folder.
        path: PathBuf,
    },
}

/// The folder of all labs of this user.
#[derive(Debug, Clone)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// `$XDG_RUNTIME_DIR/hawser/lab` if the variable is set and the folder belongs to the user,
    /// else `/run/hawser/lab` for root and `/tmp/hawser-UID/lab` for others.
    pub fn find() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self(root_for(uid, runtime.filter(|dir| is_own(dir, uid))))
    }

    #[cfg(test)]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Creates the folder, and checks that no other user could have created it.
    fn create(&self) -> Result<(), PlaceError> {
        let uid = rustix::process::geteuid().as_raw();
        // `hawser` (or `hawser-UID`), which other programs share, and `lab`; the folders above belong to
        // the system, and in a root with hardly more than this program even /run is not there.
        let ours: Vec<_> = self.0.ancestors().zip([0o700, 0o755]).collect();
        if let Some(above) = self.0.ancestors().nth(2) {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(above);
            made.map_err(FileError::at(above))?;
        }
        for (dir, mode) in ours.into_iter().rev() {
            match DirBuilder::new().mode(mode).create(dir) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(FileError::at(dir)(e).into());
                }
                _ => {}
            }
            let meta = dir.symlink_metadata().map_err(FileError::at(dir))?;
            if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o022 != 0 {
                return Err(PlaceError::NotOwned {
                    path: dir.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The folder of the lab named `name`, which need not exist.
    pub fn lab(&self, name: &str) -> Result<PathBuf, PlaceError> {
        name::check(name)?;
        Ok(self.0.join(name))
    }

    /// Waits for the lock of the lab named `name`.
    pub fn lock(&self, name: &str) -> Result<Lock, PlaceError> {
        name::check(name)?;
        self.create()?;
        Lock::take(lock_file(&self.0.join(name)))
    }

    /// The lock of the lab named `name`; `None` if a command holds it for `timeout`.
    pub fn lock_within(&self, name: &str, timeout: Duration) -> Result<Option<Lock>, PlaceError> {
        name::check(name)?;
        self.create()?;
        let deadline = Instant::now() + timeout;
        loop {
            match self.try_lock(name)? {
                None if Instant::now() < deadline => std::thread::sleep(LOCK_POLL),
                outcome => return Ok(outcome),
            }
        }
    }

    /// Takes the lock of the lab named `name`; `None` if a command holds it.
    pub fn try_lock(&self, name: &str) -> Result<Option<Lock>, PlaceError> {
        name::check(name)?;
        Lock::acquire(
            lock_file(&self.0.join(name)),
            FlockOperation::NonBlockingLockExclusive,
        )
    }

    /// The names of all labs that have a folder, sorted.
    pub fn names(&self) -> Result<Vec<String>, PlaceError> {
        let mut names = self.entries()?;
        names.retain(|name| name::check(name).is_ok() && self.0.join(name).is_dir());
        Ok(names)
    }

    /// The names of all labs that have a folder or a lock file, sorted.
    pub fn traces(&self) -> Result<Vec<String>, PlaceError> {
        let entries = self.entries()?;
        let locks = entries
            .iter()
            .filter_map(|entry| entry.strip_prefix('.')?.strip_suffix(".lock"))
            .filter(|name| name::check(name).is_ok());
        let mut names: BTreeSet<String> = locks.map(str::to_owned).collect();
        names.extend(self.names()?);
        Ok(names.into_iter().collect())
    }

    /// The names of all entries of the folder, sorted.
    fn entries(&self) -> Result<Vec<String>, PlaceError> {
        let entries = match std::fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(FileError::at(&self.0)(e).into()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(FileError::at(&self.0))?;
            names.extend(entry.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }
}

fn root_for(uid: u32, runtime: Option<PathBuf>) -> PathBuf {
    match runtime {
        Some(dir) => dir.join("hawser/lab"),
        None if uid == 0 => PathBuf::from("/run/hawser/lab"),
        None => PathBuf::from(format!("/tmp/hawser-{uid}/lab")),
    }
}

/// Whether the folder belongs to the user, as the XDG specification demands. After `su` the
/// variable may name the folder of another user.
fn is_own(dir: &Path, uid: u32) -> bool {
    dir.is_absolute()
        && dir
            .metadata()
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == uid)
        && rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The lock file of the lab in `dir`.
fn lock_file(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    dir.with_file_name(format!(".{name}.lock"))
}

/// The lock of one lab, held until dropped. Dropping it removes the lock file.
///
/// The lock belongs to the open file, not to the process (flock(2)): a process that inherits the
/// file shares the lock, and still holds it after the first process has been killed.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The file to remove; `None` if another process removes it.
    path: Option<PathBuf>,
    // Closing it releases the lock.
    file: File,
}

impl Lock {
    /// Waits for the lock of the lab in `dir`.
    pub fn of(dir: &Path) -> Result<Self, PlaceError> {
        Self::take(lock_file(dir))
    }

    /// The lock of the lab in `dir`, inherited with `file` from the process that took it.
    pub fn inherited(dir: &Path, file: File) -> Self {
        let path = Some(lock_file(dir));
        Self { path, file }
    }

    /// The open file, for a child process to inherit.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives up this process's share of the lock; the other process removes the file.
    pub fn leave(mut self) {
        self.path = None;
    }

    fn take(path: PathBuf) -> Result<Self, PlaceError> {
        loop {
            if let Some(lock) = Self::acquire(path.clone(), FlockOperation::LockExclusive)? {
                return Ok(lock);
            }
        }
    }

    /// Tries once; returns `None` if another process holds the lock, or has just released it and
    /// removed the file.
    fn acquire(path: PathBuf, operation: FlockOperation) -> Result<Option<Self>, PlaceError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(FileError::at(&path))?;
        match rustix::io::retry_on_intr(|| rustix::fs::flock(&file, operation)) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            other => other.map_err(FileError::at(&path))?,
        }
        // If the previous holder has removed the file, the next command locks a new one.
        let held = file.metadata().map_err(FileError::at(&path))?.ino();
        let there = path.metadata().is_ok_and(|there| there.ino() == held);
        let path = Some(path);
        Ok(there.then_some(Self { path, file }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removes the file before releasing the lock, so that a process that waits for the lock
        // detects the removal. If this fails, an empty file remains, which is harmless.
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc;

    use super::*;

    fn root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root(dir.path().join("hawser/lab"));
        (dir, root)
    }

    #[test]
    fn the_folder_depends_on_the_user() {
        let runtime = Some(PathBuf::from("/run/user/7"));
        assert_eq!(root_for(7, runtime), Path::new("/run/user/7/hawser/lab"));
        assert_eq!(root_for(7, None), Path::new("/tmp/hawser-7/lab"));
        assert_eq!(root_for(0, None), Path::new("/run/hawser/lab"));
    }

    #[test]
    fn the_runtime_folder_must_belong_to_the_user() {
        let uid = rustix::process::geteuid().as_raw();
        let dir = tempfile::tempdir().unwrap();
        assert!(is_own(dir.path(), uid));
        assert!(!is_own(dir.path(), uid + 1));
        assert!(!is_own(Path::new("relative"), uid));
        assert!(!is_own(&dir.path().join("missing"), uid));
    }

    #[test]
    fn a_folder_open_to_others_is_refused() {
        let (dir, root) = root();
        drop(root.lock("x").unwrap());
        let open = dir.path().join("hawser");
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let error = root.lock("x").unwrap_err().to_string();
        assert!(error.contains("not a folder of your own"), "{error}");
    }

    #[test]
    fn the_systems_folder_above_is_made_where_it_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        drop(Root(run.join("hawser/lab")).lock("x").unwrap());
        let others = run.metadata().unwrap().mode() & 0o022;
        assert_eq!(others, 0, "others may not write there");
        assert!(run.join("hawser/lab").is_dir());
        let mode = |path: &str| run.join(path).metadata().unwrap().mode() & 0o777;
        let others = mode("hawser/lab") & 0o077;
        assert_eq!(others, 0, "it is private");
        assert_eq!(mode("hawser"), run.metadata().unwrap().mode() & 0o777);
    }

    #[test]
    fn the_lock_waits_and_leaves_no_file() {
        let (_dir, root) = root();
        let first = root.lock("x").unwrap();
        let (send, receive) = mpsc::channel();
        let other = root.clone();
        let waiting = std::thread::spawn(move || {
            let second = other.lock("x").unwrap();
            send.send(()).unwrap();
            drop(second);
        });
        assert!(receive.recv_timeout(Duration::from_millis(100)).is_err());
        drop(first);
        receive.recv().unwrap();
        waiting.join().unwrap();
        assert_eq!(std::fs::read_dir(&root.0).unwrap().count(), 0);
    }

    #[test]
    fn only_labs_are_listed() {
        let (_dir, root) = root();
        assert!(root.names().unwrap().is_empty());
        let _lock = root.lock("b").unwrap();
        for name in ["b", "a", ".c"] {
            std::fs::create_dir(root.0.join(name)).unwrap();
        }
        std::fs::write(root.0.join("file"), "").unwrap();
        assert_eq!(root.names().unwrap(), ["a", "b"]);
    }
}
