//! The walk through directories.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_store::{Folder, Found, FoundKind, StoreError};

use super::file::{entry, extents_of};
use super::metadata::{Links, Missing};
use super::roots::{Names, Roots};
use super::{Scan, ScanError, ScanOptions, Unreadable, Warning};
use crate::content::manifest::{
    Entry, EntryKind, MAX_PATH, Manifest, ManifestError, is_part_name, stays_within,
};
use crate::protocol::Choices;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Walk {
    options: ScanOptions,
    entries: Vec<Entry>,
    warnings: Vec<Warning>,
    /// Entries that cannot be read.
    unreadable: Vec<(usize, StoreError)>,
    /// What cannot be read, or named, and so is no entry.
    unlisted: Vec<(PathBuf, StoreError)>,
    missing: Missing,
    links: Links,
    roots: Roots,
}

/// Something in a directory: its path below the root, its entry, and why it cannot be read.
struct Child {
    below: PathBuf,
    found: Found,
    entry: Entry,
    trouble: Option<StoreError>,
}

impl Walk {
    pub fn new(options: ScanOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Adds a directory as `name` and all that it contains, or only what it contains.
    pub fn directory(&mut self, folder: Folder, name: Option<&OsStr>) -> Result<(), ScanError> {
        let folder = Arc::new(folder.without_links());
        let first = self.entries.len();
        let prefix = name.map_or(PathBuf::new(), PathBuf::from);
        if name.is_some() && self.is_excluded(&prefix, true) {
            return Ok(());
        }
        let carry = self.options.carry;
        let top = match name {
            Some(_) => match folder.find(".".as_ref())? {
                Some(found) => {
                    let mode = self.missing.of(&folder, (".".as_ref(), found), 0, carry)?;
                    let top = entry(prefix.clone(), found, mode, EntryKind::Directory);
                    self.entries.push(top);
                    Some(first)
                }
                None => None,
            },
            None => None,
        };
        // Directly before what it contains: the next to be visited is at the end.
        let mut stack = self.read(&folder, Path::new(""), &prefix, top);
        while let Some(Child {
            below,
            found,
            mut entry,
            trouble,
        }) = stack.pop()
        {
            let index = self.entries.len();
            let is_directory = entry.kind == EntryKind::Directory;
            let path = entry.path.clone();
            self.name_link(found, &mut entry);
            self.entries.push(entry);
            if let Some(error) = trouble {
                self.unreadable.push((index, error));
            }
            if is_directory {
                stack.extend(self.read(&folder, &below, &path, Some(index)));
            }
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
        let folder = Arc::new(folder.without_links());
        let first = self.entries.len();
        match self.visit(&folder, real, name.into()) {
            Some((found, mut entry, trouble)) => {
                self.name_link(found, &mut entry);
                self.entries.push(entry);
                if let Some(error) = trouble {
                    self.unreadable.push((first, error));
                }
            }
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
    pub fn finish(self) -> Result<Scan, ScanError> {
        let is_nothing = self.entries.is_empty();
        let trouble = !self.unreadable.is_empty() || !self.unlisted.is_empty();
        if trouble && (self.options.strict || is_nothing) {
            let named = self.unreadable.into_iter().map(|(_, error)| error);
            let others = self.unlisted.into_iter().map(|(_, error)| error);
            return Err(ScanError::Unreadable(Unreadable(
                named.chain(others).collect(),
            )));
        }
        if is_nothing {
            return Err(ScanError::Nothing);
        }
        let manifest = Manifest::new(self.entries).map_err(|error| match error {
            ManifestError::Repeated(path) => ScanError::Repeated(path),
            error => ScanError::Manifest(error),
        })?;
        Ok(Scan {
            manifest,
            warnings: (self.warnings.into_iter())
                .chain(self.missing.warnings())
                .collect(),
            unreadable: self.unreadable,
            unlisted: self.unlisted,
            strict: self.options.strict,
            carry: self.options.carry,
            roots: self.roots,
        })
    }

    /// Makes the next entry a hard link, if those are carried and it is one.
    fn name_link(&mut self, found: Found, entry: &mut Entry) {
        if self.options.carry.contains(Choices::HARD_LINKS) {
            self.links.name(found, self.entries.len(), entry);
        }
    }

    fn is_excluded(&self, path: &Path, is_folder: bool) -> bool {
        let mut patterns = self.options.exclude.iter();
        patterns.any(|pattern| pattern.matches(path, is_folder))
    }

    /// What the directory at `below` in `folder` contains, the last name first. The directory has the
    /// path `path` in the manifest, and is entry `index` of it.
    fn read(
        &mut self,
        folder: &Folder,
        below: &Path,
        path: &Path,
        index: Option<usize>,
    ) -> Vec<Child> {
        let listed = match below.as_os_str().is_empty() {
            true => folder.names().map(|names| (None, names)),
            false => folder
                .folder(below)
                .and_then(|inner| inner.names().map(|names| (Some(inner), names))),
        };
        let (inner, mut names) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                match index {
                    Some(index) => self.unreadable.push((index, error)),
                    None => self.unlisted.push((path.to_owned(), error)),
                }
                return Vec::new();
            }
        };
        let folder = inner.as_ref().unwrap_or(folder);
        names.sort_unstable_by(|a, b| b.cmp(a));
        let mut children = Vec::with_capacity(names.len());
        for name in names {
            if let Some((found, entry, trouble)) = self.visit(folder, &name, path.join(&name)) {
                let below = below.join(&name);
                children.push(Child {
                    below,
                    found,
                    entry,
                    trouble,
                });
            }
        }
        children
    }

    /// The entry for what has a name in a folder, with the reason if it cannot be read; `None` if it
    /// is left out.
    fn visit(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        path: PathBuf,
    ) -> Option<(Found, Entry, Option<StoreError>)> {
        let found = match folder.find(name) {
            Ok(Some(found)) => found,
            // It may have been removed meanwhile.
            Ok(None) => return None,
            Err(error) => {
                self.unlisted.push((path, error));
                return None;
            }
        };
        if self.is_excluded(&path, found.kind == FoundKind::Folder) {
            return None;
        }
        let real = || folder.path().join(name);
        if path.as_os_str().len() > MAX_PATH {
            let error = std::io::ErrorKind::InvalidFilename.into();
            let error = StoreError::io("send", &real(), error);
            self.unlisted.push((path, error));
            return None;
        }
        let mut trouble = None;
        let kind = match found.kind {
            FoundKind::Other => {
                self.warnings.push(Warning::Special(real()));
                return None;
            }
            _ if is_part_name(name) => {
                self.warnings.push(Warning::Unfinished(real()));
                return None;
            }
            FoundKind::Folder => EntryKind::Directory,
            FoundKind::Link => match folder.target(name) {
                Ok(target) if stays_within(&path, &target) => EntryKind::Link { target },
                Ok(target) => {
                    self.warnings.push(Warning::LeadsOut {
                        path: real(),
                        target,
                    });
                    return None;
                }
                Err(error) => {
                    self.unlisted.push((path, error));
                    return None;
                }
            },
            FoundKind::File => {
                let extents = extents_of(folder, name, found).unwrap_or_else(|error| {
                    trouble = Some(error);
                    Vec::new()
                });
                EntryKind::File {
                    size: found.length,
                    extents,
                }
            }
        };
        let carry = self.options.carry;
        let sent = match self
            .missing
            .of(folder, (name, found), kind.extents(), carry)
        {
            Ok(sent) => sent,
            Err(error) => {
                self.unlisted.push((path, error));
                return None;
            }
        };
        Some((found, entry(path, found, sent, kind), trouble))
    }
}
