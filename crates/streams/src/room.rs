//! What the streams of a session may keep of what arrives, all together.
//!
//! Each stream has room for [`MIN_ROOM`], which nobody can take from it. What it has beyond that is set
//! aside from a sum that the streams share, and stays so until the stream ends: the other side was
//! promised it, and may use it at any time. As no stream gets more than a part of what is left, those
//! that are not read leave something for those that are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What every stream has room for from the beginning, in bytes. Part of the protocol.
pub(super) const MIN_ROOM: u64 = 32 << 10;
/// What the streams of a session share beyond that, in bytes.
const SHARED_ROOM: u64 = 128 << 20;
/// The part of what is left that one stream may have: the first one 16 MiB, after ten of these another
/// one 4 MiB.
const PART: u64 = 8;
/// While less than this part is left, new streams get nothing before they are read.
const RESERVE_PART: u64 = 2;
/// Most runs of bytes behind gaps, of all streams. Each takes some memory beside its bytes.
const MAX_RUNS: usize = 64 << 10;

/// The room of a session. Cloning shares it.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<Left>);

#[derive(Debug)]
struct Left {
    all: u64,
    bytes: AtomicU64,
    runs: AtomicUsize,
}

/// What a stream has of it. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Share {
    room: Room,
    bytes: u64,
    runs: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self::new(SHARED_ROOM)
    }
}

impl Room {
    /// Room for `all` bytes beyond the least of each stream.
    pub(super) fn new(all: u64) -> Self {
        Self(Arc::new(Left {
            all,
            bytes: AtomicU64::new(all),
            runs: AtomicUsize::new(0),
        }))
    }

    /// The least share.
    pub(super) fn share(&self) -> Share {
        Share {
            room: self.clone(),
            bytes: 0,
            runs: 0,
        }
    }

    /// What is not set aside, in bytes.
    pub(super) fn left(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl Share {
    /// What the stream has room for, in bytes.
    pub(super) fn window(&self) -> u64 {
        MIN_ROOM + self.bytes
    }

    /// Takes as many as `bytes` more for a stream that was not read yet.
    pub(super) fn begin(&mut self, bytes: u64) {
        if self.room.left() > self.room.0.all / RESERVE_PART {
            self.grow(bytes);
        }
    }

    /// Takes as many as `bytes` more.
    pub(super) fn grow(&mut self, bytes: u64) {
        // Only the session itself takes some, so that nothing changes in between.
        let left = self.room.left();
        let most = ((left + self.bytes) / PART).saturating_sub(self.bytes);
        let taken = bytes.min(most);
        self.room.0.bytes.store(left - taken, Ordering::Relaxed);
        self.bytes += taken;
    }

    /// Notes how many runs the stream has behind gaps.
    pub(super) fn set_runs(&mut self, runs: usize) {
        let all = &self.room.0.runs;
        all.fetch_add(runs, Ordering::Relaxed);
        all.fetch_sub(self.runs, Ordering::Relaxed);
        self.runs = runs;
    }

    /// Whether the streams have more runs than an honest peer makes.
    pub(super) fn has_too_many_runs(&self) -> bool {
        self.room.0.runs.load(Ordering::Relaxed) > MAX_RUNS
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.0.bytes.fetch_add(self.bytes, Ordering::Relaxed);
        self.room.0.runs.fetch_sub(self.runs, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
