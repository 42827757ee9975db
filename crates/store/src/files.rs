//! Files as one run of bytes, read and written at any position.

mod changes;
mod renaming;
mod selecting;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

pub(crate) use self::changes::Changes;
use crate::error::StoreError;
use crate::folder::Folder;
use crate::handles::Handles;
use crate::layout::{Entry, Layout};
use crate::mark::Mark;
use crate::options::{Allocation, BLOCK, FileOptions};
use crate::partial_names::{PartialNames, part_name, taken};
use crate::parts::{Located, PartFile};
use crate::vectored::{self, Parts, PartsMut};

/// The files of a [`Layout`] below one folder. Reads and writes go to positions in the run of bytes
/// that the files make up; any number of threads may use it at once.
#[derive(Debug)]
pub struct Files {
    layout: Layout,
    root: PathBuf,
    handles: Handles<Handle>,
    /// `None` for reading only.
    pub(crate) writable: Option<Writable>,
}

/// An open file of an entry.
#[derive(Debug)]
pub(crate) struct Handle {
    file: File,
    /// Whether it is open for writing, too.
    writes: bool,
}

impl Deref for Handle {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

/// State needed for writing.
#[derive(Debug)]
pub(crate) struct Writable {
    pub folder: Folder,
    /// Identifies the download that the files belong to.
    pub mark: Mark,
    /// Files that are too long are cut if they may be overwritten, instead of refused.
    options: FileOptions,
    /// Which files have `.part` at the end of their names.
    pub names: PartialNames,
    /// Whether all files were created.
    created: Mutex<bool>,
    /// What is in the part file instead of in a file that is not selected.
    pub parts: PartFile,
    /// Which files were written to.
    pub(crate) changes: Changes,
}

impl Writable {
    /// Whether all files were created, which happens before the first write.
    pub fn created(&self) -> MutexGuard<'_, bool> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// Files for reading only, below `root`; symbolic links may lead anywhere. Opens nothing yet.
    pub fn read_only(root: PathBuf, layout: Layout) -> Self {
        Self {
            layout,
            root,
            handles: Handles::default(),
            writable: None,
        }
    }

    /// Files for writing below `root`, which is created if it does not exist. Nothing in it is
    /// changed before the first write or [`Files::create_all`], and no file is opened for writing
    /// before it is written to: complete files may be on a read-only file system. Files that `parts`
    /// says are not selected are not created; one that exists already is used as it is.
    ///
    /// Refuses obstacles in place of a file: longer files (unless `overwrite`, which cuts them),
    /// anything that is not a file, and symbolic links that lead out of `root`.
    pub(crate) fn writable(
        root: PathBuf,
        layout: Layout,
        mark: Mark,
        options: FileOptions,
        parts: PartFile,
    ) -> Result<Self, StoreError> {
        let folder = Folder::create(&root)?;
        let has_parts = matches!(folder.metadata(&parts.path), Ok(Some(found)) if found.is_file());
        let (names, taken) = (PartialNames::new(&layout), taken(&layout, &parts.path));
        for (index, entry) in layout.on_disk() {
            let (mut path, mut found) = (root.join(&entry.path), folder.metadata(&entry.path));
            let partial = part_name(&entry.path).filter(|it| !taken.contains(&**it));
            if let (Ok(None), Some(partial)) = (&found, partial)
                && entry.length > 0
            {
                let other = folder.metadata(&partial);
                if options.part_suffix || !matches!(other, Ok(None)) {
                    names.set_partial(index);
                    (path, found) = (root.join(partial), other);
                }
            }
            if parts.is_skipped(index) {
                let is_usable = matches!(&found, Ok(Some(found))
                    if found.is_file() && (1..=entry.length).contains(&found.len()));
                parts.set_held(index, !is_usable);
                continue;
            }
            let refused = match found {
                Ok(None) => {
                    parts.set_held(index, has_parts);
                    continue;
                }
                Ok(Some(found)) if !found.is_file() => StoreError::NotAFile(path),
                Ok(Some(found)) if found.len() > entry.length && !options.overwrite => {
                    StoreError::TooLong {
                        path,
                        found: found.len(),
                        expected: entry.length,
                    }
                }
                Ok(_) => continue,
                Err(error) => error,
            };
            folder.remove_created();
            return Err(refused);
        }
        drop(taken);
        let changes = Changes::new(layout.entries.len());
        let mut files = Self::read_only(root, layout);
        files.writable = Some(Writable {
            folder,
            mark,
            options,
            names,
            created: Mutex::new(false),
            parts,
            changes,
        });
        Ok(files)
    }

    /// Creates every selected file with its full length, then the symbolic links; what exists already stays,
    /// and files that have their length are not opened. Space is allocated as [`Allocation`] says. Files that did not have their full length
    /// get the mark of an unfinished download. Does nothing on later calls, or if the files are for
    /// reading only.
    ///
    /// # Errors
    /// If the disk is full, or something else has appeared in place of a file.
    pub(crate) fn create_all(&self) -> Result<(), StoreError> {
        let Some(writable) = &self.writable else {
            return Ok(());
        };
        let mut created = writable.created();
        if !*created {
            self.refuse_full_disk(writable)?;
            for (index, _) in self.own_files() {
                self.grow(index, writable)?;
            }
            for (path, target) in &self.layout.links {
                writable.folder.create_link(path, target)?;
            }
            *created = true;
        }
        Ok(())
    }

    /// Creates the file of an entry if there is none, and sets its length if it has another.
    fn grow(&self, index: usize, writable: &Writable) -> Result<(), StoreError> {
        let entry = &self.layout.entries[index];
        let fits = |length| match writable.options.overwrite {
            true => length == entry.length,
            false => length >= entry.length,
        };
        let place = self.own_place(index);
        let found = writable.folder.metadata(&place)?;
        let fits_already = found.is_some_and(|found| found.is_file() && fits(found.len()));
        if fits_already && !self.lacks_space(index, writable) {
            return Ok(());
        }
        let file = writable.folder.create_file(&place)?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| self.failed("look at", index, error))?;
        if !fits(metadata.len()) {
            writable.mark.put_on(&file);
            let grown = file.set_len(entry.length);
            grown.map_err(|error| self.failed("grow", index, error))?;
            writable.changes.note(index);
        }
        let (allocation, path) = (writable.options.allocation, self.root.join(&place));
        match fits_already {
            // What it was created with stays, unless all of it must have its space.
            true => Allocation::Full.allocate(&file, &path, entry.length),
            false => allocation.allocate(&file, &path, entry.length),
        }
    }

    /// Whether the file of an entry is to have all its space, and has not.
    fn lacks_space(&self, index: usize, writable: &Writable) -> bool {
        self.needed_space(index, writable) > 0
    }

    /// Bytes that are to be allocated for an entry.
    fn needed_space(&self, index: usize, writable: &Writable) -> u64 {
        let is_full = writable.options.allocation == Allocation::Full;
        if !is_full || writable.names.is_complete(index) {
            return 0;
        }
        let found = std::fs::metadata(self.root.join(self.own_place(index)));
        let had = found.map_or(0, |found| found.blocks().saturating_mul(BLOCK));
        self.layout.entries[index].length.saturating_sub(had)
    }

    /// Refuses a download whose files are to have all their space, if the disk has less.
    fn refuse_full_disk(&self, writable: &Writable) -> Result<(), StoreError> {
        let entries = self.own_files();
        let needed: u64 = entries
            .map(|(entry, _)| self.needed_space(entry, writable))
            .fold(0, u64::saturating_add);
        if needed == 0 {
            return Ok(());
        }
        let disk = rustix::fs::statvfs(&self.root);
        let disk = disk.map_err(|errno| {
            StoreError::io("look at the space of", &self.root, io::Error::from(errno))
        })?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        match free < needed {
            true => Err(StoreError::NoSpace {
                folder: self.root.clone(),
                needed,
                free,
            }),
            false => Ok(()),
        }
    }

    /// The entries on disk that have a file of their own, or get one.
    pub(crate) fn own_files(&self) -> impl Iterator<Item = (usize, &Entry)> {
        let entries = self.layout.on_disk();
        entries.filter(|(index, _)| !self.is_in_parts(*index))
    }

    /// Whether the bytes of an entry are in the part file.
    pub(crate) fn is_in_parts(&self, entry: usize) -> bool {
        let writable = self.writable.as_ref();
        writable.is_some_and(|writable| writable.parts.holds(entry))
    }

    /// Keeps bytes from being moved between files while it is held.
    fn steady(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.writable
            .as_ref()
            .map(|writable| writable.parts.steady())
    }

    /// Where `bytes` are on disk, in order, padding included.
    pub(crate) fn located(&self, bytes: Range<u64>) -> impl Iterator<Item = Located> + '_ {
        let mut spans = self.layout.spans(bytes);
        let mut rest = None;
        std::iter::from_fn(move || {
            let span = rest.take().or_else(|| spans.next())?;
            let Some(writable) = &self.writable else {
                return Some(span.into());
            };
            let start = self.layout.entries[span.entry].start + span.offset;
            let (located, left) = writable.parts.locate(span, start);
            rest = left;
            Some(located)
        })
    }

    /// Where those of `bytes` are that are on disk.
    pub(crate) fn located_on_disk(&self, bytes: Range<u64>) -> impl Iterator<Item = Located> + '_ {
        let located = self.located(bytes);
        located.filter(|it| !self.layout.entries[it.entry].padding)
    }

    /// Refuses files that are missing or have another length.
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        for (index, entry) in self.own_files() {
            let path = self.path_of(index);
            let metadata = self.at_place(index, |place| {
                let path = self.root.join(place);
                std::fs::metadata(&path).map_err(|error| StoreError::io("find", &path, error))
            })?;
            if !metadata.is_file() {
                return Err(StoreError::NotAFile(path));
            }
            if metadata.len() != entry.length {
                return Err(StoreError::WrongLength {
                    path,
                    found: metadata.len(),
                    expected: entry.length,
                });
            }
        }
        Ok(())
    }

    /// The folder that the paths of the layout are relative to.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The position of each file in the run of bytes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The path of the file that has an entry's bytes, including the root.
    pub(crate) fn path_of(&self, entry: usize) -> PathBuf {
        self.root.join(self.place_of(entry))
    }

    /// The path of the file that has an entry's bytes, relative to the root.
    pub(crate) fn place_of(&self, entry: usize) -> Cow<'_, Path> {
        match &self.writable {
            Some(writable) if writable.parts.holds(entry) => Cow::Borrowed(&writable.parts.path),
            _ => self.own_place(entry),
        }
    }

    /// The path of an entry's own file, also if that does not exist, relative to the root.
    pub(crate) fn own_place(&self, entry: usize) -> Cow<'_, Path> {
        let path = self.full_name(entry);
        let writable = self.writable.as_ref();
        let is_partial = writable.is_some_and(|writable| writable.names.is_partial(entry));
        match part_name(&path).filter(|_| is_partial) {
            Some(partial) => Cow::Owned(partial),
            None => path,
        }
    }

    /// The path of an entry's own file once it is complete, relative to the root.
    pub(crate) fn full_name(&self, entry: usize) -> Cow<'_, Path> {
        let writable = self.writable.as_ref();
        match writable.and_then(|writable| writable.names.path(entry)) {
            Some(path) => Cow::Owned(path),
            None => Cow::Borrowed(&self.layout.entries[entry].path),
        }
    }

    /// Fills `buffer` with the bytes from position `start` on.
    ///
    /// # Errors
    /// If a file does not exist, is too short, or cannot be read.
    pub fn read_at(&self, start: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        self.read_run(start, &mut [buffer])
    }

    /// Fills `buffers`, one behind the other, with the bytes from position `start` on.
    ///
    /// # Errors
    /// If a file does not exist, is too short, or cannot be read.
    pub fn read_run(&self, start: u64, buffers: &mut [&mut [u8]]) -> Result<(), StoreError> {
        let length: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let mut rest = PartsMut::new(buffers);
        let _steady = self.steady();
        for run in self.located(start..start + length) {
            let mut parts = rest.take(run.length);
            if self.layout.entries[run.entry].padding {
                parts.iter_mut().for_each(|part| part.fill(0));
                continue;
            }
            let failed = |error| self.failed("read", run.entry, error);
            // The file is not selected and was never written.
            let offset = run.offset.ok_or(io::ErrorKind::NotFound.into());
            let offset = offset.map_err(failed)?;
            let file = self.handle(run.entry)?;
            vectored::read_exact(&file, &mut parts, offset).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes `parts`, one behind the other, from position `start` on. Creates all files before the
    /// first write.
    ///
    /// # Errors
    /// If the disk is full or a file cannot be written.
    pub fn write_run(&self, start: u64, parts: &[impl AsRef<[u8]>]) -> Result<(), StoreError> {
        self.create_all()?;
        let length: u64 = parts.iter().map(|part| part.as_ref().len() as u64).sum();
        let _steady = self.steady_for_writing(start..start + length)?;
        let mut rest = Parts::new(parts);
        for run in self.located(start..start + length) {
            let mut parts = rest.take(run.length);
            if self.layout.entries[run.entry].padding {
                continue;
            }
            let failed = |error| self.failed("write", run.entry, error);
            let offset = run.offset.ok_or(io::ErrorKind::NotFound.into());
            let offset = offset.map_err(failed)?;
            let file = self.writer(run.entry)?;
            let written = vectored::write_all(&file, &mut parts, offset);
            // Also what was written in part.
            self.note_change(run.entry);
            written.map_err(failed)?;
        }
        Ok(())
    }

    /// Keeps bytes from being moved while it is held, once each of `bytes` has a place.
    fn steady_for_writing(
        &self,
        bytes: Range<u64>,
    ) -> Result<Option<RwLockReadGuard<'_, ()>>, StoreError> {
        let Some(writable) = &self.writable else {
            return Ok(None);
        };
        loop {
            let steady = writable.parts.steady();
            let runs = self.located_on_disk(bytes.clone());
            let without: Vec<usize> = runs
                .filter(|run| run.offset.is_none())
                .map(|run| run.entry)
                .collect();
            if without.is_empty() {
                return Ok(Some(steady));
            }
            drop(steady);
            self.place(&without, writable)?;
        }
    }

    /// Whether all of `bytes` are in holes or in files that do not exist yet: they read as zeros
    /// and were never written.
    pub(crate) fn is_hole(&self, bytes: Range<u64>) -> Result<bool, StoreError> {
        let _steady = self.steady();
        for run in self.located_on_disk(bytes) {
            let Some(offset) = run.offset else {
                continue;
            };
            let file = match self.handle(run.entry) {
                Err(error) if self.writable.is_some() && error.is_not_found() => continue,
                file => file?,
            };
            match rustix::fs::seek(&**file, SeekFrom::Data(offset)) {
                Ok(data) if data < offset + run.length => return Ok(false),
                // ENXIO: no data from there to the end.
                Ok(_) | Err(Errno::NXIO) => {}
                // A file system that cannot tell has no holes.
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    fn failed(&self, action: &'static str, entry: usize, error: io::Error) -> StoreError {
        let path = self.path_of(entry);
        if error.raw_os_error() == Some(Errno::FBIG.raw_os_error()) {
            let length = self.layout.entries[entry].length;
            return StoreError::FileTooLarge { path, length };
        }
        StoreError::io(action, &path, error)
    }

    /// The open file of an entry, from the cache or opened now; for reading at least.
    pub(crate) fn handle(&self, entry: usize) -> Result<Arc<Handle>, StoreError> {
        self.handles.get(entry, || {
            let file = self.open(entry)?;
            let writes = false;
            Ok(Handle { file, writes })
        })
    }

    /// The file of an entry, open for reading and writing.
    fn writer(&self, entry: usize) -> Result<Arc<Handle>, StoreError> {
        let writes = |handle: &Handle| handle.writes;
        self.handles.get_fitting(entry, writes, || {
            let file = self.open_for_writing(entry)?;
            let writes = true;
            Ok(Handle { file, writes })
        })
    }

    /// Closes the cached file of an entry: the next reader opens the file that is then at its path.
    pub(crate) fn close(&self, entry: usize) {
        self.handles.close(entry);
    }

    /// Closes all cached files: from now on they are only read.
    pub(crate) fn close_all(&self) {
        self.handles.clear();
    }

    /// Opens the file of an entry for reading, bypassing the cache.
    pub(crate) fn open(&self, entry: usize) -> Result<File, StoreError> {
        self.at_place(entry, |path| match &self.writable {
            Some(writable) => writable.folder.read_file(path),
            None => {
                let path = self.root.join(path);
                File::open(&path).map_err(|error| StoreError::io("open", &path, error))
            }
        })
    }

    /// Opens the file of an entry for reading and writing, bypassing the cache. Files for reading
    /// only are opened as such.
    pub(crate) fn open_for_writing(&self, entry: usize) -> Result<File, StoreError> {
        match &self.writable {
            Some(writable) if writable.parts.holds(entry) => {
                writable.folder.create_file(&writable.parts.path)
            }
            Some(writable) => writable.folder.open_file(&self.own_place(entry)),
            None => self.open(entry),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::collections::BTreeSet;

    use super::*;
    use crate::parts::Slots;

    /// Files for writing below `root`, none of them created yet.
    pub fn untouched(root: &Path, layout: Layout) -> Result<Files, StoreError> {
        let parts = everything(&layout);
        Files::writable(
            root.to_owned(),
            layout,
            Mark::new(vec![0; 20]),
            FileOptions::default(),
            parts,
        )
    }

    /// A part file without slots, for a layout of which everything is selected.
    pub fn everything(layout: &Layout) -> PartFile {
        let entries = layout.entries.len();
        PartFile::new(".parts".into(), Slots::default(), entries, &BTreeSet::new())
    }

    /// Files for writing below `root`, all of them created.
    pub fn try_writable(root: &Path, layout: Layout) -> Result<Files, StoreError> {
        let files = untouched(root, layout)?;
        files.create_all()?;
        Ok(files)
    }

    /// The same without obstacles.
    pub fn writable(root: &Path, layout: Layout) -> Files {
        try_writable(root, layout).unwrap()
    }
}

#[cfg(test)]
mod tests;
