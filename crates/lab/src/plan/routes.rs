//! Plain-IP routes between the hosts of a lab.
//!
//! SCION programs do not need them. Measurements use them to compare plain TCP with SCION over the
//! same links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hawser_topology::Side;

/// A link between two ASes, which are named by their indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) struct Edge {
    pub a: usize,
    pub b: usize,
    /// The number from which its weight follows.
    pub number: u32,
}

impl Edge {
    pub fn end(&self, side: Side) -> usize {
        match side {
            Side::A => self.a,
            Side::B => self.b,
        }
    }
}

/// The first hop of the route to another AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) struct NextHop {
    /// The AS that the route leads to.
    pub to: usize,
    /// The first link of the route.
    pub link: usize,
    /// The near side of that link.
    pub side: Side,
}

/// For every AS, the first hops to all reachable ASes.
///
/// Routes have the fewest links. Among several such routes the weights of the links decide. The
/// weights are equal in both directions, so routes are symmetric, as kernels with reverse path
/// filtering require.
pub(in crate::plan) fn next_hops(ases: usize, links: &[Edge]) -> Vec<Vec<NextHop>> {
    let mut neighbours: Vec<Vec<(usize, usize, Side)>> = vec![Vec::new(); ases];
    for (i, link) in links.iter().enumerate() {
        for side in [Side::A, Side::B] {
            neighbours[link.end(side)].push((i, link.end(side.other()), side));
        }
    }
    (0..ases)
        .map(|from| first_hops(from, &neighbours, links))
        .collect()
}

/// Dijkstra's algorithm, which also keeps the first hop of each route.
fn first_hops(
    from: usize,
    neighbours: &[Vec<(usize, usize, Side)>],
    links: &[Edge],
) -> Vec<NextHop> {
    let mut found: Vec<Option<NextHop>> = vec![None; neighbours.len()];
    let mut done = vec![false; neighbours.len()];
    let mut heap = BinaryHeap::from([(Reverse(0u64), from, None::<(usize, bool)>)]);
    while let Some((Reverse(cost), at, first)) = heap.pop() {
        if std::mem::replace(&mut done[at], true) {
            continue;
        }
        found[at] = first.map(|(link, is_a)| NextHop {
            to: at,
            link,
            side: if is_a { Side::A } else { Side::B },
        });
        for &(link, far, side) in &neighbours[at] {
            if !done[far] {
                let first = first.unwrap_or((link, side == Side::A));
                heap.push((Reverse(cost + weight(links[link].number)), far, Some(first)));
            }
        }
    }
    found.into_iter().flatten().collect()
}

/// The weight of a link: one hop plus a fraction, chosen so that the sums of different routes
/// differ. The fraction has 31 bits of a hash of the link's number (the output function of
/// SplitMix64). It must not change between versions, so that the routes of a lab stay the same. On
/// the longest possible route, 2^15 hops, the fractions sum up to less than one hop, and the
/// weights to less than 2^64.
fn weight(number: u32) -> u64 {
    let mut z = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (1 << 47) + ((z ^ (z >> 31)) >> 33)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The links between these pairs of ASes.
    fn edges(pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Edge> {
        let edge = |((a, b), number)| Edge { a, b, number };
        pairs.into_iter().zip(0..).map(edge).collect()
    }

    /// The links of a route, followed hop by hop.
    fn follow(hops: &[Vec<NextHop>], links: &[Edge], from: usize, to: usize) -> Vec<usize> {
        let mut at = from;
        let mut route = Vec::new();
        while at != to {
            let hop = hops[at].iter().find(|h| h.to == to).unwrap();
            assert_eq!(links[hop.link].end(hop.side), at);
            route.push(hop.link);
            at = links[hop.link].end(hop.side.other());
            assert!(route.len() <= links.len(), "a loop from {from} to {to}");
        }
        route
    }

    #[test]
    fn the_shortest_route_is_taken() {
        // A square 0-1-2-3 and an unconnected AS 4.
        let links = edges([(0, 1), (1, 2), (2, 3), (3, 0)]);
        let hops = next_hops(5, &links);
        assert_eq!(follow(&hops, &links, 0, 3), [3]);
        assert_eq!(follow(&hops, &links, 0, 2).len(), 2);
        assert!(hops[0].iter().all(|h| h.to != 4 && h.to != 0));
        assert!(hops[4].is_empty());
    }

    proptest! {
        #[test]
        fn routes_are_symmetric(
            pairs in prop::collection::vec((0usize..8, 0usize..8), 1..24)
        ) {
            let links = edges(pairs.into_iter().filter(|(a, b)| a != b));
            let hops = next_hops(8, &links);
            for from in 0..8 {
                for hop in &hops[from] {
                    let there = follow(&hops, &links, from, hop.to);
                    let mut back = follow(&hops, &links, hop.to, from);
                    back.reverse();
                    prop_assert_eq!(there, back);
                }
            }
        }
    }
}
