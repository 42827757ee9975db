//! The largest set of paths of which no two share an interface.

use std::collections::HashMap;

use crate::Interface;
use crate::bits::Bits;
use crate::select::candidate::Cost;

/// Most sets of paths that the search tries before it returns the best so far. 15 paths have fewer
/// subsets, so their result is always exact; in a network, where few links leave an AS, so is that
/// of far more paths. The worst case is some tens of milliseconds.
const STEPS: u32 = 1 << 16;

/// Most paths that the search looks at, the first in rank.
const CAPACITY: usize = 512;

/// A path as the search sees it.
pub(super) struct Open {
    pub cost: Cost,
    /// The interfaces that no other path of the set may cross, in the order of the path.
    pub interfaces: Vec<Interface>,
}

impl Open {
    fn is_apart(&self, other: &Self) -> bool {
        self.interfaces
            .iter()
            .all(|interface| !other.interfaces.contains(interface))
    }
}

/// The largest set of at most `max` paths of which no two share an interface; of these the one with
/// the least cost in all; of these the lexicographically first. `ranked` has the paths by cost,
/// least first; the answer has indices into it, ascending.
pub(super) fn largest_disjoint(ranked: &[Open], max: usize) -> Vec<usize> {
    let mut search = Search::new(&ranked[..ranked.len().min(CAPACITY)], max);
    let mut all = Bits::default();
    for index in 0..search.paths.len() {
        all.insert(index);
    }
    search.descend(all, Cost::default());

    // There may be room left, for paths beyond the search's capacity or because the search ended
    // early.
    let mut best = search.best;
    for (index, path) in ranked.iter().enumerate() {
        if best.len() == max {
            break;
        }
        if best
            .iter()
            .all(|&one| one != index && path.is_apart(&ranked[one]))
        {
            best.push(index);
        }
    }
    best.sort_unstable();
    best
}

/// Branch and bound. Its first descent takes the best path, then the best that shares no interface
/// with it, and so on, as the paper does (001, section VI); further descents improve on that.
struct Search {
    paths: Vec<Node>,
    max: usize,
    steps: u32,
    chosen: Vec<usize>,
    best: Vec<usize>,
    best_cost: Cost,
}

struct Node {
    cost: Cost,
    /// The paths ranked after this one that share no interface with it.
    apart: Bits,
    /// A number for the first interface, the same for all paths that begin with it. A path without
    /// interfaces has a number that no other path has.
    first: usize,
    /// A number for the last interface, assigned likewise.
    last: usize,
}

impl Search {
    fn new(ranked: &[Open], max: usize) -> Self {
        let first = groups(ranked, |interfaces| interfaces.first());
        let last = groups(ranked, |interfaces| interfaces.last());
        let paths = ranked
            .iter()
            .enumerate()
            .map(|(index, path)| {
                let mut apart = Bits::default();
                for (later, other) in ranked.iter().enumerate().skip(index + 1) {
                    if path.is_apart(other) {
                        apart.insert(later);
                    }
                }
                Node {
                    cost: path.cost,
                    apart,
                    first: first[index],
                    last: last[index],
                }
            })
            .collect();
        Self {
            paths,
            max,
            steps: STEPS,
            chosen: Vec::new(),
            best: Vec::new(),
            best_cost: Cost::default(),
        }
    }

    /// Tries every set that adds paths of `open` to those chosen. Each path of `open` shares no
    /// interface with any chosen path; `cost` is that of the chosen paths.
    fn descend(&mut self, mut open: Bits, cost: Cost) {
        let (size, best) = (self.chosen.len(), self.best.len());
        if size > best || (size == best && cost < self.best_cost) {
            self.best.clone_from(&self.chosen);
            self.best_cost = cost;
        }
        while self.steps > 0 && self.can_improve(&open, cost) {
            let Some(next) = open.iter().next() else {
                return;
            };
            open.remove(next);
            self.steps -= 1;
            self.chosen.push(next);
            let node = &self.paths[next];
            self.descend(open.and(&node.apart), cost + node.cost);
            self.chosen.pop();
        }
    }

    /// Whether adding paths of `open` to those chosen can give a set that beats the best so far.
    fn can_improve(&self, open: &Bits, cost: Cost) -> bool {
        let room = (self.max - self.chosen.len()).min(self.most_apart(open));
        let most = self.chosen.len() + room;
        if most != self.best.len() {
            return most > self.best.len();
        }
        let least: Cost = open.iter().take(room).map(|one| self.paths[one].cost).sum();
        cost + least < self.best_cost
    }

    /// An upper bound for how many of `open` can be chosen together: one per first interface, and
    /// one per last interface.
    fn most_apart(&self, open: &Bits) -> usize {
        let distinct = |group: fn(&Node) -> usize| {
            let mut seen = Bits::default();
            open.iter()
                .filter(|&one| seen.insert(group(&self.paths[one])))
                .count()
        };
        distinct(|path| path.first).min(distinct(|path| path.last))
    }
}

/// For each path a number that is equal for exactly those with the same `end`.
fn groups(paths: &[Open], end: fn(&[Interface]) -> Option<&Interface>) -> Vec<usize> {
    let mut known = HashMap::new();
    paths
        .iter()
        .enumerate()
        .map(|(index, path)| match end(&path.interfaces) {
            Some(interface) => *known.entry(interface).or_insert(index),
            None => index,
        })
        .collect()
}
