//! Solves linear programs by the simplex method.

/// Entries of the tableau that are smaller count as rounding errors.
const ZERO: f64 = 1e-11;

/// Maximizes `gain · x`, where `row · x <= limit` for every row and `x >= 0`. Returns `x` and the
/// maximum; `None` when there is no upper bound. Every limit must be positive, so that the origin
/// is feasible.
///
/// Pivots are chosen by Bland's rule, which guarantees that the method terminates.
pub fn maximize(gain: &[f64], rows: &[(Vec<f64>, f64)]) -> Option<(Vec<f64>, f64)> {
    let (columns, last) = (gain.len(), rows.len());
    let width = columns + last + 1;
    // Rows: one per limit, then the objective. Columns: one per variable, one slack variable per
    // row, then the right-hand side.
    let mut table = vec![vec![0.0; width]; last + 1];
    for (i, (row, limit)) in rows.iter().enumerate() {
        table[i][..columns].copy_from_slice(row);
        table[i][columns + i] = 1.0;
        table[i][width - 1] = *limit;
    }
    for (value, gain) in table[last].iter_mut().zip(gain) {
        *value = -gain;
    }
    let mut basis: Vec<usize> = (columns..columns + last).collect();
    while let Some(enter) = (0..width - 1).find(|&column| table[last][column] < -ZERO) {
        let ratio = |row: usize| table[row][width - 1] / table[row][enter];
        let open = (0..last).filter(|&row| table[row][enter] > ZERO);
        let leave = open.min_by(|&one, &other| {
            let (ours, theirs) = (ratio(one), ratio(other));
            match (ours - theirs).abs() <= ZERO * ours.max(1.0) {
                true => basis[one].cmp(&basis[other]),
                false => ours.total_cmp(&theirs),
            }
        })?;
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
    let mut x = vec![0.0; columns];
    for (row, &column) in basis.iter().enumerate() {
        if column < columns {
            x[column] = table[row][width - 1].max(0.0);
        }
    }
    Some((x, table[last][width - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_variable_gets_the_shared_limit() {
        // With x + y <= 10 and y <= 4, 3x + 2y is largest at (10, 0), and 2x + 3y at (6, 4).
        let rows = [(vec![1.0, 1.0], 10.0), (vec![0.0, 1.0], 4.0)];
        let near = |found: Option<(Vec<f64>, f64)>, x: [f64; 2], most: f64| {
            let (found, sum) = found.unwrap();
            assert!((sum - most).abs() < 1e-9, "{sum}");
            assert!(
                found.iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-9),
                "{found:?}"
            );
        };
        near(maximize(&[3.0, 2.0], &rows), [10.0, 0.0], 30.0);
        near(maximize(&[2.0, 3.0], &rows), [6.0, 4.0], 24.0);
    }

    #[test]
    fn an_unbounded_program_has_no_maximum() {
        assert_eq!(maximize(&[1.0, 1.0], &[(vec![1.0, 0.0], 1.0)]), None);
    }
}
