//! What cannot be written is skipped, unless all of the landing fails with it.

use std::sync::atomic::Ordering;

use hawser_store::StoreError;

use super::disk::{DONE, Disk, SKIPPED, lock};
use crate::content::skip::{SkipReason, Skipped, is_general};
use crate::content::tree::RANGE;

impl Disk {
    /// Skips an entry because of `error`.
    ///
    /// # Errors
    /// The error, if it is not one of this entry alone, or that is to be strict.
    pub(super) fn fault(&self, entry: usize, error: StoreError) -> Result<(), StoreError> {
        let faults = &self.faults;
        let is_in_use = matches!(error, StoreError::InUse(_));
        let waits = is_in_use && faults.wait_for_others.load(Ordering::Relaxed);
        if faults.strict || waits || is_general(&error) || self.is_full(&error) {
            return Err(error);
        }
        let reason = match is_in_use || error.is_not_found() {
            true => SkipReason::Changed,
            false => SkipReason::Failed,
        };
        self.skip(entry, reason, error.to_string());
        Ok(())
    }

    /// Skips an entry, and has that reported.
    pub(super) fn skip(&self, entry: usize, reason: SkipReason, text: String) {
        if self.is(entry, SKIPPED) {
            return;
        }
        self.set(entry, SKIPPED);
        let skipped = Skipped {
            entry,
            reason,
            text,
        };
        lock(&self.faults.found).push(skipped);
    }

    /// Skips an entry that the source skips.
    pub fn skip_silently(&self, entry: usize) {
        self.set(entry, SKIPPED);
    }

    /// The entries that were skipped since the last call.
    pub fn take_skipped(&self) -> Vec<Skipped> {
        std::mem::take(&mut *lock(&self.faults.found))
    }

    /// Whether nothing more is to be written of an entry.
    pub(super) fn is_over(&self, entry: usize) -> bool {
        self.is(entry, DONE) || self.is(entry, SKIPPED)
    }

    /// Whether an error means that the whole file system is full, rather than a quota of this file.
    fn is_full(&self, error: &StoreError) -> bool {
        let StoreError::Full(_) = error else {
            return false;
        };
        let room = self.room();
        room.map_or(true, |room| room.bytes < RANGE || room.files == Some(0))
    }
}
