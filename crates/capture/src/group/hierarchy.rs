//! The hierarchies of control groups, and this process's place in them.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsmount, fsopen,
};

/// A kind of hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Version 2.
    Two,
    /// The hierarchy of version 1 with the controller net_cls.
    NetCls,
}

impl Version {
    /// Whether a hierarchy with these controllers, as in `/proc/self/cgroup`, is of this kind.
    fn has(self, controllers: &str) -> bool {
        match self {
            Self::Two => controllers.is_empty(),
            Self::NetCls => controllers.split(',').any(|one| one == NET_CLS),
        }
    }
}

/// A hierarchy.
#[derive(Debug)]
pub(super) struct Hierarchy {
    pub version: Version,
    /// The directory of the topmost group that this process sees.
    pub root: OwnedFd,
    /// The directory of the group in which this process is.
    pub own: OwnedFd,
    /// The depth of that group; the root has 0.
    pub level: u32,
}

/// The controller of version 1 that gives sockets a class.
const NET_CLS: &str = "net_cls";

impl Hierarchy {
    /// Opens the hierarchy where it is mounted, or mounts it where only this process sees it.
    pub fn open(version: Version) -> Result<Self, Errno> {
        let root = match std::fs::read_to_string("/proc/self/mountinfo") {
            Ok(mounts) => mounts.lines().find_map(|line| mount_point(line, version)),
            Err(_) => None,
        };
        let root = match root.map(|path| directory(CWD, &path)) {
            Some(Ok(root)) => root,
            _ => mount(version)?,
        };
        let groups = std::fs::read_to_string("/proc/self/cgroup");
        let groups = groups.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        // A process that is in none is in the root.
        let own = groups.lines().find_map(|line| own_group(line, version));
        let own = own.unwrap_or_default().trim_matches('/');
        let path = match own {
            "" => ".",
            own => own,
        };
        Ok(Self {
            version,
            level: own.split('/').filter(|part| !part.is_empty()).count() as u32,
            own: directory(root.as_fd(), path)?,
            root,
        })
    }

    /// Whether there is such a hierarchy now, mounted or not.
    pub fn is_active(version: Version) -> bool {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut lines = groups.lines();
        lines.any(|line| line.split(':').nth(1).is_some_and(|one| version.has(one)))
    }
}

/// Opens a directory.
pub(super) fn directory(at: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(at, path, flags, Mode::empty())
}

/// The mount point of a line of mountinfo (proc_pid_mountinfo(5)), if the whole hierarchy is
/// mounted there for writing.
fn mount_point(line: &str, version: Version) -> Option<String> {
    let (mount, source) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, point, options) = (mount.next()?, mount.next()?, mount.next()?);
    let mut source = source.split(' ');
    let (kind, controllers) = (source.next()?, source.nth(1)?);
    let fits = match version {
        Version::Two => kind == "cgroup2",
        Version::NetCls => kind == "cgroup" && version.has(controllers),
    };
    let writable = options.split(',').all(|option| option != "ro");
    // A path with characters that are escaped is not looked at.
    (fits && writable && root == "/" && !point.contains('\\')).then(|| point.to_owned())
}

/// The group in a line of `/proc/self/cgroup` (cgroups(7)). `None` if the line is of another
/// hierarchy, or the group is outside of the root that this process sees.
fn own_group(line: &str, version: Version) -> Option<&str> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    (version.has(controllers) && !path.starts_with("/..")).then_some(path)
}

/// Mounts the hierarchy in no place: only the descriptor leads to it.
fn mount(version: Version) -> Result<OwnedFd, Errno> {
    let kind = match version {
        Version::Two => "cgroup2",
        Version::NetCls => "cgroup",
    };
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    if version == Version::NetCls {
        fsconfig_set_flag(context.as_fd(), NET_CLS)?;
    }
    fsconfig_create(context.as_fd())?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mount = fsmount(context.as_fd(), flags, MountAttrFlags::empty())?;
    // The descriptor of the mount itself cannot be read.
    directory(mount.as_fd(), ".")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mount_points_are_found() {
        let point = |line, version| mount_point(line, version);
        let two = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(point(two, Version::Two).as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(point(two, Version::NetCls), None);
        let one = "33 24 0:29 / /sys/fs/cgroup/net_cls,net_prio rw - cgroup cgroup \
                   rw,net_cls,net_prio";
        assert_eq!(
            point(one, Version::NetCls).as_deref(),
            Some("/sys/fs/cgroup/net_cls,net_prio")
        );
        assert_eq!(point(one, Version::Two), None);
        for other in [
            "",
            "30 24 0:26 / /sys/fs/cgroup",
            "30 24 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            "30 24 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw",
            "30 24 0:26 / /sys/fs/c\\040d rw - cgroup2 cgroup2 rw",
            "33 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
        ] {
            assert_eq!(point(other, Version::Two), None, "{other}");
            assert_eq!(point(other, Version::NetCls), None, "{other}");
        }
    }

    #[test]
    fn the_own_group_is_found() {
        let two = "0::/user.slice/a:b";
        assert_eq!(own_group(two, Version::Two), Some("/user.slice/a:b"));
        assert_eq!(own_group(two, Version::NetCls), None);
        let one = "5:net_cls,net_prio:/x";
        assert_eq!(own_group(one, Version::NetCls), Some("/x"));
        assert_eq!(own_group(one, Version::Two), None);
        assert_eq!(own_group("0::/../x", Version::Two), None);
        assert_eq!(own_group("0", Version::Two), None);
    }

    proptest! {
        #[test]
        fn parsing_any_line_never_panics(line in "[ -~]{0,60}|([0-9:/a-z,]{0,5}[ :-]){0,12}") {
            for version in [Version::Two, Version::NetCls] {
                let _ = mount_point(&line, version);
                let _ = own_group(&line, version);
            }
        }
    }
}
