//! The pieces of a host, and which it fetches next.

use crate::random::mix;

/// Number of pieces, unless they would be smaller than [`MIN_PIECE`].
const PIECES: u64 = 128;
const MIN_PIECE: u64 = 16 << 10;

/// The pieces of a host.
#[derive(Debug, Clone)]
pub(crate) struct Pieces {
    /// Missing bytes of each piece.
    missing: Vec<u64>,
    /// Number of path-level peers that fetch each piece.
    busy: Vec<u16>,
    /// The pieces it has, 64 to a word.
    have: Vec<u64>,
    left: u64,
    size: u64,
    /// Orders equally rare pieces, differently on each host.
    taste: u64,
}

impl Pieces {
    /// A host without pieces of content of this size, in bytes.
    pub fn none(size: u64, taste: u64) -> Self {
        let piece = size.div_ceil(PIECES).max(MIN_PIECE);
        let begins = (0..size.div_ceil(piece)).map(|at| piece * at);
        let missing: Vec<u64> = begins.map(|begin| piece.min(size - begin)).collect();
        Self {
            busy: vec![0; missing.len()],
            have: vec![0; missing.len().div_ceil(64)],
            missing,
            left: size,
            size,
            taste: mix(taste),
        }
    }

    /// A host with all pieces.
    pub fn all(size: u64) -> Self {
        let mut all = Self::none(size, 0);
        for piece in 0..all.missing.len() {
            all.take(piece, u64::MAX);
        }
        all
    }

    /// Bytes of the content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that are missing.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The pieces it has.
    pub fn held(&self) -> impl Iterator<Item = usize> {
        (0..self.missing.len()).filter(|&piece| self.has(piece))
    }

    pub fn has(&self, piece: usize) -> bool {
        self.have[piece / 64] & (1 << (piece % 64)) != 0
    }

    /// Whether `from` has a piece that is missing here.
    pub fn wants(&self, from: &Self) -> bool {
        let mut words = self.have.iter().zip(&from.have);
        words.any(|(own, theirs)| theirs & !own != 0)
    }

    /// The piece to request from `from`: the rarest that no path-level peer fetches, otherwise the
    /// one with most bytes missing (endgame).
    pub fn next(&self, from: &Self, copies: &[u32]) -> Option<usize> {
        let mut best: Option<(u16, u64, u64, usize)> = None;
        for (word, (own, theirs)) in self.have.iter().zip(&from.have).enumerate() {
            let mut open = theirs & !own;
            while open != 0 {
                let piece = word * 64 + open.trailing_zeros() as usize;
                open &= open - 1;
                let busy = self.busy[piece].min(1);
                let rank = match busy {
                    0 => u64::from(copies[piece]),
                    _ => u64::MAX - self.missing[piece],
                };
                let key = (busy, rank, mix(self.taste ^ piece as u64), piece);
                if best.is_none_or(|best| key < best) {
                    best = Some(key);
                }
            }
        }
        best.map(|(.., piece)| piece)
    }

    /// A path-level peer begins to fetch a piece.
    pub fn begin(&mut self, piece: usize) {
        self.busy[piece] += 1;
    }

    /// A path-level peer has fetched a piece, or gives it up.
    pub fn end(&mut self, piece: usize) {
        self.busy[piece] -= 1;
    }

    /// Adds at most `bytes` received bytes to a piece. Returns how many were added, and whether
    /// they complete the piece.
    pub fn take(&mut self, piece: usize, bytes: u64) -> (u64, bool) {
        let taken = bytes.min(self.missing[piece]);
        self.missing[piece] -= taken;
        self.left -= taken;
        let whole = taken > 0 && self.missing[piece] == 0;
        if whole {
            self.have[piece / 64] |= 1 << (piece % 64);
        }
        (taken, whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_add_up() {
        for size in [1, 16 << 10, (16 << 10) + 1, 100_000_000] {
            let missing = Pieces::none(size, 0).missing;
            assert_eq!(missing.iter().sum::<u64>(), size);
            assert!(missing.len() <= 128);
            assert_eq!(Pieces::all(size).left(), 0);
            assert_eq!(Pieces::all(size).held().count(), missing.len());
        }
    }

    #[test]
    fn the_rarest_piece_comes_first_and_busy_ones_last() {
        let size = 3 * (16 << 10);
        let (mut leecher, seeder) = (Pieces::none(size, 1), Pieces::all(size));
        let copies = [3, 1, 2];
        assert!(leecher.wants(&seeder) && !seeder.wants(&leecher));
        for expected in [1, 2, 0] {
            assert_eq!(leecher.next(&seeder, &copies), Some(expected));
            leecher.begin(expected);
        }
        // All are being fetched: the one with most missing is fetched twice.
        leecher.take(1, 10_000);
        leecher.take(2, 5_000);
        assert_eq!(leecher.next(&seeder, &copies), Some(0));
        assert_eq!(leecher.take(2, u64::MAX), ((16 << 10) - 5_000, true));
        assert_eq!(leecher.take(2, 5), (0, false));
        // This leecher offers only that piece.
        let other = Pieces::none(size, 2);
        assert_eq!(other.next(&leecher, &copies), Some(2));
    }
}
