//! Chains: a path for one peer, for which others give one up and get another instead.

use super::stuck::Stuck;
use super::table::{Item, Table};

/// How many paths are tried for each change: some milliseconds. It ends the search only where
/// hundreds of paths are intertwined; what is found until then stands, and the next change goes on
/// from there.
const STEPS: u32 = 1 << 13;

/// How many peers a chain goes through; each has to give up a path and get another.
const DEPTH: u32 = 6;

/// How much longer chains are searched for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(STEPS)
    }
}

/// Makes the shares more even, chain by chain, until no chain helps. Never makes them less so: a
/// chain gives one peer its `n`th path, and nobody has fewer than `n` for it who had as many.
pub(super) fn even_out(table: &mut Table, order: &[usize], stuck: &mut Stuck, budget: &mut Budget) {
    let mut search = Search::new(table.items.len());
    loop {
        let bound = Bound::of(table);
        let open = |seat: &usize| {
            let level = table.seats[*seat].count + 1;
            table.has_room(*seat) && bound.allows(level) && !is_stuck(table, stuck, *seat)
        };
        let mut poorest: Vec<_> = order.iter().copied().filter(open).collect();
        // Stable: those of equal count stay in their order.
        poorest.sort_by_key(|&seat| table.seats[seat].count);
        let helped = poorest.into_iter().any(|seat| {
            // Peers with the same paths are stuck together.
            !is_stuck(table, stuck, seat) && helps(table, seat, &mut search, stuck, budget)
        });
        if !helped {
            return;
        }
    }
}

/// What no chain can go beyond. For a chain that gives a peer its `n`th path, there must be room
/// for more paths, when of each peer only the first `n` are counted.
struct Bound {
    /// How many paths may be in use together at most.
    most: usize,
    /// By number of paths: how many peers have at least as many.
    at_least: Vec<usize>,
}

impl Bound {
    fn of(table: &Table) -> Self {
        let mut at_least = Vec::new();
        for seat in &table.seats {
            at_least.resize(at_least.len().max(seat.count + 1), 0);
            at_least[seat.count] += 1;
        }
        for count in (1..at_least.len()).rev() {
            at_least[count - 1] += at_least[count];
        }
        Self {
            most: table.most_together(),
            at_least,
        }
    }

    fn allows(&self, level: usize) -> bool {
        self.at_least.iter().skip(1).take(level).sum::<usize>() < self.most
    }
}

/// Whether a search for a chain would find none.
fn is_stuck(table: &Table, stuck: &Stuck, seat: usize) -> bool {
    let seat = &table.seats[seat];
    if stuck.is_stuck(seat.peer) {
        return true;
    }
    let like = |leader: usize| {
        let leader = table.peers.get(leader).copied().flatten();
        leader.is_some_and(|leader| {
            let leader = &table.seats[leader];
            leader.class == seat.class && leader.count == 0 && stuck.is_stuck(leader.peer)
        })
    };
    let class = seat.class.filter(|_| seat.count == 0);
    class.is_some_and(|class| stuck.leader(&class).is_some_and(like))
}

/// Searches for a chain that gives a peer one more path.
fn helps(
    table: &mut Table,
    seat: usize,
    search: &mut Search,
    stuck: &mut Stuck,
    budget: &mut Budget,
) -> bool {
    if budget.0 == 0 {
        return false;
    }
    search.begin();
    let mut chain = Chain {
        level: table.seats[seat].count + 1,
        table,
        search,
        budget,
    };
    let found = chain.raise(seat, chain.level, DEPTH);
    if found {
        for &(item, _) in &search.moves {
            table.changed(item, stuck);
        }
    } else if budget.0 > 0 {
        let peer = table.seats[seat].peer;
        for &item in &search.looked_at {
            for &link in table.links(item) {
                stuck.looked_at_link(peer, link);
            }
        }
        for &owner in &search.owners {
            stuck.looked_at_peer(peer, table.seats[owner].peer);
        }
        stuck.found_nothing(peer);
        if let (Some(class), 0) = (table.seats[seat].class, table.seats[seat].count) {
            stuck.lead(class, peer);
        }
    }
    found
}

/// What one search did and saw.
struct Search {
    /// Counts the searches.
    now: u32,
    /// By path: the search that last tried it. Each path is tried once, so that the search ends.
    tried: Vec<u32>,
    /// By path: the search that last took it.
    taken: Vec<u32>,
    /// The paths tried.
    looked_at: Vec<Item>,
    /// Whose paths were in the way.
    owners: Vec<usize>,
    /// What was done, each `true` for taken.
    moves: Vec<(Item, bool)>,
    /// What is in the way of the paths of the chain so far, one after another.
    blockers: Vec<Item>,
    /// What their owners are to have, one after another.
    owed: Vec<Owed>,
}

/// How many paths a peer is to have after giving up some.
#[derive(Clone, Copy)]
struct Owed {
    seat: usize,
    due: usize,
    lost: usize,
}

impl Search {
    fn new(items: usize) -> Self {
        Self {
            now: 0,
            tried: vec![0; items],
            taken: vec![0; items],
            looked_at: Vec::new(),
            owners: Vec::new(),
            moves: Vec::new(),
            blockers: Vec::new(),
            owed: Vec::new(),
        }
    }

    fn begin(&mut self) {
        self.now += 1;
        self.looked_at.clear();
        self.owners.clear();
        self.moves.clear();
    }
}

struct Chain<'a> {
    table: &'a mut Table,
    /// What the first peer has in the end. Who has that much needs nothing in return.
    level: usize,
    search: &'a mut Search,
    budget: &'a mut Budget,
}

impl Chain<'_> {
    /// Brings a peer to `count` paths; whether that worked. If not, nothing is different.
    fn raise(&mut self, seat: usize, count: usize, depth: u32) -> bool {
        let begin = self.search.moves.len();
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
            if self.budget.0 == 0 {
                return false;
            }
            let now = self.search.now;
            if self.table.taken[item] || self.search.tried[item] == now {
                continue;
            }
            self.search.tried[item] = now;
            self.search.looked_at.push(item);
            self.budget.0 -= 1;
            let (blockers, owed) = (self.search.blockers.len(), self.search.owed.len());
            let gained = self.exchange(seat, item, depth);
            self.search.blockers.truncate(blockers);
            self.search.owed.truncate(owed);
            if gained {
                return true;
            }
        }
        false
    }

    /// Gives a peer this path, and makes good to all others what they lose by it. If that does not
    /// work, nothing is different.
    fn exchange(&mut self, seat: usize, item: Item, depth: u32) -> bool {
        let blockers = self.search.blockers.len();
        self.table.blockers_into(item, &mut self.search.blockers);
        let now = self.search.now;
        let new = |one: &Item| self.search.taken[*one] == now;
        if self.search.blockers[blockers..].iter().any(new) {
            return false;
        }
        let owed = self.search.owed.len();
        self.owe(seat, blockers);
        let is_short = |owed: &Owed| self.table.seats[owed.seat].count - owed.lost < owed.due;
        if depth == 0 && self.search.owed[owed..].iter().any(is_short) {
            return false;
        }
        let begin = self.search.moves.len();
        for at in blockers..self.search.blockers.len() {
            self.give_up(self.search.blockers[at]);
        }
        self.take(item);
        for at in owed..self.search.owed.len() {
            let Owed { seat, due, .. } = self.search.owed[at];
            if !self.raise(seat, due, depth) {
                self.undo(begin);
                return false;
            }
        }
        true
    }

    /// Notes what is owed to whom for the last of the blockers. Those of `seat` itself are counted
    /// by who called.
    fn owe(&mut self, seat: usize, blockers: usize) {
        let begin = self.search.owed.len();
        for at in blockers..self.search.blockers.len() {
            let owner = self.table.items[self.search.blockers[at]].seat;
            if owner == seat {
                continue;
            }
            let mut owed = self.search.owed[begin..].iter_mut();
            if let Some(owed) = owed.find(|owed| owed.seat == owner) {
                owed.lost += 1;
                continue;
            }
            let due = self.table.seats[owner].count.min(self.level);
            self.search.owed.push(Owed {
                seat: owner,
                due,
                lost: 1,
            });
            self.search.owners.push(owner);
        }
    }

    fn take(&mut self, item: Item) {
        self.table.take(item);
        self.search.taken[item] = self.search.now;
        self.search.moves.push((item, true));
    }

    fn give_up(&mut self, item: Item) {
        self.table.drop(item);
        self.search.moves.push((item, false));
    }

    fn undo(&mut self, begin: usize) {
        for (item, taken) in self.search.moves.drain(begin..).rev() {
            if taken {
                self.table.drop(item);
                // Tried, it is not taken again by this search.
                self.search.taken[item] = 0;
            } else {
                self.table.take(item);
            }
        }
    }
}

#[cfg(test)]
mod tests;
