//! Totals of a torrent's work so far.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::conn::{Average, Conn};
use crate::bitfield::Bitfield;
use crate::peer::Traffic;
use crate::pieces::Pieces;
use crate::progress::{ChangedFile, PathSummary, Progress, SeedProgress};

/// Time between two reports of progress.
const EVERY: Duration = Duration::from_millis(95);

/// Most paths whose totals are listed one by one. Anybody can connect, send a block and leave, as often
/// as they like.
const MAX_PATHS: usize = 1000;

/// Where progress is reported.
#[derive(Debug)]
pub(crate) enum Reporter {
    Download(watch::Sender<Progress>),
    Seed(watch::Sender<SeedProgress>),
}

/// Bytes of blocks sent over connections that are no longer open. The task of such a connection may
/// have written a block that it has not counted yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uploaded {
    /// Over those whose tasks have ended.
    ended: u64,
    /// The counters of the others.
    ending: Vec<Arc<Traffic>>,
}

impl Uploaded {
    /// What it is at a moment: `bytes`.
    pub(super) fn at(bytes: u64) -> Self {
        Self {
            ended: bytes,
            ending: Vec::new(),
        }
    }

    /// Adds a connection that is closed.
    fn leave(&mut self, traffic: Arc<Traffic>) {
        // Nobody else counts there any more.
        for traffic in self
            .ending
            .extract_if(.., |one| Arc::strong_count(one) == 1)
        {
            self.ended += traffic.uploaded.load(Ordering::Acquire);
        }
        self.ending.push(traffic);
    }

    /// All bytes so far.
    pub fn bytes(&self) -> u64 {
        let ending = self.ending.iter();
        let ending = ending.map(|traffic| traffic.uploaded.load(Ordering::Acquire));
        self.ended + ending.sum::<u64>()
    }
}

/// Totals since the start.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub total_bytes: u64,
    pub resumed_bytes: u64,
    pub verified_bytes: u64,
    pub fetched_bytes: u64,
    pub wasted_bytes: u64,
    /// Connections since the start.
    pub connections: u64,
    /// What each path carried, over connections that have ended: at most [`MAX_PATHS`], about those that
    /// carried most.
    pub paths: Vec<PathSummary>,
    /// Bytes over all others together.
    pub other_bytes: u64,
    /// Files that changed under a seeder, in their latest state.
    pub changed: Vec<ChangedFile>,
    started: Instant,
    ended: Option<Instant>,
    shown_at: Instant,
    down: Average,
    /// Bytes of blocks sent, over connections that are no longer open.
    pub uploaded: Uploaded,
}

impl Tally {
    pub(super) fn new(pieces: Pieces, verified: &Bitfield, now: Instant) -> Self {
        let bytes = verified.iter().map(|piece| u64::from(pieces.size(piece)));
        let resumed_bytes = bytes.sum();
        Self {
            total_bytes: pieces.total,
            resumed_bytes,
            verified_bytes: resumed_bytes,
            fetched_bytes: 0,
            wasted_bytes: 0,
            connections: 0,
            paths: Vec::new(),
            other_bytes: 0,
            changed: Vec::new(),
            started: now,
            ended: None,
            shown_at: now,
            down: Average::default(),
            uploaded: Uploaded::default(),
        }
    }

    /// Bytes of blocks per second, all connections together, averaged over about a second.
    pub(super) fn total_rate(&self) -> f64 {
        self.down.rate
    }

    /// If a report is due, or `at_once`, advances the average rate and returns the time since the
    /// last report.
    pub(super) fn show(&mut self, now: Instant, at_once: bool) -> Option<Duration> {
        let elapsed = now.saturating_duration_since(self.shown_at);
        if elapsed < EVERY && !at_once {
            return None;
        }
        self.shown_at = now;
        self.down.advance(self.fetched_bytes, elapsed);
        Some(elapsed)
    }

    /// Time from the start to the end of the download, or to `now` if it has not ended.
    pub fn elapsed(&self, now: Instant) -> Duration {
        let end = self.ended.unwrap_or(now);
        end.saturating_duration_since(self.started)
    }

    /// Stops the clock: everything is verified, or nothing more will be.
    pub(super) fn end(&mut self, now: Instant) {
        self.ended = Some(now);
    }

    /// Adds the totals of a connection that has ended.
    pub(super) fn leave(&mut self, conn: &Conn) {
        self.uploaded.leave(Arc::clone(&conn.traffic));
        if conn.remote().is_none() && conn.bytes > 0 {
            self.carried(accepted_summary(conn));
        }
    }

    pub(super) fn carried(&mut self, summary: PathSummary) {
        let is_same = |path: &PathSummary| {
            path.peer == summary.peer && path.fingerprint == summary.fingerprint
        };
        if let Some(at) = self.paths.iter().position(is_same) {
            let known = &mut self.paths[at];
            known.bytes += summary.bytes;
            known.hops = known.hops.max(summary.hops);
            if known.interfaces.is_empty() {
                known.interfaces = summary.interfaces;
            }
        } else if self.paths.len() < MAX_PATHS {
            self.paths.push(summary);
        } else {
            let least = self.paths.iter_mut().min_by_key(|path| path.bytes);
            self.other_bytes += match least.filter(|least| least.bytes < summary.bytes) {
                Some(least) => std::mem::replace(least, summary).bytes,
                None => summary.bytes,
            };
        }
    }
}

/// What a connection that a peer opened carried.
pub(super) fn accepted_summary(conn: &Conn) -> PathSummary {
    PathSummary {
        peer: conn.connection.peer(),
        fingerprint: conn.connection.fingerprint(),
        hops: conn.serving.hops().unwrap_or(0),
        interfaces: conn.serving.interfaces(),
        bytes: conn.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_bounded_and_their_bytes_are_all_counted() {
        let pieces = Pieces {
            length: 1,
            total: 1,
        };
        let mut tally = Tally::new(pieces, &Bitfield::empty(1), Instant::now());
        let mut rng = fastrand::Rng::with_seed(7);
        let mut sum = 0;
        for number in 0..3 * MAX_PATHS as u64 {
            let bytes = rng.u64(1..1000) + if number == 5 { 1_000_000 } else { 0 };
            sum += bytes;
            let mut fingerprint = [0; 32];
            fingerprint[..8].copy_from_slice(&number.to_be_bytes());
            tally.carried(PathSummary {
                peer: "10.0.0.1:6881".parse().unwrap(),
                fingerprint: fingerprint.into(),
                hops: 2,
                interfaces: Vec::new(),
                bytes,
            });
        }
        assert_eq!(tally.paths.len(), MAX_PATHS);
        let listed: u64 = tally.paths.iter().map(|path| path.bytes).sum();
        assert_eq!(listed + tally.other_bytes, sum);
        assert!(tally.paths.iter().any(|path| path.bytes >= 1_000_000));
    }

    #[test]
    fn blocks_counted_after_the_connection_was_closed_count() {
        let traffic: Vec<Arc<Traffic>> = (0..3).map(|_| Arc::default()).collect();
        let mut uploaded = Uploaded::default();
        for one in &traffic {
            one.uploaded.fetch_add(10, Ordering::Relaxed);
            uploaded.leave(Arc::clone(one));
            one.uploaded.fetch_add(1, Ordering::Relaxed);
        }
        assert_eq!(uploaded.bytes(), 33);
        // Their tasks end.
        drop(traffic);
        uploaded.leave(Arc::default());
        assert_eq!((uploaded.bytes(), uploaded.ending.len()), (33, 1));
    }
}
