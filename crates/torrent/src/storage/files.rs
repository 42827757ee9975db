//! The files of a torrent as one run of bytes, read and written at any place.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, ResolveFlags, SeekFrom};
use rustix::io::Errno;

use super::error::StorageError;
use super::layout::{Layout, Span};
use crate::metainfo::InfoHash;

/// Files held open at once: below the usual limit of 1024 with room for sockets and others.
const MAX_OPEN: usize = 128;

/// The files of a torrent below one folder. Reads and writes go to byte positions of the whole; any
/// number of threads may use it at once.
#[derive(Debug)]
pub(crate) struct Files {
    layout: Layout,
    root: PathBuf,
    /// The folder, held open so that every write resolves beneath it; `None` for reading only.
    beneath: Option<OwnedFd>,
    /// Whether files that are too long are cut instead of refused.
    overwrite: bool,
    handles: Mutex<Handles>,
    /// What is downloaded into them; `None` for reading only.
    torrent: Option<InfoHash>,
    /// Whether all files were made.
    has_room: Mutex<bool>,
    /// Folders that were not there before, outermost first.
    new_folders: Mutex<Vec<PathBuf>>,
}

#[derive(Debug, Default)]
struct Handles {
    open: HashMap<usize, (Arc<File>, u64)>,
    clock: u64,
}

impl Files {
    /// For reading only, wherever the paths lead. Nothing is opened yet.
    pub fn read_only(root: PathBuf, layout: Layout) -> Self {
        Self {
            layout,
            root,
            beneath: None,
            overwrite: false,
            handles: Mutex::default(),
            torrent: None,
            has_room: Mutex::new(true),
            new_folders: Mutex::default(),
        }
    }

    /// For writing below `root`, with all files and links made at once.
    ///
    /// # Errors
    /// As of [`Files::below`] and [`Files::make_room`].
    #[cfg(test)]
    pub fn writable(root: PathBuf, layout: Layout) -> Result<Self, StorageError> {
        let files = Self::below(root, layout, false, InfoHash([0; 20]))?;
        files.make_room()?;
        Ok(files)
    }

    /// For writing `torrent` below `root`, which is created when it is not there. Nothing in it is
    /// changed before the first byte is written, or [`Files::make_room`] called. With `overwrite`,
    /// files that are too long are to be cut.
    ///
    /// # Errors
    /// When something else is in the way, a file is longer than it should be, or a symbolic link
    /// leads out of `root`.
    pub fn below(
        root: PathBuf,
        layout: Layout,
        overwrite: bool,
        torrent: InfoHash,
    ) -> Result<Self, StorageError> {
        let outer = root.ancestors().filter(|dir| !dir.as_os_str().is_empty());
        let absent = outer.take_while(|dir| dir.symlink_metadata().is_err());
        let mut new_folders: Vec<PathBuf> = absent.map(Path::to_owned).collect();
        new_folders.reverse();
        std::fs::create_dir_all(&root)
            .map_err(|error| StorageError::io("create the folder", &root, error))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let beneath = rustix::fs::open(&root, flags, Mode::empty())
            .map_err(|errno| StorageError::io("open the folder", &root, errno.into()))?;
        let files = Self {
            layout,
            root,
            beneath: Some(beneath),
            overwrite,
            handles: Mutex::default(),
            torrent: Some(torrent),
            has_room: Mutex::new(false),
            new_folders: Mutex::new(new_folders),
        };
        for index in files.on_disk() {
            if let Err(error) = files.look_at(index) {
                files.remove_new_folders();
                return Err(error);
            }
        }
        Ok(files)
    }

    /// Creates every file and gives it its length without taking space (sparse), then makes the
    /// symbolic links; what is there already stays. Files that had not their length before are
    /// marked as an unfinished download. Does nothing the second time.
    ///
    /// # Errors
    /// When the disk does not take it, or something came in the way.
    pub fn make_room(&self) -> Result<(), StorageError> {
        let room = self.has_room.lock();
        let mut has_room = room.unwrap_or_else(PoisonError::into_inner);
        if let Some(torrent) = self.torrent.filter(|_| !*has_room) {
            for index in self.on_disk() {
                self.grow(index, &torrent)?;
            }
            self.make_links()?;
            *has_room = true;
        }
        Ok(())
    }

    /// Whether all files were made, as before anything is written.
    pub(super) fn has_room(&self) -> bool {
        let has_room = self.has_room.lock();
        *has_room.unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the folders that were created, as far as they are empty.
    pub(super) fn remove_new_folders(&self) {
        let folders = self.new_folders.lock();
        let mut folders = folders.unwrap_or_else(PoisonError::into_inner);
        for folder in std::mem::take(&mut *folders).iter().rev() {
            // Somebody else may have put something there.
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// The entries that have a file.
    pub(super) fn on_disk(&self) -> impl Iterator<Item = usize> {
        let entries = self.layout.entries().iter().enumerate();
        entries.filter_map(|(index, entry)| (!entry.padding).then_some(index))
    }

    /// How many bytes of an entry are on disk, 0 when there is no file.
    pub(super) fn length_of(&self, index: usize) -> Result<u64, StorageError> {
        match self.open(index, OFlags::empty()) {
            Ok(file) => file
                .metadata()
                .map(|metadata| metadata.len())
                .map_err(|error| StorageError::io("look at", &self.path_of(index), error)),
            Err(error) if error.is_not_found() => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Refuses files that are missing or have another length than they should.
    ///
    /// # Errors
    /// The first such file.
    pub fn check_lengths(&self) -> Result<(), StorageError> {
        let entries = self.layout.entries().iter().enumerate();
        for (index, entry) in entries.filter(|(_, entry)| !entry.padding) {
            let path = self.path_of(index);
            let metadata =
                std::fs::metadata(&path).map_err(|e| StorageError::io("find", &path, e))?;
            if !metadata.is_file() {
                return Err(StorageError::NotAFile { path });
            }
            if metadata.len() != entry.length {
                return Err(StorageError::WrongLength {
                    path,
                    found: metadata.len(),
                    expected: entry.length,
                });
            }
        }
        Ok(())
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How the files lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Fills `buffer` with the bytes from `start` on.
    ///
    /// # Errors
    /// When a file is not there, too short, or cannot be read.
    pub fn read_at(&self, start: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let mut rest = buffer;
        for span in self.layout.spans(start, rest.len() as u64) {
            let (part, next) = rest.split_at_mut(span.length as usize);
            rest = next;
            if self.layout.entries()[span.entry].padding {
                part.fill(0);
                continue;
            }
            let file = self.handle(span.entry)?;
            file.read_exact_at(part, span.offset)
                .map_err(|error| self.failed("read", span, error))?;
        }
        Ok(())
    }

    /// Writes `bytes` from `start` on.
    ///
    /// # Errors
    /// When the disk is full or a file cannot be written.
    pub fn write_at(&self, start: u64, bytes: &[u8]) -> Result<(), StorageError> {
        self.make_room()?;
        let mut rest = bytes;
        for span in self.layout.spans(start, rest.len() as u64) {
            let (part, next) = rest.split_at(span.length as usize);
            rest = next;
            if self.layout.entries()[span.entry].padding {
                continue;
            }
            let file = self.handle(span.entry)?;
            file.write_all_at(part, span.offset)
                .map_err(|error| self.failed("write", span, error))?;
        }
        Ok(())
    }

    /// Whether all `length` bytes from `start` on lie in holes or in files that are not there yet,
    /// and so are zeros that were never written.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub fn is_hole(&self, start: u64, length: u64) -> Result<bool, StorageError> {
        for span in self.layout.spans(start, length) {
            if self.layout.entries()[span.entry].padding {
                continue;
            }
            let file = match self.handle(span.entry) {
                Err(error) if self.beneath.is_some() && error.is_not_found() => continue,
                file => file?,
            };
            match rustix::fs::seek(&*file, SeekFrom::Data(span.offset)) {
                Ok(data) if data < span.offset + span.length => return Ok(false),
                // ENXIO: no data from there to the end.
                Ok(_) | Err(Errno::NXIO) => {}
                // A file system that cannot tell has no holes.
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Where a file is, for messages and for reading it by name.
    pub fn path_of(&self, entry: usize) -> PathBuf {
        self.root.join(&self.layout.entries()[entry].path)
    }

    fn failed(&self, action: &'static str, span: Span, error: io::Error) -> StorageError {
        let path = self.path_of(span.entry);
        if error.raw_os_error() == Some(Errno::FBIG.raw_os_error()) {
            let length = self.layout.entries()[span.entry].length;
            return StorageError::FileTooLarge { path, length };
        }
        StorageError::io(action, &path, error)
    }

    /// Forgets the open file of an entry: the next reader opens what is at its path then.
    pub(super) fn close(&self, entry: usize) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.open.remove(&entry);
    }

    /// The open file of an entry, from the cache or opened now.
    pub(super) fn handle(&self, entry: usize) -> Result<Arc<File>, StorageError> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.clock += 1;
        let now = handles.clock;
        if let Some((file, used)) = handles.open.get_mut(&entry) {
            *used = now;
            return Ok(Arc::clone(file));
        }
        if handles.open.len() >= MAX_OPEN {
            let oldest = handles.open.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(entry, _)| *entry) {
                handles.open.remove(&oldest);
            }
        }
        let file = Arc::new(self.open(entry, OFlags::empty())?);
        handles.open.insert(entry, (Arc::clone(&file), now));
        Ok(file)
    }

    /// Opens the file of an entry anew, outside the cache.
    pub(super) fn open_apart(&self, entry: usize) -> Result<File, StorageError> {
        self.open(entry, OFlags::empty())
    }

    fn open(&self, entry: usize, more: OFlags) -> Result<File, StorageError> {
        let path = &self.layout.entries()[entry].path;
        let Some(beneath) = &self.beneath else {
            let full = self.root.join(path);
            return File::open(&full).map_err(|error| StorageError::io("open", &full, error));
        };
        // NONBLOCK: opening a FIFO somebody put there must not hang.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
        open_beneath(beneath, path, flags)
            .map(File::from)
            .map_err(|errno| self.open_error("open", path, errno))
    }

    fn open_error(&self, action: &'static str, path: &Path, errno: Errno) -> StorageError {
        let root = self.root.clone();
        let path = self.root.join(path);
        match errno {
            Errno::XDEV | Errno::LOOP => StorageError::LeadsOut { path, root },
            Errno::ISDIR | Errno::NXIO => StorageError::NotAFile { path },
            Errno::NOTDIR => {
                // The innermost part of the path that is there is what is in the way.
                let blocker = path
                    .ancestors()
                    .skip(1)
                    .find(|part| part.symlink_metadata().is_ok());
                let path = blocker.unwrap_or(&path).to_owned();
                StorageError::NotAFolder { path }
            }
            _ => StorageError::io(action, &path, errno.into()),
        }
    }

    /// Refuses what stands where entry `index` has to go, without changing anything.
    fn look_at(&self, index: usize) -> Result<(), StorageError> {
        let Some(beneath) = &self.beneath else {
            return Ok(());
        };
        let entry = &self.layout.entries()[index];
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = match open_beneath(beneath, &entry.path, flags) {
            Ok(found) => File::from(found),
            Err(Errno::NOENT) => return self.refuse_dangling_link(entry.path.as_path()),
            Err(errno) => return Err(self.open_error("open", &entry.path, errno)),
        };
        let path = self.root.join(&entry.path);
        let metadata = found
            .metadata()
            .map_err(|error| StorageError::io("look at", &path, error))?;
        if !metadata.is_file() {
            return Err(StorageError::NotAFile { path });
        }
        if metadata.len() > entry.length && !self.overwrite {
            return Err(StorageError::TooLong {
                path,
                found: metadata.len(),
                expected: entry.length,
            });
        }
        Ok(())
    }

    /// A link to nothing inside the folder would be created through: refuse it too.
    fn refuse_dangling_link(&self, path: &Path) -> Result<(), StorageError> {
        let mut at = self.root.clone();
        for part in path.components() {
            at.push(part);
            match at.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() && at.metadata().is_err() => {
                    return Err(StorageError::NotAFile { path: at });
                }
                Ok(_) => {}
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Creates the folders and the file of entry `index`.
    pub(super) fn create(&self, index: usize) -> Result<File, StorageError> {
        self.make_folders_of(&self.layout.entries()[index].path)?;
        self.open(index, OFlags::CREATE)
    }

    /// Creates the file of entry `index`, and gives it its length.
    fn grow(&self, index: usize, torrent: &InfoHash) -> Result<(), StorageError> {
        if self.beneath.is_none() {
            return Ok(());
        }
        let entry = &self.layout.entries()[index];
        let file = self.create(index)?;
        let path = self.root.join(&entry.path);
        let length = file
            .metadata()
            .map_err(|error| StorageError::io("look at", &path, error))?
            .len();
        if length < entry.length || (self.overwrite && length > entry.length) {
            Self::mark(&file, torrent);
            file.set_len(entry.length).map_err(|error| {
                let span = Span {
                    entry: index,
                    offset: 0,
                    length: entry.length,
                };
                self.failed("grow", span, error)
            })?;
        }
        Ok(())
    }

    /// Creates the folders that `path` is in, and opens the innermost; `None` when the files are
    /// for reading only.
    pub(super) fn make_folders_of(&self, path: &Path) -> Result<Option<OwnedFd>, StorageError> {
        let Some(beneath) = &self.beneath else {
            return Ok(None);
        };
        let parents: Vec<&Path> = path.ancestors().skip(1).collect();
        for folder in parents.into_iter().rev() {
            self.make_folder(beneath, folder)?;
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open_beneath(beneath, folder, flags)
            .map(Some)
            .map_err(|errno| self.open_error("open the folder", path, errno))
    }

    fn make_folder(&self, beneath: &OwnedFd, folder: &Path) -> Result<(), StorageError> {
        let Some(name) = folder.file_name() else {
            return Ok(());
        };
        let parent = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = open_beneath(beneath, parent, flags)
            .map_err(|errno| self.open_error("create the folder", folder, errno))?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                let folders = self.new_folders.lock();
                let mut folders = folders.unwrap_or_else(PoisonError::into_inner);
                folders.push(self.root.join(folder));
                Ok(())
            }
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.open_error("create the folder", folder, errno)),
        }
    }
}

/// Opens `path` so that the kernel lets no step of it, symbolic links included, leave `root`
/// (openat2, RESOLVE_BENEATH).
fn open_beneath(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mode = if flags.contains(OFlags::CREATE) {
        Mode::from_raw_mode(0o666)
    } else {
        Mode::empty()
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(root, path, flags, mode, resolve) {
            // EAGAIN: something was renamed meanwhile, the kernel could not be sure.
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests;
