//! Pseudo-random numbers that are the same everywhere for the same seed.

/// SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*, 2014).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The numbers of a seed for one purpose, so that what is drawn for one changes nothing for the
    /// others.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = Self(seed);
        let mixed = rng.next();
        Self(mixed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `end`; 0 when that is 0. The bias is below one in 2^32 for all that is
    /// counted here.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of these, if there are any.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len()))
    }

    /// Moves `count` of these, drawn at random, to the front.
    pub fn draw<T>(&mut self, from: &mut [T], count: usize) {
        for at in 0..count.min(from.len()) {
            let other = at + self.below(from.len() - at);
            from.swap(at, other);
        }
    }
}

/// A number that looks like nothing of `value`, the same each time.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_paper() {
        // The reference implementation's first outputs for seed 1234567.
        let mut rng = Rng(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| rng.next()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_all_of_them() {
        let mut rng = Rng::new(1, 2);
        let mut seen = [false; 7];
        for _ in 0..500 {
            seen[rng.below(7)] = true;
            assert!((0.0..1.0).contains(&rng.unit()));
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(rng.below(0), 0);
        let mut all: Vec<u32> = (0..10).collect();
        rng.draw(&mut all, 4);
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<u32>>());
    }
}
