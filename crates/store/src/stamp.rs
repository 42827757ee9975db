//! The states of files, to detect changes.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use crate::error::StoreError;
use crate::files::Files;

/// The state of a file, as far as it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub length: u64,
    /// Seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Device and inode.
    pub identity: (u64, u64),
}

impl From<Metadata> for Stamp {
    fn from(metadata: Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            identity: (metadata.dev(), metadata.ino()),
        }
    }
}

/// The state of every file of a [`Files`] at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamps(
    /// In the order of the layout; `None` for padding and missing files.
    pub(crate) Vec<Option<Stamp>>,
);

impl Files {
    /// The state of every file now.
    pub(crate) fn stamps(&self) -> Stamps {
        let mut stamps = vec![None; self.layout().entries.len()];
        for (index, _) in self.layout().on_disk() {
            stamps[index] = self.stamp_on_disk(index);
        }
        Stamps(stamps)
    }

    /// The state of the file at an entry's path.
    pub(crate) fn stamp_on_disk(&self, entry: usize) -> Option<Stamp> {
        let found = self.at_place(entry, |place| {
            let path = self.root().join(place);
            std::fs::metadata(&path).map_err(|error| StoreError::io("look at", &path, error))
        });
        found.ok().map(Stamp::from)
    }

    /// The state of the file that is open for reading, which may no longer be at its path.
    pub(crate) fn stamp_of_open(&self, entry: usize) -> Option<Stamp> {
        self.handle(entry).ok()?.metadata().ok().map(Stamp::from)
    }
}
