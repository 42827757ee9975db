//! Which files were written to, so that their states are read again.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Files;

/// The files that were written to since that was last asked.
#[derive(Debug)]
pub(crate) struct Changes {
    /// By entry.
    own: Vec<AtomicBool>,
    /// The part file.
    parts: AtomicBool,
}

impl Changes {
    /// Of this number of entries, none of which was written to.
    pub fn new(entries: usize) -> Self {
        Self {
            own: (0..entries).map(|_| AtomicBool::new(false)).collect(),
            parts: AtomicBool::new(false),
        }
    }

    /// The own file of an entry was written to.
    pub fn note(&self, entry: usize) {
        self.own[entry].store(true, Ordering::SeqCst);
    }

    /// The part file was written to.
    pub fn note_parts(&self) {
        self.parts.store(true, Ordering::SeqCst);
    }
}

impl Files {
    /// The file that has the bytes of an entry was written to.
    pub(super) fn note_change(&self, entry: usize) {
        if let Some(writable) = &self.writable {
            match writable.parts.holds(entry) {
                true => writable.changes.note_parts(),
                false => writable.changes.note(entry),
            }
        }
    }

    /// The entries whose files were written to since the last call. Writes that are under way are for the next
    /// call.
    pub(crate) fn take_written(&self) -> Vec<usize> {
        let Some(writable) = &self.writable else {
            return Vec::new();
        };
        let changes = &writable.changes;
        let parts = changes.parts.swap(false, Ordering::SeqCst);
        let entries = self.layout().on_disk().map(|(entry, _)| entry);
        let is_written = |entry: &usize| {
            let own = changes.own[*entry].swap(false, Ordering::SeqCst);
            own || parts && writable.parts.holds(*entry)
        };
        entries.filter(is_written).collect()
    }

    /// Has the next call return these entries again.
    pub(crate) fn put_written(&self, entries: &[usize]) {
        if let Some(writable) = &self.writable {
            entries
                .iter()
                .for_each(|entry| writable.changes.note(*entry));
        }
    }
}
