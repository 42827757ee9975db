//! Sharing out one unit over sets so that no member is loaded more than need be.

use std::collections::{BTreeMap, BTreeSet};

/// Smaller than any number that the tableau holds for more than rounding.
const ZERO: f64 = 1e-11;

/// For each set its share of one unit, and the load of the member that is in sets with the largest
/// shares in all, which is as low as can be. No set may be empty, and there must be one.
///
/// With `x` the shares before they are scaled to one, this is the largest packing: the most `x` in
/// sum with at most 1 on each member; the load is one over that sum. The simplex method with
/// Bland's rule, which ends.
pub(super) fn least_load<T: Ord>(sets: &[&BTreeSet<T>]) -> (Vec<f64>, f64) {
    let members: BTreeSet<&T> = sets.iter().flat_map(|set| set.iter()).collect();
    let place: BTreeMap<&T, usize> = members.into_iter().zip(0..).collect();
    let (rows, columns) = (place.len(), sets.len());
    let width = columns + rows + 1;
    // One row for each member, the last for what is to grow; then a column for each set, one for
    // what each member has left, and the right-hand side.
    let mut table = vec![vec![0.0_f64; width]; rows + 1];
    for (column, set) in sets.iter().enumerate() {
        for member in *set {
            table[place[member]][column] = 1.0;
        }
        table[rows][column] = -1.0;
    }
    for (row, line) in table[..rows].iter_mut().enumerate() {
        line[columns + row] = 1.0;
        line[width - 1] = 1.0;
    }
    let mut basis: Vec<usize> = (columns..columns + rows).collect();
    while let Some(enter) = (0..width - 1).find(|&column| table[rows][column] < -ZERO) {
        let ratio = |row: usize| table[row][width - 1] / table[row][enter];
        let open = (0..rows).filter(|&row| table[row][enter] > ZERO);
        // Every set has a member that bounds it, so there is always a row.
        let Some(leave) = open.min_by(|&one, &other| {
            let (ours, theirs) = (ratio(one), ratio(other));
            match (ours - theirs).abs() <= ZERO {
                true => basis[one].cmp(&basis[other]),
                false => ours.total_cmp(&theirs),
            }
        }) else {
            break;
        };
        basis[leave] = enter;
        let pivot = table[leave][enter];
        table[leave].iter_mut().for_each(|value| *value /= pivot);
        let line = table[leave].clone();
        for (row, other) in table.iter_mut().enumerate() {
            let factor = other[enter];
            if row != leave && factor != 0.0 {
                for (value, ours) in other.iter_mut().zip(&line) {
                    *value -= factor * ours;
                }
            }
        }
    }
    let mut shares = vec![0.0; columns];
    for (row, &column) in basis.iter().enumerate() {
        if column < columns {
            shares[column] = table[row][width - 1].max(0.0);
        }
    }
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= sum);
    // From the shares themselves, so that it is what they do to every member.
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
