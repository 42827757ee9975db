//! Control groups (cgroups(7)) for commands whose connections are captured.

mod hierarchy;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, mkdirat, openat, unlinkat,
};
use rustix::io::Errno;

pub(crate) use self::hierarchy::Version;
use self::hierarchy::{Hierarchy, directory};
use crate::wanted::Scope;

/// The beginning of our groups' names. A number follows.
const PREFIX: &str = "hawser-run-";
/// The classes of net_cls that we use: HW in ASCII, and 1 to 0xffff.
const CLASSES: u32 = 0x4857_0000;

/// A control group for one command, below the one of this process, so that limits of this process
/// hold for the command too. Of version 2, or of the net_cls hierarchy of version 1 where there is no
/// version 2. Neither needs to be mounted.
///
/// Dropping this removes the group if no process is in it. One that is still in use is
/// removed by [`Group::remove_leftovers`] afterwards.
#[derive(Debug)]
pub struct Group {
    hierarchy: Hierarchy,
    name: String,
    scope: Scope,
    /// `cgroup.procs`, for writing.
    processes: OwnedFd,
    /// The directory, with a lock: without it another process may remove the group while it is
    /// empty.
    directory: OwnedFd,
}

/// An error of creating a control group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The process may not create control groups.
    #[error("not allowed to create a control group: run as root")]
    Denied,
    /// The kernel has neither version.
    #[error(
        "this kernel has no control groups that nf_tables can match: needs cgroup2, or net_cls of \
         version 1"
    )]
    Unsupported,
    /// All our names or classes are in use.
    #[error("cannot create a control group: all 65535 names are in use")]
    Exhausted,
    /// The kernel refused.
    #[error("cannot create a control group: {0}")]
    Refused(#[source] io::Error),
}

impl Group {
    /// Creates a group without processes.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn create() -> Result<Self, GroupError> {
        match Self::create_of(Version::Two) {
            Err(first @ (GroupError::Unsupported | GroupError::Denied)) => {
                match Self::create_of(Version::NetCls) {
                    Err(GroupError::Unsupported) => Err(first),
                    other => other,
                }
            }
            other => other,
        }
    }

    /// Creates a group of one version.
    pub(crate) fn create_of(version: Version) -> Result<Self, GroupError> {
        match Hierarchy::open(version) {
            Ok(hierarchy) => Self::create_in(hierarchy),
            Err(Errno::PERM | Errno::ACCESS) => Err(GroupError::Denied),
            // Not in this kernel, or with another controller in a place that is not seen here.
            Err(Errno::NODEV | Errno::INVAL | Errno::NOENT | Errno::NOSYS | Errno::BUSY) => {
                Err(GroupError::Unsupported)
            }
            Err(error) => Err(GroupError::Refused(error.into())),
        }
    }

    /// Creates a group in the first free place.
    fn create_in(hierarchy: Hierarchy) -> Result<Self, GroupError> {
        for number in 1..=u32::from(u16::MAX) {
            let name = format!("{PREFIX}{number}");
            match create(&hierarchy, &name, number) {
                Ok((directory, processes, scope)) => {
                    return Ok(Self {
                        hierarchy,
                        name,
                        scope,
                        processes,
                        directory,
                    });
                }
                // In use, or removed by another process before it had our lock.
                Err(Errno::EXIST | Errno::NOENT | Errno::NODEV) => {}
                Err(Errno::PERM | Errno::ACCESS | Errno::ROFS) => return Err(GroupError::Denied),
                Err(error) => return Err(GroupError::Refused(error.into())),
            }
        }
        Err(GroupError::Exhausted)
    }

    /// What nf_tables matches for sockets of the group's processes.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// What the process of the command needs to enter the group.
    ///
    /// # Errors
    /// When this process has too many open files.
    pub fn entry(&self) -> io::Result<Entry> {
        Ok(Entry(self.processes.try_clone()?))
    }

    /// Removes the groups that killed processes left, except those in which a process is still
    /// running. Returns their number.
    pub fn remove_leftovers() -> usize {
        let versions = [Version::Two, Version::NetCls].into_iter();
        let active = versions.filter(|version| Hierarchy::is_active(*version));
        let hierarchies = active.filter_map(|version| Hierarchy::open(version).ok());
        hierarchies.map(|one| sweep(&one.root)).sum()
    }
}

/// What a process needs to enter a [`Group`].
#[derive(Debug)]
pub struct Entry(OwnedFd);

impl Entry {
    /// Moves the calling process into the group, and with it the sockets that it creates from now
    /// on. Makes one system call and does not allocate, so that it may be called between fork and
    /// exec.
    ///
    /// # Errors
    /// When the kernel refuses, or the group was removed.
    pub fn enter(&self) -> io::Result<()> {
        rustix::io::write(&self.0, b"0")?;
        Ok(())
    }

    /// Has the process of `command` enter the group before its program begins. If it cannot, the
    /// command does not start.
    pub fn enter_by(self, command: &mut Command) {
        // SAFETY: between fork and exec it makes one system call; nothing allocates or locks.
        unsafe { command.pre_exec(move || self.enter()) };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // With a process inside the kernel refuses; the next sweep removes it.
        let _ = unlinkat(&self.hierarchy.own, &self.name, AtFlags::REMOVEDIR);
        // A child process that another thread is starting would keep the lock until exec.
        let _ = flock(&self.directory, FlockOperation::Unlock);
    }
}

/// Creates the group `name`. Returns its directory, the file with its processes, and what matches
/// their sockets.
fn create(
    hierarchy: &Hierarchy,
    name: &str,
    number: u32,
) -> Result<(OwnedFd, OwnedFd, Scope), Errno> {
    mkdirat(&hierarchy.own, name, Mode::from_raw_mode(0o755))?;
    let directory = directory(hierarchy.own.as_fd(), name)?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).map_err(|_| Errno::EXIST)?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = |name| openat(&directory, name, flags, Mode::empty());
    // Fails if another process has removed the group before the lock.
    let processes = file("cgroup.procs")?;
    let scope = match hierarchy.version {
        Version::Two => Scope::Group {
            level: hierarchy.level + 1,
            id: rustix::fs::fstat(&directory)?.st_ino,
        },
        Version::NetCls => {
            let class = CLASSES | number;
            rustix::io::write(file("net_cls.classid")?, class.to_string().as_bytes())?;
            Scope::Class(class)
        }
    };
    Ok((directory, processes, scope))
}

/// Removes our groups below a directory that are empty, and that no process holds. Returns their
/// number.
fn sweep(above: &OwnedFd) -> usize {
    let Ok(entries) = Dir::read_from(above) else {
        return 0;
    };
    let mut removed = 0;
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if entry.file_type() != FileType::Directory || matches!(name, "." | "..") {
            continue;
        }
        let Ok(group) = directory(above.as_fd(), name) else {
            continue;
        };
        removed += sweep(&group);
        let number = name.strip_prefix(PREFIX).map(str::parse::<u16>);
        let lock = FlockOperation::NonBlockingLockExclusive;
        // The kernel does not remove a group in which a process is.
        if matches!(number, Some(Ok(_)))
            && flock(&group, lock).is_ok()
            && unlinkat(above, name, AtFlags::REMOVEDIR).is_ok()
        {
            removed += 1;
        }
    }
    removed
}
