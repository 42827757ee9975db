//! Packets in flight, as runs of consecutive numbers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use super::pace::data_packet;

/// Packets with consecutive numbers and content, sent at once.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// The number of packets.
    pub packets: u64,
    /// Their content, in order.
    pub content: Range<u64>,
    /// Bytes of content in each packet, but for the last; the size of a probe.
    pub per_packet: u64,
    pub sent: Instant,
    /// If the packets are lost, their content is to be sent again. Otherwise that is already done.
    pub owns: bool,
    /// If the packets are acknowledged, their content is delivered. Otherwise it was wanted again
    /// since.
    pub counts: bool,
    /// Another subflow sent a copy.
    pub copied: bool,
}

impl Run {
    /// Data packets with `content`, `per_packet` bytes in each.
    pub(super) fn data(content: Range<u64>, per_packet: usize, sent: Instant) -> Self {
        let per_packet = per_packet as u64;
        Self {
            packets: (content.end - content.start).div_ceil(per_packet),
            content,
            per_packet,
            sent,
            owns: true,
            counts: true,
            copied: false,
        }
    }

    /// A probe of `size` bytes.
    pub(super) fn probe(size: usize, sent: Instant) -> Self {
        Self {
            packets: 1,
            content: 0..0,
            per_packet: size as u64,
            sent,
            owns: false,
            counts: false,
            copied: false,
        }
    }

    pub(super) fn is_probe(&self) -> bool {
        self.content.is_empty()
    }

    /// Bytes of all data packets.
    pub(super) fn bytes(&self) -> u64 {
        match self.is_probe() {
            true => 0,
            false => (self.content.end - self.content.start) + self.packets * data_packet(0),
        }
    }

    /// Calls `each` with the number and bytes of every data packet; `first` is the first number.
    pub(super) fn for_each_packet(&self, first: u64, mut each: impl FnMut(u64, u64)) {
        if self.is_probe() {
            return;
        }
        let last = first + self.packets - 1;
        (first..last).for_each(|number| each(number, data_packet(self.per_packet)));
        let before = (self.packets - 1) * self.per_packet;
        each(
            last,
            data_packet(self.content.end - self.content.start - before),
        );
    }

    /// Cuts off all but the first `packets`.
    fn split_off(&mut self, packets: u64) -> Self {
        let at = self.content.start + packets * self.per_packet;
        let tail = Self {
            packets: self.packets - packets,
            content: at..self.content.end,
            ..self.clone()
        };
        self.packets = packets;
        self.content.end = at;
        tail
    }
}

/// Runs by their first number. They do not overlap.
#[derive(Debug, Default)]
pub(super) struct Flight {
    runs: BTreeMap<u64, Run>,
    bytes: u64,
}

impl Flight {
    /// Bytes of all data packets.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The lowest run with its first number.
    pub(super) fn first(&self) -> Option<(u64, &Run)> {
        let (first, run) = self.runs.first_key_value()?;
        Some((*first, run))
    }

    /// The runs with their first numbers, ascending.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Run)> {
        self.runs.iter().map(|(first, run)| (*first, run))
    }

    /// The runs, ascending. Their packets must stay what they are.
    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Run> {
        self.runs.values_mut()
    }

    /// The run that begins with number `first`. Its packets must stay what they are.
    pub(super) fn get_mut(&mut self, first: u64) -> Option<&mut Run> {
        self.runs.get_mut(&first)
    }

    /// Adds a run.
    pub(super) fn insert(&mut self, first: u64, run: Run) {
        self.bytes += run.bytes();
        self.runs.insert(first, run);
    }

    /// Removes the lowest run that has numbers in `range`, with those numbers alone.
    pub(super) fn pop_within(&mut self, range: &Range<u64>) -> Option<(u64, Run)> {
        self.cut(range.start);
        let (&first, run) = self.runs.range(range.clone()).next()?;
        if first + run.packets > range.end {
            self.cut(range.end);
        }
        let run = self.runs.remove(&first)?;
        self.bytes -= run.bytes();
        Some((first, run))
    }

    /// Makes a run begin with number `at`, if that number is in one.
    pub(super) fn cut(&mut self, at: u64) {
        if let Some((&first, run)) = self.runs.range_mut(..at).next_back()
            && first + run.packets > at
        {
            let tail = run.split_off(at - first);
            self.runs.insert(at, tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_taken_apart_without_loss(
            runs in prop::collection::vec((1..20_u64, 1..100_u64), 1..20),
            cuts in prop::collection::vec((0..200_u64, 0..50_u64), 1..20),
        ) {
            let now = Instant::now();
            let (mut flight, mut number, mut position) = (Flight::default(), 0, 0);
            let mut model = BTreeMap::new();
            let model_of = |model: &mut BTreeMap<u64, u64>, first, run: &Run| {
                run.for_each_packet(first, |number, bytes| {
                    model.insert(number, bytes);
                });
            };
            for (packets, last) in runs {
                let content = position..position + (packets - 1) * 100 + last;
                position = content.end;
                let run = Run::data(content, 100, now);
                prop_assert_eq!(run.packets, packets);
                model_of(&mut model, number, &run);
                flight.insert(number, run);
                number += packets;
            }
            let mut content = Vec::new();
            for (start, length) in cuts.into_iter().chain([(0, number)]) {
                let range = start..start + length;
                while let Some((first, run)) = flight.pop_within(&range) {
                    let mut taken = BTreeMap::new();
                    model_of(&mut taken, first, &run);
                    prop_assert_eq!(run.bytes(), taken.values().sum::<u64>());
                    for (number, bytes) in taken {
                        prop_assert!(range.contains(&number));
                        prop_assert_eq!(model.remove(&number), Some(bytes));
                    }
                    content.push(run.content);
                }
                prop_assert!(model.range(range).next().is_none());
                prop_assert_eq!(flight.bytes(), model.values().sum::<u64>());
            }
            content.sort_by_key(|content| content.start);
            prop_assert!(flight.is_empty() && content.windows(2).all(|two| two[0].end == two[1].start));
            prop_assert_eq!(content.last().unwrap().end, position);
        }
    }
}
