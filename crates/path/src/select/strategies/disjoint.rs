//! `disjoint`: as many paths as possible of which no two share an interface (001, section VI), and
//! with a degree further ones that share few.

mod search;
mod set;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::number::number;
use crate::select::kind::Kind;
use crate::select::strategy::{Candidate, Pick, Strategy};
use crate::{Interface, Path, Reason};

pub(super) const KIND: Kind = Kind {
    name: "disjoint",
    argument: "[:K|:any]",
    about: "paths that share no interface; with K, then further ones that share up to K interfaces \
            with those taken (a link has two); with any, then all others",
    picks: true,
    remedy: "disjoint, disjoint:2 or disjoint:any",
    read: |argument| {
        let most = match argument {
            None => 0,
            Some("any") => usize::MAX,
            Some(most) => number(most)?.into(),
        };
        Some(Arc::new(Disjoint { most }))
    },
};

/// Takes paths that are apart. When all paths leave the first AS over the same link, that link says
/// nothing about any choice and is not counted; so for the link into the last AS.
///
/// The paper takes the shortest path, discards what overlaps with it, and so on. That can block two
/// paths with one, so here the largest set is searched for, of these the one that ranks best in
/// sum, of these the one that ranks first; with hundreds of intertwined paths the search ends
/// early, but never with fewer paths than the paper's algorithm finds.
#[derive(Debug)]
pub(in crate::select) struct Disjoint {
    /// Most interfaces a further path may share with those taken; `usize::MAX` for any number.
    pub most: usize,
}

impl Strategy for Disjoint {
    fn text(&self) -> String {
        match self.most {
            0 => "disjoint".to_owned(),
            usize::MAX => "disjoint:any".to_owned(),
            most => format!("disjoint:{most}"),
        }
    }

    fn picks(&self) -> bool {
        true
    }

    fn pick(&self, ranked: &[Candidate<'_>], max: usize) -> Pick {
        let ignored = unavoidable(ranked);
        let open = |one: &Candidate<'_>| search::Open {
            cost: one.cost(),
            interfaces: counted(one.path, &ignored).collect(),
        };
        let open: Vec<_> = ranked.iter().map(open).collect();
        let apart = search::largest_disjoint(&open, max);
        let mut taken: Vec<_> = apart
            .iter()
            .map(|&rank| {
                let value = ranked[rank].value();
                (rank, Some(Reason::Disjoint { value }))
            })
            .collect();
        let shared = |rank: usize, taken: &[(usize, Option<Reason>)]| {
            let all: BTreeSet<_> = taken
                .iter()
                .map(|(one, _)| &open[*one].interfaces)
                .collect();
            let all: BTreeSet<_> = all.into_iter().flatten().collect();
            let mut ours = open[rank].interfaces.clone();
            ours.retain(|interface| all.contains(interface));
            ours
        };
        // The path among those taken with which it has most in common.
        let with = |interfaces: &[Interface], taken: &[(usize, Option<Reason>)]| {
            let common = |one: usize| {
                let theirs = &open[one].interfaces;
                interfaces.iter().filter(|i| theirs.contains(i)).count()
            };
            // Of several the first: `max_by_key` would take the last.
            let most = taken.iter().rev().max_by_key(|(one, _)| common(*one));
            most.map(|(one, _)| ranked[*one].fingerprint)
        };
        while self.most > 0 && taken.len() < max {
            let rest = (0..ranked.len()).filter(|rank| taken.iter().all(|(one, _)| one != rank));
            let shared = rest.map(|rank| (rank, shared(rank, &taken)));
            let Some((rank, least)) = shared.min_by_key(|(_, shared)| shared.len()) else {
                break;
            };
            let (Some(interface), Some(with)) = (least.first(), with(&least, &taken)) else {
                break;
            };
            if least.len() > self.most {
                break;
            }
            let reason = Reason::SharesFewest {
                count: least.len(),
                interface: *interface,
                with,
            };
            taken.push((rank, Some(reason)));
        }
        let left = (0..ranked.len()).filter_map(|rank| {
            let one = &ranked[rank];
            if taken.iter().any(|(taken, _)| *taken == rank) {
                return None;
            }
            if self.most == 0 {
                let shares = |&(taken, _): &(usize, _)| shares_with(one, &ranked[taken], &ignored);
                return Some((rank, taken.iter().find_map(shares)?));
            }
            let shared = shared(rank, &taken);
            let (interface, with) = (*shared.first()?, with(&shared, &taken)?);
            let reason = Reason::SharesMore {
                count: shared.len(),
                interface,
                with,
                most: self.most,
            };
            (shared.len() > self.most).then_some((rank, reason))
        });
        let left = left.collect();
        Pick {
            taken,
            left,
            ignored,
            shares: None,
        }
    }
}

fn counted<'a>(path: &'a Path, ignored: &'a [Interface]) -> impl Iterator<Item = Interface> + 'a {
    let interfaces = path.interfaces.iter().copied();
    interfaces.filter(|one| !ignored.contains(one))
}

fn shares_with(
    left: &Candidate<'_>,
    taken: &Candidate<'_>,
    ignored: &[Interface],
) -> Option<Reason> {
    let mut shared = left.path.shared(taken.path);
    let interface = shared.find(|one| !ignored.contains(one))?;
    Some(Reason::Shares {
        interface,
        with: taken.fingerprint,
    })
}

/// The interfaces not counted because every path has to use them: the first link when all paths
/// leave by the same interface, the last when all arrive by the same one (001, section VI).
///
/// The paper excludes the interface of the first and of the last AS. The other end of the same link
/// goes with it: counted, it would let every path overlap with every other all the same.
fn unavoidable(paths: &[Candidate<'_>]) -> Vec<Interface> {
    // One path alone overlaps with nothing.
    if paths.len() < 2 {
        return Vec::new();
    }
    let common = |interface_of: fn(&Path) -> Option<Interface>| {
        let first = interface_of(paths[0].path)?;
        paths[1..]
            .iter()
            .all(|other| interface_of(other.path) == Some(first))
            .then_some(first)
    };
    let mut ignored = Vec::new();
    if let Some(out) = common(|path| path.interfaces.first().copied()) {
        ignored.push(out);
        ignored.extend(common(|path| path.interfaces.get(1).copied()));
    }
    if let Some(into) = common(|path| path.interfaces.last().copied()) {
        ignored.push(into);
        ignored.extend(common(|path| path.interfaces.iter().nth_back(1).copied()));
    }
    ignored
}
