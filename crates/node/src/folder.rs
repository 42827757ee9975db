//! The folder of an AS.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use hawser_bundle::{Bundle, MANIFEST, Manifest};
use hawser_file::{LockedFile, create_private_folder};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::error::InstallError;

/// The symbolic link to the current version.
const CURRENT: &str = "current";
/// The folder of the versions.
const VERSIONS: &str = "versions";
/// The segments of the network.
const SEGMENTS: &str = "segments.json";
/// The file whose lock the process holds that runs the AS.
const LOCK: &str = "lock";
/// Longest path of a Unix socket (unix(7)).
const SOCKET_PATH_MAX: usize = 107;
/// What the path of a socket has after the folder's: the folder of the versions, that of a version,
/// and the name of a socket with some room for those of several routers.
const BELOW: usize = 40;

/// The folder of an AS, held by this process until it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Holds the lock.
    _lock: LockedFile,
}

/// The outcome of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// The folder had no configuration.
    New,
    /// The folder had another version.
    Replaced {
        /// The version before.
        before: u64,
    },
    /// The folder had the same configuration.
    Same,
    /// The folder has a newer version, which stays.
    Newer {
        /// The version there.
        version: u64,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> InstallError {
    move |source| InstallError::Io {
        path: path.to_owned(),
        source,
    }
}

impl Folder {
    /// Opens the folder at `path`, which this creates if it does not exist, for `bundle`. The
    /// folder may have an older or the same version of the same AS.
    ///
    /// # Errors
    /// When the folder has another AS or other files, another process runs the AS, or files cannot
    /// be written. Then nothing has changed.
    pub fn join(path: &Path, bundle: &Bundle) -> Result<(Self, Installed), InstallError> {
        let (manifest, _) = bundle.check()?;
        let folder = Self::claim(path, Some(&manifest))?;
        let installed = match folder.current()? {
            None => Installed::New,
            Some(there) if there.hash() == bundle.hash() => Installed::Same,
            Some(there) => {
                let version = folder.manifest_of(&there)?.version;
                match version > manifest.version {
                    true => Installed::Newer { version },
                    false => Installed::Replaced { before: version },
                }
            }
        };
        match installed {
            Installed::New | Installed::Replaced { .. } => drop(folder.install(bundle)?),
            // A version that a crash left beside is of no use.
            Installed::Same | Installed::Newer { .. } => folder.forget_others(&[])?,
        }
        Ok((folder, installed))
    }

    /// Opens a folder that has an AS.
    ///
    /// # Errors
    /// When it has none, or another process runs it.
    pub fn open(path: &Path) -> Result<Self, InstallError> {
        Self::claim(path, None)
    }

    /// Takes the lock of the folder, which must be one of an AS, or, if there is a new
    /// configuration, may be empty.
    fn claim(path: &Path, new: Option<&Manifest>) -> Result<Self, InstallError> {
        let path = std::path::absolute(path).map_err(io_error(path))?;
        let most = SOCKET_PATH_MAX - BELOW;
        if path.as_os_str().len() > most {
            return Err(InstallError::TooLong { folder: path, most });
        }
        let known = fs::read_link(path.join(CURRENT)).is_ok();
        let empty = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(io_error(&path)(error)),
            // A process that was killed at its first start may have left these.
            Ok(entries) => entries.flatten().all(|entry| {
                let name = entry.file_name();
                name == LOCK || name == VERSIONS
            }),
        };
        if !known && (!empty || new.is_none()) {
            return Err(InstallError::NotAnAs(path));
        }
        create_private_folder(&path).map_err(io_error(&path))?;
        let folder = Self {
            _lock: lock(&path)?,
            path,
        };
        if let (Some(wanted), Some(there)) = (new, folder.current()?) {
            let there = folder.manifest_of(&there)?.isd_as;
            if there != wanted.isd_as {
                return Err(InstallError::OtherAs {
                    folder: folder.path,
                    there,
                    wanted: wanted.isd_as,
                });
            }
        }
        Ok(folder)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the segments.
    pub fn segments(&self) -> PathBuf {
        self.path.join(SEGMENTS)
    }

    /// The folder of the current version; `None` if there is none.
    ///
    /// # Errors
    /// When the link to it cannot be read.
    pub fn current_path(&self) -> Result<Option<PathBuf>, InstallError> {
        let link = self.path.join(CURRENT);
        match fs::read_link(&link) {
            Ok(to) => Ok(Some(self.path.join(to))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(&link)(error)),
        }
    }

    /// The current version; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn current(&self) -> Result<Option<Bundle>, InstallError> {
        let path = self.current_path()?;
        Ok(path.map(|path| Bundle::read(&path)).transpose()?)
    }

    fn manifest_of(&self, bundle: &Bundle) -> Result<Manifest, InstallError> {
        bundle.manifest().map_err(|reason| InstallError::Broken {
            folder: self.path.clone(),
            reason,
        })
    }

    /// Makes `bundle` the current version, and returns its folder. Until the last moment the
    /// version before is current; older ones stay, for services that run from them.
    ///
    /// # Errors
    /// When files cannot be written; then the version before stays current.
    pub fn install(&self, bundle: &Bundle) -> Result<PathBuf, InstallError> {
        bundle.check()?;
        let hash: String = bundle.hash()[..6]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let name = Path::new(VERSIONS).join(hash);
        let path = self.path.join(&name);
        let versions = self.path.join(VERSIONS);
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&versions);
        made.map_err(io_error(&versions))?;
        // It is whole if it exists: the coordinator went back to an earlier version.
        if !path.join(MANIFEST).exists() {
            bundle.write(&path)?;
        }
        let link = self.path.join(CURRENT);
        let new = self.path.join(".current.new");
        replace_link(&name, &new, &link).map_err(io_error(&link))?;
        Ok(path)
    }

    /// Removes all versions but the current one and `used`, and what was begun and not ended.
    ///
    /// # Errors
    /// When a folder cannot be read or removed.
    pub fn forget_others(&self, used: &[&Path]) -> Result<(), InstallError> {
        let current = self.current_path()?;
        let versions = self.path.join(VERSIONS);
        let entries = match fs::read_dir(&versions) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(io_error(&versions))?,
        };
        for entry in entries {
            let path = entry.map_err(io_error(&versions))?.path();
            if current.as_ref() != Some(&path) && !used.contains(&path.as_path()) {
                fs::remove_dir_all(&path).map_err(io_error(&path))?;
            }
        }
        Ok(())
    }

    /// Replaces the file of the segments, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_segments(&self, bytes: &[u8]) -> Result<(), InstallError> {
        let (path, new) = (self.segments(), self.path.join(".segments.new"));
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(io_error(&path))
    }
}

/// Points the symbolic link `link` to `to`, by way of `new`.
fn replace_link(to: &Path, new: &Path, link: &Path) -> io::Result<()> {
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(to, new)?;
    fs::rename(new, link)?;
    match link.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn lock(folder: &Path) -> Result<LockedFile, InstallError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600);
    let file = file.open(&path).map_err(io_error(&path))?;
    let operation = FlockOperation::NonBlockingLockExclusive;
    match rustix::io::retry_on_intr(|| rustix::fs::flock(&file, operation)) {
        Ok(()) => Ok(LockedFile::new(file)),
        Err(Errno::WOULDBLOCK) => Err(InstallError::Runs(folder.to_owned())),
        Err(error) => Err(io_error(&path)(error.into())),
    }
}

#[cfg(test)]
mod tests;
