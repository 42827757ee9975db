//! One file of a scan.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use hawser_store::{Folder, Found, FoundKind, StoreError};

use super::extents::extents;
use super::metadata::{Missing, Sent};
use super::roots::Roots;
use crate::content::manifest::{Entry, EntryKind, Extent, Modified};
use crate::protocol::Choices;

impl Roots {
    /// The entry as the file at its place is now; `None` if there is no regular file.
    pub fn look_up(
        &self,
        index: usize,
        entry: &Entry,
        carry: Choices,
    ) -> Result<Option<Entry>, StoreError> {
        let root = self.root(index);
        let relative = root.relative(entry);
        let inner = match relative.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => Some(root.folder.folder(parent)?),
            _ => None,
        };
        let folder = inner.as_ref().unwrap_or(&root.folder);
        let name = relative.file_name().unwrap_or_default();
        look_up(folder, name, &entry.path, carry)
    }
}

/// The entry for the regular file that has a name in a folder now; `None` if there is none.
fn look_up(
    folder: &Folder,
    name: &OsStr,
    path: &Path,
    carry: Choices,
) -> Result<Option<Entry>, StoreError> {
    let Some(found) = folder.find(name)? else {
        return Ok(None);
    };
    if found.kind != FoundKind::File {
        return Ok(None);
    }
    let kind = EntryKind::File {
        size: found.length,
        extents: extents_of(folder, name, found)?,
    };
    // It was counted before.
    let sent = Missing::default().of(folder, (name, found), kind.extents(), carry)?;
    Ok(Some(entry(path.to_owned(), found, sent, kind)))
}

/// The extents of the file with a name in a folder. Opens it only if it may have holes.
pub(super) fn extents_of(
    folder: &Folder,
    name: &OsStr,
    found: Found,
) -> Result<Vec<Extent>, StoreError> {
    let size = found.length;
    if size == 0 {
        check_empty(folder, name)?;
        return Ok(Vec::new());
    }
    if found.allocated >= size {
        folder.check_readable(name)?;
        let all = Extent {
            offset: 0,
            length: size,
        };
        return Ok(vec![all]);
    }
    let path = folder.path().join(name);
    let removed = || StoreError::io("find", &path, std::io::ErrorKind::NotFound.into());
    let file = folder.open_name(name, false)?.ok_or_else(removed)?;
    extents(&file, size).map_err(|errno| StoreError::io("find the holes of", &path, errno.into()))
}

/// Checks that a file of no length has no content. Those of `/proc` have some, and would arrive empty.
fn check_empty(folder: &Folder, name: &OsStr) -> Result<(), StoreError> {
    let path = folder.path().join(name);
    let failed = |error| StoreError::io("read", &path, error);
    // It may have been removed meanwhile.
    let Some(mut file) = folder.open_name(name, false)? else {
        return Ok(());
    };
    let has_content = file.read(&mut [0]).map_err(failed)? > 0;
    // One that has grown since has a length now, and is sent as it was.
    if has_content && file.metadata().map_err(failed)?.len() == 0 {
        let text = "it has content, but no length, as files of /proc: copy it, and send the copy";
        return Err(failed(std::io::Error::other(text)));
    }
    Ok(())
}

/// The entry of what was found at a name.
pub(super) fn entry(
    path: PathBuf,
    found: Found,
    (mode, attributes): Sent,
    kind: EntryKind,
) -> Entry {
    let (seconds, nanoseconds) = found.modified;
    let modified = Modified {
        seconds,
        nanoseconds,
    };
    Entry {
        path,
        mode,
        modified,
        attributes,
        kind,
    }
}
