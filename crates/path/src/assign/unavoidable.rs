//! The links that no choice of paths could avoid.

use std::collections::BTreeMap;
use std::ops::Range;

use sciparse::identifier::isd_asn::IsdAsn;

use crate::{Interface, Path};

/// Links that do not count as shared, because there is no other way (001, section VI).
///
/// As in [`select`](crate::select()), the whole link is meant, not only the end of it that the
/// paper names: counted, the other end would let every path overlap with every other all the same.
pub(super) struct Unavoidable {
    /// Whether all paths leave by the same interface.
    out: bool,
    /// By AS: the interface by which all paths arrive there, if there is just one.
    into: BTreeMap<IsdAsn, Option<Interface>>,
}

impl Unavoidable {
    /// What all these paths, to all peers, have in common.
    pub fn of<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut first = None;
        let mut out = true;
        let mut into = BTreeMap::new();
        for path in paths {
            let (Some(leaves), Some(arrives)) = (path.interfaces.first(), path.interfaces.last())
            else {
                continue;
            };
            out &= *first.get_or_insert(leaves) == leaves;
            let known = into.entry(path.dst).or_insert(Some(*arrives));
            if *known != Some(*arrives) {
                *known = None;
            }
        }
        Self { out, into }
    }

    /// The interfaces of a path that count, by their place on it.
    pub fn without(&self, path: &Path) -> Range<usize> {
        let count = path.interfaces.len();
        let begin = if self.out { count.min(2) } else { 0 };
        let only_way_in = self.into.get(&path.dst).is_some_and(Option::is_some);
        let end = if only_way_in {
            count.saturating_sub(2)
        } else {
            count
        };
        begin..end.max(begin)
    }
}
