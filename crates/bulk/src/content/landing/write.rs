//! Keeping and writing ranges.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use hawser_store::{Folder, StoreError, set_status};

use super::disk::{DONE, Disk, FITS, STALE, lock};
use super::existing::same_file;
use super::progress::{Part, Progress, RangeState};
use crate::content::manifest::Piece;
use crate::content::tree;

/// A range that was verified.
struct Verified<'a> {
    range: u64,
    /// Position of its first byte in the content.
    start: u64,
    bytes: &'a [u8],
}

impl Verified<'_> {
    /// The bytes of a piece.
    fn of(&self, piece: &Piece) -> &[u8] {
        let at = (piece.position - self.start) as usize;
        &self.bytes[at..at + piece.length as usize]
    }

    /// Whether a file has all these pieces already; not if it has become too short.
    fn is_in(&self, file: &File, pieces: &[Piece]) -> std::io::Result<bool> {
        let mut buffer = Vec::new();
        for piece in pieces {
            buffer.resize(piece.length as usize, 0);
            match file.read_exact_at(&mut buffer, piece.offset) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                result => result?,
            }
            if buffer != self.of(piece) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes all these pieces to a file.
    fn write_to(&self, file: &File, pieces: &[Piece]) -> std::io::Result<()> {
        let mut pieces = pieces.iter();
        pieces.try_for_each(|piece| file.write_all_at(self.of(piece), piece.offset))
    }
}

impl Disk {
    /// Keeps a range that is there and is valid.
    pub fn keep(&self, range: u64) -> Result<(), StoreError> {
        let positions = tree::range(range, self.manifest.length());
        let pieces: Vec<Piece> = self.manifest.pieces(positions).collect();
        for pieces in pieces.chunk_by(same_file) {
            let entry = pieces[0].entry;
            if self.is_over(entry) {
                continue;
            }
            if let Err(error) = self.keep_pieces(range, pieces) {
                self.fault(entry, error)?;
            }
        }
        Ok(())
    }

    /// Keeps what a range has of one file.
    fn keep_pieces(&self, range: u64, pieces: &[Piece]) -> Result<(), StoreError> {
        let entry = pieces[0].entry;
        match self.spanning(entry) {
            None if !self.is(entry, FITS) => Err(self.removed(entry)),
            None => self.keep_whole(entry),
            Some(content) => {
                let progress = self.progress(entry, &content);
                let mut progress = lock(&progress);
                if progress.state(range) == RangeState::Missing {
                    match progress.find(pieces) {
                        RangeState::Missing => return Err(self.removed(entry)),
                        place => progress.set(range, place),
                    }
                }
                self.finish_if_complete(entry, &mut progress)
            }
        }
    }

    /// Writes the files, or parts of files, that a range has.
    pub fn write_range(&self, range: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let positions = tree::range(range, self.manifest.length());
        let verified = Verified {
            range,
            start: positions.start,
            bytes,
        };
        let pieces: Vec<Piece> = self.manifest.pieces(positions).collect();
        for pieces in pieces.chunk_by(same_file) {
            let entry = pieces[0].entry;
            if self.is_over(entry) {
                continue;
            }
            let written = match self.spanning(entry) {
                None => self.write_whole(entry, pieces, &verified),
                Some(content) => self.write_part(entry, &content, pieces, &verified),
            };
            if let Err(error) = written {
                self.fault(entry, error)?;
            }
        }
        Ok(())
    }

    /// Completes a file in one range that is valid already.
    pub(super) fn keep_whole(&self, entry: usize) -> Result<(), StoreError> {
        if self.is(entry, STALE)
            && let Some(file) = self.final_file(entry)?
        {
            let folder = self.place.folder_of(entry)?;
            self.set_status(entry, &file, (&folder, self.place.name_of(entry)))?;
        }
        self.set(entry, DONE);
        Ok(())
    }

    /// Writes a file with all its content in one range.
    fn write_whole(
        &self,
        entry: usize,
        pieces: &[Piece],
        verified: &Verified<'_>,
    ) -> Result<(), StoreError> {
        let failed =
            |action| move |error| StoreError::io(action, &self.place.path_of(entry), error);
        if self.is(entry, FITS)
            && let Ok(Some(file)) = self.final_file(entry)
            && verified.is_in(&file, pieces).map_err(failed("read"))?
        {
            return self.keep_whole(entry);
        }
        self.create_whole(entry, |file| {
            verified.write_to(file, pieces).map_err(failed("write"))
        })
    }

    /// Creates a file with the content that `write` gives it.
    pub(super) fn create_whole(
        &self,
        entry: usize,
        write: impl FnOnce(&File) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let folder = self.place.folder_of(entry)?;
        let part = self.place.part_name_of(entry);
        let grow = |error| StoreError::io("grow", &self.place.path_of(entry), error);
        let (file, is_new) = self.create_part(entry, &folder, &part)?;
        if !is_new {
            file.set_len(0).map_err(grow)?;
        }
        write(&file)?;
        if !self.holes(entry).is_empty() {
            file.set_len(self.entry(entry).size()).map_err(grow)?;
        }
        self.set_status(entry, &file, (&folder, &part))?;
        folder.rename(&part, self.place.name_of(entry))?;
        self.set(entry, DONE);
        Ok(())
    }

    /// Writes what a range has of a file in several ranges.
    fn write_part(
        &self,
        entry: usize,
        content: &Range<u64>,
        pieces: &[Piece],
        verified: &Verified<'_>,
    ) -> Result<(), StoreError> {
        let failed =
            |action| move |error| StoreError::io(action, &self.place.path_of(entry), error);
        let progress = self.progress(entry, content);
        let mut progress = lock(&progress);
        if progress.state(verified.range) == RangeState::Missing {
            // The range is here because something in it differs, perhaps in another file.
            let is_there = matches!(progress.part, Part::Absent)
                && self.is(entry, FITS)
                && match self.final_file(entry) {
                    Ok(Some(file)) => verified.is_in(&file, pieces).map_err(failed("read"))?,
                    // One that cannot be read is replaced.
                    Ok(None) | Err(_) => false,
                };
            if is_there {
                progress.set(verified.range, RangeState::InBase);
            } else {
                let file = self.part_file(entry, &mut progress)?;
                verified.write_to(file, pieces).map_err(failed("write"))?;
                progress.set(verified.range, RangeState::InPart);
            }
        }
        self.finish_if_complete(entry, &mut progress)
    }

    /// Completes a file in several ranges once none is missing.
    fn finish_if_complete(&self, entry: usize, progress: &mut Progress) -> Result<(), StoreError> {
        if progress.is_complete() && !self.is(entry, DONE) {
            self.finish_file(entry, progress)?;
            self.forget(entry);
        }
        Ok(())
    }

    /// Gives an entry's file, which has a name in a folder now, all that it has beside its content.
    pub(super) fn set_status(
        &self,
        entry: usize,
        file: &File,
        (folder, name): (&Folder, &OsStr),
    ) -> Result<(), StoreError> {
        let (mode, modified) = self.status(entry);
        let set_id = self.set_attributes(entry, folder, name) & self.entry(entry).mode;
        set_status(file, &self.place.path_of(entry), mode | set_id, modified)?;
        self.set_acl(entry, folder, name);
        Ok(())
    }
}
