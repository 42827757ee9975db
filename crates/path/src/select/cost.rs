//! Costs of paths and of sets of paths, by which they are compared.

/// Most strategies that rank, in one selection.
pub(super) const RANKS: usize = 7;

/// More than the known costs of any set of paths.
const UNKNOWN: u128 = 1 << 96;

/// What is to be least, in order of precedence: the ranks, then hops. Costs of sets add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Cost([u128; RANKS + 1]);

impl Cost {
    /// Of one path: its costs in order of precedence, each with whether it is known.
    pub fn of(costs: impl IntoIterator<Item = (bool, u64)>) -> Self {
        let mut cost = Self::default();
        for (place, (known, value)) in cost.0.iter_mut().zip(costs) {
            *place = u128::from(value) + if known { 0 } else { UNKNOWN };
        }
        cost
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        for (ours, theirs) in self.0.iter_mut().zip(other.0) {
            *ours += theirs;
        }
    }
}

impl std::ops::SubAssign for Cost {
    fn sub_assign(&mut self, other: Self) {
        for (ours, theirs) in self.0.iter_mut().zip(other.0) {
            *ours -= theirs;
        }
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}
