//! The files that a link selects (BEP 53).

use std::fmt;
use std::ops::RangeInclusive;

/// Numbers of files, counted from 0 in the order of the metainfo. Prints as
/// `0,2,4-6`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// In order, with gaps between them.
    ranges: Vec<RangeInclusive<u32>>,
}

impl Files {
    /// Whether no file is selected, which means that the link does not select files.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a file is among them.
    pub fn contains(&self, file: u32) -> bool {
        let before = self.ranges.partition_point(|range| *range.end() < file);
        let range = self.ranges.get(before);
        range.is_some_and(|range| range.contains(&file))
    }

    /// The files, as ranges in order with gaps between them.
    pub fn ranges(&self) -> &[RangeInclusive<u32>] {
        &self.ranges
    }

    /// Reads a list of files; `None` if `text` is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range = number(first)?..=number(last)?;
            if range.is_empty() {
                return None;
            }
            ranges.push(range);
        }
        Some(ranges.into_iter().collect())
    }

    /// Adds other files.
    pub(super) fn extend(&mut self, other: Self) {
        let ranges = std::mem::take(&mut self.ranges).into_iter();
        *self = ranges.chain(other.ranges).collect();
    }
}

impl FromIterator<RangeInclusive<u32>> for Files {
    /// The files in any of the ranges, which may overlap.
    fn from_iter<I: IntoIterator<Item = RangeInclusive<u32>>>(ranges: I) -> Self {
        let ranges = ranges.into_iter().filter(|range| !range.is_empty());
        let mut sorted: Vec<_> = ranges.collect();
        sorted.sort_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u32>> = Vec::new();
        for range in sorted {
            match joined.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => joined.push(range),
            }
        }
        Self { ranges: joined }
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, range) in self.ranges.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// Digits; `parse` alone would accept a sign.
fn number(digits: &str) -> Option<u32> {
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| are_digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_files_are_read_and_joined() {
        for (text, printed) in [
            ("0", "0"),
            ("0,2,4-6", "0,2,4-6"),
            ("4-6,0,5-9,2", "0,2,4-9"),
            ("1,2,3", "1-3"),
            ("4294967295,4294967294", "4294967294-4294967295"),
            ("1, 3", "1,3"),
        ] {
            assert_eq!(Files::read(text).unwrap().to_string(), printed);
        }
        for text in ["", ",", "1,", "a", "-1", "+1", "2-1", "1-2-3", "4294967296"] {
            assert_eq!(Files::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_file_is_selected_if_a_range_has_it(
            ranges in prop::collection::vec((0..40u32, 0..6u32), 0..8)
        ) {
            let ranges = ranges.iter().map(|(first, more)| *first..=first + more);
            let files: Files = ranges.clone().collect();
            for file in 0..50 {
                let expected = ranges.clone().any(|range| range.contains(&file));
                prop_assert_eq!(files.contains(file), expected);
            }
            if !files.is_empty() {
                prop_assert_eq!(Files::read(&files.to_string()), Some(files));
            }
        }
    }
}
