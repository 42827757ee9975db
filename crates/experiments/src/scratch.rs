//! Temporary folders for the files of a session.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, lstat, open, statvfs};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::error::{During, ExperimentError};

/// The prefix of the names of such folders.
const PREFIX: &str = "hawser-scratch-";

/// Where Linux systems mount a tmpfs for all users.
const MEMORY: &str = "/dev/shm";

/// A folder under the temporary directory. Dropping it removes it; if this process is killed, the
/// next [`sweep`] does: a lock on the folder (flock(2)) shows that its process runs.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: OwnedFd,
}

impl Scratch {
    /// Makes a folder.
    pub fn create() -> Result<Self, ExperimentError> {
        Self::create_in(&std::env::temp_dir())
    }

    /// Makes a folder in memory (tmpfs), if this system has one with room for `bytes`; otherwise like
    /// [`Scratch::create`].
    pub fn in_memory(bytes: u64) -> Result<Self, ExperimentError> {
        let memory = Path::new(MEMORY);
        let room = statvfs(memory).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
        match room > bytes {
            true => Self::create_in(memory),
            false => Self::create(),
        }
    }

    /// Makes a folder in `parent`.
    pub fn create_in(parent: &Path) -> Result<Self, ExperimentError> {
        let step = || format!("making a folder in {}", parent.display());
        loop {
            let folder = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(parent)
                .during(step())?;
            let lock = match open_folder(folder.path()) {
                Ok(lock) => lock,
                // A sweep removed the folder before it was locked.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error).during(step()),
            };
            rustix::io::retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))
                .during(step())?;
            if is_at(&lock, folder.path()) {
                let _lock = lock;
                return Ok(Self { folder, _lock });
            }
        }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of this user's sessions whose process was killed.
pub fn sweep() {
    sweep_in(&std::env::temp_dir());
    sweep_in(Path::new(MEMORY));
}

fn sweep_in(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    let is_scratch = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    for path in paths.filter(is_scratch) {
        // The folder belongs to another user, or was removed meanwhile.
        let Ok(lock) = open_folder(&path) else {
            continue;
        };
        let uid = rustix::process::geteuid().as_raw();
        if !fstat(&lock).is_ok_and(|stat| stat.st_uid == uid) {
            continue;
        }
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            && is_at(&lock, &path)
            && let Err(error) = std::fs::remove_dir_all(&path)
        {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
    }
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty())
}

/// Whether `path` still leads to the open folder.
fn is_at(folder: &OwnedFd, path: &Path) -> bool {
    let there = lstat(path).map(|stat| (stat.st_dev, stat.st_ino));
    fstat(folder).is_ok_and(|stat| there == Ok((stat.st_dev, stat.st_ino)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_killed_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = Scratch::create_in(parent.path()).unwrap();
        std::fs::write(used.path().join("file"), "x").unwrap();
        // The state that a killed process leaves: not removed, not locked.
        let killed = Scratch::create_in(parent.path()).unwrap();
        let left = killed.path().to_owned();
        std::fs::write(left.join("file"), "x").unwrap();
        let Scratch { folder, _lock } = killed;
        let _ = folder.keep();
        drop(_lock);
        let other = parent.path().join("hawser-demo-1");
        std::fs::create_dir(&other).unwrap();
        let target = parent.path().join("target");
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, parent.path().join("hawser-scratch-link")).unwrap();

        sweep_in(parent.path());
        assert!(!left.exists());
        assert!(used.path().join("file").exists());
        assert!(other.exists() && target.exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
