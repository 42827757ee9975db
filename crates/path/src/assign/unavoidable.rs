//! The links that no choice of paths could avoid.

use std::collections::BTreeMap;
use std::ops::Range;

use hawser_address::IsdAsn;

use crate::{Interface, Path};

/// Links that do not count as shared, because no path avoids them (001, section VI).
///
/// As in [`select`](crate::select()), both ends of the link are ignored, not only the one that the
/// paper names: otherwise every path would still overlap with every other.
#[derive(Debug, Clone, Default)]
pub(super) struct Unavoidable {
    /// Number of paths that leave by each interface.
    out: BTreeMap<Interface, usize>,
    /// By AS: number of paths that arrive there by each interface.
    into: BTreeMap<IsdAsn, BTreeMap<Interface, usize>>,
}

impl Unavoidable {
    /// Adds an offered path. Returns whether other links now count for the paths offered before.
    pub fn add(&mut self, path: &Path) -> bool {
        self.count(path, |paths| paths + 1)
    }

    /// Removes an offered path. Returns whether other links now count for those that are left.
    pub fn remove(&mut self, path: &Path) -> bool {
        let changed = self.count(path, |paths| paths.saturating_sub(1));
        self.into.retain(|_, interfaces| !interfaces.is_empty());
        changed
    }

    fn count(&mut self, path: &Path, changed: fn(usize) -> usize) -> bool {
        let (Some(leaves), Some(arrives)) = (path.interfaces.first(), path.interfaces.last())
        else {
            return false;
        };
        let into = self.into.entry(path.dst).or_default();
        let others_count = [(&mut self.out, leaves), (into, arrives)].map(|(ends, end)| {
            let before = ends.len();
            let paths = ends.entry(*end).or_default();
            *paths = changed(*paths);
            if *paths == 0 {
                ends.remove(end);
            }
            // The only interface is no longer the only one, or another has become the only one.
            before.min(ends.len()) == 1 && before != ends.len()
        });
        others_count.contains(&true)
    }

    /// The interfaces of a path that count as shared, by their places on it.
    pub fn without(&self, path: &Path) -> Range<usize> {
        let count = path.interfaces.len();
        let begin = if self.out.len() > 1 { 0 } else { count.min(2) };
        let has_one_entry = self.into.get(&path.dst).is_some_and(|ways| ways.len() == 1);
        let end = if has_one_entry {
            count.saturating_sub(2)
        } else {
            count
        };
        begin..end.max(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    #[test]
    fn the_only_link_out_and_the_only_link_in_do_not_count() {
        let mut unavoidable = Unavoidable::default();
        let (over_2, over_3) = (path("1 1>1 2 2>1 4"), path("1 1>2 2 3>1 3 2>1 4"));
        assert!(!unavoidable.add(&over_2));
        assert_eq!(unavoidable.without(&over_2), 2..2);
        assert!(!unavoidable.add(&over_3));
        assert_eq!(unavoidable.without(&over_3), 2..4);
        // Another link out and another link in, each of which changes what counts.
        let (out, into) = (path("1 2>1 5"), path("1 1>1 2 4>2 4"));
        assert!(unavoidable.add(&out));
        assert_eq!(unavoidable.without(&over_3), 0..4);
        assert!(unavoidable.add(&into));
        assert_eq!(unavoidable.without(&over_3), 0..6);
        assert!(!unavoidable.add(&into));
        assert!(!unavoidable.remove(&into));
        assert!(unavoidable.remove(&out));
        assert!(unavoidable.remove(&into));
        assert_eq!(unavoidable.without(&over_3), 2..4);
        assert!(!unavoidable.remove(&over_2));
        assert!(!unavoidable.remove(&over_3));
    }
}
