//! A peer that may send pieces.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Longest wait for an answer before another peer is asked. A later one still counts.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Most requests that a peer has to answer at once.
pub(super) const MAX_PENDING: usize = 4;

/// Backoff after a rejection or a time-out; twice as long after each further one in a row, and
/// [`MAX_DOUBLINGS`] times.
const BACKOFF: Duration = Duration::from_secs(2);

/// See [`BACKOFF`]: the longest is about four minutes.
const MAX_DOUBLINGS: u32 = 7;

/// One connection to a peer. A connection that is opened later has another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A peer and what it was asked for.
#[derive(Debug)]
pub(super) struct Peer {
    /// Length of the info dictionary that it announced, in bytes.
    pub size: usize,
    /// Pieces for which an answer is awaited, and since when.
    pending: BTreeMap<u32, Instant>,
    /// Pieces that were requested earlier, and may still arrive.
    late: BTreeSet<u32>,
    /// Rejections and time-outs since the last piece.
    failures: u32,
    /// End of the backoff.
    until: Option<Instant>,
}

impl Peer {
    pub fn new(size: usize) -> Self {
        Self {
            size,
            pending: BTreeMap::new(),
            late: BTreeSet::new(),
            failures: 0,
            until: None,
        }
    }

    /// Whether it may be asked for a piece now.
    pub fn is_free(&self) -> bool {
        self.until.is_none() && self.pending.len() < MAX_PENDING
    }

    /// Whether it is in a backoff.
    pub fn is_backed_off(&self) -> bool {
        self.until.is_some()
    }

    /// Order in which peers are asked for a piece: those that have not failed to send it before,
    /// then the least busy.
    pub fn rank(&self, piece: u32) -> (bool, usize, u32) {
        (
            self.late.contains(&piece),
            self.pending.len(),
            self.failures,
        )
    }

    pub fn ask(&mut self, piece: u32, now: Instant) {
        self.late.remove(&piece);
        self.pending.insert(piece, now);
    }

    /// Notes an answer. Returns whether the piece was requested from it, and not answered yet.
    pub fn answer(&mut self, piece: u32) -> bool {
        let is_late = self.late.remove(&piece);
        self.pending.remove(&piece).is_some() || is_late
    }

    /// It sent a piece.
    pub fn succeed(&mut self) {
        (self.failures, self.until) = (0, None);
    }

    /// It rejected a request or did not answer one in time.
    pub fn fail(&mut self, now: Instant) {
        self.until = Some(now + BACKOFF * (1 << self.failures.min(MAX_DOUBLINGS)));
        self.failures = self.failures.saturating_add(1);
    }

    /// Gives up waiting for all answers; they still count.
    pub fn release(&mut self) {
        self.late
            .extend(std::mem::take(&mut self.pending).into_keys());
    }

    /// Gives up waiting for answers that are late, and ends a backoff that is over. Returns the
    /// pieces to request from others.
    pub fn advance(&mut self, now: Instant) -> Vec<u32> {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
        }
        let pending = self.pending.iter();
        let late = pending.filter(|(_, asked)| now >= **asked + REQUEST_TIMEOUT);
        let late: Vec<u32> = late.map(|(piece, _)| *piece).collect();
        for piece in &late {
            self.pending.remove(piece);
            self.late.insert(*piece);
        }
        if !late.is_empty() {
            self.fail(now);
        }
        late
    }

    /// When [`Self::advance`] changes something.
    pub fn next_due(&self) -> Option<Instant> {
        let pending = self.pending.values().map(|asked| *asked + REQUEST_TIMEOUT);
        pending.chain(self.until).min()
    }
}
