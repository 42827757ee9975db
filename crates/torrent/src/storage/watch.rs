//! Whether the files under a seeder are still those that were verified.
//!
//! A file whose length, time of change or identity is other than when its pieces were hashed proves
//! nothing any more: each of its pieces is hashed again before it is sent. Once one of them is
//! wrong, all that are not proven yet are withdrawn, so that peers are told once, and offered again
//! one by one as they prove right.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::check::hash_piece;
use super::error::StorageError;
use super::files::Files;
use crate::bitfield::Bitfield;
use crate::metainfo::Metainfo;
use crate::wire::Request;

/// A file that goes on changing is looked at in full after so many scans all the same.
const MOST_WAITS: u32 = 10;

/// Tries to read a block whose file changes meanwhile.
const TRIES: u32 = 3;

/// A file that is not, or not wholly, what the torrent describes, or is so again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Pieces that touch it and are not offered any more.
    pub lost: u32,
    /// Pieces that touch it.
    pub pieces: u32,
    /// What is wrong with it, apart from its content: it has another length, or cannot be read.
    pub error: Option<String>,
}

impl fmt::Display for ChangedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, lost, pieces) = (self.path.display(), self.lost, self.pieces);
        match (&self.error, lost) {
            (_, 0) => write!(f, "{path} is right again: all its pieces are offered"),
            (None, _) => write!(
                f,
                "{path} has changed: {lost} of its {pieces} pieces are not offered any more"
            ),
            (Some(error), _) => write!(
                f,
                "{error}: {lost} of its {pieces} pieces are not offered any more"
            ),
        }
    }
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: (i64, i64),
    identity: (u64, u64),
}

impl From<std::fs::Metadata> for Stamp {
    fn from(metadata: std::fs::Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            identity: (metadata.dev(), metadata.ino()),
        }
    }
}

/// The state of every file, in the order of the layout; `None` where there is none.
pub(crate) type Stamps = Vec<Option<Stamp>>;

/// Watches over verified files.
#[derive(Debug)]
pub(crate) struct ContentWatch {
    files: Arc<Files>,
    metainfo: Arc<Metainfo>,
    /// The pieces that are offered, shared with the connections.
    offered: Arc<RwLock<Bitfield>>,
    state: Mutex<State>,
    has_news: AtomicBool,
    closed: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// As they were when the pieces were last hashed, or are to be.
    stamps: Stamps,
    /// Pieces whose file changed since they were hashed.
    unproven: Bitfield,
    /// What is known of files that changed.
    suspects: Vec<Suspect>,
    /// Scans in a row that found a change.
    waits: u32,
    news: News,
}

/// What was found out about a file; the default is that it never changed.
#[derive(Debug, Clone, Default)]
struct Suspect {
    changed: bool,
    error: Option<String>,
    /// What was last reported as lost.
    reported: u32,
}

/// What became of the content since last asked.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Pieces that are not offered any more.
    pub withdrawn: Vec<u32>,
    /// Pieces that were withdrawn and are right.
    pub restored: Vec<u32>,
    pub changed: Vec<ChangedFile>,
}

impl ContentWatch {
    /// Over files of which `offered` is verified; `stamps` were taken before that.
    pub fn new(
        files: Arc<Files>,
        metainfo: Arc<Metainfo>,
        stamps: Stamps,
        offered: Arc<RwLock<Bitfield>>,
    ) -> Self {
        let state = State {
            unproven: Bitfield::empty(metainfo.piece_count()),
            suspects: vec![Suspect::default(); stamps.len()],
            stamps,
            waits: 0,
            news: News::default(),
        };
        Self {
            files,
            metainfo,
            offered,
            state: Mutex::new(state),
            has_news: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// What became of the content since last asked.
    pub fn take_news(&self) -> Option<News> {
        let new = self.has_news.swap(false, Ordering::Relaxed);
        new.then(|| std::mem::take(&mut self.lock().news))
    }

    /// Lets a scan under way end early.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether blocks just read are what was verified: their files are as they were then.
    pub fn is_current(&self, requests: &[Request]) -> bool {
        let state = self.lock();
        let mut before = None;
        requests.iter().all(|request| {
            !state.unproven.has(request.piece)
                && self.is_offered(request.piece)
                && self.entries_of(*request).all(|entry| {
                    let same = before == Some(entry);
                    before = Some(entry);
                    same || self.files.stamp_of_open(entry) == state.stamps[entry]
                })
        })
    }

    /// Reads a block of which it is not known whether it is right; `false` when it is not there any
    /// more. Blocks for as long as its piece takes to hash.
    pub fn read(&self, request: Request, data: &mut [u8]) -> bool {
        for _ in 0..TRIES {
            let start = self.files.layout().piece_start(request.piece) + u64::from(request.begin);
            let read = self.files.read_at(start, data);
            self.look_at(self.entries_of(request));
            if read.is_ok() && self.is_current(&[request]) {
                return true;
            }
            if self.is_lost(request.piece) {
                return false;
            }
            if !self.prove(request.piece) {
                return false;
            }
        }
        false
    }

    /// Looks at all files, hashes what changed, and reports the files that are not right. Blocks
    /// for as long as that takes.
    pub fn scan(&self) {
        let entries = self.files.layout().entries().iter().enumerate();
        let files = entries.filter(|(_, entry)| !entry.padding);
        let changing = self.look_at(files.map(|(index, _)| index));
        let unproven: Vec<u32> = {
            let mut state = self.lock();
            state.waits += 1;
            // It is likely still being written.
            if changing && state.waits < MOST_WAITS {
                return;
            }
            state.waits = 0;
            state.unproven.iter().collect()
        };
        for piece in unproven {
            if self.closed.load(Ordering::Relaxed) {
                return;
            }
            self.prove(piece);
        }
        self.report();
    }

    /// Compares files with what they were; whether any is other.
    fn look_at(&self, entries: impl Iterator<Item = usize>) -> bool {
        let mut changed = false;
        for entry in entries {
            let stamp = self.files.stamp_on_disk(entry);
            let mut state = self.lock();
            if state.stamps[entry] == stamp {
                continue;
            }
            changed = true;
            self.files.close(entry);
            state.stamps[entry] = stamp;
            state.suspects[entry].changed = true;
            for piece in self.pieces_of(entry) {
                state.unproven.set(piece);
            }
        }
        changed
    }

    /// Hashes a piece as it is now; whether it is right. If not, it is withdrawn with all others
    /// that are not proven.
    fn prove(&self, piece: u32) -> bool {
        let size = self.metainfo.piece_size(piece);
        let whole = Request {
            piece,
            begin: 0,
            length: size,
        };
        self.look_at(self.entries_of(whole));
        let hash = hash_piece(&self.files, piece);
        let changing = self.look_at(self.entries_of(whole));
        let right = matches!(&hash, Ok(hash) if self.metainfo.piece_hash(piece) == Some(*hash));
        let mut guard = self.lock();
        let state = &mut *guard;
        if !changing {
            state.unproven.clear(piece);
        }
        let mut offered = self.offered.write().unwrap_or_else(PoisonError::into_inner);
        if right && !changing {
            if offered.set(piece) {
                state.news.restored.push(piece);
                self.has_news.store(true, Ordering::Relaxed);
            }
            return true;
        }
        for entry in self.entries_of(whole) {
            let suspect = &mut state.suspects[entry];
            suspect.changed = true;
            suspect.error = self.trouble(entry, state.stamps[entry], hash.as_ref().err());
        }
        let unproven: Vec<u32> = state.unproven.iter().chain([piece]).collect();
        for piece in unproven {
            if offered.clear(piece) {
                state.news.withdrawn.push(piece);
                self.has_news.store(true, Ordering::Relaxed);
            }
        }
        false
    }

    /// What is wrong with a file, apart from its content.
    fn trouble(
        &self,
        entry: usize,
        stamp: Option<Stamp>,
        error: Option<&StorageError>,
    ) -> Option<String> {
        let expected = self.files.layout().entries()[entry].length;
        match stamp {
            Some(Stamp { length, .. }) if length != expected => {
                let wrong = StorageError::WrongLength {
                    path: self.files.path_of(entry),
                    found: length,
                    expected,
                };
                Some(wrong.to_string())
            }
            _ => error.map(StorageError::to_string),
        }
    }

    /// Reports the files of which more or less is offered than last reported.
    fn report(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        for (entry, suspect) in state.suspects.iter_mut().enumerate() {
            if !std::mem::take(&mut suspect.changed) {
                continue;
            }
            let pieces: Vec<u32> = self.pieces_of(entry).collect();
            let lost = pieces.iter().filter(|piece| !self.is_offered(**piece));
            let lost = lost.count() as u32;
            let error = suspect.error.take();
            if lost == suspect.reported {
                continue;
            }
            suspect.reported = lost;
            state.news.changed.push(ChangedFile {
                path: self.files.path_of(entry),
                lost,
                pieces: pieces.len() as u32,
                error,
            });
            self.has_news.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a piece was wrong when last hashed.
    fn is_lost(&self, piece: u32) -> bool {
        !self.lock().unproven.has(piece) && !self.is_offered(piece)
    }

    fn is_offered(&self, piece: u32) -> bool {
        let offered = self.offered.read();
        offered.unwrap_or_else(PoisonError::into_inner).has(piece)
    }

    /// The files that a block touches.
    fn entries_of(&self, request: Request) -> impl Iterator<Item = usize> + '_ {
        let layout = self.files.layout();
        let start = layout.piece_start(request.piece) + u64::from(request.begin);
        let spans = layout.spans(start, u64::from(request.length));
        let entries = spans.map(|span| span.entry);
        entries.filter(|entry| !layout.entries()[*entry].padding)
    }

    /// The pieces that a file touches.
    fn pieces_of(&self, entry: usize) -> impl Iterator<Item = u32> + use<> {
        let entry = &self.files.layout().entries()[entry];
        let length = u64::from(self.metainfo.piece_length());
        let end = (entry.start + entry.length).div_ceil(length);
        let first = if entry.length == 0 {
            end
        } else {
            entry.start / length
        };
        first as u32..end as u32
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// The state of every file now.
    pub fn stamps(&self) -> Stamps {
        let entries = self.layout().entries().iter().enumerate();
        let stamp = |(index, entry): (usize, &super::layout::Entry)| {
            self.stamp_on_disk(index).filter(|_| !entry.padding)
        };
        entries.map(stamp).collect()
    }

    fn stamp_on_disk(&self, entry: usize) -> Option<Stamp> {
        let metadata = std::fs::metadata(self.path_of(entry));
        metadata.ok().map(Stamp::from)
    }

    /// Of the file that is open for reading, which may not be at its path any more.
    fn stamp_of_open(&self, entry: usize) -> Option<Stamp> {
        let metadata = self.handle(entry).ok()?.metadata();
        metadata.ok().map(Stamp::from)
    }
}

/// Reads blocks that may have changed since they were verified, each of them whole or not at all.
pub(crate) fn read_checked(
    content: &ContentWatch,
    requests: &[Request],
) -> Vec<(Request, Vec<u8>)> {
    let read = requests.iter().filter_map(|request| {
        let mut data = vec![0; request.length as usize];
        content
            .read(*request, &mut data)
            .then_some((*request, data))
    });
    read.collect()
}

#[cfg(test)]
mod tests;
