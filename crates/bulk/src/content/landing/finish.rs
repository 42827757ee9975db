//! Completing files, links and directories.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use hawser_store::{Found, FoundKind, StoreError};
use rustix::fs::{FallocateFlags, copy_file_range, fallocate};
use rustix::io::Errno;

use super::disk::{DONE, Disk, FITS, SKIPPED};
use super::progress::{Part, Progress, RangeState};
use super::survey::is_zero;
use crate::content::manifest::{EntryKind, Piece};
use crate::content::tree;

impl Disk {
    /// Completes a file in several ranges of which none is missing.
    pub(super) fn finish_file(
        &self,
        entry: usize,
        progress: &mut Progress,
    ) -> Result<(), StoreError> {
        let folder = self.place.folder_of(entry)?;
        let part = self.place.part_name_of(entry);
        let is_base_right = progress.ranges_in(RangeState::InPart).next().is_none();
        if is_base_right && self.is(entry, FITS) {
            if !matches!(progress.part, Part::Absent) {
                folder.remove(&part)?;
            }
            return match self.final_file(entry)? {
                Some(file) => self.set_status(entry, &file, (&folder, self.place.name_of(entry))),
                None => Err(self.removed(entry)),
            };
        }
        let failed = |error| StoreError::io("write", &self.place.path_of(entry), error);
        let kept: Vec<u64> = progress.ranges_in(RangeState::InBase).collect();
        let file = self.part_file(entry, progress)?;
        if !kept.is_empty() {
            let base = self.final_file(entry)?.ok_or_else(|| self.removed(entry))?;
            for range in kept {
                let positions = tree::range(range, self.manifest.length());
                let pieces = self.manifest.pieces(positions);
                for piece in pieces.filter(|piece| piece.entry == entry) {
                    copy(&base, file, &piece).map_err(failed)?;
                }
            }
        }
        // An earlier version of the file may have had content where this one has none.
        for hole in self.holes(entry) {
            if !is_zero(file, hole.clone()).map_err(failed)? {
                clear(file, hole.start, hole.end - hole.start).map_err(failed)?;
            }
        }
        self.set_status(entry, file, (&folder, &part))?;
        folder.rename(&part, self.place.name_of(entry))
    }

    /// Creates what has no content, and gives directories their modes and times, the innermost
    /// first.
    pub fn complete(&self, sync: bool) -> Result<(), StoreError> {
        let entries = self.manifest.entries().len();
        for entry in (0..entries).filter(|entry| !self.is_over(*entry)) {
            let completed = match &self.entry(entry).kind {
                _ if self.entry(entry).hard_link().is_some() => Ok(()),
                // One that cannot be opened is replaced.
                EntryKind::File { .. } if self.is(entry, FITS) => self
                    .keep_whole(entry)
                    .or_else(|_| self.create_whole(entry, |_| Ok(()))),
                EntryKind::File { .. } => self.create_whole(entry, |_| Ok(())),
                EntryKind::Link { target } => self.link(entry, target),
                EntryKind::Directory => Ok(()),
            };
            if let Err(error) = completed {
                self.fault(entry, error)?;
            }
        }
        // Once the files are there of which they are further names.
        for entry in (0..entries).filter(|entry| !self.is_over(*entry)) {
            if let Some(of) = self.entry(entry).hard_link()
                && let Err(error) = self.hard_link(entry, of)
            {
                self.fault(entry, error)?;
            }
        }
        for entry in (0..entries).rev().filter(|entry| !self.is_over(*entry)) {
            if matches!(self.entry(entry).kind, EntryKind::Directory)
                && let Err(error) = self.finish_directory(entry)
            {
                self.fault(entry, error)?;
            }
        }
        match sync {
            true => self.place.root().sync(),
            false => Ok(()),
        }
    }

    /// Gives a directory its mode and time.
    fn finish_directory(&self, entry: usize) -> Result<(), StoreError> {
        let folder = self.place.folder_of(entry)?;
        let name = self.place.name_of(entry);
        let (mode, modified) = self.status(entry);
        let set_id = self.set_attributes(entry, &folder, name) & self.entry(entry).mode;
        folder.set_mode(name, mode | set_id)?;
        self.set_acl(entry, &folder, name);
        folder.set_modified(name, modified)
    }

    /// Makes the name of an entry a further name of the file of another entry, in place of a file.
    fn hard_link(&self, entry: usize, of: usize) -> Result<(), StoreError> {
        if self.is(of, SKIPPED) {
            let error = io::Error::other("the file of which it is a hard link is skipped");
            return Err(StoreError::io("write", &self.place.path_of(entry), error));
        }
        let (folder, name) = (self.place.folder_of(entry)?, self.place.name_of(entry));
        let (folder_of, name_of) = (self.place.folder_of(of)?, self.place.name_of(of));
        let file = folder_of.find(name_of)?.ok_or_else(|| self.removed(of))?;
        let is_there = |found: Found| found.identity == file.identity;
        if !folder.find(name)?.is_some_and(is_there) {
            let part = self.place.part_name_of(entry);
            folder.remove(&part)?;
            if !folder.link(&part, (&folder_of, name_of))? {
                return Err(StoreError::InUse(self.place.path_of(entry)));
            }
            folder.rename(&part, name)?;
        }
        self.set(entry, DONE);
        Ok(())
    }

    /// Creates a symbolic link, in place of a file or other link.
    fn link(&self, entry: usize, target: &Path) -> Result<(), StoreError> {
        let folder = self.place.folder_of(entry)?;
        let name = self.place.name_of(entry);
        let (_, modified) = self.status(entry);
        let found = folder.find(name)?;
        let is_link = found.is_some_and(|found| found.kind == FoundKind::Link);
        if !is_link || folder.target(name)? != target {
            let part = self.place.part_name_of(entry);
            folder.remove(&part)?;
            folder.create_link_at(&part, target)?;
            folder.rename(&part, name)?;
        }
        self.set_attributes(entry, &folder, name);
        folder.set_modified(name, modified)?;
        self.set(entry, DONE);
        Ok(())
    }

    pub(super) fn removed(&self, entry: usize) -> StoreError {
        let error = io::ErrorKind::NotFound.into();
        StoreError::io("read", &self.place.path_of(entry), error)
    }
}

/// Copies a piece of a file to the same place of another one, in the kernel if it can, so that file
/// systems with shared extents copy nothing.
fn copy(from: &File, to: &File, piece: &Piece) -> io::Result<()> {
    let (mut at, mut at_to) = (piece.offset, piece.offset);
    while at < piece.end() {
        let rest = usize::try_from(piece.end() - at).unwrap_or(usize::MAX);
        match copy_file_range(from, Some(&mut at), to, Some(&mut at_to), rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                let mut bytes = vec![0; (piece.end() - at) as usize];
                from.read_exact_at(&mut bytes, at)?;
                return to.write_all_at(&bytes, at);
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Makes a part of a file a hole, or zeros where the file system has no holes.
fn clear(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(file, flags, offset, length) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        result => return Ok(result?),
    }
    let zeros = vec![0; length.min(64 << 10) as usize];
    let mut at = offset;
    while at < offset + length {
        let step = (offset + length - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..step as usize], at)?;
        at += step;
    }
    Ok(())
}
