//! Names directly in a folder. No symbolic link at such a name is ever followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT,
};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::folder::Folder;

/// Flags to open a file that must be at the name itself. `NONBLOCK`: opening a FIFO must not hang.
const FLAGS: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// What is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its kind.
    pub kind: FoundKind,
    /// Length in bytes.
    pub length: u64,
    /// Bytes that it takes on disk.
    pub allocated: u64,
    /// Permission bits, with set-uid, set-gid and sticky.
    pub mode: u32,
    /// Modification time: seconds since 1970, nanoseconds.
    pub modified: (i64, u32),
    /// Device and inode.
    pub identity: (u64, u64),
    /// Numbers of the user and group that own it.
    pub owner: (u32, u32),
    /// Names that it has in all folders.
    pub links: u64,
}

/// The kind of a [`Found`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, FIFO or socket.
    Other,
}

impl From<Stat> for Found {
    fn from(stat: Stat) -> Self {
        Self {
            kind: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => FoundKind::File,
                FileType::Directory => FoundKind::Folder,
                FileType::Symlink => FoundKind::Link,
                _ => FoundKind::Other,
            },
            length: stat.st_size.unsigned_abs(),
            // stat(2): in units of 512 bytes, whatever the file system.
            allocated: stat.st_blocks.unsigned_abs().saturating_mul(512),
            mode: stat.st_mode & 0o7777,
            modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
            identity: (stat.st_dev, stat.st_ino),
            owner: (stat.st_uid, stat.st_gid),
            #[allow(
                clippy::useless_conversion,
                reason = "its size differs between machines"
            )]
            links: stat.st_nlink.into(),
        }
    }
}

impl Found {
    /// What the open `file` is, which is at `path`.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn of(file: &File, path: &Path) -> Result<Self, StoreError> {
        let stat = rustix::fs::fstat(file);
        stat.map(Self::from)
            .map_err(|errno| StoreError::io("look at", path, errno.into()))
    }
}

/// The room on a file system for an ordinary user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Free bytes.
    pub bytes: u64,
    /// Bytes in which space is given out.
    pub block: u64,
    /// Files that can be created; `None` if their number has no limit.
    pub files: Option<u64>,
}

/// Sets the permission bits and modification time of the open `file`, which is at `path`.
///
/// # Errors
/// If they cannot be set.
pub fn set_status(
    file: &File,
    path: &Path,
    mode: u32,
    modified: (i64, u32),
) -> Result<(), StoreError> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
        .and_then(|()| rustix::fs::futimens(file, &timestamps(modified)))
        .map_err(|errno| StoreError::io("set the permissions and time of", path, errno.into()))
}

/// Sets the modification time only.
fn timestamps((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let keep = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let modified = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.into(),
    };
    Timestamps {
        last_access: keep,
        last_modification: modified,
    }
}

impl Folder {
    /// All names in the folder, in no particular order.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>, StoreError> {
        let failed = |errno: Errno| StoreError::io("read the folder", &self.path, errno.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.fd, ".", flags, Mode::empty());
        let mut names = Vec::new();
        for entry in opened.and_then(Dir::new).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        Ok(names)
    }

    /// What is at a name; `None` if there is nothing.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn find(&self, name: &OsStr) -> Result<Option<Found>, StoreError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.error("look at", name.as_ref(), errno)),
        }
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// If there is none at the name.
    pub fn target(&self, name: &OsStr) -> Result<PathBuf, StoreError> {
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new());
        let target = target.map_err(|errno| self.error("read the link", name.as_ref(), errno))?;
        Ok(OsStr::from_bytes(target.as_bytes()).into())
    }

    /// Creates a file for reading and writing; `None` if something is at the name.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_new(&self, name: &OsStr, mode: u32) -> Result<Option<File>, StoreError> {
        let flags = FLAGS | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        match rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(mode)) {
            Ok(fd) => Ok(Some(fd.into())),
            Err(Errno::EXIST) => Ok(None),
            Err(errno) => Err(self.error("create", name.as_ref(), errno)),
        }
    }

    /// Opens a file, for writing too if `write`; `None` if nothing is at the name.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_name(&self, name: &OsStr, write: bool) -> Result<Option<File>, StoreError> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        match rustix::fs::openat(&self.fd, name, FLAGS | access, Mode::empty()) {
            Ok(fd) => Ok(Some(fd.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.error("open", name.as_ref(), errno)),
        }
    }

    /// Creates a folder; `false` if something is at the name.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_folder_at(&self, name: &OsStr, mode: u32) -> Result<bool, StoreError> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.error("create the folder", name.as_ref(), errno)),
        }
    }

    /// Creates a symbolic link; `false` if something is at the name.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_link_at(&self, name: &OsStr, target: &Path) -> Result<bool, StoreError> {
        match rustix::fs::symlinkat(target, &self.fd, name) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.error("make the symbolic link", name.as_ref(), errno)),
        }
    }

    /// Gives a file in another folder a further name in this one; `false` if something is at the name.
    ///
    /// # Errors
    /// If that is not possible, as between file systems.
    pub fn link(&self, name: &OsStr, of: (&Self, &OsStr)) -> Result<bool, StoreError> {
        let (folder, file) = of;
        match rustix::fs::linkat(&folder.fd, file, &self.fd, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.error("make the hard link", name.as_ref(), errno)),
        }
    }

    /// Renames `from` to `to`, in place of what is there.
    ///
    /// # Errors
    /// If it cannot be renamed, as when a folder is at `to`.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), StoreError> {
        rustix::fs::renameat(&self.fd, from, &self.fd, to)
            .map_err(|errno| self.error("write", to.as_ref(), errno))
    }

    /// Removes a file or link, if there is one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &OsStr) -> Result<(), StoreError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.error("remove", name.as_ref(), errno)),
        }
    }

    /// Removes a folder, if there is one and it is empty. Returns whether it did.
    ///
    /// # Errors
    /// If it cannot be removed, or is a file.
    pub fn remove_empty_folder(&self, name: &OsStr) -> Result<bool, StoreError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.error("remove the folder", name.as_ref(), errno)),
        }
    }

    /// Refuses a file or folder that this user may not read.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn check_readable(&self, name: &OsStr) -> Result<(), StoreError> {
        rustix::fs::accessat(&self.fd, name, Access::READ_OK, AtFlags::EACCESS)
            .map_err(|errno| self.error("read", name.as_ref(), errno))
    }

    /// The room for new files.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn room(&self) -> Result<Room, StoreError> {
        let found = rustix::fs::fstatvfs(&self.fd);
        let found = found
            .map_err(|errno| StoreError::io("find the free space of", &self.path, errno.into()))?;
        let block = found.f_frsize.max(1);
        Ok(Room {
            bytes: found.f_bavail.saturating_mul(block),
            block,
            files: (found.f_files > 0).then_some(found.f_favail),
        })
    }

    /// Sets the modification time, also of a symbolic link.
    ///
    /// # Errors
    /// If it cannot be set.
    pub fn set_modified(&self, name: &OsStr, modified: (i64, u32)) -> Result<(), StoreError> {
        let times = timestamps(modified);
        rustix::fs::utimensat(&self.fd, name, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.error("set the time of", name.as_ref(), errno))
    }
}
