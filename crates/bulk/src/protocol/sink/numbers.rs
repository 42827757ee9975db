//! The packet numbers received over one subflow.

use std::collections::VecDeque;
use std::ops::Range;

/// Most ranges kept: more than an acknowledgement of 9,000 bytes has.
const RANGES: usize = 4096;

/// Most gaps that wait for later packets to confirm them.
const GAPS: usize = 256;

/// Later packets that confirm a gap as a loss (RFC 9002, 6.1.1).
const CONFIRMING: u64 = 3;

/// Most of them, on paths that reorder much.
const MAX_CONFIRMING: u64 = 1024;

/// The numbers received. Of too many ranges the oldest are forgotten.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Ascending, neither overlapping nor touching.
    ranges: VecDeque<Range<u64>>,
    /// The ends of the gaps that are not confirmed.
    gaps: VecDeque<u64>,
    /// Later packets that confirm a gap.
    confirming: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            ranges: VecDeque::new(),
            gaps: VecDeque::new(),
            confirming: CONFIRMING,
        }
    }
}

/// What a number changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inserted {
    pub is_largest: bool,
    pub confirms_loss: bool,
}

impl Numbers {
    /// The largest number.
    pub(super) fn largest(&self) -> Option<u64> {
        self.ranges.back().map(|newest| newest.end - 1)
    }

    /// At most `most` ranges, newest first.
    pub(super) fn newest(&self, most: usize) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter().rev().take(most).cloned()
    }

    /// Adds a number.
    #[inline]
    pub(super) fn insert(&mut self, number: u64) -> Inserted {
        let next = match self.ranges.back_mut() {
            Some(newest) if newest.end == number => {
                newest.end += 1;
                let confirms_loss = !self.gaps.is_empty() && self.confirm(number);
                return Inserted {
                    is_largest: true,
                    confirms_loss,
                };
            }
            Some(newest) => newest.end,
            None => 0,
        };
        let is_largest = number >= next;
        if is_largest {
            self.ranges.push_back(number..number + 1);
            if self.ranges.len() > RANGES {
                self.ranges.pop_front();
            }
            if number > next && self.gaps.len() < GAPS {
                self.gaps.push_back(number);
            }
        } else {
            self.fill(number);
            // As many packets overtook it, so fewer must not confirm a loss.
            let overtaken = (next - number).min(MAX_CONFIRMING);
            self.confirming = self.confirming.max(overtaken);
        }
        Inserted {
            is_largest,
            confirms_loss: self.confirm(next.max(number)),
        }
    }

    /// Adds a number below the largest.
    fn fill(&mut self, number: u64) {
        let after = self.ranges.partition_point(|range| range.start <= number);
        let touches_after = self
            .ranges
            .get(after)
            .is_some_and(|range| range.start == number + 1);
        let before = after.checked_sub(1);
        match before.map(|before| (before, self.ranges[before].end)) {
            Some((_, end)) if end > number => {}
            Some((before, end)) if end == number => {
                self.ranges[before].end += 1;
                if touches_after {
                    self.ranges[before].end = self.ranges[after].end;
                    self.ranges.remove(after);
                }
            }
            _ if touches_after => self.ranges[after].start = number,
            // Older than all that is kept of a full list.
            None if self.ranges.len() >= RANGES => {}
            _ => self.ranges.insert(after, number..number + 1),
        }
    }

    /// Whether packets up to `largest` confirm a gap that is still one.
    fn confirm(&mut self, largest: u64) -> bool {
        let mut confirmed = false;
        while let Some(&end) = self.gaps.front()
            && end + self.confirming <= largest + 1
        {
            self.gaps.pop_front();
            let at = self.ranges.partition_point(|range| range.start < end);
            confirmed |= self.ranges.get(at).is_some_and(|range| range.start == end);
        }
        confirmed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn confirms(numbers: &mut Numbers, packets: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let packets = packets.into_iter();
        packets
            .filter(|number| numbers.insert(*number).confirms_loss)
            .collect()
    }

    #[test]
    fn three_later_packets_confirm_a_gap() {
        let mut numbers = Numbers::default();
        assert_eq!(confirms(&mut numbers, [0, 1, 3, 4, 5, 6, 7]), [5]);
        // The gap closes before.
        assert!(confirms(&mut numbers, [9, 10, 8, 11, 12, 13]).is_empty());
        // Two gaps.
        assert_eq!(confirms(&mut numbers, [15, 17, 18, 19, 20]), [17, 19]);
        // The first packets are missing.
        assert_eq!(confirms(&mut Numbers::default(), [5, 6, 7, 8]), [7]);
    }

    #[test]
    fn more_packets_confirm_a_gap_after_reordering() {
        let mut numbers = Numbers::default();
        assert_eq!(confirms(&mut numbers, [0, 2, 3, 4, 5, 6, 1]), [4]);
        assert_eq!(confirms(&mut numbers, 8..20), [13]);
    }

    proptest! {
        #[test]
        fn ranges_equal_a_set(steps in prop::collection::vec((0..40_u64, any::<bool>()), 1..200)) {
            let (mut numbers, mut model) = (Numbers::default(), BTreeSet::new());
            for (step, ahead) in steps {
                let largest = model.last().copied().unwrap_or(0_u64);
                let number = if ahead { largest + step } else { largest.saturating_sub(step) };
                let is_largest = model.last().is_none_or(|last| *last < number);
                let inserted = numbers.insert(number);
                if model.insert(number) {
                    prop_assert_eq!(inserted.is_largest, is_largest);
                }
                prop_assert_eq!(numbers.largest(), model.last().copied());
                let ranges: Vec<_> = numbers.newest(usize::MAX).collect();
                let all: BTreeSet<_> = ranges.iter().cloned().flatten().collect();
                prop_assert_eq!(&all, &model);
                prop_assert!(ranges.windows(2).all(|pair| pair[1].end < pair[0].start));
            }
        }
    }
}
