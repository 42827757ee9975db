//! A bounded cache of open files.

use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::StoreError;

/// Most files held open at once: below the usual limit of 1024, with room for sockets and others.
pub(crate) const MAX_OPEN: usize = 128;

/// The files (or folders) used most recently, by entry; the last one used is at the end.
#[derive(Debug)]
pub struct Handles<T = File>(Mutex<Vec<(usize, Arc<T>)>>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Handles<T> {
    /// The open file of an entry; `open` opens it if it is not in the cache.
    ///
    /// # Errors
    /// If `open` fails.
    pub fn get(
        &self,
        entry: usize,
        open: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Arc<T>, StoreError> {
        self.get_fitting(entry, |_| true, open)
    }

    /// The open file of an entry; `open` opens it if it is not in the cache, or if the one in the
    /// cache does not fit, which is then replaced.
    ///
    /// # Errors
    /// If `open` fails.
    pub(crate) fn get_fitting(
        &self,
        entry: usize,
        fits: impl FnOnce(&T) -> bool,
        open: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Arc<T>, StoreError> {
        let mut files = self.lock();
        let cached = files.iter().rposition(|(of, _)| *of == entry);
        let cached = cached.map(|at| files.remove(at).1);
        let file = match cached.filter(|file| fits(file)) {
            Some(file) => file,
            None => Arc::new(open()?),
        };
        let evicted = (files.len() >= MAX_OPEN).then(|| files.remove(0));
        files.push((entry, Arc::clone(&file)));
        drop(files);
        // Closed without the lock.
        drop(evicted);
        Ok(file)
    }

    /// Removes an entry from the cache: the next use opens the file that is then at its path.
    pub fn close(&self, entry: usize) {
        let mut files = self.lock();
        let cached = files.iter().rposition(|(of, _)| *of == entry);
        let closed = cached.map(|at| files.remove(at));
        drop(files);
        // Without the lock.
        drop(closed);
    }

    /// Removes all entries from the cache.
    pub(crate) fn clear(&self) {
        let closed = std::mem::take(&mut *self.lock());
        drop(closed);
    }

    /// Number of open files.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Arc<T>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
