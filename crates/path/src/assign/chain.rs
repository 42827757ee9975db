//! Chains: one peer gets a path, for which others give one up and get another instead.

use super::stuck::Stuck;
use super::table::{Item, Table};

/// Most paths tried per change, which take some milliseconds. The search ends at this limit only if
/// hundreds of paths overlap; the result so far stands, and the next change continues from it.
const STEPS: u32 = 1 << 13;

/// Most of them that are tried to make sure that there is no chain for one peer: enough for an
/// exhaustive search of a small network.
const THOROUGH: u32 = 128;

/// Most paths that a chain gives to peers; each but the first replaces another.
const DEPTH: u32 = 12;

/// How many more paths may be tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(STEPS)
    }
}

/// Makes the shares more even, chain by chain, until no chain helps. Never makes them less even: a
/// chain gives one peer its `n`th path, and no peer that had `n` is left with fewer.
pub(super) fn even_out(table: &mut Table, order: &[usize], stuck: &mut Stuck, budget: &mut Budget) {
    let mut search = Search::new(table.items.len());
    loop {
        let bound = Bound::of(table);
        let open = |seat: &usize| {
            let level = table.seats[*seat].count + 1;
            table.has_room(*seat) && bound.allows(level) && !is_stuck(table, stuck, *seat)
        };
        let mut poorest: Vec<_> = order.iter().copied().filter(open).collect();
        // Stable: peers with equal counts keep their order.
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

/// A limit for all chains: one that gives a peer its `n`th path needs room for one more path, if at
/// most `n` paths of each peer are counted.
struct Bound {
    /// Most paths that can be in use together.
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

/// Whether a search for a chain is known to find none.
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
    class.is_some_and(|class| stuck.leaders.get(&class).copied().is_some_and(like))
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
    let mut chain = Chain {
        level: table.seats[seat].count + 1,
        table,
        search,
        budget,
    };
    let found = chain.find(seat) || chain.find_thoroughly(seat);
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
            stuck.leaders.insert(class, peer);
        }
    }
    found
}

/// The state of one search.
#[derive(Default)]
struct Search {
    /// Counts the searches.
    now: u32,
    /// Whether a path may be tried again, in combination with other paths of the chain.
    thorough: bool,
    /// By path: the search that last tried it. Each path is tried once, so that the search ends.
    tried: Vec<u32>,
    /// By path: the search that last took it.
    taken: Vec<u32>,
    /// The paths tried.
    looked_at: Vec<Item>,
    /// The peers whose paths conflicted.
    owners: Vec<usize>,
    /// The paths taken (`true`) and given up (`false`), in order.
    moves: Vec<(Item, bool)>,
    /// How many paths peers must have in the end: the first peer, and all that gave one up.
    due: Vec<(usize, usize)>,
    /// The paths that conflict with those of the chain so far, one after another.
    blockers: Vec<Item>,
}

impl Search {
    fn new(items: usize) -> Self {
        Self {
            tried: vec![0; items],
            taken: vec![0; items],
            ..Self::default()
        }
    }
}

struct Chain<'a> {
    table: &'a mut Table,
    /// How many paths the first peer has in the end. A peer that keeps as many needs none in
    /// return.
    level: usize,
    search: &'a mut Search,
    budget: &'a mut Budget,
}

impl Chain<'_> {
    /// Gives a peer one more path. Returns whether that worked; if not, nothing has changed.
    fn find(&mut self, seat: usize) -> bool {
        self.search.looked_at.clear();
        self.search.owners.clear();
        self.search.moves.clear();
        self.begin(seat, false)
    }

    /// The same, by an exhaustive search within [`THOROUGH`].
    fn find_thoroughly(&mut self, seat: usize) -> bool {
        let thorough = self.budget.0.min(THOROUGH);
        let rest = self.budget.0 - thorough;
        self.budget.0 = thorough;
        let found = self.begin(seat, true);
        self.budget.0 += rest;
        found
    }

    fn begin(&mut self, seat: usize, thorough: bool) -> bool {
        self.search.now += 1;
        self.search.thorough = thorough;
        self.search.due.clear();
        self.search.due.push((seat, self.level));
        self.go_on(DEPTH)
    }

    /// Gives every peer the number of paths it is due, in at most `depth` steps.
    fn go_on(&mut self, depth: u32) -> bool {
        let short = |&&(seat, due): &&(usize, usize)| self.table.seats[seat].count < due;
        let Some(&(seat, _)) = self.search.due.iter().find(short) else {
            return true;
        };
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
            let blockers = self.search.blockers.len();
            let gained = self.exchange(item, depth);
            self.search.blockers.truncate(blockers);
            if gained {
                return true;
            }
            if self.search.thorough {
                self.search.tried[item] = 0;
            }
        }
        false
    }

    /// Takes this path, and gives other paths to the peers that lose one to it. Returns whether
    /// that worked; if not, nothing has changed.
    fn exchange(&mut self, item: Item, depth: u32) -> bool {
        let from = self.search.blockers.len();
        self.table.blockers_into(item, &mut self.search.blockers);
        let now = self.search.now;
        let new = |one: &Item| self.search.taken[*one] == now;
        if self.search.blockers[from..].iter().any(new) {
            // It may still be possible beside other paths of the chain.
            self.search.tried[item] = 0;
            return false;
        }
        let (moves, due) = (self.search.moves.len(), self.search.due.len());
        for at in from..self.search.blockers.len() {
            self.give_up(self.search.blockers[at]);
        }
        self.take(item);
        if self.go_on(depth) {
            return true;
        }
        self.undo(moves);
        self.search.due.truncate(due);
        false
    }

    fn take(&mut self, item: Item) {
        self.table.take(item);
        self.search.taken[item] = self.search.now;
        self.search.moves.push((item, true));
    }

    fn give_up(&mut self, item: Item) {
        let owner = self.table.items[item].seat;
        self.search.owners.push(owner);
        if !self.search.due.iter().any(|&(seat, _)| seat == owner) {
            let due = self.table.seats[owner].count.min(self.level);
            self.search.due.push((owner, due));
        }
        self.table.drop(item);
        self.search.moves.push((item, false));
    }

    fn undo(&mut self, begin: usize) {
        for (item, taken) in self.search.moves.drain(begin..).rev() {
            if taken {
                self.table.drop(item);
                // It no longer belongs to the chain of this search.
                self.search.taken[item] = 0;
            } else {
                self.table.take(item);
            }
        }
    }
}

#[cfg(test)]
mod tests;
