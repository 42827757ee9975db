//! Where content goes, checked before anything is offered or asked for.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, statvfs};
use thiserror::Error;

use crate::session::Destination;

/// Why nothing can be written to a folder, or read from one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// Something else has its name.
    #[error("{path} is not a folder: name one", path = .0.display())]
    NotAFolder(PathBuf),
    /// It cannot be used, or made.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Unusable {
        /// What cannot be done with it, as in "write to".
        action: &'static str,
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Destination {
    /// Checks that files can be written there: the folder is one that this user can write to, or can
    /// be made. Nothing is made or written. Returns the free space in bytes; `None` if nothing is
    /// written, or the system does not say.
    ///
    /// # Errors
    /// [`FolderError`] when files cannot be written.
    pub fn check(&self) -> Result<Option<u64>, FolderError> {
        let Self::Folder { root, .. } = self else {
            return Ok(None);
        };
        let (folder, exists) = nearest(root)?;
        let action = if exists { "write to" } else { "make" };
        let rights = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, &folder, rights, AtFlags::EACCESS).map_err(|errno| {
            let path = root.clone();
            let source = errno.into();
            FolderError::Unusable {
                action,
                path,
                source,
            }
        })?;
        // Some file systems do not say.
        let found = statvfs(&folder).ok().filter(|found| found.f_blocks > 0);
        Ok(found.map(|found| found.f_bavail.saturating_mul(found.f_frsize.max(1))))
    }
}

/// Checks that a folder to share can be read.
///
/// # Errors
/// [`FolderError`] when it is none, or cannot be read.
pub fn check_shared(folder: &Path) -> Result<(), FolderError> {
    match std::fs::read_dir(folder) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(FolderError::NotAFolder(folder.to_owned()))
        }
        Err(source) => Err(FolderError::Unusable {
            action: "read",
            path: folder.to_owned(),
            source,
        }),
    }
}

/// The folder itself, or the one in which it would be made; and whether it is the former.
fn nearest(folder: &Path) -> Result<(PathBuf, bool), FolderError> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    for (depth, path) in absolute.ancestors().enumerate() {
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Ok((path.to_owned(), depth == 0)),
            Ok(_) => return Err(FolderError::NotAFolder(path.to_owned())),
            // A link that leads nowhere is not made a folder.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && std::fs::symlink_metadata(path).is_err() => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(source) => {
                return Err(FolderError::Unusable {
                    action: "write to",
                    path: path.to_owned(),
                    source,
                });
            }
        }
    }
    Err(FolderError::NotAFolder(folder.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn check(root: PathBuf) -> Result<Option<u64>, String> {
        let name = PathBuf::new();
        let destination = Destination::Folder { root, name };
        destination.check().map_err(|error| error.to_string())
    }

    #[test]
    fn folders_that_exist_or_can_be_made_are_taken_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("a/b");
        assert!(check(folder.path().to_owned()).unwrap() > Some(0));
        assert!(check(new.clone()).unwrap() > Some(0));
        assert!(!new.exists() && !folder.path().join("a").exists());
        assert_eq!(Destination::Discard.check().unwrap(), None);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        for path in [file.clone(), file.join("below")] {
            let error = check(path).unwrap_err();
            let expected = format!("{} is not a folder", file.display());
            assert!(error.starts_with(&expected), "{error}");
        }
        let dangling = folder.path().join("dangling");
        symlink(folder.path().join("nowhere"), &dangling).unwrap();
        let error = check(dangling).unwrap_err();
        assert!(error.contains("cannot write to"), "{error}");
        let locked = folder.path().join("locked");
        fs::create_dir(&locked).unwrap();
        fs::set_permissions(&locked, PermissionsExt::from_mode(0o555)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(check(locked.clone()).is_ok(), is_root);
        assert_eq!(check(locked.join("new")).is_ok(), is_root);
    }

    #[test]
    fn a_folder_to_share_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_shared(folder.path()).is_ok());
        let file = folder.path().join("file");
        let error = check_shared(&file).unwrap_err().to_string();
        assert!(error.contains("cannot read"), "{error}");
        fs::write(&file, b"").unwrap();
        let error = check_shared(&file).unwrap_err();
        assert!(matches!(error, FolderError::NotAFolder(_)), "{error}");
    }
}
