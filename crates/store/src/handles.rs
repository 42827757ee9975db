//! Open files, a bounded number of them.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::StoreError;

/// Files held open at once: below the usual limit of 1024, with room for sockets and others.
pub(crate) const MAX_OPEN: usize = 128;

/// The files opened last, by entry.
#[derive(Debug, Default)]
pub(crate) struct Handles(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    /// Each with the time of its last use.
    files: HashMap<usize, (Arc<File>, u64)>,
    /// Counts uses.
    clock: u64,
}

impl Handles {
    /// The open file of an entry; opened by `open` if it is not open yet.
    pub fn get(
        &self,
        entry: usize,
        open: impl FnOnce() -> Result<File, StoreError>,
    ) -> Result<Arc<File>, StoreError> {
        let mut state = self.lock();
        state.clock += 1;
        let now = state.clock;
        if let Some((file, used)) = state.files.get_mut(&entry) {
            *used = now;
            return Ok(Arc::clone(file));
        }
        if state.files.len() >= MAX_OPEN {
            let oldest = state.files.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(entry, _)| *entry) {
                state.files.remove(&oldest);
            }
        }
        let file = Arc::new(open()?);
        state.files.insert(entry, (Arc::clone(&file), now));
        Ok(file)
    }

    /// Forgets the open file of an entry: the next use opens what is at its path then.
    pub fn close(&self, entry: usize) {
        self.lock().files.remove(&entry);
    }

    /// How many files are open.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.lock().files.len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
