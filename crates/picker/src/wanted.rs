//! The pieces of the files that are wanted, and their order.

use std::ops::Range;

use hawser_metainfo::{Metainfo, Pieces};
use hawser_wire::BLOCK;

/// How much a file is wanted. A piece that has bytes of several files is wanted as much as the one
/// of them that is wanted most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// Not at all: its file is not created.
    Skip,
    /// After all others.
    Low,
    /// As most files.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// The order in which pieces of one priority are fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PieceOrder {
    /// Those that fewest peers have come first, which keeps all pieces available in the swarm.
    #[default]
    RarestFirst,
    /// In the order of the content, as for reading while it is fetched.
    Sequential,
}

/// How early a piece is fetched, the earliest greatest: those of the window, then by priority.
pub(crate) type Rank = (bool, Priority);

/// The rank of the pieces of the window.
pub(crate) const WINDOW: Rank = (true, Priority::High);

/// How much each piece is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    priorities: Vec<Priority>,
    order: PieceOrder,
    /// The pieces that come first, in order.
    window: Range<u32>,
    /// Whether all wanted pieces have the same rank.
    is_uniform: bool,
}

impl Wanted {
    /// Everything, rarest first.
    pub fn everything(pieces: Pieces) -> Self {
        let priorities = vec![Priority::default(); pieces.count() as usize];
        Self::new(priorities, PieceOrder::default(), 0..0)
    }

    /// Pieces with these priorities, of which those of `window` come first.
    pub fn new(priorities: Vec<Priority>, order: PieceOrder, window: Range<u32>) -> Self {
        let wanted = priorities.iter().filter(|it| **it != Priority::Skip);
        let first = wanted.clone().next();
        Self {
            is_uniform: window.is_empty() && wanted.clone().all(|it| Some(it) == first),
            priorities,
            order,
            window,
        }
    }

    /// Whether a piece is wanted.
    pub fn has(&self, piece: u32) -> bool {
        self.priority(piece) != Priority::Skip
    }

    /// The priority of a piece; past the last one, that of a piece not wanted.
    pub fn priority(&self, piece: u32) -> Priority {
        let known = self.priorities.get(piece as usize);
        known.copied().unwrap_or(Priority::Skip)
    }

    /// The rank of a piece. Those of the window all have the same.
    pub fn rank(&self, piece: u32) -> Rank {
        match self.window.contains(&piece) {
            true => WINDOW,
            false => (false, self.priority(piece)),
        }
    }

    /// Whether all wanted pieces have the same rank.
    pub fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    /// Whether all wanted pieces have the same rank, and the rarest come first.
    pub fn is_rarest_first(&self) -> bool {
        self.is_uniform && self.order == PieceOrder::RarestFirst
    }

    /// The order of pieces of one priority.
    pub fn order(&self) -> PieceOrder {
        self.order
    }

    /// The pieces that come first.
    pub fn window(&self) -> Range<u32> {
        self.window.clone()
    }
}

/// The padding of a torrent (BEP 47): zeros that are not requested, neither blocks of it alone nor what a
/// block ends with. Without it a piece ends with its file, as in version 2 (BEP 52); anacrolix/torrent takes
/// no requests past that, of hybrids either.
#[derive(Debug, Clone, Default)]
pub struct Padding {
    /// In order, none of them empty; adjacent ones are one.
    ranges: Vec<Range<u64>>,
}

impl Padding {
    /// Padding at these places, in the order of the content.
    pub fn new(places: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut ranges = Vec::<Range<u64>>::new();
        for bytes in places.into_iter().filter(|bytes| !bytes.is_empty()) {
            match ranges.last_mut() {
                Some(last) if last.end == bytes.start => last.end = bytes.end,
                _ => ranges.push(bytes),
            }
        }
        Self { ranges }
    }

    /// The padding of a torrent.
    pub fn of(metainfo: &Metainfo) -> Self {
        let mut at = 0;
        let files = metainfo.files.iter().map(|file| {
            let bytes = at..at + file.length;
            at = bytes.end;
            (file.padding, bytes)
        });
        Self::new(
            files
                .filter(|(padding, _)| *padding)
                .map(|(_, bytes)| bytes),
        )
    }

    /// How many of the `length` bytes from `start` on are requested.
    pub fn trim(&self, start: u64, length: u32) -> u32 {
        let end = start + u64::from(length);
        let at = self.ranges.partition_point(|it| it.end < end);
        match self.ranges.get(at).filter(|it| it.start < end) {
            Some(padding) => (padding.start.max(start) - start) as u32,
            None => length,
        }
    }

    /// Whether all of `bytes` are padding.
    fn covers(&self, bytes: &Range<u64>) -> bool {
        let at = self
            .ranges
            .partition_point(|padding| padding.end < bytes.end);
        let padding = self.ranges.get(at);
        padding.is_some_and(|padding| padding.start <= bytes.start && bytes.end <= padding.end)
    }

    /// Which blocks of a piece are padding alone; empty if none is.
    pub fn blocks(&self, pieces: Pieces, piece: u32) -> Vec<u32> {
        if self.ranges.is_empty() {
            return Vec::new();
        }
        let bytes = pieces.range(piece);
        let count = pieces.size(piece).div_ceil(BLOCK);
        let is_padding = |block: &u32| {
            let start = bytes.start + u64::from(*block) * u64::from(BLOCK);
            let end = bytes.end.min(start + u64::from(BLOCK));
            self.covers(&(start..end))
        };
        (0..count).filter(is_padding).collect()
    }
}
