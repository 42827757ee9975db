//! Files that are not complete: their names end with `.part`, until all that is in them is verified.
//!
//! A file gets the suffix when it is created, if that is wanted; one that has it from before is used under
//! that name in any case. It loses the suffix once: the lock of moves is taken for writing meanwhile, so
//! that no read or write of bytes is under way, and a look at the file that does not find it is made again.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::StoreError;
use crate::files::{Files, Writable};
use crate::partial_names::part_name;
use crate::range::Ranges;

impl Files {
    /// Looks at the file of an entry under its name; again, if it is renamed meanwhile.
    pub(crate) fn at_place<T>(
        &self,
        entry: usize,
        look: impl Fn(&Path) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let found = look(&self.place_of(entry));
        let Some(writable) = &self.writable else {
            return found;
        };
        match found {
            Err(error) if error.is_not_found() && writable.names.may_move(entry) => {
                // It is not renamed while this is held.
                let _steady = writable.names.lock();
                look(&self.place_of(entry))
            }
            found => found,
        }
    }

    /// Counts what is missing of each file, of which these ranges are verified, and takes the suffix off those
    /// that are complete.
    pub(crate) fn count_missing<R: Ranges>(&self, ranges: &R, is_verified: impl Fn(u32) -> bool) {
        let Some(writable) = &self.writable else {
            return;
        };
        let counted = (0..ranges.count()).map(|_| AtomicBool::new(false));
        if writable.names.counted.set(counted.collect()).is_err() {
            return;
        }
        for range in (0..ranges.count()).filter(|range| is_verified(*range)) {
            self.on_verified(range, ranges);
        }
    }

    /// A range is verified. The suffix is taken off the files that are complete with it.
    pub(crate) fn on_verified<R: Ranges>(&self, range: u32, ranges: &R) {
        let Some(writable) = &self.writable else {
            return;
        };
        let counted = writable.names.counted.get();
        let Some(counted) = counted.and_then(|all| all.get(range as usize)) else {
            return;
        };
        // One that is fetched and verified again counts once.
        if counted.swap(true, Ordering::AcqRel) {
            return;
        }
        for span in self.layout().spans_on_disk(ranges.range(range)) {
            let missing = &writable.names.missing[span.entry];
            let before = missing.fetch_sub(span.length, Ordering::AcqRel);
            if before == span.length && writable.names.is_partial(span.entry) {
                let _moving = writable.parts.moving();
                if let Err(error) = self.finish_name(span.entry, writable) {
                    // It is tried again at the end, and then it is an error.
                    tracing::warn!("{error}");
                }
            }
        }
    }

    /// Takes the suffix off the files that are selected, all of which are complete.
    pub(crate) fn finish_names(&self) -> Result<(), StoreError> {
        let Some(writable) = &self.writable else {
            return Ok(());
        };
        let _moving = writable.parts.moving();
        for (entry, _) in self.layout().on_disk() {
            if !writable.parts.is_skipped(entry) {
                self.finish_name(entry, writable)?;
            }
        }
        Ok(())
    }

    /// Takes the suffix off the file of an entry, if it has it, and a file of its own. Bytes may not be read
    /// or written meanwhile.
    pub(crate) fn finish_name(&self, entry: usize, writable: &Writable) -> Result<(), StoreError> {
        let _renaming = writable.names.lock();
        let path = self.full_name(entry);
        let is_due = writable.names.is_partial(entry) && !writable.parts.holds(entry);
        if let Some(partial) = part_name(&path).filter(|_| is_due) {
            writable.folder.rename_file(&partial, &path)?;
            writable.names.set_renamed(entry);
        }
        Ok(())
    }
}
