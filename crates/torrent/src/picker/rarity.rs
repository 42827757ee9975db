//! Pieces not begun yet, ordered by how many peers have them.

use crate::bitfield::Bitfield;

/// The place of a piece that is in no bucket.
const NOWHERE: u32 = u32::MAX;

/// Pieces in buckets by availability: a change moves one piece, and a pick looks at the rarest
/// first. Peers that have every piece are not counted, as they do not change the order.
#[derive(Debug)]
pub(super) struct Rarity {
    availability: Vec<u32>,
    /// The position of each piece in its bucket.
    place: Vec<u32>,
    buckets: Vec<Vec<u32>>,
}

impl Rarity {
    /// All pieces of `0..count` that are not in `done`. No peer has any of them yet.
    pub fn new(count: u32, done: &Bitfield) -> Self {
        let mut rarity = Self {
            availability: vec![0; count as usize],
            place: vec![NOWHERE; count as usize],
            buckets: vec![Vec::new()],
        };
        (0..count)
            .filter(|piece| !done.has(*piece))
            .for_each(|piece| rarity.insert(piece));
        rarity
    }

    /// Whether `piece` is not begun yet.
    pub fn contains(&self, piece: u32) -> bool {
        self.place
            .get(piece as usize)
            .is_some_and(|place| *place != NOWHERE)
    }

    /// Number of counted peers that have `piece`.
    #[cfg(test)]
    pub fn availability(&self, piece: u32) -> u32 {
        self.availability[piece as usize]
    }

    /// Counts one more peer that has `piece`.
    pub fn add(&mut self, piece: u32) {
        self.shift(piece, |availability| availability + 1);
    }

    /// Counts one peer fewer that has `piece`.
    pub fn subtract(&mut self, piece: u32) {
        self.shift(piece, |availability| availability.saturating_sub(1));
    }

    /// Removes `piece`, which is begun.
    pub fn remove(&mut self, piece: u32) {
        let place = std::mem::replace(&mut self.place[piece as usize], NOWHERE);
        if place == NOWHERE {
            return;
        }
        let bucket = &mut self.buckets[self.availability[piece as usize] as usize];
        bucket.swap_remove(place as usize);
        if let Some(moved) = bucket.get(place as usize) {
            self.place[*moved as usize] = place;
        }
    }

    /// One of the rarest pieces among those in `has`, at random; `counted` if `has` is of a peer
    /// that is counted.
    pub fn rarest(&self, has: &Bitfield, counted: bool, rng: &mut fastrand::Rng) -> Option<u32> {
        // No counted peer has a piece of the first bucket.
        let buckets = self.buckets.iter().skip(usize::from(counted));
        buckets.into_iter().find_map(|bucket| {
            let start = match bucket.len() {
                0 => return None,
                len => rng.usize(..len),
            };
            let (before, after) = bucket.split_at(start);
            let mut around = after.iter().chain(before);
            around.find(|piece| has.has(**piece)).copied()
        })
    }

    /// Any piece among those in `has`, at random: until the first piece is complete, speed counts
    /// more than rarity (random first piece, as is common practice with BEP 3).
    pub fn any(&self, has: &Bitfield, rng: &mut fastrand::Rng) -> Option<u32> {
        let count = self.place.len() as u32;
        let start = rng.u32(..count.max(1));
        (start..count)
            .chain(0..start)
            .find(|piece| self.contains(*piece) && has.has(*piece))
    }

    fn shift(&mut self, piece: u32, change: impl Fn(u32) -> u32) {
        let listed = self.contains(piece);
        if listed {
            self.remove(piece);
        }
        let availability = &mut self.availability[piece as usize];
        *availability = change(*availability);
        if listed {
            self.insert(piece);
        }
    }

    fn insert(&mut self, piece: u32) {
        let availability = self.availability[piece as usize] as usize;
        if self.buckets.len() <= availability {
            self.buckets.resize_with(availability + 1, Vec::new);
        }
        let bucket = &mut self.buckets[availability];
        self.place[piece as usize] = bucket.len() as u32;
        bucket.push(piece);
    }
}
