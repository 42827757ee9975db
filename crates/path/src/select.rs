//! Which of the paths to a peer are used, and why.

mod combine;
mod cost;
mod kind;
mod selection;
mod strategies;
mod strategy;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::combine::{Select, SelectError};
pub use self::kind::Kind;
pub use self::selection::{Ranked, Selection, Value};
pub use self::strategies::STRATEGIES;
use self::strategies::Shortest;
pub use self::strategy::{Candidate, Measured, Part, Pick, Rank, Strategy};
use crate::{Decision, Path, Reason};

/// Chooses at most `max` of the paths to a peer, and says of each path why it was taken or left.
/// Nothing is known of the paths but what is announced.
///
/// Paths rank as [`Select`] says, then by hops, announced latency (unknown last) and fingerprint,
/// so the outcome does not depend on their order, except that it is what `taken` and `decisions`
/// index into. Of several copies of one path only the one that expires last is ever taken.
pub fn select<P: AsRef<Path>>(paths: &[P], select: &Select, max: usize) -> Selection {
    select_measured(paths, &[], select, max)
}

/// Like [`select`], with what was measured on each of the paths, in their order; where the list
/// ends early, nothing was.
pub fn select_measured<P: AsRef<Path>>(
    paths: &[P],
    measured: &[Measured],
    select: &Select,
    max: usize,
) -> Selection {
    // Paths that are not among the candidates are copies of those that are.
    let mut decisions = vec![Decision::left(Reason::Copy); paths.len()];
    let mut candidates = distinct(paths, measured);
    candidates.retain(|candidate| {
        let refused = select.strategies.iter().map(|one| one.filter(candidate));
        let refused = refused.filter_map(Result::err).next();
        if let Some(reason) = &refused {
            decisions[candidate.index] = Decision::left(reason.clone());
        }
        refused.is_none()
    });
    let mut by: Option<&Arc<dyn Strategy>> = None;
    let mut values = BTreeMap::new();
    for candidate in &mut candidates {
        let mut said = Vec::new();
        for strategy in &select.strategies {
            if let Some(rank) = strategy.rank(candidate) {
                by.get_or_insert(strategy);
                said.push(Value::of(strategy.as_ref(), &rank));
                candidate.ranks.push(rank);
            }
        }
        // Hops count in any case, after all else.
        if !select.strategies.iter().any(|one| one.ranks_by_hops()) {
            let rank = Shortest.rank(candidate);
            said.extend(rank.map(|rank| Value::of(&Shortest, &rank)));
        }
        values.insert(candidate.index, said);
    }
    candidates.sort_by_cached_key(|one| {
        let latency = one.path.latency();
        (one.cost(), latency.is_none(), latency, one.fingerprint)
    });

    let ranking = candidates.iter().map(|one| Ranked {
        index: one.index,
        values: values.remove(&one.index).unwrap_or_default(),
    });
    let ranking = ranking.collect();

    let picker = select.strategies.iter().find(|one| one.picks());
    let pick = match picker {
        Some(picker) => picker.pick(&candidates, max),
        None => Pick {
            taken: (0..candidates.len().min(max))
                .map(|one| (one, None))
                .collect(),
            ..Pick::default()
        },
    };
    // Hops are shown with each path; other values belong in the reason.
    let by_hops = by.is_none_or(|by| by.ranks_by_hops());
    for candidate in &candidates {
        let reason = match by_hops {
            true => Reason::Limit { max },
            false => Reason::LimitAt {
                max,
                value: candidate.value(),
            },
        };
        decisions[candidate.index] = Decision::left(reason);
    }
    for (rank, reason) in pick.left {
        decisions[candidates[rank].index] = Decision::left(reason);
    }
    let mut taken = Vec::new();
    for (rank, reason) in pick.taken {
        let candidate = &candidates[rank];
        let first = || Reason::First {
            best: by.map_or(Shortest.best(), |by| by.best()),
            value: candidate.value(),
        };
        decisions[candidate.index] = Decision::taken(reason.unwrap_or_else(first));
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

/// The paths without copies, in no order that matters.
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
