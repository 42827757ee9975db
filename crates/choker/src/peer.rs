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
    /// Number of optimistic slots that others were given while it waited, until `since`.
    pub waited: u64,
    /// While it waits: how many optimistic slots were given before.
    pub since: u64,
    /// `None` if nothing was ever exchanged: most peers of a large swarm.
    exchange: Option<Box<Exchange>>,
}

/// What was exchanged with a peer.
#[derive(Debug, Clone, Default)]
struct Exchange {
    /// Over connections that have ended.
    ended: Counters,
    /// In all, at the last review.
    total: Counters,
    /// Between the last two reviews, and between the two before that.
    recent: [Counters; 2],
    /// When the peer last had sent something.
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
            since: 0,
            exchange: None,
        }
    }

    /// Whether it may get a slot.
    pub fn is_candidate(&self) -> bool {
        self.interested && !self.upload_only
    }

    /// Whether it waits for a slot.
    pub fn waits(&self) -> bool {
        self.is_candidate() && self.slot.is_none()
    }

    /// Adds what was exchanged over a connection that has ended.
    pub fn end(&mut self, counters: Counters) {
        let exchange = self.exchange.get_or_insert_default();
        exchange.ended = exchange.ended + counters;
    }

    /// Takes note of what was exchanged over its open connections.
    pub fn review(&mut self, open: Counters, now: Instant) {
        if self.exchange.is_none() && open == Counters::default() {
            return;
        }
        let exchange = self.exchange.get_or_insert_default();
        let total = exchange.ended + open;
        let new = Counters {
            received: total.received.saturating_sub(exchange.total.received),
            sent: total.sent.saturating_sub(exchange.total.sent),
        };
        exchange.total = total;
        exchange.recent = [new, exchange.recent[0]];
        if new.received > 0 {
            exchange.sent_at = Some(now);
        }
    }

    /// What it did lately for the goal, in bytes; `None` if it earns no slot.
    pub fn merit(&self, goal: Goal, now: Instant) -> Option<u64> {
        let exchange = self.exchange.as_ref()?;
        let recent = exchange.recent[0] + exchange.recent[1];
        match goal {
            Goal::Fetching => {
                let silent = now.saturating_duration_since(exchange.sent_at?);
                (silent < SNUBBED).then_some(recent.received)
            }
            Goal::Seeding => (recent.sent > 0).then_some(recent.sent),
        }
    }

    /// Whether it has received nothing between the last two reviews.
    pub fn takes_nothing(&self) -> bool {
        let exchange = self.exchange.as_ref();
        exchange.is_none_or(|exchange| exchange.recent[0].sent == 0)
    }

    /// Leaves out a time in which nothing could happen.
    pub fn skip(&mut self, pause: Duration) {
        if let Some(Slot::Optimistic { since }) = &mut self.slot {
            *since += pause;
        }
        let exchange = self.exchange.as_mut();
        if let Some(at) = exchange.and_then(|exchange| exchange.sent_at.as_mut()) {
            *at += pause;
        }
    }
}
