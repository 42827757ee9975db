//! Which paths a guest prefers.

use std::collections::{BTreeMap, BTreeSet};

use hawser_path::Fingerprint;

use crate::path::Path;

/// Ranks and denies the paths of a [`Connection`](crate::Connection), in place of the path manager, which
/// takes as many paths as possible that share no link.
///
/// [`select`](Self::select) is called with the paths that the network offers and the policy allows, when
/// these change, and when a path connects, fails or is lost. Of those that it returns, the connection uses
/// the first [`paths`](crate::Connect::paths) that work; a path that fails is tried again meanwhile, and
/// takes its place again when it works. A connection over a path that is left out closes at once. One
/// over a path that others now come before closes once these are connected.
///
/// It cannot have a path used that is not offered, not allowed or does not work, nor say how much goes over
/// which path: a block goes over the path in use that delivers it first. It must not block.
///
/// ```
/// use hawser::{Fingerprint, Path, PathSelector};
///
/// /// Prefers low latency, and takes no path that announces none.
/// struct ByLatency;
///
/// impl PathSelector for ByLatency {
///     fn select(&self, offered: &[Path]) -> Vec<Fingerprint> {
///         let mut known: Vec<&Path> = offered.iter().filter(|path| path.latency().is_some()).collect();
///         known.sort_by_key(|path| path.latency());
///         known.into_iter().map(Path::fingerprint).collect()
///     }
/// }
/// ```
pub trait PathSelector: Send + Sync + 'static {
    /// The paths that may be used, the preferred first. Names that were not offered have no effect.
    fn select(&self, offered: &[Path]) -> Vec<Fingerprint>;
}

impl<F: Fn(&[Path]) -> Vec<Fingerprint> + Send + Sync + 'static> PathSelector for F {
    fn select(&self, offered: &[Path]) -> Vec<Fingerprint> {
        self(offered)
    }
}

/// What a selection means for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is dialed.
    Use,
    /// Enough that come before it work.
    Later,
    /// It was left out.
    Denied,
}

/// What a selection means for each of the paths that were `offered`: the first `limit` of those that do
/// not fail are used, and those that fail and come before the last of these.
pub(crate) fn choices(
    selected: &[Fingerprint],
    offered: &[Fingerprint],
    failing: &BTreeSet<Fingerprint>,
    limit: usize,
) -> BTreeMap<Fingerprint, Choice> {
    let mut choices: BTreeMap<_, _> = offered.iter().map(|path| (*path, Choice::Denied)).collect();
    let mut working = 0;
    for path in selected {
        let Some(choice) = choices.get_mut(path).filter(|one| **one == Choice::Denied) else {
            continue;
        };
        if working >= limit {
            *choice = Choice::Later;
            continue;
        }
        *choice = Choice::Use;
        working += usize::from(!failing.contains(path));
    }
    choices
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(number: u8) -> Fingerprint {
        Fingerprint::from([number; 32])
    }

    #[test]
    fn a_failing_path_is_tried_and_the_next_one_takes_its_place() {
        let all: Vec<_> = (0..4).map(path).collect();
        let order = [path(2), path(0), path(1), path(9)];
        let of = |failing: &[u8]| {
            let failing = failing.iter().map(|one| path(*one)).collect();
            let choices = choices(&order, &all, &failing, 1);
            all.iter().map(|one| choices[one]).collect::<Vec<_>>()
        };
        use Choice::{Denied, Later, Use};
        assert_eq!(of(&[]), [Later, Later, Use, Denied]);
        assert_eq!(of(&[2]), [Use, Later, Use, Denied]);
        assert_eq!(of(&[2, 0]), [Use, Use, Use, Denied]);
        assert_eq!(of(&[3]), [Later, Later, Use, Denied]);
    }

    proptest! {
        #[test]
        fn never_more_work_than_wanted(
            order in prop::collection::vec(0u8..10, 0..20),
            offered in prop::collection::btree_set(0u8..10, 0..10),
            failing in prop::collection::btree_set(0u8..10, 0..10),
            limit in 1usize..5,
        ) {
            let order: Vec<_> = order.into_iter().map(path).collect();
            let offered: Vec<_> = offered.into_iter().map(path).collect();
            let failing: BTreeSet<_> = failing.into_iter().map(path).collect();
            let choices = choices(&order, &offered, &failing, limit);
            prop_assert_eq!(choices.len(), offered.len());
            let used = |one: &&Fingerprint| choices[*one] == Choice::Use && !failing.contains(*one);
            let working = offered.iter().filter(used).count();
            prop_assert!(working <= limit);
            for (path, choice) in &choices {
                prop_assert_eq!(*choice == Choice::Denied, !order.contains(path));
                prop_assert!(*choice != Choice::Later || working == limit);
            }
        }
    }
}
