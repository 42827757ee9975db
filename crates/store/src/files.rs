//! Files as one run of bytes, read and written at any position.

mod changes;
mod selecting;

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

pub(crate) use self::changes::Changes;
use crate::error::StoreError;
use crate::folder::Folder;
use crate::handles::Handles;
use crate::layout::{Entry, Layout};
use crate::mark::Mark;
use crate::parts::{Located, PartFile};
use crate::vectored::{self, Parts, PartsMut};

/// Length in bytes from which space is reserved for a file: smaller ones have few extents anyway.
const MIN_RESERVED: u64 = 1 << 20;

/// The type of file systems in memory, in `statfs` (`TMPFS_MAGIC`).
const TMPFS: i64 = 0x0102_1994;

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
    /// Whether files that are too long are cut instead of refused.
    overwrite: bool,
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
        overwrite: bool,
        parts: PartFile,
    ) -> Result<Self, StoreError> {
        let folder = Folder::create(&root)?;
        let has_parts = matches!(folder.metadata(&parts.path), Ok(Some(found)) if found.is_file());
        for (index, entry) in layout.on_disk() {
            let path = root.join(&entry.path);
            let found = folder.metadata(&entry.path);
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
                Ok(Some(found)) if found.len() > entry.length && !overwrite => {
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
        let changes = Changes::new(layout.entries.len());
        let mut files = Self::read_only(root, layout);
        files.writable = Some(Writable {
            folder,
            mark,
            overwrite,
            created: Mutex::new(false),
            parts,
            changes,
        });
        Ok(files)
    }

    /// Creates every selected file with its full length, then the symbolic links; what exists already stays,
    /// and files that have their length are not opened. Space is reserved where the disk has
    /// enough; else the files are sparse until written. Files that did not have their full length
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
        let fits = |length| match writable.overwrite {
            true => length == entry.length,
            false => length >= entry.length,
        };
        let found = writable.folder.metadata(&entry.path)?;
        if found.is_some_and(|found| found.is_file() && fits(found.len())) {
            return Ok(());
        }
        let file = writable.folder.create_file(&entry.path)?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| self.failed("look at", index, error))?;
        if !fits(metadata.len()) {
            writable.mark.put_on(&file);
            let grown = file.set_len(entry.length);
            grown.map_err(|error| self.failed("grow", index, error))?;
            reserve(&file, entry.length);
            writable.changes.note(index);
        }
        Ok(())
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
            let metadata = std::fs::metadata(&path);
            let metadata = metadata.map_err(|error| StoreError::io("find", &path, error))?;
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
    fn place_of(&self, entry: usize) -> &Path {
        match &self.writable {
            Some(writable) if writable.parts.holds(entry) => &writable.parts.path,
            _ => &self.layout.entries[entry].path,
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
        let path = self.place_of(entry);
        match &self.writable {
            Some(writable) => writable.folder.read_file(path),
            None => {
                let path = self.root.join(path);
                File::open(&path).map_err(|error| StoreError::io("open", &path, error))
            }
        }
    }

    /// Opens the file of an entry for reading and writing, bypassing the cache. Files for reading
    /// only are opened as such.
    pub(crate) fn open_for_writing(&self, entry: usize) -> Result<File, StoreError> {
        match &self.writable {
            Some(writable) if writable.parts.holds(entry) => {
                writable.folder.create_file(&writable.parts.path)
            }
            Some(writable) => writable.folder.open_file(&self.layout.entries[entry].path),
            None => self.open(entry),
        }
    }
}

/// Reserves the space of a file of `length` bytes, if the disk has as much: its pieces, which
/// arrive in any order, then lie in few extents. Bytes not written yet still count as holes.
fn reserve(file: &File, length: u64) {
    let Ok(disk) = rustix::fs::fstatfs(file) else {
        return;
    };
    let free = disk.f_bavail.saturating_mul(disk.f_bsize.unsigned_abs());
    // Memory has no extents, and reserving pages costs about half as much as writing them.
    if length < MIN_RESERVED || free < length || disk.f_type == TMPFS {
        return;
    }
    let reserved = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length);
    if let Err(error) = reserved {
        // Writes take the space then, and report a full disk.
        tracing::debug!(%error, "no space is reserved");
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
            false,
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
