//! Passing on hashes of version 2 to peers that have a magnet link alone (BEP 52).

use std::time::{Duration, Instant};

use super::state::Swarm;
use crate::picker::ConnId;
use crate::transport::Transport;
use crate::wire::{HashRequest, Message};

/// Fewest answers with hashes that a peer gets at once: each has up to 18 KB.
const MIN_ANSWERS: u32 = 16;

/// How many times a peer gets all hashes at once: requests may be repeated after a time-out.
const COPIES: u32 = 3;

/// Time after which a peer that has had all its answers gets one more.
const REFILL: Duration = Duration::from_secs(1);

/// The answers that a peer may still have. It bounds what a peer costs that asks without an end.
#[derive(Debug)]
pub(super) struct HashAnswers {
    left: u32,
    /// Since when they have been refilled.
    since: Instant,
}

impl HashAnswers {
    fn new(most: u32, now: Instant) -> Self {
        Self {
            left: most,
            since: now,
        }
    }

    /// Takes one of at most `most`; returns whether there was one.
    fn take(&mut self, most: u32, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        let refilled = passed.as_secs() / REFILL.as_secs();
        self.since += REFILL * u32::try_from(refilled).unwrap_or(u32::MAX);
        let left = u64::from(self.left).saturating_add(refilled);
        self.left = left.min(most.into()) as u32;
        let is_there = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_there
    }
}

impl<T: Transport> Swarm<T> {
    /// Handles a request for hashes. What the metainfo does not have is rejected, as are requests of a peer
    /// that asks too often.
    pub(super) fn on_hash_request(&mut self, conn: ConnId, wanted: &HashRequest, now: Instant) {
        let Some(known) = self.conns.open.get(&conn) else {
            return;
        };
        let most = self.metainfo.layers().map_or(0, |layers| layers.answers());
        let most = most.saturating_mul(COPIES).max(MIN_ANSWERS);
        let answers = self.conns.hashes.entry(conn);
        let answers = answers.or_insert_with(|| HashAnswers::new(most, now));
        let layers = self.metainfo.layers().filter(|_| answers.take(most, now));
        let hashes = layers.and_then(|layers| layers.hashes(wanted));
        known.send([match hashes {
            Some(hashes) => Message::Hashes(*wanted, hashes),
            None => Message::HashReject(*wanted),
        }]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_run_out_and_come_back_one_per_second() {
        let mut now = Instant::now();
        let mut answers = HashAnswers::new(4, now);
        let mut taken = |now| (0..10).filter(|_| answers.take(4, now)).count();
        assert_eq!(taken(now), 4);
        now += REFILL * 2;
        assert_eq!(taken(now), 2);
        now += REFILL / 2;
        assert_eq!(taken(now), 0);
        now += REFILL * 1_000_000;
        assert_eq!(taken(now), 4);
    }
}
