//! The folder below which files are written.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::StoreError;

/// Flags to open a folder for looking up paths in it.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Flags to open a file. `NONBLOCK`: opening a FIFO in place of the file must not hang.
const FILE: OFlags = OFlags::RDWR.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Flags to open a file for reading.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// No step of a path leaves the folder.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// A folder held open. Every path in it is resolved beneath it, even if symbolic links are created
/// meanwhile.
#[derive(Debug)]
pub struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) fd: OwnedFd,
    /// How paths in it are resolved.
    resolve: ResolveFlags,
    /// Folders created by this process, outermost first.
    created: Mutex<Vec<PathBuf>>,
}

impl Folder {
    /// Opens the folder at `path`, which is created if it does not exist. Symbolic links in the
    /// folder are followed if they stay in it.
    ///
    /// # Errors
    /// If it cannot be created or opened.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let outer = path.ancestors().filter(|dir| !dir.as_os_str().is_empty());
        let absent = outer.take_while(|dir| dir.symlink_metadata().is_err());
        let mut created: Vec<PathBuf> = absent.map(Path::to_owned).collect();
        created.reverse();
        std::fs::create_dir_all(path).map_err(|error| not_created(path, error))?;
        let mut folder = Self::existing(path)?;
        folder.created = Mutex::new(created);
        Ok(folder)
    }

    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// If there is none, or it cannot be opened.
    pub fn existing(path: &Path) -> Result<Self, StoreError> {
        let fd = rustix::fs::open(path, FOLDER, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR => StoreError::NotAFolder(path.to_owned()),
            _ => StoreError::io("open the folder", path, errno.into()),
        })?;
        Ok(Self::new(path.to_owned(), fd, RESOLVE))
    }

    /// The same folder, in which no symbolic link is followed.
    #[must_use]
    pub fn without_links(mut self) -> Self {
        self.resolve |= ResolveFlags::NO_SYMLINKS;
        self
    }

    fn new(path: PathBuf, fd: OwnedFd, resolve: ResolveFlags) -> Self {
        Self {
            path,
            fd,
            resolve,
            created: Mutex::default(),
        }
    }

    /// The path by which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder below this one; in it, symbolic links are followed as in this one.
    ///
    /// # Errors
    /// If there is none, it is not a folder, or it cannot be opened.
    pub fn folder(&self, path: &Path) -> Result<Self, StoreError> {
        let fd = self.open(path, FOLDER);
        let fd = fd.map_err(|errno| self.error("open the folder", path, errno))?;
        Ok(Self::new(self.path.join(path), fd, self.resolve))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// If it cannot be opened, or is not reached without leaving the folder.
    pub fn read_file(&self, path: &Path) -> Result<File, StoreError> {
        self.open_as("open", path, READ)
    }

    /// Removes the created folders that are empty.
    pub(crate) fn remove_created(&self) {
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        for folder in std::mem::take(&mut *created).iter().rev() {
            // Fails if another program has put something there.
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Opens a file for reading and writing.
    pub(crate) fn open_file(&self, path: &Path) -> Result<File, StoreError> {
        self.open_as("open for writing", path, FILE)
    }

    /// Opens a file for reading and writing. Creates it and its folders if they do not exist.
    pub(crate) fn create_file(&self, path: &Path) -> Result<File, StoreError> {
        self.create_parent(path)?;
        self.open_as("open for writing", path, FILE | OFlags::CREATE)
    }

    fn open_as(
        &self,
        action: &'static str,
        path: &Path,
        flags: OFlags,
    ) -> Result<File, StoreError> {
        let file = self.open(path, flags).map(File::from);
        file.map_err(|errno| self.error(action, path, errno))
    }

    /// Gives a file or folder another name in its folder, as [`Self::rename_file`] does, and waits until that is on
    /// disk.
    ///
    /// # Errors
    /// If something has the name, or a system call fails. Nothing is changed then.
    pub fn rename_path(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        self.rename_file(from, to)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = match self.open(parent(from), flags) {
            Ok(folder) => rustix::fs::fsync(folder),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        };
        synced.map_err(|errno| {
            // Otherwise it would be looked for under its name of before.
            let _ = self.rename_file(to, from);
            self.error("sync the folder of", to, errno)
        })
    }

    /// Gives a file another name in its folder, in which nothing may have that. Does nothing if the file does
    /// not exist.
    pub(crate) fn rename_file(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let failed = |errno| self.error("rename another file to", to, errno);
        let folder = match self.open(parent(from), FOLDER) {
            Err(Errno::NOENT) => return Ok(()),
            folder => folder.map_err(failed)?,
        };
        let (old, new) = (from.file_name(), to.file_name());
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&folder, old, &folder, new, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // Not every file system can refuse to replace a file.
            Err(Errno::INVAL | Errno::NOSYS) => match self.metadata(to)? {
                Some(_) => Err(failed(Errno::EXIST)),
                None => rustix::fs::renameat(&folder, old, &folder, new).map_err(failed),
            },
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Creates a symbolic link; its target is relative to the folder of the link. A link that
    /// already exists stays. Anything else in its place stays too, and is an error.
    pub(crate) fn create_link(&self, path: &Path, target: &Path) -> Result<(), StoreError> {
        let folder = self.create_parent(path)?;
        let name = path.file_name().unwrap_or_default();
        let full = self.path.join(path);
        match rustix::fs::symlinkat(target, &folder, name) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => match rustix::fs::readlinkat(&folder, name, Vec::new()) {
                Ok(found) if Path::new(&*found.to_string_lossy()) == target => Ok(()),
                _ => Err(StoreError::NotTheLink {
                    path: full,
                    target: target.to_owned(),
                }),
            },
            Err(errno) => Err(StoreError::io(
                "make the symbolic link",
                &full,
                errno.into(),
            )),
        }
    }

    /// The metadata of the file at `path`; `None` if it does not exist. Changes nothing.
    pub(crate) fn metadata(&self, path: &Path) -> Result<Option<Metadata>, StoreError> {
        let found = match self.open_as("look at", path, OFlags::PATH | OFlags::CLOEXEC) {
            Err(error) if error.is_not_found() => {
                return self.refuse_dangling_link(path).map(|()| None);
            }
            found => found?,
        };
        let metadata = found.metadata();
        metadata
            .map(Some)
            .map_err(|error| StoreError::io("look at", &self.path.join(path), error))
    }

    /// Refuses a path through a dangling link: the file would be created at another path.
    fn refuse_dangling_link(&self, path: &Path) -> Result<(), StoreError> {
        let mut at = self.path.clone();
        for part in path.components() {
            at.push(part);
            if at.symlink_metadata().is_err() {
                return Ok(());
            }
            if let Some(refused) = dangling_link(&at) {
                return Err(refused);
            }
        }
        Ok(())
    }

    /// Creates the folders that contain `path`, and opens the innermost.
    fn create_parent(&self, path: &Path) -> Result<OwnedFd, StoreError> {
        let parents: Vec<&Path> = path.ancestors().skip(1).collect();
        for folder in parents.into_iter().rev() {
            self.create_folder(folder)?;
        }
        self.open(parent(path), FOLDER)
            .map_err(|errno| self.error("open the folder", path, errno))
    }

    fn create_folder(&self, folder: &Path) -> Result<(), StoreError> {
        let Some(name) = folder.file_name() else {
            return Ok(());
        };
        let failed = |errno| self.error("create the folder", folder, errno);
        let parent = self.open(parent(folder), FOLDER).map_err(failed)?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
                created.push(self.path.join(folder));
                Ok(())
            }
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Opens `path`. The kernel lets no step of it, including symbolic links, leave the folder
    /// (openat2(2), `RESOLVE_BENEATH`).
    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mode = match flags.contains(OFlags::CREATE) {
            true => Mode::from_raw_mode(0o666),
            false => Mode::empty(),
        };
        loop {
            match rustix::fs::openat2(&self.fd, path, flags, mode, self.resolve) {
                // EAGAIN: something was renamed meanwhile, and the kernel could not be sure of it.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }

    pub(crate) fn error(&self, action: &'static str, path: &Path, errno: Errno) -> StoreError {
        let path = self.path.join(path);
        match errno {
            Errno::LOOP if self.resolve.contains(ResolveFlags::NO_SYMLINKS) => {
                StoreError::Link(path)
            }
            Errno::XDEV | Errno::LOOP => StoreError::LeadsOut {
                path,
                root: self.path.clone(),
            },
            Errno::ISDIR | Errno::NXIO => StoreError::NotAFile(path),
            Errno::NOTDIR => {
                // The obstacle is the innermost part of the path that exists.
                let mut parts = path.ancestors();
                let blocker = parts.find(|part| part.symlink_metadata().is_ok());
                let path = blocker.unwrap_or(&path).to_owned();
                StoreError::NotAFolder(path)
            }
            _ => StoreError::io(action, &path, io::Error::from(errno)),
        }
    }
}

/// The error of a folder that could not be created; names what is in the way.
fn not_created(path: &Path, error: io::Error) -> StoreError {
    // With a slash at its end, a path names what a link leads to.
    let plain: PathBuf = path.components().collect();
    let mut parts = plain.ancestors();
    let blocker = parts.find(|part| part.symlink_metadata().is_ok());
    let refused = blocker.and_then(|blocker| match blocker.is_dir() {
        true => None,
        false => Some(dangling_link(blocker).unwrap_or(StoreError::NotAFolder(blocker.into()))),
    });
    refused.unwrap_or_else(|| StoreError::io("create the folder", path, error))
}

/// The error for what is at `path`, if that is a symbolic link to nothing.
fn dangling_link(path: &Path) -> Option<StoreError> {
    let target = path.read_link().ok()?;
    let is_nothing =
        matches!(path.metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound);
    is_nothing.then(|| StoreError::DanglingLink {
        path: path.to_owned(),
        target,
    })
}

/// The folder that contains `path`, as a path that can be opened.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
