//! The entries that a source skips.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::content::skip::Skipped;

/// The entries that a source skips, in the order in which that was found.
#[derive(Debug, Default)]
pub(super) struct Skips {
    /// Whether there are any: most transfers have none.
    any: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Debug, Default)]
struct Found {
    list: Vec<Skipped>,
    entries: HashSet<usize>,
}

impl Skips {
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry. The first reason counts.
    pub fn add(&self, skipped: Skipped) {
        let mut found = self.lock();
        if found.entries.insert(skipped.entry) {
            found.list.push(skipped);
        }
        self.any.store(true, Ordering::Release);
    }

    /// Whether an entry is skipped.
    pub fn contains(&self, entry: usize) -> bool {
        self.any.load(Ordering::Acquire) && self.lock().entries.contains(&entry)
    }

    /// All but the first `known`.
    pub fn since(&self, known: usize) -> Vec<Skipped> {
        match self.any.load(Ordering::Acquire) {
            true => self.lock().list.get(known..).unwrap_or_default().to_vec(),
            false => Vec::new(),
        }
    }
}
