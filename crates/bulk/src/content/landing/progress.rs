//! A file of several ranges while it is unfinished.

use std::ops::Range;

use hawser_file::LockedFile;

use crate::content::manifest::Piece;
use crate::content::tree::RANGE;

/// What is known of a file whose content is in several ranges.
#[derive(Debug)]
pub(super) struct Progress {
    /// Its first range.
    first: u64,
    /// By range from the first one.
    states: Vec<RangeState>,
    /// Ranges that are missing.
    missing: usize,
    /// The part file.
    pub part: Part,
    /// What of the part file was there when the landing was prepared, by position in the file.
    pub resumed: Vec<Range<u64>>,
    /// The length of the file that is at its name, if there is one.
    pub base: Option<u64>,
}

/// A range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeState {
    /// It has to be sent.
    Missing,
    /// It is in the part file.
    InPart,
    /// It is in the file that is at the name, and is to be kept.
    InBase,
}

/// A part file.
#[derive(Debug)]
pub(super) enum Part {
    /// Not created yet.
    Absent,
    /// Closed to make room for other open files; device and inode.
    Closed((u64, u64)),
    /// Open and locked; device and inode.
    Open(LockedFile, (u64, u64)),
}

impl Progress {
    /// A file at these positions of the content, of which nothing is there.
    pub fn new(content: &Range<u64>) -> Self {
        let ranges = ranges(content);
        let count = (ranges.end - ranges.start) as usize;
        Self {
            first: ranges.start,
            states: vec![RangeState::Missing; count],
            missing: count,
            part: Part::Absent,
            resumed: Vec::new(),
            base: None,
        }
    }

    /// The state of a range of the file.
    pub fn state(&self, range: u64) -> RangeState {
        self.states[(range - self.first) as usize]
    }

    /// Sets the state of a range of the file.
    pub fn set(&mut self, range: u64, state: RangeState) {
        let old = std::mem::replace(&mut self.states[(range - self.first) as usize], state);
        self.missing += usize::from(state == RangeState::Missing);
        self.missing -= usize::from(old == RangeState::Missing);
    }

    /// Whether no range is missing.
    pub const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// The ranges in a state.
    pub fn ranges_in(&self, state: RangeState) -> impl Iterator<Item = u64> + '_ {
        let all = self.states.iter().enumerate();
        all.filter(move |(_, found)| **found == state)
            .map(|(index, _)| self.first + index as u64)
    }

    /// Where pieces of the file in one range were when the landing was prepared: all of them in the
    /// part file, or all in the file at the name.
    pub fn find(&self, pieces: &[Piece]) -> RangeState {
        let in_part = |piece: &Piece| {
            let after = self.resumed.partition_point(|data| data.end < piece.end());
            let data = self.resumed.get(after);
            data.is_some_and(|data| data.start <= piece.offset)
        };
        let in_base = |piece: &Piece| self.base.is_some_and(|length| piece.end() <= length);
        match () {
            () if pieces.iter().all(in_part) => RangeState::InPart,
            () if pieces.iter().all(in_base) => RangeState::InBase,
            () => RangeState::Missing,
        }
    }
}

/// The ranges that these positions of the content are in.
pub(super) const fn ranges(content: &Range<u64>) -> Range<u64> {
    content.start / RANGE..content.end.div_ceil(RANGE)
}
