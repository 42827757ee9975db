//! Combination of up, core and down segments to paths, with shortcuts and peering links.

use std::collections::{BTreeMap, HashMap};

use hawser_address::IsdAsn;
use hawser_path::Interface;

use crate::edge::{Edge, Placed, SegmentKind, Vertex, edges};
use crate::path::{self, Candidate, Combined};
use crate::segment::Segment;

/// Bound on the work of one call, counted in lookups, so that segments from outside cannot overload
/// a host. It is about ten times the work for a core of a hundred ASes.
const MAX_WORK: usize = 1 << 22;

/// The work of checking one combination of segments, counted in lookups.
const WORK_OF_ONE: usize = 32;

/// Maximum number of hop fields of a path (SCION data plane, path meta header: `CurrHF` has 6
/// bits).
const MAX_HOP_FIELDS: usize = 64;

/// The segments between two ASes, in any order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Segments {
    /// Segments from core ASes to the source.
    pub up: Vec<Segment>,
    /// Segments between core ASes, from those on the destination's side to those on the source's.
    pub core: Vec<Segment>,
    /// Segments from core ASes to the destination.
    pub down: Vec<Segment>,
}

/// The first `limit` paths from `src` to `dst` that can be combined from `segments`, in the order
/// of scionproto's `combinator`: by the number of links, then by the number and the names of their
/// segments. No path crosses an AS twice. Of several combinations over the same interfaces, only
/// the one that expires last is returned.
///
/// Empty when `src` is `dst`: the path inside an AS needs no segments.
///
/// With very many segments (thousands that can all be combined) only the shortest combinations are
/// tried.
pub fn combine(segments: &Segments, src: IsdAsn, dst: IsdAsn, limit: usize) -> Vec<Combined> {
    if src == dst {
        return Vec::new();
    }
    let graph = Graph::new(segments, Vertex::As(src), Vertex::As(dst));
    let mut work = MAX_WORK;
    let mut found = Vec::new();
    for links in 1..=graph.most_links {
        // Paths over the same interfaces have equally many links, so duplicates of a path are found
        // in the same round.
        let round = graph.round(links, &mut work);
        for candidate in without_copies(round) {
            if found.len() == limit {
                return found;
            }
            found.extend(path::build(src, dst, &candidate));
        }
    }
    found
}

/// Edges by one or both of their ends, then by their number of links.
type Groups<'a, K> = BTreeMap<(K, usize), Vec<Edge<'a>>>;

/// The edges that paths between two ASes can consist of.
struct Graph<'a> {
    dst: Vertex,
    /// Edges from the source, by kind and end.
    first: Groups<'a, (SegmentKind, Vertex)>,
    /// Core segments, by start, then by end.
    middle: HashMap<Vertex, Groups<'a, Vertex>>,
    /// Edges to the destination, by start, then by kind.
    last: HashMap<Vertex, Groups<'a, SegmentKind>>,
    most_links: usize,
}

impl<'a> Graph<'a> {
    fn new(segments: &'a Segments, src: Vertex, dst: Vertex) -> Self {
        let mut graph = Graph {
            dst,
            first: BTreeMap::new(),
            middle: HashMap::new(),
            last: HashMap::new(),
            most_links: 0,
        };
        let Segments { up, core, down } = segments;
        for (kind, list) in [
            (SegmentKind::Up, up),
            (SegmentKind::Core, core),
            (SegmentKind::Down, down),
        ] {
            let edges = edges(kind, list);
            let longest = edges.iter().map(|placed| placed.edge.links()).max();
            graph.most_links += longest.unwrap_or(0);
            for Placed { from, to, edge } in edges {
                let links = edge.links();
                if from == src {
                    let first = graph.first.entry(((kind, to), links));
                    first.or_default().push(edge);
                }
                if to == dst {
                    let last = graph.last.entry(from).or_default();
                    last.entry((kind, links)).or_default().push(edge);
                } else if kind == SegmentKind::Core {
                    let middle = graph.middle.entry(from).or_default();
                    middle.entry((to, links)).or_default().push(edge);
                }
            }
        }
        graph
    }

    /// The candidates with this number of links, until `work` is used up.
    fn round(&self, links: usize, work: &mut usize) -> Vec<Candidate<'a>> {
        let mut found = Vec::new();
        for (&((kind, via), near), first) in self.first.range(..) {
            if near > links {
                continue;
            }
            if via == self.dst {
                if near == links {
                    join(&[first], work, &mut found);
                }
                continue;
            }
            for last in self.last(via, kind, links - near) {
                join(&[first, last], work, &mut found);
            }
            let cores = self.middle.get(&via).filter(|_| kind == SegmentKind::Up);
            for (&(then, between), middle) in cores.into_iter().flatten() {
                let Some(rest) = (links - near).checked_sub(between) else {
                    continue;
                };
                *work = work.saturating_sub(1);
                for last in self.last(then, SegmentKind::Core, rest) {
                    join(&[first, middle, last], work, &mut found);
                }
            }
        }
        found
    }

    /// The edges with this number of links from `via` to the destination that may follow an edge of
    /// `kind`.
    fn last(
        &self,
        via: Vertex,
        kind: SegmentKind,
        links: usize,
    ) -> impl Iterator<Item = &Vec<Edge<'a>>> {
        let groups = self.last.get(&via);
        let after = [SegmentKind::Core, SegmentKind::Down].into_iter();
        after
            .filter(move |&next| next > kind)
            .filter_map(move |next| groups?.get(&(next, links)))
    }
}

/// Appends to `found` all combinations of one edge from each group that form a path.
fn join<'a>(groups: &[&Vec<Edge<'a>>], work: &mut usize, found: &mut Vec<Candidate<'a>>) {
    let sizes = groups.iter().map(|group| group.len());
    for number in 0..sizes.fold(1, usize::saturating_mul) {
        if *work < WORK_OF_ONE {
            return;
        }
        *work -= WORK_OF_ONE;
        // Each digit of the number selects an edge of one group; the last group changes fastest.
        let mut rest = number;
        let mut edges = Vec::with_capacity(groups.len());
        for group in groups.iter().rev() {
            edges.push(group[rest % group.len()]);
            rest /= group.len();
        }
        edges.reverse();
        found.extend(candidate(edges));
    }
}

/// The path over `edges`; `None` if it crosses an AS twice, or has too many hop fields.
fn candidate(edges: Vec<Edge<'_>>) -> Option<Candidate<'_>> {
    let fields = edges.iter().map(|edge| edge.used().count()).sum::<usize>();
    if fields > MAX_HOP_FIELDS {
        return None;
    }
    let mut interfaces = Vec::with_capacity(2 * fields);
    for edge in &edges {
        edge.interfaces(&mut interfaces);
    }
    let mut ases: Vec<_> = interfaces.iter().map(|i| i.isd_as).collect();
    ases.sort_unstable();
    // An AS between the ends has two interfaces, an AS at an end has one.
    if ases.windows(3).any(|three| three[0] == three[2]) {
        return None;
    }
    Some(Candidate {
        expiry: edges.iter().map(Edge::expiry).min()?,
        edges,
        interfaces,
    })
}

/// Sorts the candidates. Of several over the same interfaces it keeps only the one that expires
/// last.
fn without_copies(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    candidates.sort_by_cached_key(|candidate| {
        let edges = &candidate.edges;
        let keys = edges.iter().map(|e| (e.segment.id(), e.cut, e.peer));
        (edges.len(), keys.collect::<Vec<_>>())
    });
    let mut latest: HashMap<&[Interface], usize> = HashMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let kept = latest.entry(&candidate.interfaces).or_insert(at);
        if candidate.expiry > candidates[*kept].expiry {
            *kept = at;
        }
    }
    let mut kept: Vec<_> = latest.into_values().collect();
    kept.sort_unstable();
    let mut kept = kept.into_iter().peekable();
    let candidates = candidates.into_iter().enumerate();
    candidates
        .filter_map(|(at, candidate)| kept.next_if_eq(&at).map(|_| candidate))
        .collect()
}

#[cfg(test)]
mod tests;
