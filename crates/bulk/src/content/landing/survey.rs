//! What is there before anything is written.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hawser_store::{Found, FoundKind, StoreError};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::disk::{Disk, FITS, SKIPPED, STALE, THERE, lock};
use super::faults::Faults;
use super::place::Place;
use super::taking::Taking;
use super::{Existing, LandingError, LandingOptions};
use crate::content::manifest::{EntryKind, Manifest};
use crate::content::scan::extents;
use crate::content::skip::SkipReason;

/// The space and files that a landing needs.
#[derive(Debug, Default)]
struct Needed {
    bytes: u64,
    files: u64,
}

impl Disk {
    /// Creates the directories, and looks up every other entry in the ones that existed before.
    pub fn prepare(
        manifest: &Arc<Manifest>,
        folder: &Path,
        options: &LandingOptions,
    ) -> Result<Self, LandingError> {
        let (path, sender) = (&options.path, &options.sender);
        let place = Place::resolve(Arc::clone(manifest), folder, path, sender)?;
        let faults = Faults::new(options.strict, options.wait_for_others);
        let disk = Self::new(manifest, place, faults, Taking::new(options.take));
        let room = disk.room()?;
        let mut needed = Needed::default();
        // Directories that did not exist have nothing in them.
        let mut is_new = vec![false; manifest.entries().len()];
        for entry in 0..manifest.entries().len() {
            let parent = manifest.parent(entry);
            if let Some(parent) = parent.filter(|parent| disk.is(*parent, SKIPPED)) {
                let folder = disk.place.path_of(parent);
                let text = format!("the folder {} is skipped", folder.display());
                disk.skip(entry, SkipReason::Failed, text);
                continue;
            }
            let is_in_new = parent.is_some_and(|parent| is_new[parent]);
            let surveyed = match disk.entry(entry).kind {
                EntryKind::Directory => disk.create_directory(entry).map(|new| is_new[entry] = new),
                _ if is_in_new => disk.survey(entry, None, room.block, &mut needed),
                _ => match disk.look_up(entry) {
                    Ok(Some(found)) if disk.stays(entry, found, options.existing) => {
                        let text = "it exists at the destination".to_owned();
                        disk.skip(entry, SkipReason::Kept, text);
                        continue;
                    }
                    found => found
                        .and_then(|found| disk.survey(entry, Some(found), room.block, &mut needed)),
                },
            };
            if let Err(error) = surveyed {
                disk.fault(entry, error)?;
            }
        }
        disk.faults.wait_for_others.store(false, Ordering::Relaxed);
        if needed.bytes > room.bytes {
            let path = disk.place.root().path().to_owned();
            let missing = needed.bytes - room.bytes;
            return Err(LandingError::Full { path, missing });
        }
        match room.files.map(|files| needed.files.saturating_sub(files)) {
            None | Some(0) => Ok(disk),
            Some(missing) => {
                let path = disk.place.root().path().to_owned();
                Err(LandingError::TooManyFiles { path, missing })
            }
        }
    }

    /// Whether a file or link at the name of an entry is to stay as it is.
    fn stays(&self, entry: usize, found: Found, existing: Existing) -> bool {
        let (_, modified) = self.status(entry);
        match existing {
            Existing::Replace => false,
            Existing::Keep => true,
            Existing::KeepNewer => found.modified > modified,
        }
    }

    /// Finds what is there of a file or link, and adds what it takes to `needed`. `found` is what is
    /// at its name; `None` if its directory is new.
    fn survey(
        &self,
        entry: usize,
        found: Option<Option<Found>>,
        block: u64,
        needed: &mut Needed,
    ) -> Result<(), StoreError> {
        let at_name = found.flatten();
        let takes = self.takes(entry, at_name, block);
        let there = match (self.spanning(entry), found) {
            (Some(content), Some(found)) => self.resume(entry, &content, found)?,
            _ => 0,
        };
        needed.files += u64::from(at_name.is_none());
        needed.bytes += takes.saturating_sub(there);
        Ok(())
    }

    /// Creates a directory; `false` if it exists.
    fn create_directory(&self, entry: usize) -> Result<bool, StoreError> {
        let folder = self.place.folder_of(entry)?;
        let name = self.place.name_of(entry);
        let (mode, _) = self.status(entry);
        // Nobody else gets permissions that the directory does not have in the end.
        if folder.create_folder_at(name, mode & 0o777 | 0o700)? {
            return Ok(true);
        }
        match folder.find(name)? {
            Some(found) if found.kind == FoundKind::Folder => {
                // An earlier transfer may have completed it as read-only.
                if found.mode & 0o700 != 0o700 {
                    folder.set_mode(name, found.mode | 0o700)?;
                }
                Ok(false)
            }
            Some(found) if found.kind == FoundKind::Link => {
                Err(StoreError::Link(self.place.path_of(entry)))
            }
            _ => Err(StoreError::NotAFolder(self.place.path_of(entry))),
        }
    }

    /// What is at the name of a file or link. Refuses what cannot be replaced.
    fn look_up(&self, entry: usize) -> Result<Option<Found>, StoreError> {
        let folder = self.place.folder_of(entry)?;
        let Some(found) = folder.find(self.place.name_of(entry))? else {
            return Ok(None);
        };
        let kind = &self.entry(entry).kind;
        if matches!(found.kind, FoundKind::Folder | FoundKind::Other) {
            let path = self.place.path_of(entry);
            return Err(match kind {
                EntryKind::Link { target } => StoreError::NotTheLink {
                    path,
                    target: target.clone(),
                },
                _ => StoreError::NotAFile(path),
            });
        }
        let EntryKind::File { size, .. } = kind else {
            return Ok(Some(found));
        };
        if found.kind == FoundKind::File && self.entry(entry).hard_link().is_none() {
            self.set(entry, THERE);
            if found.length == *size && self.has_holes(entry)? {
                self.set(entry, FITS);
            }
            if (found.mode, found.modified) != self.status(entry) || self.differs(entry, found) {
                self.set(entry, STALE);
            }
        }
        Ok(Some(found))
    }

    /// Whether the file at the name of an entry has zeros where the entry has holes.
    fn has_holes(&self, entry: usize) -> Result<bool, StoreError> {
        let holes = self.holes(entry);
        if holes.is_empty() {
            return Ok(true);
        }
        let path = self.place.path_of(entry);
        let folder = self.place.folder_of(entry)?;
        // One that cannot be read is replaced.
        let Ok(Some(file)) = folder.open_name(self.place.name_of(entry), false) else {
            return Ok(false);
        };
        let mut zeros = holes.into_iter().map(|hole| is_zero(&file, hole));
        let differs = zeros.find(|zero| !matches!(zero, Ok(true)));
        differs
            .unwrap_or(Ok(true))
            .map_err(|error| StoreError::io("read", &path, error))
    }

    /// The bytes on disk that a file takes, if it is not there already.
    fn takes(&self, entry: usize, found: Option<Found>, block: u64) -> u64 {
        match &self.entry(entry).kind {
            EntryKind::File { extents, .. } if found.is_none() || !self.is(entry, FITS) => {
                let blocks = extents.iter().map(|extent| extent.length.div_ceil(block));
                blocks.sum::<u64>().saturating_mul(block)
            }
            _ => 0,
        }
    }

    /// Opens the part file of a file in several ranges, and finds which parts of it and of the file
    /// at the name are there. Returns the bytes that the part file takes on disk.
    fn resume(
        &self,
        entry: usize,
        content: &Range<u64>,
        found: Option<Found>,
    ) -> Result<u64, StoreError> {
        let folder = self.place.folder_of(entry)?;
        let part = self.place.part_name_of(entry);
        let part_found = folder.find(&part)?;
        if part_found.is_none() && !self.is(entry, THERE) {
            return Ok(0);
        }
        let progress = self.progress(entry, content);
        let mut progress = lock(&progress);
        progress.base = found
            .filter(|_| self.is(entry, THERE))
            .map(|found| found.length);
        let Some(part_found) = part_found else {
            return Ok(0);
        };
        let path = self.part_path(entry, &part);
        let file = self.part_file(entry, &mut progress)?;
        let data = extents(file, part_found.length.min(self.entry(entry).size()));
        let data = data.map_err(|errno| StoreError::io("read", &path, errno.into()))?;
        progress.resumed = data
            .iter()
            .map(|extent| extent.offset..extent.end())
            .collect();
        Ok(part_found.allocated)
    }
}

/// Whether a file has only zeros in a range of bytes.
pub(super) fn is_zero(file: &File, bytes: Range<u64>) -> std::io::Result<bool> {
    let mut buffer = Vec::new();
    let mut at = bytes.start;
    while at < bytes.end {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(true),
            // A file system without holes.
            Err(_) => at,
        };
        if data >= bytes.end {
            return Ok(true);
        }
        buffer.resize((bytes.end - data).min(64 << 10) as usize, 0);
        file.read_exact_at(&mut buffer, data)?;
        if buffer.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at = data + buffer.len() as u64;
    }
    Ok(true)
}
