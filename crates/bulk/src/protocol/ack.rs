//! Acknowledgements.

use std::iter;
use std::ops::Range;
use std::time::Duration;

use super::wire::{DecodeError, MAX_VARINT, Reader, Writer, varint_length};

/// Which packets of a subflow were received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// The largest packet number received.
    pub largest: u64,
    /// The time since it was received, in whole microseconds.
    pub delay: Duration,
    /// Packets received with the congestion mark (CE), in all.
    pub marked: u64,
    /// Content bytes that the sink takes in all.
    pub credit: u64,
    /// The numbers received, newest first: disjoint, not adjacent, the first ending with `largest`.
    pub ranges: Vec<Range<u64>>,
}

impl Ack {
    /// The acknowledgement of one packet alone, as a source answers the probe of a sink.
    pub fn of(number: u64) -> Self {
        Self {
            largest: number,
            delay: Duration::ZERO,
            marked: 0,
            credit: 0,
            ranges: iter::once(number..number + 1).collect(),
        }
    }

    /// Appends the acknowledgement to `out` in `limit` bytes at most, with as many of the newest
    /// ranges as fit. Room for the first range (41 bytes at most) is taken in any case.
    pub fn encode(&self, out: &mut Vec<u8>, limit: usize) {
        let mut writer = Writer::new(out);
        let delay = u64::try_from(self.delay.as_micros()).unwrap_or(MAX_VARINT);
        let fixed = [
            self.largest,
            delay.min(MAX_VARINT),
            self.marked,
            self.credit,
        ];
        for field in fixed {
            writer.varint(field);
        }
        let first = self.ranges.first();
        let first = first.map_or(0, |range| range.end - range.start - 1);
        let mut left = fixed
            .iter()
            .chain([&first])
            .fold(limit, |left, field| left.saturating_sub(varint_length(*field)))
            // The number of ranges: a packet has fewer than 2^14.
            .saturating_sub(2);
        let further = self.ranges.windows(2).map(|pair| {
            let (newer, older) = (&pair[0], &pair[1]);
            [newer.start - older.end - 1, older.end - older.start - 1]
        });
        let fitting = further.clone().take_while(|fields| {
            let length: usize = fields.iter().copied().map(varint_length).sum();
            let fits = length <= left;
            left = left.saturating_sub(length);
            fits
        });
        let count = fitting.take((1 << 14) - 2).count();
        writer.varint(1 + count as u64);
        writer.varint(first);
        for field in further.take(count).flatten() {
            writer.varint(field);
        }
    }

    /// Decodes an acknowledgement.
    ///
    /// # Errors
    /// When fields are missing or left over, or the ranges reach below number 0.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        const RANGE: DecodeError = DecodeError::Invalid("range of acknowledged packets");
        let mut reader = Reader::new(bytes);
        let largest = reader.varint()?;
        let delay = Duration::from_micros(reader.varint()?);
        let (marked, credit) = (reader.varint()?, reader.varint()?);
        let count = reader.varint()?;
        if count == 0 {
            return Err(RANGE);
        }
        let first = reader.varint()?;
        let start = largest.checked_sub(first).ok_or(RANGE)?;
        // Each further range has two bytes at least, so the packet bounds their number.
        let most = 1 + reader.rest().len() as u64 / 2;
        let mut ranges = Vec::with_capacity(count.min(most) as usize);
        ranges.push(start..largest + 1);
        let mut lowest = start;
        for _ in 1..count {
            let (missing, length) = (reader.varint()?, reader.varint()?);
            let end = lowest.checked_sub(missing + 1).ok_or(RANGE)?;
            lowest = end.checked_sub(length + 1).ok_or(RANGE)?;
            ranges.push(lowest..end);
        }
        reader.finish()?;
        Ok(Self {
            largest,
            delay,
            marked,
            credit,
            ranges,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn ack() -> impl Strategy<Value = Ack> {
        let gaps = prop::collection::vec((0_u64..1 << 20, 0_u64..1 << 20, 0_u32..20), 1..200);
        let fields = (
            0..=MAX_VARINT >> 8,
            0..=MAX_VARINT,
            0..=MAX_VARINT,
            0..=MAX_VARINT,
        );
        (fields, gaps).prop_map(|((base, delay, marked, credit), gaps)| {
            let mut ranges = Vec::new();
            let mut next = base;
            for (missing, length, shift) in gaps {
                let start = next + 1 + (missing >> shift);
                next = start + 1 + (length >> shift);
                ranges.push(start..next);
            }
            ranges.reverse();
            Ack {
                largest: next - 1,
                delay: Duration::from_micros(delay),
                marked,
                credit,
                ranges,
            }
        })
    }

    #[test]
    fn an_acknowledgement_has_the_specified_bytes() {
        let ack = Ack {
            largest: 100,
            delay: Duration::from_micros(7),
            marked: 3,
            credit: 0x4000,
            ranges: vec![98..101, 95..96, 10..90],
        };
        let mut out = Vec::new();
        ack.encode(&mut out, 1000);
        let first = [0x40, 100, 7, 3, 0x80, 0, 0x40, 0, 3, 2];
        assert_eq!(out, [&first[..], &[1, 0, 4, 0x40, 79]].concat());
    }

    #[test]
    fn ranges_below_zero_are_refused() {
        // largest 5, delay, marked, credit, ranges, first range of 7 packets.
        let result = Ack::decode(&[5, 0, 0, 0, 1, 6]);
        let range = Err(DecodeError::Invalid("range of acknowledged packets"));
        assert_eq!(result, range);
        assert_eq!(Ack::decode(&[5, 0, 0, 0, 2, 1, 3, 0]), range);
        assert_eq!(Ack::decode(&[5, 0, 0, 0, 2, 1, 2, 1]), range);
        assert_eq!(Ack::decode(&[5, 0, 0, 0, 0]), range);
        assert_eq!(
            Ack::decode(&[5, 0, 0, 0, 2, 1]),
            Err(DecodeError::Truncated)
        );
        assert_eq!(
            Ack::decode(&[5, 0, 0, 0, 1, 1, 9]),
            Err(DecodeError::Trailing(1))
        );
        assert_eq!(
            Ack::decode(&[5, 0, 0, 0, 2, 1, 2, 0]).unwrap().ranges,
            [4..6, 0..1]
        );
    }

    proptest! {
        #[test]
        fn acknowledgements_survive(ack in ack()) {
            let mut out = Vec::new();
            ack.encode(&mut out, usize::MAX);
            prop_assert_eq!(Ack::decode(&out), Ok(ack));
        }

        #[test]
        fn short_acknowledgements_have_the_newest_ranges(ack in ack(), limit in 41..500_usize) {
            let mut out = vec![1, 2];
            ack.encode(&mut out, limit);
            prop_assert!(out.len() - 2 <= limit);
            let short = Ack::decode(&out[2..]).unwrap();
            let all = ack.ranges.len();
            prop_assert_eq!(&short.ranges[..], &ack.ranges[..short.ranges.len()]);
            // Whatever is left out would not have fitted: two varints of 16 bytes at most.
            prop_assert!(short.ranges.len() == all || out.len() - 2 + 17 > limit);
        }
    }
}
