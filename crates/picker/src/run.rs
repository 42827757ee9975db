//! Runs: pieces one after another in the content, requested together from a source that answers with
//! ranges of bytes.

use std::ops::Range;

use super::conn::Asked;
use super::{ConnId, Picked, Picker, request};
use crate::wanted::PieceOrder;
use crate::wanted::{Rank, WINDOW};
use hawser_wire::BLOCK;

/// A piece that may be in a run: its rank, and how many counted peers have it.
pub(super) type Candidate = (Rank, u32);

impl Picker {
    /// Chooses pieces to request over `conn` as one run, of about `most` blocks and one piece at least, and
    /// counts their blocks as requested. The run begins in the longest gap of what the fewest peers have. Once
    /// every piece is begun, up to `most` blocks of those are chosen as by [`Picker::pick`].
    pub fn pick_run(&mut self, conn: ConnId, most: usize) -> Picked {
        let Some(known) = self.conns.get(&conn) else {
            return Picked::default();
        };
        let blocks = self.pieces.length.div_ceil(BLOCK) as usize;
        let longest = u32::try_from(most / blocks.max(1)).unwrap_or(u32::MAX);
        let candidate = |piece: u32| {
            let is_open = self.rarity.contains(piece) && known.has.has(piece);
            is_open.then(|| {
                let availability = self.rarity.availability(piece);
                (self.wanted.rank(piece), availability)
            })
        };
        let count = self.pieces.count();
        let chosen = choose(count, longest.max(1), self.wanted.order(), candidate);
        let Some(run) = chosen else {
            return self.pick(conn, most);
        };
        let group = known.group;
        let mut picked = Picked::default();
        for piece in run {
            self.begin(piece);
            while let Some(block) = self.begun.take(piece, conn, group) {
                picked
                    .requests
                    .push(request(self.pieces, &self.padding, (piece, block)));
            }
        }
        if let Some(known) = self.conns.get_mut(&conn) {
            for request in &picked.requests {
                let block = (request.piece, request.begin / BLOCK);
                known.ask(block, request.length);
            }
        }
        picked
    }

    /// How many of the first requests over `conn` are not for others: those up to the last one for a piece
    /// that must come from its peer alone, which would have to be fetched anew.
    pub fn bound_requests(&self, conn: ConnId) -> usize {
        let Some(known) = self.conns.get(&conn) else {
            return 0;
        };
        let is_bound = |asked: &Asked| self.begun.is_bound_to(asked.block.0, known.group);
        let last = known.asked.iter().rposition(is_bound);
        last.map_or(0, |last| last + 1)
    }
}

/// The run to fetch among pieces `0..count`, at most `longest` pieces of one rank, the highest; `None` if
/// there is no candidate. In order, and in the window, it is the first. Else it begins with the longest stretch
/// of those that the fewest peers have, which peers can be asked for least. It may continue with others, as
/// a longer range costs no more requests.
pub(super) fn choose(
    count: u32,
    longest: u32,
    order: PieceOrder,
    candidate: impl Fn(u32) -> Option<Candidate>,
) -> Option<Range<u32>> {
    let all = || (0..count).filter_map(|piece| Some((piece, candidate(piece)?)));
    let highest = all().map(|(_, (rank, _))| rank).max()?;
    let of_rank = || all().filter(|(_, (rank, _))| *rank == highest);
    let first = match order {
        PieceOrder::RarestFirst if highest != WINDOW => {
            let rarest = of_rank().map(|(_, (_, peers))| peers).min()?;
            let rare = of_rank().filter(|(_, (_, peers))| *peers == rarest);
            longest_stretch(rare.map(|(piece, _)| piece))?
        }
        _ => of_rank().next()?.0,
    };
    let is_of_rank = |piece: &u32| candidate(*piece).is_some_and(|(rank, _)| rank == highest);
    let run = (first..count).take(longest as usize);
    let last = run.take_while(is_of_rank).last()?;
    Some(first..last + 1)
}

/// The first piece of the longest stretch of adjacent ones among `pieces`, which are in order; of several
/// as long, of the first.
fn longest_stretch(pieces: impl Iterator<Item = u32>) -> Option<u32> {
    let mut best: Option<Range<u32>> = None;
    let mut stretch = 0..0;
    for piece in pieces {
        stretch = match stretch.end == piece && !stretch.is_empty() {
            true => stretch.start..piece + 1,
            false => piece..piece + 1,
        };
        if best.as_ref().is_none_or(|best| stretch.len() > best.len()) {
            best = Some(stretch.clone());
        }
    }
    best.map(|best| best.start)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wanted::Priority;

    const NORMAL: Rank = (false, Priority::Normal);

    #[test]
    fn a_run_begins_in_the_longest_gap_of_the_rarest() {
        // How many peers have each piece; `x` is begun.
        let choose = |text: &str, order| {
            let pieces: Vec<char> = text.chars().collect();
            let peers = |piece: u32| {
                let digit = pieces[piece as usize].to_digit(10)?;
                Some((NORMAL, digit))
            };
            choose(pieces.len() as u32, 3, order, peers)
        };
        let rarest = PieceOrder::RarestFirst;
        assert_eq!(choose("1101x0021", rarest), Some(5..8));
        assert_eq!(choose("110211", rarest), Some(2..5));
        assert_eq!(choose("0x00000", rarest), Some(2..5));
        assert_eq!(choose("xx2", rarest), Some(2..3));
        assert_eq!(choose("xxx", rarest), None);
        assert_eq!(choose("x1x00", PieceOrder::Sequential), Some(1..2));
    }

    proptest! {
        #[test]
        fn a_run_is_of_adjacent_candidates_of_the_highest_rank(
            pieces in proptest::collection::vec(proptest::option::of((0..3u8, 0..4u32)), 0..40),
            longest in 1..10u32, in_order: bool,
        ) {
            let rank = |level| match level {
                0 => (false, Priority::Low),
                1 => NORMAL,
                _ => WINDOW,
            };
            let of = |piece: u32| pieces[piece as usize].map(|(level, peers)| (rank(level), peers));
            let order = if in_order { PieceOrder::Sequential } else { PieceOrder::RarestFirst };
            let count = pieces.len() as u32;
            let run = choose(count, longest, order, of);
            let highest = (0..count).filter_map(|piece| Some(of(piece)?.0)).max();
            prop_assert_eq!(run.is_some(), highest.is_some());
            if let Some(run) = run {
                prop_assert!(!run.is_empty() && run.len() <= longest as usize);
                for piece in run.clone() {
                    prop_assert_eq!(of(piece).map(|(rank, _)| rank), highest);
                }
                let of_rank = (0..count).filter(|piece| of(*piece).map(|it| it.0) == highest);
                let fewest = of_rank.clone().filter_map(|piece| Some(of(piece)?.1)).min();
                match in_order || highest == Some(WINDOW) {
                    true => prop_assert_eq!(Some(run.start), of_rank.min()),
                    false => prop_assert_eq!(of(run.start).map(|it| it.1), fewest),
                }
            }
        }
    }
}
