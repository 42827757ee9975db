//! The receiving side: what is new, and when packets are acknowledged.
//!
//! Content is *missing*, then *received*, and counts against the credit from then on. If its range
//! does not match its hash it is *forgotten*, and taken again without counting twice. The credit is
//! what was released, as it was written, and the window beyond it. It never falls.
//!
//! The first packet of a subflow since its last acknowledgement makes the next one due after the
//! interval that the source has named. It is due earlier if a packet asks for it, and if one
//! confirms a loss, but for losses at most every [`LOSS_INTERVAL`]. A credit that has risen by a
//! quarter of the window makes one due too, over the subflow of the last packet.
//!
//! The data thread drives it: it passes packets in, and takes what is due from [`Sink::poll_ack`],
//! at [`Sink::next_timeout`]. Time is an argument; there is no I/O and no lock. It keeps no
//! content, only runs of what was received, about [`RUNS`] of them as long as its user asks
//! [`Sink::has_room`], and of each subflow a bounded number of ranges of packet numbers. It ends by
//! being dropped.

mod numbers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use thiserror::Error;

use self::numbers::Numbers;
use super::SubflowKey;
use super::ack::Ack;
use super::ranges::RangeSet;

/// The interval of acknowledgements until the source names one.
const INITIAL_INTERVAL: Duration = Duration::from_millis(1);

/// The shortest time between acknowledgements of losses.
const LOSS_INTERVAL: Duration = Duration::from_millis(1);

/// Ranges repeated in each acknowledgement, beside one for each packet since the last. A range takes
/// 2 to 4 bytes and a packet more than 1000: so acknowledgements stay small while losses are many.
const REPEATED_RANGES: usize = 16;

/// Most runs of content received, with gaps between them: as many as losses make of a session's
/// largest credit. They are accounted for beside the content: a source could make one of every second
/// byte.
const RUNS: usize = 1 << 16;

/// How the source breaks the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A packet reaches beyond the content.
    #[error("a packet has bytes up to {end}, and the content ends at {content}")]
    BeyondContent {
        /// The end of the packet's content.
        end: u64,
        /// Bytes of content.
        content: u64,
    },
    /// The source sent more content than the sink takes.
    #[error("{taken} bytes of content were sent, and the credit is {credit}")]
    BeyondCredit {
        /// Bytes received, each counted once, with those that are beyond.
        taken: u64,
        /// The credit.
        credit: u64,
    },
}

/// What a sink received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinkStats {
    /// Bytes of content received, each counted once.
    pub received: u64,
    /// Bytes of content received again.
    pub repeated: u64,
    /// Packets that are acknowledged.
    pub packets: u64,
    /// Packets received with the congestion mark.
    pub marked: u64,
    /// Acknowledgements sent.
    pub acks: u64,
}

/// The receiving state machine of a session.
///
/// For each packet that [opens](super::Opener::open), its user calls [`on_data`](Self::on_data) if
/// it is a data packet, keeps what is new of it, and then calls [`on_packet`](Self::on_packet):
/// what is acknowledged is never sent again. Methods ignore keys of subflows that were not added.
#[derive(Debug)]
pub struct Sink {
    content: u64,
    credit: u64,
    /// Content bytes that are taken before anything is released.
    window: u64,
    released: u64,
    /// The credit in the last acknowledgement.
    announced: u64,
    received: RangeSet,
    /// Received, forgotten, and not received again: counts against the credit already.
    forgotten: RangeSet,
    repeated: u64,
    subflows: BTreeMap<SubflowKey, SinkSubflow>,
    /// The subflow of the last packet: acknowledges a credit that rose.
    last: Option<SubflowKey>,
}

#[derive(Debug)]
struct SinkSubflow {
    numbers: Numbers,
    /// When the largest number was received.
    largest_at: Instant,
    interval: Duration,
    /// When the next acknowledgement is sent.
    due: Option<Instant>,
    last_ack: Option<Instant>,
    /// Packets since the last acknowledgement.
    fresh: usize,
    packets: u64,
    marked: u64,
    acks: u64,
}

impl SinkSubflow {
    fn due_by(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

/// The parts of a packet that were not received before, ascending.
#[derive(Debug, Clone)]
pub struct NewParts {
    first: Option<Range<u64>>,
    /// Empty, and so not allocated, unless the packet overlaps others.
    rest: std::vec::IntoIter<Range<u64>>,
}

impl Iterator for NewParts {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        self.first.take().or_else(|| self.rest.next())
    }
}

impl Sink {
    /// A sink of `content` bytes, of which it takes `window` before it [releases](Self::release)
    /// any.
    pub fn new(content: u64, window: u64) -> Self {
        Self {
            content,
            credit: window,
            window,
            released: 0,
            announced: window,
            received: RangeSet::new(),
            forgotten: RangeSet::new(),
            repeated: 0,
            subflows: BTreeMap::new(),
            last: None,
        }
    }

    /// Sets the size of the content, in bytes, once the manifest is complete.
    pub fn set_content(&mut self, content: u64) {
        self.content = content;
    }

    /// Adds a subflow.
    pub fn add_subflow(&mut self, key: SubflowKey, now: Instant) {
        let subflow = SinkSubflow {
            numbers: Numbers::default(),
            largest_at: now,
            interval: INITIAL_INTERVAL,
            due: None,
            last_ack: None,
            fresh: 0,
            packets: 0,
            marked: 0,
            acks: 0,
        };
        self.subflows.insert(key, subflow);
    }

    /// Removes a subflow.
    pub fn remove_subflow(&mut self, key: SubflowKey) {
        self.subflows.remove(&key);
    }

    /// Acknowledgements of the subflow are sent `interval` after a packet.
    pub fn set_interval(&mut self, key: SubflowKey, interval: Duration) {
        if let Some(subflow) = self.subflows.get_mut(&key) {
            subflow.interval = interval;
        }
    }

    /// Whether content at `range` can be kept apart from what is not received. Packets with content
    /// that cannot are not to be acknowledged: the source sends them again.
    pub fn has_room(&self, range: &Range<u64>) -> bool {
        self.received.count() < RUNS || self.received.touches(range)
    }

    /// Takes the content at `range`. Returns the parts that were not received before; they count as
    /// received.
    ///
    /// # Errors
    /// [`SinkError`]; then nothing is taken.
    pub fn on_data(&mut self, range: Range<u64>) -> Result<NewParts, SinkError> {
        if range.end > self.content {
            let (end, content) = (range.end, self.content);
            return Err(SinkError::BeyondContent { end, content });
        }
        let (length, before) = (range.end - range.start, self.received.len());
        let mut gaps = self.received.gaps(range.clone());
        let first = gaps.next();
        let rest: Vec<_> = gaps.collect();
        let new = first
            .iter()
            .chain(&rest)
            .map(|part| part.end - part.start)
            .sum::<u64>();
        let counted = before + self.forgotten.len();
        if counted + new > self.credit {
            // What was forgotten does not count again.
            let again = self.forgotten.overlaps(range.clone());
            let again: u64 = again.map(|part| part.end - part.start).sum();
            let (taken, credit) = (counted + new - again, self.credit);
            if taken > credit {
                return Err(SinkError::BeyondCredit { taken, credit });
            }
        }
        self.repeated += length - new;
        if !self.forgotten.is_empty() {
            self.forgotten.remove(range.clone());
        }
        self.received.insert(range);
        let rest = rest.into_iter();
        Ok(NewParts { first, rest })
    }

    /// A packet of the subflow was received, and its content is kept. `ask`: it asks for an answer;
    /// `marked`: it has the congestion mark.
    pub fn on_packet(
        &mut self,
        key: SubflowKey,
        number: u64,
        ask: bool,
        marked: bool,
        now: Instant,
    ) {
        let Some(subflow) = self.subflows.get_mut(&key) else {
            return;
        };
        self.last = Some(key);
        subflow.packets += 1;
        subflow.marked += u64::from(marked);
        subflow.fresh += 1;
        let inserted = subflow.numbers.insert(number);
        if inserted.is_largest {
            subflow.largest_at = now;
        }
        if ask {
            subflow.due_by(now);
        } else if inserted.confirms_loss {
            let earliest = subflow.last_ack.map(|last| last + LOSS_INTERVAL);
            subflow.due_by(earliest.map_or(now, |earliest| earliest.max(now)));
        } else if subflow.due.is_none() {
            subflow.due = Some(now + subflow.interval);
        }
    }

    /// Forgets what was received of `range`, so that it is taken again.
    pub fn forget(&mut self, range: Range<u64>) {
        let had: Vec<_> = self.received.overlaps(range).collect();
        for part in had {
            self.received.remove(part.clone());
            self.forgotten.insert(part);
        }
    }

    /// Takes `bytes` more: as many as were written and are no longer in memory.
    pub fn release(&mut self, bytes: u64, now: Instant) {
        self.released += bytes;
        self.raise_credit(now);
    }

    /// Sets the window, in bytes. What was granted under a larger one stays granted.
    pub fn set_window(&mut self, window: u64, now: Instant) {
        self.window = window;
        self.raise_credit(now);
    }

    fn raise_credit(&mut self, now: Instant) {
        self.credit = self.credit.max(self.released.saturating_add(self.window));
        // A smaller rise is not worth an acknowledgement of its own.
        if self.credit - self.announced < (self.window / 4).max(1) {
            return;
        }
        // The source may wait for it with nothing in flight, so that no packet would carry it.
        let last = self.last.and_then(|last| self.subflows.get_mut(&last));
        if let Some(subflow) = last
            && subflow.due.is_none()
        {
            subflow.due = Some(now + subflow.interval);
        }
    }

    /// The acknowledgement that is due for the subflow; it counts as sent.
    pub fn poll_ack(&mut self, key: SubflowKey, now: Instant) -> Option<Ack> {
        let credit = self.credit;
        let subflow = self.subflows.get_mut(&key)?;
        if subflow.due? > now {
            return None;
        }
        let largest = subflow.numbers.largest()?;
        let most = REPEATED_RANGES + subflow.fresh;
        subflow.due = None;
        subflow.fresh = 0;
        subflow.last_ack = Some(now);
        subflow.acks += 1;
        self.announced = credit;
        let delay = now.saturating_duration_since(subflow.largest_at);
        Some(Ack {
            largest,
            delay: Duration::from_micros(delay.as_micros() as u64),
            marked: subflow.marked,
            credit,
            ranges: subflow.numbers.newest(most).collect(),
        })
    }

    /// When the next acknowledgement is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.subflows
            .values()
            .filter_map(|subflow| subflow.due)
            .min()
    }

    /// The content received and not forgotten.
    pub fn received(&self) -> &RangeSet {
        &self.received
    }

    /// Content bytes that the sink takes in all.
    pub fn credit(&self) -> u64 {
        self.credit
    }

    /// Bytes of content that are in memory, or that the source may still send.
    pub fn promised(&self) -> u64 {
        self.credit.saturating_sub(self.released)
    }

    /// What was received over all subflows that are not removed; bytes over removed ones too.
    pub fn stats(&self) -> SinkStats {
        let bytes = SinkStats {
            received: self.received.len(),
            repeated: self.repeated,
            ..SinkStats::default()
        };
        self.subflows
            .values()
            .fold(bytes, |sum, subflow| SinkStats {
                packets: sum.packets + subflow.packets,
                marked: sum.marked + subflow.marked,
                acks: sum.acks + subflow.acks,
                ..sum
            })
    }
}

#[cfg(test)]
mod tests;
