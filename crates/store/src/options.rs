//! How files are put on disk.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::FallocateFlags;

use crate::error::StoreError;

/// Length in bytes from which space is reserved for a file: smaller ones have few extents anyway.
const MIN_RESERVED: u64 = 1 << 20;

/// The type of file systems in memory, in `statfs` (`TMPFS_MAGIC`).
const TMPFS: i64 = 0x0102_1994;

/// Bytes of a block, in which the system counts the space of a file (stat(2)).
pub(crate) const BLOCK: u64 = 512;

/// How the files of a download are put on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileOptions {
    /// Whether files that do not belong to the download are overwritten instead of refused.
    pub overwrite: bool,
    /// Whether a file that is created has `.part` at the end of its name until all of it is verified. Files
    /// that have it from before are used in any case.
    pub part_suffix: bool,
    /// When files get their space.
    pub allocation: Allocation,
}

/// When files get their space on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocation {
    /// When they are created, if the disk has as much, and else as they are written.
    #[default]
    Auto,
    /// When they are created. A download that the disk has not enough space for is refused.
    Full,
    /// As they are written.
    Sparse,
}

impl Allocation {
    /// Gives a file of `length` bytes, at `path`, its space, as far as it gets it now. Bytes that are not written
    /// yet still count as holes.
    pub(crate) fn allocate(self, file: &File, path: &Path, length: u64) -> Result<(), StoreError> {
        match self {
            Self::Sparse => Ok(()),
            Self::Auto => {
                reserve(file, length);
                Ok(())
            }
            Self::Full if length == 0 => Ok(()),
            Self::Full => {
                let allocated = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length);
                allocated.map_err(|errno| {
                    StoreError::io("allocate the space of", path, io::Error::from(errno))
                })
            }
        }
    }
}

/// Reserves the space of a file of `length` bytes, if the disk has as much: its pieces, which
/// arrive in any order, then lie in few extents.
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
