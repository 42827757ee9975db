//! What is on disk before a download, and whether it is the torrent's: a file that happens to have
//! the name of one of the torrent's must not be lost.

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::mark::Mark;
use super::{Files, Layout, StorageError};
use crate::bitfield::Bitfield;
use crate::metainfo::InfoHash;

/// What was on disk before a download changed anything.
#[derive(Debug)]
pub(crate) struct Survey {
    /// Bytes of each entry, 0 where there is none.
    found: Vec<u64>,
}

impl Survey {
    /// Looks at all files.
    ///
    /// # Errors
    /// When one cannot be looked at.
    pub fn of(files: &Files) -> Result<Self, StorageError> {
        let entries = files.layout().entries().iter().enumerate();
        let found = entries.map(|(index, entry)| match entry.padding {
            true => Ok(entry.length),
            false => files.length_of(index),
        });
        Ok(Self {
            found: found.collect::<Result<_, _>>()?,
        })
    }

    /// Whether all bytes of a piece are there to be checked.
    pub fn covers(&self, layout: &Layout, piece: u32) -> bool {
        let size = u64::from(layout.piece_size(piece));
        layout
            .spans(layout.piece_start(piece), size)
            .all(|span| span.offset + span.length <= self.found[span.entry])
    }

    /// Refuses files that are not the torrent's, and of which something would be overwritten since
    /// it is not `verified`. A file is taken as the torrent's own when one of the `telling` pieces
    /// is in it, those that verified and are not all zeros, or when it has the mark of an
    /// unfinished download. On a file system that keeps no marks, such a download is known by its
    /// files: all have their length before anything is written, and there are holes.
    ///
    /// # Errors
    /// [`StorageError::Foreign`], the first such file.
    pub fn refuse_foreign(
        &self,
        files: &Files,
        verified: &Bitfield,
        telling: &Bitfield,
        torrent: &InfoHash,
    ) -> Result<(), StorageError> {
        let layout = files.layout();
        let mut own = vec![false; self.found.len()];
        let mut overwritten = own.clone();
        for piece in 0..layout.piece_count() {
            let size = u64::from(layout.piece_size(piece));
            for span in layout.spans(layout.piece_start(piece), size) {
                own[span.entry] |= telling.has(piece);
                overwritten[span.entry] |= !verified.has(piece);
            }
        }
        let mut without_marks = None;
        for index in files.on_disk() {
            let at_risk = self.found[index] > 0 && overwritten[index] && !own[index];
            if !at_risk || !files.has_data(index)? {
                continue;
            }
            let is_own = match files.mark_of(index, torrent)? {
                Mark::Own => true,
                Mark::Other => false,
                Mark::Unknown => match without_marks {
                    Some(unfinished) => unfinished,
                    None => *without_marks.insert(self.is_unfinished(files)?),
                },
            };
            if !is_own {
                let path = files.path_of(index);
                return Err(StorageError::Foreign { path });
            }
        }
        Ok(())
    }

    /// Whether all files have their full length, and there are holes.
    fn is_unfinished(&self, files: &Files) -> Result<bool, StorageError> {
        let entries = files.layout().entries();
        let mut holes = false;
        for index in files.on_disk() {
            let length = entries[index].length;
            if self.found[index] != length {
                return Ok(false);
            }
            holes = holes || length > 0 && files.first_hole(index)? < length;
        }
        Ok(holes)
    }
}

impl Files {
    /// Where the first hole of a file begins; its end, where it has none or the file system cannot
    /// tell.
    fn first_hole(&self, entry: usize) -> Result<u64, StorageError> {
        let file = self.open_apart(entry)?;
        let length = self.layout().entries()[entry].length;
        Ok(rustix::fs::seek(&file, SeekFrom::Hole(0)).unwrap_or(length))
    }

    /// Whether a file is more than a hole.
    fn has_data(&self, entry: usize) -> Result<bool, StorageError> {
        let file = self.open_apart(entry)?;
        // A file system that cannot tell has no holes.
        Ok(rustix::fs::seek(&file, SeekFrom::Data(0)) != Err(Errno::NXIO))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn without_marks_an_unfinished_download_is_known_by_its_holes() {
        let dir = tempfile::tempdir().unwrap();
        let layout = || {
            let files = [("a", 100_000), ("b", 100_000)];
            Layout::new(
                32768,
                files.map(|(path, length)| (PathBuf::from(path), length, false)),
            )
        };
        let unfinished = || {
            let files =
                Files::below(dir.path().to_owned(), layout(), false, InfoHash([1; 20])).unwrap();
            let survey = Survey::of(&files).unwrap();
            survey.is_unfinished(&files).unwrap()
        };
        assert!(!unfinished());
        fs::write(dir.path().join("a"), vec![1; 100_000]).unwrap();
        assert!(!unfinished());
        let b = fs::File::create(dir.path().join("b")).unwrap();
        b.set_len(99_999).unwrap();
        assert!(!unfinished());
        b.set_len(100_000).unwrap();
        assert!(unfinished());
        fs::write(dir.path().join("b"), vec![1; 100_000]).unwrap();
        assert!(!unfinished());
    }
}
