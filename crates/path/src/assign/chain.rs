//! Chains: a path for one peer, for which others give one up and get another instead.

use std::collections::BTreeSet;

use super::table::{Item, Table};

/// How many paths are tried for each change: some milliseconds. It ends the search only where
/// hundreds of paths are intertwined; what is found until then stands.
const STEPS: u32 = 1 << 13;

/// How many peers a chain goes through; each has to give up a path and get another.
const DEPTH: u32 = 6;

/// Makes the shares more even, chain by chain, until no chain helps. Never makes them less so.
pub(super) fn even_out(table: &mut Table, order: &[usize]) {
    let mut steps = STEPS;
    loop {
        let mut poorest = order.to_vec();
        // Stable: those of equal count stay in their order.
        poorest.sort_by_key(|&seat| table.seats[seat].count);
        let helped = poorest.into_iter().any(|seat| {
            if !table.has_room(seat) || steps == 0 {
                return false;
            }
            let before = table.score();
            let mut chain = Chain {
                level: table.seats[seat].count + 1,
                table,
                steps: &mut steps,
                tried: BTreeSet::new(),
                moves: Vec::new(),
            };
            let found = chain.raise(seat, chain.level, DEPTH);
            if found && chain.table.score() > before {
                return true;
            }
            chain.undo(0);
            false
        });
        if !helped {
            return;
        }
    }
}

struct Chain<'a> {
    table: &'a mut Table,
    /// What the first peer has in the end. Who has that much needs nothing in return.
    level: usize,
    steps: &'a mut u32,
    /// Each path is tried once in a chain, so that the search ends.
    tried: BTreeSet<Item>,
    /// What was done, each `true` for taken.
    moves: Vec<(Item, bool)>,
}

impl Chain<'_> {
    /// Brings a peer to `count` paths; whether that worked. If not, nothing is different.
    fn raise(&mut self, seat: usize, count: usize, depth: u32) -> bool {
        let begin = self.moves.len();
        while self.table.seats[seat].count < count {
            if !self.gain(seat, depth) {
                self.undo(begin);
                return false;
            }
        }
        true
    }

    /// Gives a peer a path, and makes good to all others what they lose by it.
    fn gain(&mut self, seat: usize, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        for item in self.table.seats[seat].items.clone() {
            if *self.steps == 0 {
                return false;
            }
            if self.table.taken[item] || !self.tried.insert(item) {
                continue;
            }
            *self.steps -= 1;
            let blockers = self.table.blockers(item);
            if blockers
                .iter()
                .any(|&one| self.moves.contains(&(one, true)))
            {
                continue;
            }
            let begin = self.moves.len();
            let owner = |one: Item, table: &Table| table.items[one].seat;
            let mut owed: Vec<(usize, usize)> = Vec::new();
            for &blocker in &blockers {
                let owner = owner(blocker, self.table);
                if !owed.iter().any(|&(one, _)| one == owner) {
                    let due = self.table.seats[owner].count.min(self.level);
                    owed.push((owner, due));
                }
            }
            for blocker in blockers {
                self.table.drop(blocker);
                self.moves.push((blocker, false));
            }
            self.table.take(item);
            self.moves.push((item, true));
            let all = owed.into_iter().all(|(owner, due)| {
                // Its own are counted by who called.
                owner == seat || self.raise(owner, due, depth)
            });
            if all {
                return true;
            }
            self.undo(begin);
        }
        false
    }

    fn undo(&mut self, begin: usize) {
        for (item, taken) in self.moves.drain(begin..).rev() {
            if taken {
                self.table.drop(item);
            } else {
                self.table.take(item);
            }
        }
    }
}
