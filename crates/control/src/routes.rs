//! The loop-free routes of beacons between two ASes: the shortest, and the most diverse ones of
//! many.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::iter::successors;

use crate::graph::{Along, Graph};

/// Maximum number of links of a segment. Three such segments have at most the 64 hop fields that
/// the path header can count (SCION data plane, path meta header).
pub(crate) const MAX_SEGMENT_LINKS: u32 = 20;

/// Maximum number of candidates for each pair, shortest first, from which the most diverse are
/// selected.
const MAX_CANDIDATES: usize = 256;

/// Bound on the memory of a search: about 1 MiB.
const MAX_NODES: usize = 1 << 15;

/// A loop-free route through the network, in the direction of beaconing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// The links.
    pub links: Vec<usize>,
    /// The ASes, of which there is one more than links.
    pub ases: Vec<usize>,
}

/// For each AS, the minimum number of links to `to`.
fn distances(graph: &Graph, to: usize, along: Along) -> Vec<Option<u32>> {
    let mut distance = vec![None; graph.network.ases.len()];
    distance[to] = Some(0);
    let mut queue = VecDeque::from([(to, 1)]);
    while let Some((at, links)) = queue.pop_front() {
        for step in graph.backward(at, along) {
            if distance[step.to].is_none() {
                distance[step.to] = Some(links);
                queue.push_back((step.to, links + 1));
            }
        }
    }
    distance
}

/// The end of a partial route, which consists of the chain of parents.
struct Node {
    /// The previous node, and the link from there. `None` at the start.
    parent: Option<(usize, usize)>,
    at: usize,
    links: u32,
}

/// Up to `limit` routes from `from` to `to`, ordered by length and links.
///
/// The search extends partial routes in the order of the minimum length that they can reach, so the
/// candidates are the shortest routes.
pub(crate) fn routes(
    graph: &Graph,
    from: usize,
    to: usize,
    along: Along,
    limit: usize,
) -> Vec<Route> {
    let distance = distances(graph, to, along);
    let Some(least) = distance[from] else {
        return Vec::new();
    };
    let mut nodes = vec![Node {
        parent: None,
        at: from,
        links: 0,
    }];
    // Of equal lengths the newest is first, as it is nearest to the end.
    let mut open = BinaryHeap::from([Reverse((least, Reverse(0)))]);
    let mut found = Vec::new();
    while let Some(Reverse((_, Reverse(node)))) = open.pop() {
        let (at, links) = (nodes[node].at, nodes[node].links);
        if at == to {
            found.push(unwind(&nodes, node));
            if found.len() == MAX_CANDIDATES {
                break;
            }
            continue;
        }
        for step in graph.forward(at, along) {
            let Some(rest) = distance[step.to] else {
                continue;
            };
            let total = links + 1 + rest;
            if total > MAX_SEGMENT_LINKS
                || nodes.len() == MAX_NODES
                || ancestors(&nodes, node).any(|node| node.at == step.to)
            {
                continue;
            }
            open.push(Reverse((total, Reverse(nodes.len()))));
            nodes.push(Node {
                parent: Some((node, step.link)),
                at: step.to,
                links: links + 1,
            });
        }
    }
    let mut chosen = most_diverse(found, limit);
    chosen.sort_by(|a, b| (a.links.len(), &a.links).cmp(&(b.links.len(), &b.links)));
    chosen
}

/// A node and all previous ones, back to the start.
fn ancestors(nodes: &[Node], node: usize) -> impl Iterator<Item = &Node> {
    successors(nodes.get(node), |node| nodes.get(node.parent?.0))
}

fn unwind(nodes: &[Node], node: usize) -> Route {
    let chain = || ancestors(nodes, node);
    let mut ases: Vec<_> = chain().map(|node| node.at).collect();
    let mut links: Vec<_> = chain().filter_map(|node| Some(node.parent?.1)).collect();
    links.reverse();
    ases.reverse();
    Route { links, ases }
}

/// Selects `limit` of the routes: in each step the one with the minimum sum of its length and of
/// the number of times that its links occur in the routes selected before.
fn most_diverse(mut routes: Vec<Route>, limit: usize) -> Vec<Route> {
    if routes.len() <= limit {
        return routes;
    }
    let mut used: HashMap<usize, usize> = HashMap::new();
    let mut taken = Vec::with_capacity(limit);
    while taken.len() < limit {
        let cost = |route: &Route| -> usize {
            let shared = |link| used.get(link).copied().unwrap_or(0);
            route.links.len() + route.links.iter().map(shared).sum::<usize>()
        };
        let Some(best) = (0..routes.len()).min_by_key(|&at| (cost(&routes[at]), at)) else {
            break;
        };
        let route = routes.remove(best);
        for &link in &route.links {
            *used.entry(link).or_default() += 1;
        }
        taken.push(route);
    }
    taken
}

#[cfg(test)]
mod tests;
