//! Checks that files being served are still those that were verified.
//!
//! A file whose length, time of change or identity differs from when its ranges were hashed is no
//! longer trusted: each of its ranges is hashed again before it is served. Once one range is wrong,
//! all ranges not proven yet are withdrawn, so that there is one message about them, and are
//! restored one by one as they prove right.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::StoreError;
use crate::files::Files;
use crate::range::{Ranges, overlapping};
use crate::stamp::{Stamp, Stamps};

/// Scans after which a file that keeps changing is hashed all the same.
const MAX_WAITS: u32 = 10;

/// Attempts to read bytes of a file that keeps changing.
const ATTEMPTS: u32 = 3;

/// A file that differs from the verified one, wholly or in part, or is valid again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path.
    pub path: PathBuf,
    /// Number of its ranges that are withdrawn; 0 if it is valid again.
    pub lost: u32,
    /// Number of its ranges, without those that were never verified.
    pub ranges: u32,
    /// A fault other than its content: it has another length, or cannot be read.
    pub error: Option<String>,
}

/// Changes to the content since the last report.
#[derive(Debug, Default, PartialEq)]
pub struct News {
    /// Ranges that were withdrawn.
    pub withdrawn: Vec<u32>,
    /// Ranges that had been withdrawn and are right again.
    pub restored: Vec<u32>,
    /// Files with more or fewer withdrawn ranges than before.
    pub changed: Vec<ChangedFile>,
}

/// Watches files whose ranges were verified.
#[derive(Debug)]
pub struct Watch<R> {
    files: Arc<Files>,
    ranges: Arc<R>,
    /// Whether each range was verified; the others are not served, and not watched.
    verified: Vec<bool>,
    state: Mutex<WatchState>,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct WatchState {
    /// The states of the files for which the ranges were hashed, or will be.
    stamps: Vec<Option<Stamp>>,
    /// Ranges whose file changed since they were hashed.
    unproven: BTreeSet<u32>,
    /// Ranges that are not served until they prove right.
    withdrawn: BTreeSet<u32>,
    /// The changes of each file.
    suspects: Vec<Suspect>,
    /// Scans in a row that found a change.
    waits: u32,
    news: News,
}

/// The changes found in a file; the default is none.
#[derive(Debug, Clone, Default)]
struct Suspect {
    changed: bool,
    error: Option<String>,
    /// Ranges last reported as lost.
    reported: u32,
}

impl<R: Ranges> Watch<R> {
    /// Watches those ranges of `files` for which `is_verified` is true; `stamps` were taken before
    /// they were verified.
    pub fn new(
        files: Arc<Files>,
        ranges: Arc<R>,
        stamps: Stamps,
        is_verified: impl Fn(u32) -> bool,
    ) -> Self {
        let state = WatchState {
            suspects: vec![Suspect::default(); stamps.0.len()],
            stamps: stamps.0,
            ..WatchState::default()
        };
        Self {
            verified: (0..ranges.count()).map(is_verified).collect(),
            files,
            ranges,
            state: Mutex::new(state),
            closed: AtomicBool::new(false),
        }
    }

    /// The changes since the last call; `None` if there are none.
    pub fn take_news(&self) -> Option<News> {
        let news = std::mem::take(&mut self.lock().news);
        (news != News::default()).then_some(news)
    }

    /// Whether a range may be served.
    pub fn is_offered(&self, range: u32) -> bool {
        !self.lock().withdrawn.contains(&range)
    }

    /// Whether files have changed and not all of their ranges are hashed again yet.
    pub fn is_verifying(&self) -> bool {
        !self.lock().unproven.is_empty()
    }

    /// Makes a scan under way end early.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether bytes that were just read are those that were verified: their files are in the same
    /// state as then.
    pub fn is_current(&self, read: &[Range<u64>]) -> bool {
        let mut entries: Vec<_> = read
            .iter()
            .flat_map(|bytes| self.entries_of(bytes))
            .collect();
        entries.dedup();
        // The system is not asked under the lock. A change that is noticed meanwhile makes the stamps
        // differ.
        let stamps = entries
            .into_iter()
            .map(|entry| (entry, self.files.stamp_of_open(entry)));
        let stamps: Vec<_> = stamps.collect();
        let state = self.lock();
        let is_proven =
            |range| !state.unproven.contains(&range) && !state.withdrawn.contains(&range);
        read.iter()
            .all(|bytes| overlapping(&*self.ranges, bytes).all(is_proven))
            && stamps
                .iter()
                .all(|(entry, stamp)| *stamp == state.stamps[*entry])
    }

    /// Reads bytes from position `start` on that may have changed since they were verified; `false`
    /// if they are no longer right. Blocks while their ranges are hashed.
    pub fn read(&self, start: u64, buffer: &mut [u8]) -> bool {
        let bytes = start..start + buffer.len() as u64;
        for _ in 0..ATTEMPTS {
            let read = self.files.read_at(start, buffer);
            self.look_at(self.entries_of(&bytes));
            if read.is_ok() && self.is_current(slice::from_ref(&bytes)) {
                return true;
            }
            let mut ranges = overlapping(&*self.ranges, &bytes);
            if !ranges.all(|range| !self.is_lost(range) && self.prove(range)) {
                return false;
            }
        }
        false
    }

    /// Checks all files, hashes ranges that changed, and reports the files that are not right.
    /// Blocks until done.
    pub fn scan(&self) {
        let is_changing = self.look_at(self.files.layout().on_disk().map(|(index, _)| index));
        let unproven: Vec<u32> = {
            let mut state = self.lock();
            state.waits += 1;
            // A file is probably still being written.
            if is_changing && state.waits < MAX_WAITS {
                return;
            }
            state.waits = 0;
            state.unproven.iter().copied().collect()
        };
        for range in unproven {
            if self.closed.load(Ordering::Relaxed) {
                return;
            }
            self.prove(range);
        }
        self.report();
    }

    /// Compares files with their last known state and updates that state; returns whether any file
    /// differs.
    fn look_at(&self, entries: impl Iterator<Item = usize>) -> bool {
        let mut changed = false;
        for entry in entries {
            let stamp = self.files.stamp_on_disk(entry);
            if self.lock().stamps[entry] == stamp {
                continue;
            }
            changed = true;
            // Before its new state counts as known: what is hashed from then on is of the file that is
            // at its path.
            self.files.close(entry);
            let mut state = self.lock();
            state.stamps[entry] = stamp;
            state.suspects[entry].changed = true;
            state.unproven.extend(self.verified_in(entry));
        }
        changed
    }

    /// Hashes a range as it is now and returns whether it is valid. If not, withdraws it together
    /// with all others that are not proven.
    fn prove(&self, range: u32) -> bool {
        let bytes = self.ranges.range(range);
        self.look_at(self.entries_of(&bytes));
        let hash = self
            .files
            .hash(self.ranges.hasher(range), bytes.clone(), &mut Vec::new());
        let is_changing = self.look_at(self.entries_of(&bytes));
        let expected = self.ranges.expected(range);
        let is_right = matches!(&hash, Ok(hash) if expected.as_ref() == Some(hash));
        let mut guard = self.lock();
        let state = &mut *guard;
        if !is_changing {
            state.unproven.remove(&range);
        }
        if is_right && !is_changing {
            if state.withdrawn.remove(&range) {
                state.news.restored.push(range);
            }
            return true;
        }
        for entry in self.entries_of(&bytes) {
            let suspect = &mut state.suspects[entry];
            suspect.changed = true;
            suspect.error = self.trouble(entry, state.stamps[entry], hash.as_ref().err());
        }
        for range in state.unproven.iter().copied().chain([range]) {
            if state.withdrawn.insert(range) {
                state.news.withdrawn.push(range);
            }
        }
        false
    }

    /// A fault of a file other than its content.
    fn trouble(
        &self,
        entry: usize,
        stamp: Option<Stamp>,
        error: Option<&StoreError>,
    ) -> Option<String> {
        let expected = self.files.layout().entries[entry].length;
        let is_own = !self.files.is_in_parts(entry);
        let wrong = stamp.filter(|stamp| is_own && stamp.length != expected);
        let wrong = wrong.map(|stamp| StoreError::WrongLength {
            path: self.files.path_of(entry),
            found: stamp.length,
            expected,
        });
        Some(wrong.as_ref().or(error)?.to_string())
    }

    /// Reports files with more or fewer withdrawn ranges than last reported.
    fn report(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        for (entry, suspect) in state.suspects.iter_mut().enumerate() {
            if !std::mem::take(&mut suspect.changed) {
                continue;
            }
            let lost = state.withdrawn.range(self.ranges_of(entry)).count() as u32;
            let error = suspect.error.take();
            if lost == suspect.reported {
                continue;
            }
            suspect.reported = lost;
            state.news.changed.push(ChangedFile {
                path: self.files.path_of(entry),
                lost,
                ranges: self.verified_in(entry).count() as u32,
                error,
            });
        }
    }

    /// Whether a range was wrong when last hashed.
    fn is_lost(&self, range: u32) -> bool {
        let state = self.lock();
        !state.unproven.contains(&range) && state.withdrawn.contains(&range)
    }

    /// The files that contain some of `bytes`.
    fn entries_of(&self, bytes: &Range<u64>) -> impl Iterator<Item = usize> + '_ {
        let spans = self.files.layout().spans_on_disk(bytes.clone());
        spans.map(|span| span.entry)
    }

    /// The ranges that have bytes in a file.
    fn ranges_of(&self, entry: usize) -> Range<u32> {
        overlapping(&*self.ranges, &self.files.layout().entries[entry].bytes())
    }

    /// Those of them that were verified.
    fn verified_in(&self, entry: usize) -> impl Iterator<Item = u32> + '_ {
        let ranges = self.ranges_of(entry);
        ranges.filter(|range| self.verified[*range as usize])
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
