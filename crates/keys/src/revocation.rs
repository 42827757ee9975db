//! Which of the keys in use are no longer trusted.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

/// Finds what was trusted and no longer is, for the holder of sessions, connections or streams.
///
/// Files are often written in place: for a moment they are empty, or end in the middle. So a key
/// counts as revoked only when two looks in a row, [`INTERVAL`](Self::INTERVAL) apart, miss it.
/// Nothing here reads a file or a clock: the holder looks at the interval, also when no file is
/// reported to have changed, because the times of files do not show every change.
#[derive(Debug, Clone)]
pub struct Revocations<K> {
    /// What the last look missed.
    missed: HashSet<K>,
}

impl<K> Default for Revocations<K> {
    fn default() -> Self {
        Self {
            missed: HashSet::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Revocations<K> {
    /// Time between two looks. What is revoked has then ended well within a second.
    pub const INTERVAL: Duration = Duration::from_millis(250);

    /// Looks whether what is `held` is still `trusted`. Returns what this look and the one before
    /// missed: each time it is held, so that the holder must end it.
    pub fn look(
        &mut self,
        held: impl IntoIterator<Item = K>,
        trusted: impl Fn(&K) -> bool,
    ) -> Vec<K> {
        let missed: HashSet<K> = held.into_iter().filter(|key| !trusted(key)).collect();
        let revoked = missed.intersection(&self.missed).cloned().collect();
        self.missed = missed;
        revoked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_looks_in_a_row_miss_is_revoked() {
        let mut revocations = Revocations::default();
        let mut look = |trusted: &[u8]| {
            let mut revoked = revocations.look([1, 2, 2], |key| trusted.contains(key));
            revoked.sort_unstable();
            revoked
        };
        assert!(look(&[1, 2]).is_empty());
        // The file was empty for a moment.
        assert!(look(&[]).is_empty());
        assert!(look(&[1, 2]).is_empty());
        assert!(look(&[2]).is_empty());
        assert_eq!(look(&[2]), [1]);
        assert_eq!(look(&[]), [1]);
        assert_eq!(look(&[]), [1, 2]);
    }

    #[test]
    fn what_was_not_held_is_missed_anew() {
        let mut revocations = Revocations::default();
        assert!(revocations.look([1], |_| false).is_empty());
        assert!(revocations.look([2], |_| false).is_empty());
        assert!(revocations.look([1], |_| false).is_empty());
        assert_eq!(revocations.look([1], |_| false), [1]);
    }
}
