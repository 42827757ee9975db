//! The state of one web seed.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_backoff::Backoff;

use super::places::Places;
use crate::picker::{ConnId, GroupId};
use crate::pipeline::Meter;
use crate::progress::WebSeedState;
use crate::wire::BLOCK;

/// Blocks of the first run: 1 MiB.
pub(super) const FIRST_RUN: usize = 64;

/// Blocks of a run: one costs a request, so it is of several seconds; what it asks for cannot be asked of
/// others meanwhile. The most is 32 MiB.
pub(super) const RUN_BLOCKS: std::ops::RangeInclusive<usize> = 16..=2048;

/// Seconds that a run takes at the rate of the one before.
const RUN_SECONDS: f64 = 4.0;

/// Pauses after failures in a row, of the whole server.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(300));

/// Pauses before a file that was not there is asked for again.
pub(super) const MISSING_PAUSES: (Duration, Duration) =
    (Duration::from_secs(20), Duration::from_secs(1800));

/// Longest pause that a server may ask for.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Time without a block after which others may take over all that was asked of it.
const SILENCE: Duration = Duration::from_secs(2);

/// A run, counted over all web seeds.
pub(crate) type RunId = u64;

/// Why a run was not fetched to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A file is not there, or is another one there.
    Missing {
        /// Its bytes, as part of the torrent's.
        file: Range<u64>,
        why: String,
    },
    /// The server has no time now.
    Busy {
        /// The time after which it may be asked again, if it says so.
        retry_after: Option<Duration>,
        why: String,
    },
    /// Anything else: it cannot be reached, is silent, or sends something else than was asked for.
    Failed(String),
}

/// What a web seed does.
#[derive(Debug)]
pub(super) enum State {
    /// It may be asked from this time on.
    Ready(Instant),
    Fetching(Fetching),
    /// It is never asked again.
    Dropped,
}

/// A run that is fetched.
#[derive(Debug)]
pub(super) struct Fetching {
    pub run: RunId,
    pub since: Instant,
    /// When a block last arrived, or it began.
    pub heard: Instant,
    /// Bytes that arrived.
    pub bytes: u64,
}

/// A web seed.
#[derive(Debug)]
pub(super) struct WebSeed {
    /// As the torrent names it.
    pub url: String,
    /// The connection that it is to the picker.
    pub conn: ConnId,
    pub group: GroupId,
    /// `None` if its URL cannot be asked for.
    pub places: Option<Arc<Places>>,
    pub state: State,
    pub backoff: Backoff,
    /// Files that were not there: their bytes, as part of the torrent's.
    pub missing: Vec<Range<u64>>,
    pub missing_backoff: Backoff,
    /// When all files are asked for again; `None` while none is missing.
    pub restore_at: Option<Instant>,
    /// Blocks of the next run.
    pub next_run: usize,
    pub meter: Meter,
    /// Bytes of blocks received.
    pub bytes: u64,
    /// Why the last run failed; `None` after one that did not.
    pub last_error: Option<String>,
}

impl WebSeed {
    /// Whether it may be asked for a run now.
    pub fn is_ready(&self, now: Instant) -> bool {
        matches!(self.state, State::Ready(from) if from <= now)
    }

    pub fn is_dropped(&self) -> bool {
        matches!(self.state, State::Dropped)
    }

    /// Whether it is fetching this run.
    pub fn fetches(&mut self, run: RunId) -> Option<&mut Fetching> {
        match &mut self.state {
            State::Fetching(fetching) if fetching.run == run => Some(fetching),
            _ => None,
        }
    }

    /// Ends a run, and sizes the next one by its rate. A run of which nothing arrived says nothing about it.
    pub fn end(&mut self, pause: Duration, now: Instant) {
        if let State::Fetching(run) = &self.state
            && run.bytes > 0
        {
            let time = now.saturating_duration_since(run.since).as_secs_f64();
            let rate = run.bytes as f64 / time.max(0.01);
            let blocks = (rate * RUN_SECONDS / f64::from(BLOCK)) as usize;
            // It may have been short by chance: twice the size at most.
            let most = (self.next_run * 2).min(*RUN_BLOCKS.end());
            self.next_run = blocks.clamp(*RUN_BLOCKS.start(), most.max(*RUN_BLOCKS.start()));
        }
        if !self.is_dropped() {
            self.state = State::Ready(now + pause);
        }
    }

    /// Blocks that it delivers within about a second; none while it is silent.
    pub fn imminent(&self, now: Instant) -> usize {
        let State::Fetching(run) = &self.state else {
            return 0;
        };
        match now.saturating_duration_since(run.heard) > SILENCE {
            true => 0,
            false => ((self.meter.rate(now) / f64::from(BLOCK)) as usize).max(2),
        }
    }

    /// What it does, to be shown.
    pub fn shown(&self, now: Instant) -> WebSeedState {
        match &self.state {
            State::Dropped => WebSeedState::Dropped,
            State::Fetching(_) => WebSeedState::Fetching,
            State::Ready(from) if *from > now => WebSeedState::Waiting,
            State::Ready(_) => WebSeedState::Idle,
        }
    }
}
