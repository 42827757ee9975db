//! Which of the paths to a peer are used, and why.

mod decision;
mod search;
mod set;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(crate) use self::decision::Rate;
pub use self::decision::{Decision, Reason, Selection, Verdict};
use crate::{Fingerprint, Interface, Path};

/// How paths are chosen.
///
/// Parsed from, printed as, and in serde: `shortest`, `disjoint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Strategy {
    /// Those with the fewest hops, whether or not they share links (001, section IV).
    Shortest,
    /// As many as possible of which no two share an interface (001, section VI).
    Disjoint,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shortest => "shortest",
            Self::Disjoint => "disjoint",
        })
    }
}

/// A text names no [`Strategy`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no way to select paths: choose shortest or disjoint")]
pub struct StrategyParseError(String);

impl FromStr for Strategy {
    type Err = StrategyParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "shortest" => Ok(Self::Shortest),
            "disjoint" => Ok(Self::Disjoint),
            _ => Err(StrategyParseError(text.to_owned())),
        }
    }
}

/// Chooses at most `max` of the paths to a peer, and says of each path why it was taken or left.
///
/// Paths rank by hops, then announced latency (unknown last), then fingerprint, so the outcome does
/// not depend on their order, except that it is what `taken` and `decisions` index into. Of several
/// copies of one path only the one that expires last is ever taken.
///
/// [`Strategy::Disjoint`] takes paths of which no two share an interface, and fewer than `max` when
/// there are no more (001, section VI). When all paths leave the first AS over the same link, that
/// link says nothing about any choice and is not counted; so for the link into the last AS. The
/// paper takes the shortest path, discards what overlaps with it, and so on. That can block two
/// paths with one, so here the largest set is searched for, of these the one with the fewest hops
/// in all, of these the one that ranks first; with hundreds of intertwined paths the search ends
/// early, but never with fewer paths than the paper's way finds.
pub fn select<P: AsRef<Path>>(paths: &[P], strategy: Strategy, max: usize) -> Selection {
    let ranked = rank(paths);
    let (taken, ignored) = match strategy {
        Strategy::Shortest => ((0..ranked.len().min(max)).collect(), Vec::new()),
        Strategy::Disjoint => {
            let ignored = unavoidable(&ranked);
            let open: Vec<_> = ranked.iter().map(|one| one.open(&ignored)).collect();
            (search::largest_disjoint(&open, max), ignored)
        }
    };

    // What is not ranked is a copy of what is.
    let mut decisions = vec![Decision::left(Reason::Copy); paths.len()];
    for (rank, candidate) in ranked.iter().enumerate() {
        let hops = candidate.path.hops();
        decisions[candidate.index] = match (taken.contains(&rank), strategy) {
            (true, Strategy::Shortest) => Decision::taken(Reason::ShortestLeft { hops }),
            (true, Strategy::Disjoint) => Decision::taken(Reason::Disjoint { hops }),
            (false, Strategy::Shortest) => Decision::left(Reason::Limit { max }),
            (false, Strategy::Disjoint) => {
                let shared = taken
                    .iter()
                    .find_map(|&taken| candidate.shares_with(&ranked[taken], &ignored));
                Decision::left(shared.unwrap_or(Reason::Limit { max }))
            }
        };
    }
    Selection {
        taken: taken.iter().map(|&rank| ranked[rank].index).collect(),
        decisions,
        ignored,
    }
}

/// A path that may be taken.
struct Candidate<'a> {
    /// Where it stands in the caller's list.
    index: usize,
    path: &'a Path,
    fingerprint: Fingerprint,
}

impl Candidate<'_> {
    /// The path as the search sees it.
    fn open(&self, ignored: &[Interface]) -> search::Open {
        let interfaces = self.path.interfaces.iter().copied();
        search::Open {
            hops: self.path.hops(),
            interfaces: interfaces.filter(|one| !ignored.contains(one)).collect(),
        }
    }

    fn shares_with(&self, taken: &Candidate<'_>, ignored: &[Interface]) -> Option<Reason> {
        let interface = self
            .path
            .interfaces
            .iter()
            .find(|one| !ignored.contains(one) && taken.path.interfaces.contains(one))?;
        Some(Reason::Shares {
            interface: *interface,
            with: taken.fingerprint,
        })
    }
}

/// The paths, best first, without copies.
fn rank<P: AsRef<Path>>(paths: &[P]) -> Vec<Candidate<'_>> {
    let mut ranked: Vec<_> = paths
        .iter()
        .enumerate()
        .map(|(index, path)| {
            let path = path.as_ref();
            Candidate {
                index,
                path,
                fingerprint: path.fingerprint(),
            }
        })
        .collect();
    ranked.sort_by_cached_key(
        |Candidate {
             index,
             path,
             fingerprint,
         }| {
            let latency = path.latency();
            let latency = (latency.is_none(), latency);
            (
                path.hops(),
                latency,
                *fingerprint,
                Reverse(path.expiry()),
                *index,
            )
        },
    );
    let mut seen = HashSet::new();
    ranked.retain(|candidate| seen.insert(candidate.fingerprint));
    ranked
}

/// The interfaces not counted because every path has to use them: the first link when all paths
/// leave by the same interface, the last when all arrive by the same one (001, section VI).
///
/// The paper excludes the interface of the first and of the last AS. The other end of the same
/// link goes with it: counted, it would let every path overlap with every other all the same.
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
