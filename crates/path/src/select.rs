//! Which of the paths to a peer are used, and why.

mod candidate;
mod combine;
mod kind;
mod strategies;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use self::candidate::Candidate;
pub use self::candidate::{Measured, Part, Rank};
pub use self::combine::{Select, SelectError};
pub use self::kind::StrategyKind;
use self::kind::{Pick, Rule};
pub use self::strategies::STRATEGIES;
use self::strategies::shortest;
use crate::{Decision, Interface, Path, Reason};

/// The result of [`select`].
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// Indices of the paths taken, best first.
    pub taken: Vec<usize>,
    /// One per path, in input order.
    pub decisions: Vec<Decision>,
    /// The interfaces ignored in the comparison, because every path has to use them.
    pub ignored: Vec<Interface>,
    /// The compared paths in order of rank: all but copies.
    pub ranking: Vec<Ranked>,
    /// For each path in `taken` the share of the bytes that it must carry, from 0 to 1, with a sum
    /// of 1; `None` if the strategies set none.
    pub shares: Option<Vec<f64>>,
}

/// A compared path and the values it ranks by.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Its index in the input.
    pub index: usize,
    /// The values compared, in order of precedence: one per ranking strategy, then hops. Ties are
    /// broken by announced latency and fingerprint.
    pub values: Vec<Rank>,
}

/// Chooses at most `max` of the paths to a peer, and gives a reason for each path taken or left.
/// Only announced values are known of the paths.
///
/// Paths rank as [`Select`] says, then by hops, announced latency (unknown last) and fingerprint,
/// so the outcome does not depend on the input order, which only decides the indices. Of several
/// copies of one path only the one that expires last is ever taken.
pub fn select<P: AsRef<Path>>(paths: &[P], select: &Select, max: usize) -> Selection {
    select_measured(paths, &[], select, max)
}

/// Like [`select`], with measurements of the paths, in input order. The list may be shorter: paths
/// beyond its end count as not measured.
pub fn select_measured<P: AsRef<Path>>(
    paths: &[P],
    measured: &[Measured],
    select: &Select,
    max: usize,
) -> Selection {
    let mut candidates = distinct(paths, measured);
    for candidate in &mut candidates {
        let ranks = select.ranks.iter().filter_map(|kind| match kind.rule {
            Rule::Rank(rank) => Some(rank(candidate, &select.carbon)),
            Rule::Pick(_) => None,
        });
        candidate.ranks = ranks.collect();
    }
    candidates.sort_by_cached_key(|one| {
        let latency = one.path.latency();
        (one.cost(), latency.is_none(), latency, one.fingerprint)
    });

    // Hops always count, after all other values.
    let by_hops = select.ranks.iter().any(|kind| kind.by_hops);
    let ranking = candidates.iter().map(|one| {
        let hops = (!by_hops).then(|| shortest::rank(one, &select.carbon));
        Ranked {
            index: one.index,
            values: one.ranks.iter().cloned().chain(hops).collect(),
        }
    });
    let ranking = ranking.collect();

    let pick = match &select.picker {
        Some(picker) => picker.pick(&candidates, max),
        None => Pick {
            taken: (0..candidates.len().min(max))
                .map(|one| (one, None))
                .collect(),
            ..Pick::default()
        },
    };
    // Paths that are not among the candidates are copies of those that are.
    let mut decisions = vec![Decision::left(Reason::Copy); paths.len()];
    let first = *select.ranks.first().unwrap_or(&&shortest::KIND);
    for candidate in &candidates {
        // Hops are shown with each path; other values belong in the reason.
        let value = (!first.by_hops).then(|| candidate.value());
        decisions[candidate.index] = Decision::left(Reason::Limit { max, value });
    }
    for (rank, reason) in pick.left {
        decisions[candidates[rank].index] = Decision::left(reason);
    }
    let mut taken = Vec::new();
    for (rank, reason) in pick.taken {
        let candidate = &candidates[rank];
        let by_rank = || Reason::First {
            by: first.by,
            value: candidate.value(),
        };
        decisions[candidate.index] = Decision::taken(reason.unwrap_or_else(by_rank));
        taken.push(candidate.index);
    }
    Selection {
        taken,
        decisions,
        ignored: pick.ignored,
        ranking,
        shares: pick.shares,
    }
}

/// The paths without copies, in arbitrary order.
fn distinct<'a, P: AsRef<Path>>(paths: &'a [P], measured: &[Measured]) -> Vec<Candidate<'a>> {
    let mut distinct = BTreeMap::new();
    for (index, path) in paths.iter().enumerate() {
        let path = path.as_ref();
        let fingerprint = path.fingerprint();
        let candidate = Candidate {
            index,
            path,
            fingerprint,
            measured: measured.get(index).copied().unwrap_or_default(),
            ranks: Vec::new(),
        };
        let preferred = |one: &Candidate<'_>| (Reverse(one.path.expiry()), one.index);
        let before = distinct
            .entry(fingerprint)
            .or_insert_with(|| candidate.clone());
        if preferred(&candidate) < preferred(before) {
            *before = candidate;
        }
    }
    distinct.into_values().collect()
}
