//! The sink's side: what of the content is there already, and writing the rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_store::StoreError;
use thiserror::Error;

use super::manifest::Manifest;
use super::tree::ChainingValue;

/// Why content cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LandingError {
    /// The disk has not enough space, or not enough room for new files.
    #[error(
        "{path}: the disk is full, {missing} more bytes are needed: what was verified is kept; free some space and start again"
    )]
    Full {
        /// The folder or file.
        path: PathBuf,
        /// Bytes that are missing.
        missing: u64,
    },
    /// The path in the destination is not one below its folder.
    #[error(
        "{0:?} is not a path below the folder of the receiver: use a relative one without `..`"
    )]
    Path(PathBuf),
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a [`Landing`] is to do.
#[derive(Debug, Clone)]
pub struct LandingOptions {
    /// The `PATH` of `DST/PATH`, below the folder.
    pub path: PathBuf,
    /// Whether [`Landing::complete`] waits until everything is on disk.
    pub sync: bool,
}

impl Default for LandingOptions {
    fn default() -> Self {
        Self {
            path: PathBuf::new(),
            sync: true,
        }
    }
}

/// The content of a transfer as it is written below a folder. Any number of threads may write.
#[derive(Debug)]
pub struct Landing {
    manifest: Arc<Manifest>,
}

impl Landing {
    /// Opens the folder, which is created if it does not exist.
    ///
    /// # Errors
    /// If something is in the way.
    pub fn prepare(
        manifest: Arc<Manifest>,
        folder: &Path,
        options: LandingOptions,
    ) -> Result<Self, LandingError> {
        let _ = (folder, options);
        Ok(Self { manifest })
    }

    /// Writes nothing, to measure all but the disk.
    #[must_use]
    pub const fn discard(manifest: Arc<Manifest>) -> Self {
        Self { manifest }
    }

    /// What is transferred.
    #[must_use]
    pub const fn manifest(&self) -> &Arc<Manifest> {
        &self.manifest
    }

    /// Passes the chaining value of each range that is there, in order, to `each`, on this thread.
    /// Ends early when `each` returns `false`.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn existing(
        &self,
        each: impl FnMut(u64, ChainingValue) -> bool,
    ) -> Result<(), LandingError> {
        let _ = each;
        Ok(())
    }

    /// Keeps a range that [`Landing::existing`] has reported, and that is as at the source.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn keep(&self, range: u64) -> Result<(), LandingError> {
        let _ = range;
        Ok(())
    }

    /// Writes a range that was verified. If it fails, it may be called again.
    ///
    /// # Errors
    /// If the disk is full or a file cannot be written.
    pub fn write_range(&self, range: u64, bytes: &[u8]) -> Result<(), LandingError> {
        let _ = (range, bytes);
        Ok(())
    }

    /// Completes the transfer once all ranges are kept or written.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn complete(&self) -> Result<(), LandingError> {
        Ok(())
    }
}
