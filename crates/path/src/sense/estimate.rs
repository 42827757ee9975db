//! Estimates of what a path carries, from some slots.

/// An estimate of a path's rate, in bit/s, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// The mean over some slots.
    pub rate: f64,
    /// The long-run rate differs from `rate` by less than this: of estimates from fifteen slots in
    /// all but one in a hundred, from three slots in all but one in fifteen. 0 if the rate was the
    /// same in each slot.
    pub margin: f64,
    /// The standard deviation from slot to slot, as a share of the rate.
    pub spread: f64,
}

impl Estimate {
    /// Estimates from at least one slot. `spread` is the least spread known from before: a few
    /// slots may be alike by chance.
    pub fn of(slots: &[f64], spread: f64) -> Self {
        let count = slots.len() as f64;
        let rate = slots.iter().sum::<f64>() / count;
        let squares: f64 = slots.iter().map(|one| (one - rate).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        let spread = match rate > 0.0 {
            true => spread.max(deviation / rate),
            false => spread,
        };
        // As with Student's t: a deviation found from few slots is itself uncertain.
        let factor = 3.0 + 4.0 / (count - 1.0).max(1.0);
        Self {
            rate,
            margin: factor * spread * rate / count.sqrt(),
            spread,
        }
    }

    /// A lower bound of the rate.
    pub fn least(&self) -> f64 {
        (self.rate - self.margin).max(0.0)
    }

    /// The margin of the difference to another estimate.
    pub fn margin_to(&self, other: &Self) -> f64 {
        self.margin.hypot(other.margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    #[test]
    fn equal_slots_have_no_margin() {
        let estimate = Estimate::of(&[5.0; 3], 0.0);
        assert_eq!((estimate.rate, estimate.margin), (5.0, 0.0));
        assert_eq!(estimate.least(), 5.0);
        assert!(Estimate::of(&[5.0; 3], 0.1).margin > 0.5);
        assert_eq!(Estimate::of(&[0.0; 3], 0.0).margin, 0.0);
    }

    #[test]
    fn the_true_rate_is_rarely_outside_the_margin() {
        for (count, most) in [(3, 700), (6, 300), (15, 100)] {
            let off = (0..10_000).filter(|seed| {
                let slots: Vec<f64> = (0..count).map(|at| 1.0 + 0.2 * noise(*seed, at)).collect();
                let estimate = Estimate::of(&slots, 0.0);
                (estimate.rate - 1.0).abs() > estimate.margin
            });
            let off = off.count();
            assert!(off < most, "{off} of 10000 estimates of {count} slots");
        }
    }
}
