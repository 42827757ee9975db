//! Plain-IP routes between the hosts of a lab.
//!
//! SCION programs need none of them. They are there so that a plain TCP transfer over the same
//! links can be measured beside.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hawser_topology::{IsdAsn, Network, Side};

use crate::plan::{LinkPlan, Plan};

/// First hop of the way to another AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextHop {
    /// Which AS the way leads to.
    pub to: usize,
    /// The link it begins with.
    pub link: usize,
    /// The near side of that link.
    pub side: Side,
}

/// For every AS the first hops to all others that it can reach.
///
/// Ways have the fewest links. Where several do, a weight of each link decides, the same for
/// everyone: so the way back is the way there, as kernels that filter by reverse path demand.
pub(crate) fn next_hops(ases: usize, links: &[LinkPlan]) -> Vec<Vec<NextHop>> {
    let mut neighbours: Vec<Vec<(usize, usize, Side)>> = vec![Vec::new(); ases];
    for (i, link) in links.iter().enumerate() {
        for side in [Side::A, Side::B] {
            let far = link.end(side.other()).owner;
            neighbours[link.end(side).owner].push((i, far, side));
        }
    }
    (0..ases).map(|from| ways(from, &neighbours)).collect()
}

/// The links, by their place in the network, that plain IP takes from one AS to another in a lab of
/// `network`; none when there is no way, or no lab can be made of it.
pub fn ip_way(network: &Network, from: IsdAsn, to: IsdAsn) -> Option<Vec<usize>> {
    let plan = Plan::of(network).ok()?;
    let number = |isd_as| network.ases.iter().position(|as_| as_.isd_as == isd_as);
    let (mut at, to) = (number(from)?, number(to)?);
    let hops = next_hops(plan.ases.len(), &plan.links);
    let mut way = Vec::new();
    while at != to {
        let hop = hops[at].iter().find(|hop| hop.to == to)?;
        way.push(hop.link);
        at = plan.links[hop.link].end(hop.side.other()).owner;
    }
    Some(way)
}

/// Dijkstra's algorithm, with the first hop carried along.
fn ways(from: usize, neighbours: &[Vec<(usize, usize, Side)>]) -> Vec<NextHop> {
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
                heap.push((Reverse(cost + weight(link)), far, Some(first)));
            }
        }
    }
    found.into_iter().flatten().collect()
}

/// One hop, plus a fraction that differs from link to link and whose sums differ too: 31 random
/// bits. The fractions of the longest possible path, 2^15 hops, stay below one hop, and its sum
/// below 2^64.
fn weight(link: usize) -> u64 {
    (1 << 47) + (fastrand::Rng::with_seed(link as u64).u64(..) >> 33)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::EndPlan;

    fn link(a: usize, b: usize) -> LinkPlan {
        let end = |owner| EndPlan {
            owner,
            device: String::new(),
            index: 0,
            address: Ipv4Addr::UNSPECIFIED,
            address6: None,
            mac: [0; 6],
        };
        LinkPlan {
            a: end(a),
            b: end(b),
            mtu: 1500,
        }
    }

    /// The ASes on the way, hop by hop as packets go; the links beside.
    fn follow(hops: &[Vec<NextHop>], links: &[LinkPlan], from: usize, to: usize) -> Vec<usize> {
        let mut at = from;
        let mut way = Vec::new();
        while at != to {
            let hop = hops[at].iter().find(|h| h.to == to).unwrap();
            assert_eq!(links[hop.link].end(hop.side).owner, at);
            way.push(hop.link);
            at = links[hop.link].end(hop.side.other()).owner;
            assert!(way.len() <= links.len(), "a loop from {from} to {to}");
        }
        way
    }

    #[test]
    fn the_shortest_way_is_taken() {
        // A square 0-1-2-3 and an island 4.
        let links = [link(0, 1), link(1, 2), link(2, 3), link(3, 0)];
        let hops = next_hops(5, &links);
        assert_eq!(follow(&hops, &links, 0, 3), [3]);
        assert_eq!(follow(&hops, &links, 0, 2).len(), 2);
        assert!(hops[0].iter().all(|h| h.to != 4 && h.to != 0));
        assert!(hops[4].is_empty());
    }

    #[test]
    fn a_network_says_where_ip_goes() {
        let network = Network::ready("fig7a").unwrap();
        let [from, to, nowhere] =
            ["1-ff00:0:4", "1-ff00:0:1", "1-ff00:0:9"].map(|text| text.parse().unwrap());
        let ends: Vec<_> = ip_way(&network, from, to)
            .unwrap()
            .into_iter()
            .map(|link| {
                let link = &network.links[link];
                (link.a.isd_as.to_string(), link.b.isd_as.to_string())
            })
            .collect();
        assert_eq!(ends.len(), 2, "{ends:?}");
        assert_eq!(ip_way(&network, from, from), Some(Vec::new()));
        assert_eq!(ip_way(&network, from, nowhere), None);
    }

    proptest! {
        #[test]
        fn the_way_back_is_the_way_there(
            pairs in prop::collection::vec((0usize..8, 0usize..8), 1..24)
        ) {
            let links: Vec<LinkPlan> = pairs
                .into_iter()
                .filter(|(a, b)| a != b)
                .map(|(a, b)| link(a, b))
                .collect();
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
