//! The walk through directories.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use hawser_store::{Folder, Found, FoundKind, StoreError};

use super::extents::extents;
use super::roots::{Names, Roots};
use super::{Scan, ScanError, ScanOptions, Unreadable, Warning};
use crate::content::manifest::{
    Entry, Extent, Kind, MAX_PATH, MODE, Manifest, ManifestError, Modified, is_part_name,
    stays_within,
};

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Walk {
    entries: Vec<Entry>,
    warnings: Vec<Warning>,
    unreadable: Vec<StoreError>,
    roots: Roots,
}

impl Walk {
    /// Adds a directory as `name` and all that it contains, or only what it contains.
    pub fn directory(&mut self, folder: Folder, name: Option<&OsStr>) -> Result<(), ScanError> {
        let folder = folder.without_links();
        let first = self.entries.len();
        let prefix = name.map_or(PathBuf::new(), PathBuf::from);
        if name.is_some()
            && let Some(found) = folder.find(".".as_ref())?
        {
            self.entries
                .push(entry(prefix.clone(), found, Kind::Directory));
        }
        // Directly before what it contains: the next to be visited is at the end.
        let mut stack = self.read(&folder, Path::new(""), &prefix)?;
        while let Some((below, entry)) = stack.pop() {
            let children = match entry.kind {
                Kind::Directory => self.read(&folder, &below, &entry.path)?,
                _ => Vec::new(),
            };
            self.entries.push(entry);
            stack.extend(children);
        }
        let names = if name.is_some() {
            Names::Below
        } else {
            Names::Same
        };
        self.roots.push(first, folder, names);
        Ok(())
    }

    /// Adds what has the name `real` in a folder and is no directory, as `name`.
    pub fn file(&mut self, folder: Folder, real: &OsStr, name: &OsStr) -> Result<(), ScanError> {
        let folder = folder.without_links();
        let first = self.entries.len();
        match self.visit(&folder, real, name.into())? {
            Some(entry) => self.entries.push(entry),
            None if folder.find(real)?.is_none() => {
                let path = folder.path().join(real);
                let error = std::io::ErrorKind::NotFound.into();
                return Err(StoreError::io("find", &path, error).into());
            }
            None => {}
        }
        self.roots.push(first, folder, Names::File(real.to_owned()));
        Ok(())
    }

    /// All that was found.
    pub fn finish(self, options: ScanOptions) -> Result<Scan, ScanError> {
        let mut warnings = self.warnings;
        match options.skip_unreadable {
            true => warnings.extend(self.unreadable.into_iter().map(Warning::Unreadable)),
            false if self.unreadable.is_empty() => {}
            false => return Err(ScanError::Unreadable(Unreadable(self.unreadable))),
        }
        if self.entries.is_empty() {
            return Err(ScanError::Nothing);
        }
        let manifest = Manifest::new(self.entries).map_err(|error| match error {
            ManifestError::Repeated(path) => ScanError::Repeated(path),
            error => ScanError::Manifest(error),
        })?;
        Ok(Scan {
            manifest,
            warnings,
            roots: self.roots,
        })
    }

    /// What the directory at `below` in `folder` contains, the last name first, each with its path
    /// in `folder`. The directory has the path `path` in the manifest.
    fn read(
        &mut self,
        folder: &Folder,
        below: &Path,
        path: &Path,
    ) -> Result<Vec<(PathBuf, Entry)>, ScanError> {
        let listed = match below.as_os_str().is_empty() {
            true => folder.names().map(|names| (None, names)),
            false => folder
                .folder(below)
                .and_then(|inner| inner.names().map(|names| (Some(inner), names))),
        };
        let (inner, mut names) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.unreadable.push(error);
                return Ok(Vec::new());
            }
        };
        let folder = inner.as_ref().unwrap_or(folder);
        names.sort_unstable_by(|a, b| b.cmp(a));
        let mut children = Vec::with_capacity(names.len());
        for name in names {
            if let Some(entry) = self.visit(folder, &name, path.join(&name))? {
                children.push((below.join(&name), entry));
            }
        }
        Ok(children)
    }

    /// The entry for what has a name in a folder; `None` if it is left out.
    fn visit(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        path: PathBuf,
    ) -> Result<Option<Entry>, ScanError> {
        // It may have been removed meanwhile.
        let Some(found) = folder.find(name)? else {
            return Ok(None);
        };
        let real = || folder.path().join(name);
        if path.as_os_str().len() > MAX_PATH {
            let error = std::io::ErrorKind::InvalidFilename.into();
            self.unreadable.push(StoreError::io("send", &real(), error));
            return Ok(None);
        }
        let kind = match found.kind {
            FoundKind::Other => {
                self.warnings.push(Warning::Special(real()));
                return Ok(None);
            }
            _ if is_part_name(name) => {
                self.warnings.push(Warning::Unfinished(real()));
                return Ok(None);
            }
            FoundKind::Folder => Kind::Directory,
            FoundKind::Link => {
                let target = folder.target(name)?;
                if !stays_within(&path, &target) {
                    self.warnings.push(Warning::LeadsOut {
                        path: real(),
                        target,
                    });
                    return Ok(None);
                }
                Kind::Link { target }
            }
            FoundKind::File => match extents_of(folder, name, found) {
                Ok(extents) => Kind::File {
                    size: found.length,
                    extents,
                },
                Err(error) => {
                    self.unreadable.push(error);
                    return Ok(None);
                }
            },
        };
        Ok(Some(entry(path, found, kind)))
    }
}

/// The extents of the file with a name in a folder. Opens it only if it may have holes.
fn extents_of(folder: &Folder, name: &OsStr, found: Found) -> Result<Vec<Extent>, StoreError> {
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

fn entry(path: PathBuf, found: Found, kind: Kind) -> Entry {
    let (seconds, nanoseconds) = found.modified;
    let modified = Modified {
        seconds,
        nanoseconds,
    };
    Entry {
        path,
        mode: found.mode & MODE,
        modified,
        kind,
    }
}
