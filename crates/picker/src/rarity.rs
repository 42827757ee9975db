//! Wanted pieces not begun yet, ordered by priority and by how many peers have them.

use std::collections::BTreeSet;

use super::AddressFamily;
use super::claims::Claims;
use crate::wanted::{PieceOrder, Priority};
use crate::wanted::{Rank, WINDOW, Wanted};
use hawser_wire::Bitfield;

/// The place of a piece that is in no bucket.
const NOWHERE: u32 = u32::MAX;

/// The priorities of wanted pieces, the first to be fetched first.
const LEVELS: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

/// Pieces of each priority in buckets by availability: a change moves one piece, and a pick looks at
/// the rarest first. Peers that have every piece are not counted, as they do not change the order.
#[derive(Debug)]
pub(super) struct Rarity {
    availability: Vec<u32>,
    /// The position of each piece in its bucket.
    place: Vec<u32>,
    levels: [Level; LEVELS.len()],
}

/// The pieces of one priority.
#[derive(Debug, Default)]
struct Level {
    buckets: Vec<Vec<u32>>,
    /// All of them, in the order of the content.
    ordered: BTreeSet<u32>,
}

/// How to choose among the pieces of a peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    /// The pieces of the peer.
    pub has: &'a Bitfield,
    /// Whether they are counted.
    pub counted: bool,
    /// Whether no piece is complete yet: until then, speed counts more than rarity (random first
    /// piece, as is common practice with BEP 3).
    pub is_first: bool,
    /// How leechers share pieces out, and the kind of this peer's address; `None` if that does not matter for it.
    pub claims: Option<(&'a Claims, AddressFamily)>,
}

impl Choice<'_> {
    /// The piece to begin among `pieces`, which come in the order of preference.
    fn first(&self, pieces: impl Iterator<Item = u32>) -> Option<u32> {
        let mut suitable = pieces.filter(|piece| self.has.has(*piece));
        match self.claims {
            Some((claims, family)) => claims.choose(suitable, family),
            None => suitable.next(),
        }
    }
}

impl Rarity {
    /// No piece of `0..count`, and no peer has any of them yet.
    pub fn new(count: u32) -> Self {
        Self {
            availability: vec![0; count as usize],
            place: vec![NOWHERE; count as usize],
            levels: Default::default(),
        }
    }

    /// Whether `piece` is wanted and not begun yet.
    pub fn contains(&self, piece: u32) -> bool {
        self.place
            .get(piece as usize)
            .is_some_and(|place| *place != NOWHERE)
    }

    /// Number of counted peers that have `piece`.
    pub fn availability(&self, piece: u32) -> u32 {
        self.availability[piece as usize]
    }

    /// The wanted pieces not begun that no counted peer has.
    pub fn unavailable_pieces(&self) -> impl Iterator<Item = u32> {
        let first = self.levels.iter().filter_map(|level| level.buckets.first());
        first.flatten().copied()
    }

    /// How many these are.
    pub fn unavailable(&self) -> usize {
        let first = self.levels.iter().filter_map(|level| level.buckets.first());
        first.map(Vec::len).sum()
    }

    /// Counts one more peer that has `piece`.
    pub fn add(&mut self, piece: u32, wanted: &Wanted) {
        self.shift(piece, wanted, |availability| availability + 1);
    }

    /// Counts one peer fewer that has `piece`.
    pub fn subtract(&mut self, piece: u32, wanted: &Wanted) {
        self.shift(piece, wanted, |availability| availability.saturating_sub(1));
    }

    /// Adds `piece`, which is not begun, with its priority; one that is not wanted is not added.
    pub fn insert(&mut self, piece: u32, wanted: &Wanted) {
        if let Some(level) = level(wanted.priority(piece)) {
            self.levels[level].ordered.insert(piece);
            self.put(level, piece);
        }
    }

    /// Removes `piece`, which is begun or no longer wanted; `wanted` is what it was added with.
    pub fn remove(&mut self, piece: u32, wanted: &Wanted) {
        if let Some(level) = level(wanted.priority(piece)) {
            self.levels[level].ordered.remove(&piece);
            self.take(level, piece);
        }
    }

    /// The piece to begin next among those of a peer, if its rank is above `above`.
    pub fn choose(
        &self,
        choice: Choice<'_>,
        wanted: &Wanted,
        above: Option<Rank>,
        rng: &mut fastrand::Rng,
    ) -> Option<u32> {
        let is_above = |rank: Rank| above.is_none_or(|above| rank > above);
        if is_above(WINDOW) && !wanted.window().is_empty() {
            let levels = self.levels.iter();
            let first = levels.filter_map(|level| {
                let mut window = level.ordered.range(wanted.window()).copied();
                window.find(|piece| choice.has.has(*piece))
            });
            if let Some(first) = first.min() {
                return Some(first);
            }
        }
        let levels = LEVELS.iter().zip(&self.levels);
        let mut levels = levels.filter(|(priority, _)| is_above((false, **priority)));
        levels.find_map(|(_, level)| match wanted.order() {
            PieceOrder::Sequential => {
                let mut ordered = level.ordered.iter().copied();
                ordered.find(|piece| choice.has.has(*piece))
            }
            PieceOrder::RarestFirst if choice.is_first => level.any(choice, rng),
            PieceOrder::RarestFirst => level.rarest(choice, rng),
        })
    }

    fn shift(&mut self, piece: u32, wanted: &Wanted, change: impl Fn(u32) -> u32) {
        let listed = level(wanted.priority(piece)).filter(|_| self.contains(piece));
        listed.iter().for_each(|level| self.take(*level, piece));
        let availability = &mut self.availability[piece as usize];
        *availability = change(*availability);
        listed.iter().for_each(|level| self.put(*level, piece));
    }

    /// Takes a piece out of its bucket.
    fn take(&mut self, level: usize, piece: u32) {
        let place = std::mem::replace(&mut self.place[piece as usize], NOWHERE);
        if place == NOWHERE {
            return;
        }
        let availability = self.availability[piece as usize] as usize;
        let bucket = &mut self.levels[level].buckets[availability];
        bucket.swap_remove(place as usize);
        if let Some(moved) = bucket.get(place as usize) {
            self.place[*moved as usize] = place;
        }
    }

    /// Puts a piece into its bucket.
    fn put(&mut self, level: usize, piece: u32) {
        let availability = self.availability[piece as usize] as usize;
        let buckets = &mut self.levels[level].buckets;
        if buckets.len() <= availability {
            buckets.resize_with(availability + 1, Vec::new);
        }
        let bucket = &mut buckets[availability];
        self.place[piece as usize] = bucket.len() as u32;
        bucket.push(piece);
    }
}

impl Level {
    /// One of the rarest pieces of a peer, at random.
    fn rarest(&self, choice: Choice<'_>, rng: &mut fastrand::Rng) -> Option<u32> {
        // No counted peer has a piece of the first bucket.
        let buckets = self.buckets.iter().skip(usize::from(choice.counted));
        buckets.into_iter().find_map(|bucket| {
            let start = match bucket.len() {
                0 => return None,
                len => rng.usize(..len),
            };
            let (before, after) = bucket.split_at(start);
            let around = after.iter().chain(before).copied();
            choice.first(around)
        })
    }

    /// Any piece among those in `has`, at random.
    fn any(&self, choice: Choice<'_>, rng: &mut fastrand::Rng) -> Option<u32> {
        let last = *self.ordered.last()?;
        let start = rng.u32(..=last);
        let around = self
            .ordered
            .range(start..)
            .chain(self.ordered.range(..start));
        choice.first(around.copied())
    }
}

/// The level of a priority; `None` if pieces of it are not wanted.
fn level(priority: Priority) -> Option<usize> {
    LEVELS.iter().position(|level| *level == priority)
}
