//! Which of the paths to a peer are used, and why.

mod bandwidth;
mod carbon;
mod combine;
mod decision;
mod disjoint;
mod latency;
mod search;
mod set;
mod shortest;
mod spread;
mod strategy;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::carbon::{Carbon, CarbonError};
pub use self::combine::{Select, SelectError};
pub(crate) use self::decision::Rate;
pub use self::decision::{Decision, Ranked, Reason, Selection, Value, Verdict};
use self::shortest::Shortest;
pub use self::strategy::{Candidate, Measured, Part, Pick, Rank, Strategy};
use crate::Path;

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
    // What is not among the candidates is a copy of what is.
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
                said.push(value(strategy.as_ref(), &rank));
                candidate.ranks.push(rank);
            }
        }
        // Hops count in any case, after all else.
        if said.iter().all(|one| one.strategy != Shortest.text()) {
            said.extend(Shortest.rank(candidate).map(|rank| value(&Shortest, &rank)));
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
    // That there is a shorter path everybody sees; other values have to be told.
    let by_hops = by.is_none_or(|by| by.best() == "shortest");
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
            best: by.map_or("shortest", |by| by.best()),
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

fn value(strategy: &dyn Strategy, rank: &Rank) -> Value {
    Value {
        strategy: strategy.text(),
        known: rank.known,
        text: rank.value.clone(),
        amount: rank.amount,
        unit: rank.unit,
        parts: rank.parts.clone(),
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
