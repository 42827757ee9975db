//! Folders that are written to.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use crate::facts::{Folder, KeyState, Keys};

/// The state of services that run as root.
const STATE: &str = "/var/lib/hawser";

pub(super) fn gather(keys: &Keys, state: Option<&Path>) -> Vec<Folder> {
    // Only a key that is not there yet is written.
    let key = matches!(keys.own, Some(KeyState::Missing));
    let mut folders: Vec<(PathBuf, &'static str, bool)> = Vec::new();
    folders.extend(hawser_keys::folder().ok().map(|path| (path, "keys", key)));
    match state {
        Some(path) => folders.push((path.to_owned(), "state", true)),
        None if Path::new(STATE).exists() => {
            let root = rustix::process::geteuid().is_root();
            folders.push((STATE.into(), "state", root));
        }
        None => {}
    }
    let current = std::env::current_dir().ok();
    folders.extend(current.map(|path| (path, "downloads to the current folder", false)));
    let looked = folders.iter();
    looked
        .filter_map(|(path, what, needed)| look(path, what, *needed))
        .collect()
}

/// What is seen of a folder, or of the folder in which it would be made; `None` if even that cannot
/// be looked at.
fn look(path: &Path, what: &'static str, needed: bool) -> Option<Folder> {
    let existing = path.ancestors().find(|one| one.exists())?;
    let found = statvfs(existing).ok()?;
    Some(Folder {
        path: existing.to_owned(),
        what,
        needed,
        free: found.f_bavail.saturating_mul(found.f_frsize),
        // 0 of 0 means that the file system does not count them.
        files: (found.f_files > 0).then_some(found.f_favail),
        writable: access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
    })
}
