//! Permissions of names in a folder, and extended attributes that say more about them.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;

use crate::error::StoreError;
use crate::folder::Folder;

/// Flags to open what has a name without a permission for it (open(2), `O_PATH`).
const PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Most bytes of the list of attributes' names, and of a value (`XATTR_LIST_MAX`).
const MAX_XATTR: usize = 1 << 16;

/// Begins the access ACL of a file (acl(5)).
const ACCESS_ACL: &str = "system.posix_acl_access";
/// Version of the attribute with an ACL, and the bytes of its header and of an entry (Linux,
/// `include/uapi/linux/posix_acl_xattr.h`).
const ACL_VERSION: u32 = 2;
const ACL_HEADER: usize = 4;
const ACL_ENTRY: usize = 8;
/// Tag of the entry for the owning group.
const ACL_GROUP_OBJ: u16 = 4;

/// What the extended attributes of a file or folder say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extended {
    /// The permission bits that the owning group has, if an ACL gives it others than the mode shows:
    /// with an ACL, the group bits of a mode are the most that any named user or group has.
    pub group: Option<u32>,
    /// Whether there is an ACL.
    pub acl: bool,
    /// Whether there are attributes of users.
    pub user: bool,
}

/// The name of an extended attribute, and its value.
pub type Attribute = (Vec<u8>, Vec<u8>);

impl Folder {
    /// Sets the permission bits of a file or folder, also of one that its owner may not read. No
    /// symbolic link is followed.
    ///
    /// # Errors
    /// If they cannot be set, or nothing, or a symbolic link, is at the name.
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> Result<(), StoreError> {
        let mode = Mode::from_raw_mode(mode);
        self.open_path(name)
            .and_then(|fd| rustix::fs::chmod(of_descriptor(fd.as_fd(), None), mode))
            .map_err(|errno| self.error("set the permissions of", name.as_ref(), errno))
    }

    /// What the extended attributes of a file or folder say; nothing if it has none, or its file
    /// system has none.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn extended(&self, name: &OsStr) -> Result<Extended, StoreError> {
        let path = of_descriptor(self.fd.as_fd(), Some(name));
        let failed = |errno| self.error("look at the attributes of", name.as_ref(), errno);
        let mut list = [0; 1024];
        let mut more = Vec::new();
        let names = match rustix::fs::llistxattr(&path, &mut list) {
            Ok(length) => &list[..length],
            Err(Errno::RANGE) => {
                more.resize(MAX_XATTR, 0);
                let length = rustix::fs::llistxattr(&path, &mut more[..]).map_err(failed)?;
                &more[..length]
            }
            // A file that is gone is found to be gone when it is read.
            Err(Errno::OPNOTSUPP | Errno::NOENT | Errno::NOSYS) => return Ok(Extended::default()),
            Err(errno) => return Err(failed(errno)),
        };
        let mut names = names.split(|byte| *byte == 0);
        let acl = names.clone().any(|name| name == ACCESS_ACL.as_bytes());
        let user = names.any(|name| name.starts_with(b"user."));
        let mut group = None;
        if acl {
            let mut value = vec![0; MAX_XATTR];
            match rustix::fs::lgetxattr(&path, ACCESS_ACL, &mut value[..]) {
                Ok(length) => group = owning_group(&value[..length]),
                Err(Errno::NODATA | Errno::NOENT) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(Extended { group, acl, user })
    }

    /// The extended attributes of a file or folder whose names `wanted` takes, with their values.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn attributes(
        &self,
        name: &OsStr,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Attribute>, StoreError> {
        let path = of_descriptor(self.fd.as_fd(), Some(name));
        let failed = |errno| self.error("read the attributes of", name.as_ref(), errno);
        let mut buffer = vec![0; MAX_XATTR];
        let names = match rustix::fs::llistxattr(&path, &mut buffer[..]) {
            Ok(length) => buffer[..length].to_vec(),
            Err(Errno::OPNOTSUPP | Errno::NOENT | Errno::NOSYS) => return Ok(Vec::new()),
            Err(errno) => return Err(failed(errno)),
        };
        let mut found = Vec::new();
        for one in names.split(|byte| *byte == 0).filter(|name| wanted(name)) {
            match rustix::fs::lgetxattr(&path, one, &mut buffer[..]) {
                Ok(length) => found.push((one.to_vec(), buffer[..length].to_vec())),
                // It was removed meanwhile.
                Err(Errno::NODATA | Errno::NOENT) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(found)
    }

    /// Gives a file, folder or symbolic link another user and group.
    ///
    /// # Errors
    /// If that is not allowed, or nothing is at the name.
    pub fn set_owner(
        &self,
        name: &OsStr,
        user: Option<u32>,
        group: Option<u32>,
    ) -> Result<(), StoreError> {
        let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
        rustix::fs::chownat(&self.fd, name, user, group, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.error("set the owner of", name.as_ref(), errno))
    }

    /// Sets an extended attribute of a file or folder; no symbolic link is followed.
    ///
    /// # Errors
    /// If that is not allowed, or nothing is at the name.
    pub fn set_attribute(
        &self,
        name: &OsStr,
        attribute: &[u8],
        value: &[u8],
    ) -> Result<(), StoreError> {
        let path = of_descriptor(self.fd.as_fd(), Some(name));
        rustix::fs::lsetxattr(&path, attribute, value, XattrFlags::empty())
            .map_err(|errno| self.error("set the attributes of", name.as_ref(), errno))
    }

    /// Waits until all that was written to the file system of this folder is on disk.
    ///
    /// # Errors
    /// If something could not be written, also earlier.
    pub fn sync(&self) -> Result<(), StoreError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, ".", flags, Mode::empty()) {
            // A folder that this user may write to and not read.
            Err(Errno::ACCESS) => {
                rustix::fs::sync();
                Ok(())
            }
            opened => opened.and_then(rustix::fs::syncfs),
        }
        .map_err(|errno| StoreError::io("write everything in", &self.path, errno.into()))
    }

    /// Opens what has a name without a permission for it. A symbolic link is an error.
    fn open_path(&self, name: &OsStr) -> Result<OwnedFd, Errno> {
        let fd = rustix::fs::openat(&self.fd, name, PATH, Mode::empty())?;
        let found = rustix::fs::fstat(&fd)?;
        match rustix::fs::FileType::from_raw_mode(found.st_mode) {
            rustix::fs::FileType::Symlink => Err(Errno::LOOP),
            _ => Ok(fd),
        }
    }
}

/// A path to what a descriptor is open for, or to what has a name in that folder: for system calls
/// that take no descriptor opened by `O_PATH`.
fn of_descriptor(fd: BorrowedFd<'_>, name: Option<&OsStr>) -> PathBuf {
    let mut path = OsString::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    if let Some(name) = name {
        path.push("/");
        path.push(OsStr::from_bytes(name.as_bytes()));
    }
    path.into()
}

/// The permission bits of the owning group in the value of an ACL; `None` if it has no such entry.
fn owning_group(value: &[u8]) -> Option<u32> {
    let (header, entries) = value.split_at_checked(ACL_HEADER)?;
    if header != ACL_VERSION.to_le_bytes() {
        return None;
    }
    // Each has a tag, permissions, and the number of a user or group.
    let mut entries = entries.as_chunks::<ACL_ENTRY>().0.iter();
    let group = ACL_GROUP_OBJ.to_le_bytes();
    let entry = entries.find(|entry| entry[..2] == group)?;
    Some(u32::from(u16::from_le_bytes([entry[2], entry[3]])) & 0o7)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn any_attribute_with_an_acl_is_read_or_refused() {
        let acl = [
            &[2, 0, 0, 0][..],
            &[1, 0, 6, 0, 255, 255, 255, 255],
            &[2, 0, 6, 0, 232, 3, 0, 0],
            &[4, 0, 0, 0, 255, 255, 255, 255],
            &[16, 0, 6, 0, 255, 255, 255, 255],
            &[32, 0, 0, 0, 255, 255, 255, 255],
        ]
        .concat();
        assert_eq!(owning_group(&acl), Some(0));
        for length in 0..acl.len() {
            let group = owning_group(&acl[..length]);
            assert_eq!(group, (length >= 28).then_some(0), "{length}");
        }
        assert_eq!(owning_group(&[1, 0, 0, 0, 4, 0, 7, 0, 0, 0, 0, 0]), None);
        assert_eq!(
            owning_group(&[2, 0, 0, 0, 4, 0, 255, 255, 0, 0, 0, 0]),
            Some(7)
        );
    }

    #[test]
    fn permissions_are_set_without_any() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::existing(dir.path()).unwrap();
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(dir.path().join("f"), "x").unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("l")).unwrap();
        for name in ["d", "f"] {
            for mode in [0o300, 0o000, 0o755] {
                folder.set_mode(name.as_ref(), mode).unwrap();
                let metadata = fs::metadata(dir.path().join(name)).unwrap();
                assert_eq!(metadata.permissions().mode() & 0o7777, mode);
            }
        }
        assert!(folder.set_mode("l".as_ref(), 0o777).is_err());
        assert!(folder.set_mode("absent".as_ref(), 0o777).is_err());
    }
}
