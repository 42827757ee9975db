//! What several values come to.

/// The median; of an even number of values the mean of the middle two; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (n, half) if n % 2 == 1 => sorted[half],
        (_, half) => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

/// Smallest and largest value; infinite without values.
pub(crate) fn extremes(values: &[f64]) -> (f64, f64) {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (smallest, largest)
}

/// Largest less smallest value, divided by the median.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let (smallest, largest) = extremes(values);
    (largest - smallest) / median(values)
}

/// Mean and standard deviation; 0 without values.
pub(crate) fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|one| (one - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_summed_up() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(&[9.0, 10.0, 12.0]), 0.3);
        assert_eq!(extremes(&[0.25, -0.5, 0.0]), (-0.5, 0.25));
        assert_eq!(mean(&[1.0, 3.0]), (2.0, 1.0));
    }
}
