//! Shares out one unit over sets so that the largest load of a member is as low as possible.

use std::collections::{BTreeMap, BTreeSet};

use crate::simplex::maximize;

/// For each set its share of one unit, and the largest load of a member, which is as low as
/// possible. The load of a member is the sum of the shares of the sets that contain it. No set may
/// be empty, and there must be one.
///
/// This is a packing: `x`, the shares before they are scaled to one, has the largest sum with at
/// most 1 on each member; the load is one over that sum.
pub(super) fn least_load<T: Ord>(sets: &[&BTreeSet<T>]) -> (Vec<f64>, f64) {
    let members: BTreeSet<&T> = sets.iter().flat_map(|set| set.iter()).collect();
    let place: BTreeMap<&T, usize> = members.into_iter().zip(0..).collect();
    let mut rows = vec![(vec![0.0; sets.len()], 1.0); place.len()];
    for (column, set) in sets.iter().enumerate() {
        for member in *set {
            rows[place[member]].0[column] = 1.0;
        }
    }
    // Every set has a member that bounds it, so there is always a maximum.
    let packing = maximize(&vec![1.0; sets.len()], &rows);
    let (mut shares, _) = packing.unwrap_or_else(|| (vec![1.0; sets.len()], 0.0));
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum);
    // Computed from the scaled shares, so that it is consistent with them.
    let load = place.keys().map(|member| {
        let over = sets
            .iter()
            .zip(&shares)
            .filter(|(set, _)| set.contains(*member));
        over.map(|(_, share)| share).sum::<f64>()
    });
    let load = load.fold(0.0, f64::max);
    (shares, load)
}
