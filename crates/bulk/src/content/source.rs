//! The source's side: bytes of the content at any position.

mod again;
mod skips;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hawser_store::{Handles, StoreError};
use rustix::fs::Advice;
use thiserror::Error;

use self::skips::Skips;
use super::manifest::{Entry, EntryKind, Extent, Manifest, ManifestError, Modified, Piece};
use super::scan::{Roots, Scan};
use super::skip::{self, SkipReason, Skipped};
use super::tree::{self, ChainingValue, RANGE};
use crate::protocol::Choices;

/// Why content cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file has another length or modification time than when it was scanned.
    #[error("{0} changed while it was sent: send it again when nothing writes to it")]
    Changed(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SourceError {
    /// The reason to skip the file; `None` if the error is not one of this file alone.
    fn reason(&self) -> Option<SkipReason> {
        match self {
            Self::Changed(_) => Some(SkipReason::Changed),
            Self::Store(error) if skip::is_general(error) => None,
            Self::Store(_) => Some(SkipReason::Failed),
        }
    }
}

/// The content of a transfer, read from files that were scanned. Any number of threads may read.
///
/// A file that cannot be read any more is skipped, if that is not to be strict: the rest of its
/// content is zeros.
#[derive(Debug)]
pub struct Source {
    manifest: Arc<Manifest>,
    /// `None`: the content is zeros.
    files: Option<Scanned>,
    /// The chaining values of ranges that were read before, for further sessions.
    values: Mutex<Vec<Option<ChainingValue>>>,
    strict: bool,
    skips: Skips,
    /// What is no entry because it could not be listed, and why.
    unlisted: Vec<(PathBuf, String)>,
}

#[derive(Debug)]
struct Scanned {
    roots: Roots,
    handles: Handles,
    /// What was carried when they were listed.
    carry: Choices,
}

impl Source {
    /// The content of scanned files. Opens nothing yet.
    #[must_use]
    pub fn open(scan: Scan) -> Self {
        let files = Scanned {
            roots: scan.roots,
            handles: Handles::default(),
            carry: scan.carry,
        };
        let skips = Skips::default();
        for (entry, error) in scan.unreadable {
            skips.add(Skipped {
                entry,
                reason: SkipReason::Failed,
                text: error.to_string(),
            });
        }
        let unlisted = scan.unlisted.into_iter();
        Self {
            manifest: Arc::new(scan.manifest),
            files: Some(files),
            values: Mutex::default(),
            strict: scan.strict,
            skips,
            unlisted: unlisted
                .map(|(path, error)| (path, error.to_string()))
                .collect(),
        }
    }

    /// A file named `zeros` of `length` zeros that are on no disk, to measure all but the disk.
    ///
    /// # Errors
    /// If the length overflows 62 bits.
    pub fn zeros(length: u64) -> Result<Self, ManifestError> {
        let extent = Extent { offset: 0, length };
        let extents = if length > 0 { vec![extent] } else { Vec::new() };
        let entry = Entry {
            path: "zeros".into(),
            mode: 0o644,
            modified: Modified::default(),
            attributes: None,
            kind: EntryKind::File {
                size: length,
                extents,
            },
        };
        Ok(Self {
            manifest: Arc::new(Manifest::new([entry])?),
            files: None,
            values: Mutex::default(),
            strict: true,
            skips: Skips::default(),
            unlisted: Vec::new(),
        })
    }

    /// What is to be transferred.
    #[must_use]
    pub const fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// The entries that are skipped, but for the first `known` of them.
    pub(crate) fn skipped_since(&self, known: usize) -> Vec<Skipped> {
        self.skips.since(known)
    }

    /// Whether the files of all these positions of the content are skipped, here or, by `elsewhere`,
    /// at the sink.
    pub(crate) fn is_skipped(
        &self,
        positions: Range<u64>,
        elsewhere: impl Fn(usize) -> bool,
    ) -> bool {
        let mut pieces = self.manifest.pieces(positions);
        pieces.all(|piece| self.skips.contains(piece.entry) || elsewhere(piece.entry))
    }

    /// What is no entry because it could not be listed, and why.
    pub(crate) fn unlisted(&self) -> &[(PathBuf, String)] {
        &self.unlisted
    }

    /// The chaining value of a range that was read before.
    pub(crate) fn value(&self, range: u64) -> Option<ChainingValue> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(usize::try_from(range).ok()?).copied()?
    }

    /// Keeps the chaining value of a range; `None` has it computed anew.
    pub(crate) fn set_value(&self, range: u64, value: Option<ChainingValue>) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if values.is_empty() {
            values.resize(tree::count(self.manifest.length()) as usize, None);
        }
        if let Some(kept) = values.get_mut(range as usize) {
            *kept = value;
        }
    }

    /// Fills `buffer` with the content from `position` on.
    ///
    /// # Errors
    /// If a file cannot be read, or has changed since it was scanned, and that is to be strict; or if
    /// no file can be read.
    ///
    /// # Panics
    /// If the content ends before the buffer does.
    pub fn read_at(&self, position: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let end = position + buffer.len() as u64;
        assert!(
            end <= self.manifest.length(),
            "position {end} is beyond the content"
        );
        let Some(files) = &self.files else {
            buffer.fill(0);
            return Ok(());
        };
        let mut rest = buffer;
        for piece in self.manifest.pieces(position..end) {
            let (part, behind) = rest.split_at_mut(piece.length as usize);
            if self.skips.contains(piece.entry) {
                part.fill(0);
            } else if let Err(error) = files.read(&self.manifest, piece, part) {
                let Some(reason) = error.reason().filter(|_| !self.strict) else {
                    return Err(error);
                };
                part.fill(0);
                self.skips.add(Skipped {
                    entry: piece.entry,
                    reason,
                    text: error.to_string(),
                });
            }
            rest = behind;
        }
        Ok(())
    }
}

impl Scanned {
    fn read(&self, manifest: &Manifest, piece: Piece, part: &mut [u8]) -> Result<(), SourceError> {
        let entry = &manifest.entries()[piece.entry];
        let path = || self.roots.path_of(piece.entry, entry);
        let changed = || SourceError::Changed(path());
        let open = || self.open(piece.entry, entry);
        let file = match piece.length == entry.size() {
            // It is used once.
            true => Arc::new(open()?),
            false => self.handles.get(piece.entry, open)?,
        };
        match file.read_exact_at(part, piece.offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(changed()),
            Err(error) => return Err(StoreError::io("read", &path(), error).into()),
            Ok(()) => {}
        }
        // After the read: a file that changes while it is read has a new time already.
        let metadata = file
            .metadata()
            .map_err(|error| StoreError::io("look at", &path(), error))?;
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        let expected = (
            entry.modified.seconds,
            i64::from(entry.modified.nanoseconds),
        );
        match metadata.len() == entry.size() && modified == expected {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    fn open(&self, index: usize, entry: &Entry) -> Result<File, StoreError> {
        let file = self.roots.open(index, entry)?;
        if entry.size() > RANGE {
            // Reads are nearly in order. A file system without read-ahead does no harm.
            let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
        }
        Ok(file)
    }
}
