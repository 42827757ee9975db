//! `disjoint`: as many paths as possible of which no two share an interface (001, section VI) and,
//! with an argument, further ones that share few.

mod search;

use std::sync::Arc;

use crate::select::candidate::Candidate;
use crate::select::kind::{Pick, Picker, Rule, StrategyKind};
use crate::text::number;
use crate::{Interface, Overlap, Path, Reason};

pub(super) const KIND: StrategyKind = StrategyKind {
    argument: "[:K|:any]",
    remedy: "disjoint, disjoint:2 or disjoint:any",
    ..StrategyKind::new(
        "disjoint",
        "paths that share no interface; with K, then further ones that share up to K interfaces \
         with those taken (a link has two); with any, then all others",
        Rule::Pick(|argument| {
            let most = match argument {
                None => 0,
                Some("any") => usize::MAX,
                Some(most) => number(most)?.into(),
            };
            Some(Arc::new(Disjoint { most }))
        }),
    )
};

/// Takes paths that share no interface. A link out of the first AS that all paths use is ignored,
/// since no choice avoids it; likewise a link into the last AS.
///
/// The paper takes the shortest path, discards what overlaps with it, and so on. One path can then
/// block two others, so this searches for the largest set, of these the one with the best total
/// rank, of these the first in rank. With hundreds of overlapping paths the search ends early, but
/// never with fewer paths than the paper's algorithm finds.
#[derive(Debug)]
pub(in crate::select) struct Disjoint {
    /// Most interfaces a further path may share with those taken; `usize::MAX` for any number.
    pub most: usize,
}

impl Picker for Disjoint {
    fn text(&self) -> String {
        match self.most {
            0 => "disjoint".to_owned(),
            usize::MAX => "disjoint:any".to_owned(),
            most => format!("disjoint:{most}"),
        }
    }

    fn pick(&self, ranked: &[Candidate<'_>], max: usize) -> Pick {
        let ignored = unavoidable(ranked);
        let open = |one: &Candidate<'_>| {
            let mut interfaces = one.path.interfaces.clone();
            interfaces.retain(|interface| !ignored.contains(interface));
            let cost = one.cost();
            search::Open { cost, interfaces }
        };
        let open: Vec<_> = ranked.iter().map(open).collect();
        let crosses = |one: usize, interface: &Interface| open[one].interfaces.contains(interface);
        let mut taken: Vec<_> = search::largest_disjoint(&open, max)
            .into_iter()
            .map(|rank| {
                let value = ranked[rank].value();
                (rank, Some(Reason::Disjoint { value }))
            })
            .collect();
        let rest = |taken: &[(usize, Option<Reason>)]| {
            let mut rest: Vec<usize> = (0..ranked.len()).collect();
            rest.retain(|rank| taken.iter().all(|(one, _)| one != rank));
            rest
        };
        // The overlap of a path with those taken; `None` if there is none.
        let overlap = |rank: usize, taken: &[(usize, Option<Reason>)]| {
            let mut shared = open[rank].interfaces.clone();
            shared.retain(|interface| taken.iter().any(|(one, _)| crosses(*one, interface)));
            let common = |one: usize| shared.iter().filter(|it| crosses(one, it)).count();
            // Among equal ones the first is kept: `max_by_key` would take the last.
            let with = taken.iter().rev().max_by_key(|(one, _)| common(*one))?;
            Some(Overlap {
                count: shared.len(),
                interface: *shared.first()?,
                with: ranked[with.0].fingerprint,
            })
        };
        while self.most > 0 && taken.len() < max {
            let rest = rest(&taken).into_iter();
            let overlaps = rest.map(|rank| (rank, overlap(rank, &taken)));
            let least = overlaps.min_by_key(|(_, one)| one.as_ref().map_or(0, |one| one.count));
            let Some((rank, Some(overlap))) = least else {
                break;
            };
            if overlap.count > self.most {
                break;
            }
            taken.push((rank, Some(Reason::SharesFewest(overlap))));
        }
        let left = |rank: usize| {
            if self.most > 0 {
                let (overlap, most) = (overlap(rank, &taken)?, self.most);
                let more = overlap.count > most;
                return more.then_some((rank, Reason::SharesMore { overlap, most }));
            }
            let shares = |(one, _): &(usize, Option<Reason>)| {
                let mut ours = open[rank].interfaces.iter();
                Some(Reason::Shares {
                    interface: *ours.find(|interface| crosses(*one, interface))?,
                    with: ranked[*one].fingerprint,
                })
            };
            Some((rank, taken.iter().find_map(shares)?))
        };
        let left = rest(&taken).into_iter().filter_map(left).collect();
        Pick {
            taken,
            left,
            ignored,
            shares: None,
        }
    }
}

/// The interfaces ignored because every path has to use them: the first link when all paths leave
/// by the same interface, the last when all arrive by the same one (001, section VI).
///
/// The paper excludes the interface of the first and of the last AS. The other end of the same link
/// must be excluded too, or every path would still overlap with every other.
fn unavoidable(paths: &[Candidate<'_>]) -> Vec<Interface> {
    // A single path overlaps with nothing.
    let [first, others @ ..] = paths else {
        return Vec::new();
    };
    if others.is_empty() {
        return Vec::new();
    }
    let from_ends: [fn(&Path, usize) -> Option<&Interface>; 2] = [
        |path, place| path.interfaces.get(place),
        |path, place| path.interfaces.iter().nth_back(place),
    ];
    let common = from_ends.into_iter().flat_map(|at| {
        (0..2).map_while(move |place| {
            let one = at(first.path, place)?;
            let is_common = others.iter().all(|it| at(it.path, place) == Some(one));
            is_common.then_some(*one)
        })
    });
    common.collect()
}
