//! Entries of a manifest that are not transferred, although the others are.

use hawser_store::StoreError;
use rustix::io::Errno;

pub use crate::protocol::SkipReason;

/// An entry that is not transferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its index in the manifest.
    pub entry: usize,
    /// Why.
    pub reason: SkipReason,
    /// Why, for people; with the path on the host that skips it.
    pub text: String,
}

/// Whether an error is one of this host rather than of one file: others would fail as well.
pub(super) fn is_general(error: &StoreError) -> bool {
    let StoreError::Io { source, .. } = error else {
        return false;
    };
    let errno = source.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::ROFS)
    )
}
