//! Which content a subflow sends next: by when it is expected to arrive over this subflow and over
//! the others.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::super::SubflowKey;
use super::Source;

/// How long a subflow that leaves the rest to faster ones waits before it looks again: they may
/// fail.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

impl Source {
    /// Whether there may be something to send: content that is not in flight, or what a slower subflow
    /// has in flight at the end of the transfer.
    pub(super) fn has_candidates(&self) -> bool {
        let is_new = !self.new.is_empty() && self.available() > 0;
        let is_tail = self.new.is_empty() && !self.missing.is_empty() && self.subflows.len() > 1;
        !self.repair.is_empty() || is_new || is_tail
    }

    /// Takes at most `most` bytes for the subflow to send: lost content first, then new content, and
    /// at the end of the transfer what slower subflows have in flight.
    ///
    /// What the others are expected to deliver before this subflow could is left to them. While much
    /// is queued that is nothing, and all subflows send.
    pub(super) fn choose(
        &mut self,
        key: SubflowKey,
        most: u64,
        now: Instant,
    ) -> Option<Range<u64>> {
        let others = self.delivered_earlier(key, now);
        if self.repair.len() > others {
            // The others take the beginning.
            return match others {
                0 => self.repair.pop_first(most),
                _ => self.repair.pop_last(most),
            };
        }
        let most_new = most.min(self.available());
        if self.new.len() + self.repair.len() > others {
            let content = self.new.pop_first(most_new)?;
            self.sent.insert(content.clone());
            return Some(content);
        }
        if self.new.is_empty() && self.repair.is_empty() {
            return self.copy(key, most, now);
        }
        None
    }

    /// When to look again for something to send: there is nothing, or it is left to others.
    pub(super) fn nothing_to_send(&mut self, key: SubflowKey, now: Instant) -> Option<Instant> {
        let starved = !self.new.is_empty() && self.available() == 0;
        let is_left = !self.repair.is_empty() || self.available() > 0 && !self.new.is_empty();
        let is_tail = self.new.is_empty() && !self.missing.is_empty() && self.subflows.len() > 1;
        let subflow = self.subflows.get_mut(&key)?;
        subflow.on_idle(now, starved);
        (is_left || is_tail).then_some(now + LOOK_AGAIN)
    }

    /// Bytes that the other subflows can deliver before a packet that this one sends now.
    fn delivered_earlier(&self, key: SubflowKey, now: Instant) -> u64 {
        let Some(arrival) = self.subflows.get(&key).map(|own| now + own.one_way()) else {
            return 0;
        };
        let others = self.subflows.iter().filter(|(other, _)| **other != key);
        let bytes: f64 = others
            .filter(|(_, subflow)| subflow.is_reliable() && !subflow.is_held)
            .map(|(_, subflow)| {
                let first = subflow.pacing.next().max(now) + subflow.one_way();
                let earlier = arrival.saturating_duration_since(first);
                subflow.throughput() * earlier.as_secs_f64()
            })
            .sum();
        bytes as u64
    }

    /// Takes content that another subflow has in flight, if this subflow is expected to deliver it
    /// earlier: the part that is expected last. No part is copied twice.
    fn copy(&mut self, key: SubflowKey, most: u64, now: Instant) -> Option<Range<u64>> {
        let own = self.subflows.get(&key)?;
        if !own.is_reliable() {
            return None;
        }
        let arrival = now + own.one_way() + own.pacing.time(most);
        let others = self.subflows.iter_mut().filter(|(other, _)| **other != key);
        let (_, latest) = others
            .filter_map(|(_, subflow)| Some((subflow.latest(now)?, subflow)))
            // What is overdue (`None`) comes first.
            .filter(|(expected, _)| expected.is_none_or(|expected| arrival < expected))
            .max_by_key(|(expected, _)| expected.map_or((true, None), |at| (false, Some(at))))?;
        let content = latest.copy_latest(most, now)?;
        let mut missing = self.missing.overlaps(content.clone());
        let first = missing.next()?;
        let rest = missing.last().map_or(first.end, |last| last.end);
        Some(first.start..rest)
    }
}
