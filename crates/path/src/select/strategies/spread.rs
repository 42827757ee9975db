//! `spread:N%`: no AS but the two ends carries more than N % of the bytes.

mod packing;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use hawser_address::IsdAsn;

use crate::select::candidate::{Candidate, Cost};
use crate::select::kind::{Pick, Picker, Rule, StrategyKind};
use crate::text::number;
use crate::{Path, Reason};

pub(super) const KIND: StrategyKind = StrategyKind {
    argument: ":N%",
    remedy: "spread:40%, with 1 to 100",
    ..StrategyKind::new(
        "spread",
        "as few paths as allow that no AS between the ends carries more than N % of the bytes; \
         each path keeps to its share, so a slow one slows the others",
        Rule::Pick(|argument| {
            let percent = number(argument?.strip_suffix('%')?)?;
            let percent = u8::try_from(percent).ok()?;
            (1..=100)
                .contains(&percent)
                .then(|| Arc::new(Spread { percent }) as _)
        }),
    )
};

/// Most sets of paths that are tried: enough for all sets of 13 paths, or those of up to 4 of 20
/// paths.
const TRIES: usize = 1 << 13;

/// Most paths that are looked at, the first in rank.
const MAX_PATHS: usize = 64;

/// Shares are floats: the largest difference between equal ones.
const PRECISION: f64 = 1e-9;

/// Takes the fewest paths that can keep the limit, as every further one exposes bytes to further
/// ASes; of these sets the one with the best total rank. If none can, takes the set for which the
/// largest share of an AS is least.
#[derive(Debug)]
struct Spread {
    /// The largest share, in per cent: 1 to 100.
    percent: u8,
}

impl Picker for Spread {
    fn text(&self) -> String {
        format!("spread:{}%", self.percent)
    }

    fn pick(&self, ranked: &[Candidate<'_>], max: usize) -> Pick {
        let limit = f64::from(self.percent) / 100.0;
        let looked_at = &ranked[..ranked.len().min(MAX_PATHS)];
        let inner: Vec<_> = looked_at.iter().map(|one| inner(one.path)).collect();
        let costs: Vec<_> = looked_at.iter().map(Candidate::cost).collect();
        let search = Search {
            inner: &inner,
            costs: &costs,
            limit,
            max: max.min(inner.len()),
            tries: TRIES,
            best: None,
        };
        let Some(set) = search.run() else {
            return Pick {
                shares: Some(Vec::new()),
                ..Pick::default()
            };
        };
        let carriers: BTreeSet<_> = set.members.iter().flat_map(|&one| &inner[one]).collect();
        let most = carriers.into_iter().map(|isd_as| {
            let over =
                |(one, share): (&usize, &f64)| inner[*one].contains(isd_as).then_some(*share);
            let carried: f64 = set.members.iter().zip(&set.shares).filter_map(over).sum();
            (*isd_as, carried)
        });
        // Among equal ones the first is kept, so that the outcome is always the same.
        let most = most.fold(
            None,
            |most: Option<(IsdAsn, f64)>, (isd_as, carried)| match most {
                Some((_, before)) if carried <= before + PRECISION => most,
                _ => Some((isd_as, carried)),
            },
        );
        let taken = set.members.iter().zip(&set.shares).map(|(&rank, share)| {
            let reason = Reason::Spread {
                permille: permille(*share),
                most: most.map(|(isd_as, carried)| (isd_as, permille(carried))),
                limit: self.percent,
                kept: set.load <= limit + PRECISION,
                value: ranked[rank].value(),
            };
            (rank, Some(reason))
        });
        let taken = taken.collect::<Vec<_>>();
        let left = (0..ranked.len()).filter(|rank| !set.members.contains(rank));
        let enough = set.members.len();
        let left = left.filter(|_| enough < max).map(|rank| {
            let value = ranked[rank].value();
            (rank, Reason::NotNeeded { enough, value })
        });
        let left = left.collect();
        Pick {
            taken,
            left,
            ignored: Vec::new(),
            shares: Some(set.shares),
        }
    }
}

fn permille(share: f64) -> u16 {
    (share * 1e3).round() as u16
}

/// The ASes between the ends.
fn inner(path: &Path) -> BTreeSet<IsdAsn> {
    let ases = path.interfaces.iter().map(|interface| interface.isd_as);
    ases.filter(|isd_as| *isd_as != path.src && *isd_as != path.dst)
        .collect()
}

/// Paths, and their shares of the bytes.
struct Shared {
    /// Ascending.
    members: Vec<usize>,
    /// One per member, with a sum of 1.
    shares: Vec<f64>,
    /// The largest share of an AS between the ends.
    load: f64,
}

struct Search<'a> {
    inner: &'a [BTreeSet<IsdAsn>],
    costs: &'a [Cost],
    limit: f64,
    max: usize,
    tries: usize,
    best: Option<(Shared, Cost)>,
}

impl Search<'_> {
    /// `None` if there is nothing to take.
    fn run(mut self) -> Option<Shared> {
        if self.max == 0 {
            return None;
        }
        let all = self.share((0..self.inner.len()).collect());
        // The load of a set is never below that of a larger set that contains it. If all paths
        // together do not keep the limit, only sets of the largest size are worth trying.
        let from = match all.load <= self.limit + PRECISION {
            true => 1,
            false => self.max,
        };
        for size in from..=self.max {
            self.descend(&mut Vec::new(), 0, size);
            if self.is_kept() || self.tries == 0 {
                break;
            }
        }
        if !self.is_kept() {
            let reduced = self.reduce(all);
            self.offer(reduced);
        }
        self.best.map(|(set, _)| without_idle(set))
    }

    fn is_kept(&self) -> bool {
        let best = self.best.as_ref();
        best.is_some_and(|(set, _)| set.load <= self.limit + PRECISION)
    }

    /// Tries every set of `size` that extends those chosen by paths from `next` on.
    fn descend(&mut self, chosen: &mut Vec<usize>, next: usize, size: usize) {
        if chosen.len() == size {
            self.tries -= 1;
            let set = self.share(chosen.clone());
            return self.offer(set);
        }
        for one in next..=self.inner.len() - (size - chosen.len()) {
            if self.tries == 0 {
                return;
            }
            chosen.push(one);
            self.descend(chosen, one + 1, size);
            chosen.pop();
        }
    }

    /// Keeps a set if it is better than the best before.
    fn offer(&mut self, set: Shared) {
        let cost = set.members.iter().map(|&one| self.costs[one]).sum();
        let better = match &self.best {
            None => true,
            Some((best, best_cost)) => {
                let over = |load: f64| (load - self.limit - PRECISION).max(0.0);
                let (ours, theirs) = (over(set.load), over(best.load));
                match (ours - theirs).abs() <= PRECISION {
                    true => (set.members.len(), &cost) < (best.members.len(), best_cost),
                    false => ours < theirs,
                }
            }
        };
        if better {
            self.best = Some((set, cost));
        }
    }

    /// Removes the paths that carry least until at most `max` are left, in case not all sets could
    /// be tried.
    fn reduce(&self, mut set: Shared) -> Shared {
        set = without_idle(set);
        while set.members.len() > self.max {
            let shares = set.shares.iter().enumerate();
            // Among equal ones the last is removed, which ranks worst.
            let least = shares
                .rev()
                .min_by(|(_, one), (_, other)| one.total_cmp(other));
            if let Some((least, _)) = least {
                set.members.remove(least);
            }
            set = without_idle(self.share(set.members));
        }
        set
    }

    /// Shares out the bytes so that the largest share of an AS is as low as possible.
    fn share(&self, members: Vec<usize>) -> Shared {
        let sets: Vec<_> = members.iter().map(|&one| &self.inner[one]).collect();
        // A path without an AS between the ends exposes bytes to no AS.
        if let Some(free) = sets.iter().position(|set| set.is_empty()) {
            let shares = (0..members.len()).map(|at| f64::from(u8::from(at == free)));
            return Shared {
                shares: shares.collect(),
                members,
                load: 0.0,
            };
        }
        let (shares, load) = packing::least_load(&sets);
        Shared {
            members,
            shares,
            load,
        }
    }
}

/// The set without paths that would carry nothing.
fn without_idle(set: Shared) -> Shared {
    let used = set.members.into_iter().zip(set.shares);
    let (members, shares) = used.filter(|(_, share)| *share > PRECISION).unzip();
    Shared {
        members,
        shares,
        load: set.load,
    }
}
