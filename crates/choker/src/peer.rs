//! What is known of one peer.

use std::time::{Duration, Instant};

use crate::{Counters, Goal, SNUBBED};

/// A peer.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// It wants blocks (BEP 3).
    pub interested: bool,
    /// It downloads nothing (BEP 21).
    pub upload_only: bool,
    pub slot: Option<Slot>,
    /// Whether it ever held a slot.
    pub is_known: bool,
    /// Number of optimistic slots that others were given while it waited.
    pub waited: u64,
    /// What was exchanged over connections that have ended.
    ended: Counters,
    /// All that was exchanged, at the last review.
    total: Counters,
    /// What was exchanged between the last two reviews, and between the two before that.
    recent: [Counters; 2],
    /// When it last had sent something.
    sent_at: Option<Instant>,
}

/// How a peer holds a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Earned,
    Optimistic { since: Instant },
}

impl Peer {
    pub fn new() -> Self {
        Self {
            interested: false,
            upload_only: false,
            slot: None,
            is_known: false,
            waited: 0,
            ended: Counters::default(),
            total: Counters::default(),
            recent: [Counters::default(); 2],
            sent_at: None,
        }
    }

    /// Whether it may get a slot.
    pub fn is_candidate(&self) -> bool {
        self.interested && !self.upload_only
    }

    /// Adds what was exchanged over a connection that has ended.
    pub fn end(&mut self, counters: Counters) {
        self.ended = self.ended + counters;
    }

    /// Takes note of what was exchanged over its open connections.
    pub fn review(&mut self, open: Counters, now: Instant) {
        let total = self.ended + open;
        let new = Counters {
            received: total.received.saturating_sub(self.total.received),
            sent: total.sent.saturating_sub(self.total.sent),
        };
        self.total = total;
        self.recent = [new, self.recent[0]];
        if new.received > 0 {
            self.sent_at = Some(now);
        }
    }

    /// What it did lately for the goal, in bytes; `None` if it earns no slot.
    pub fn merit(&self, goal: Goal, now: Instant) -> Option<u64> {
        let recent = self.recent[0] + self.recent[1];
        match goal {
            Goal::Fetching => {
                let silent = now.saturating_duration_since(self.sent_at?);
                (silent < SNUBBED).then_some(recent.received)
            }
            Goal::Seeding => (recent.sent > 0).then_some(recent.sent),
        }
    }

    /// Whether it has received nothing between the last two reviews.
    pub fn takes_nothing(&self) -> bool {
        self.recent[0].sent == 0
    }

    /// Leaves out a time in which nothing could happen.
    pub fn skip(&mut self, pause: Duration) {
        if let Some(Slot::Optimistic { since }) = &mut self.slot {
            *since += pause;
        }
        if let Some(at) = &mut self.sent_at {
            *at += pause;
        }
    }
}
