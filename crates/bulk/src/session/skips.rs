//! The entries that either side of a session skips.

use std::collections::HashSet;

use crate::content::{Manifest, SkipReason, Skipped};
use crate::error::TransferError;
use crate::report::FailedFile;

/// The entries that either side of a session skips.
#[derive(Debug, Default)]
pub(super) struct Skips {
    known: HashSet<usize>,
    failed: Vec<FailedFile>,
    /// Files that stay as they are at the sink.
    kept: u64,
}

impl Skips {
    /// Adds an entry of `manifest`; nothing happens if it is known already.
    pub(super) fn add(&mut self, manifest: &Manifest, skipped: Skipped, at_source: bool) {
        let Skipped {
            entry,
            reason,
            text,
        } = skipped;
        let Some(found) = manifest.entries().get(entry) else {
            return;
        };
        if !self.known.insert(entry) {
            return;
        }
        match reason {
            SkipReason::Kept => self.kept += 1,
            _ => self.failed.push(FailedFile {
                path: found.path.clone(),
                reason: text,
                at_source,
                again: (reason == SkipReason::Changed).then_some(entry),
            }),
        }
    }

    /// Whether every file was transferred, or kept because the client chose so.
    pub(super) const fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }

    /// The files that failed, and how many were kept.
    pub(super) fn take(&mut self) -> (Vec<FailedFile>, u64) {
        (std::mem::take(&mut self.failed), self.kept)
    }
}

/// The entry that a message of the other side names.
pub(super) fn named(
    manifest: &Manifest,
    (entry, reason, text): (u64, SkipReason, String),
) -> Result<Skipped, TransferError> {
    let index = usize::try_from(entry).ok();
    let entry = index.filter(|entry| *entry < manifest.entries().len());
    let entry = entry.ok_or(TransferError::Protocol(
        "it skips an entry that does not exist",
    ))?;
    Ok(Skipped {
        entry,
        reason,
        text,
    })
}
