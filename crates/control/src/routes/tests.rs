use hawser_topology::{LinkKind, Network};

use super::*;
use crate::testing::{ia, plain_as, plain_link};

/// Core ASes with the listed links between them.
fn core_network(ases: usize, links: &[(usize, usize)]) -> Graph {
    let isd_as = |at: usize| ia(&format!("1-ff00:0:{:x}", at + 1));
    let links = links.iter().zip(1..);
    Graph::new(Network {
        ases: (0..ases).map(|at| plain_as(isd_as(at), true)).collect(),
        links: links
            .map(|(&(a, b), id)| plain_link([isd_as(a), isd_as(b)], id, LinkKind::Core))
            .collect(),
    })
}

fn core_routes(graph: &Graph, from: usize, to: usize, limit: usize) -> Vec<Route> {
    routes(graph, from, to, Along::Core, limit)
}

#[test]
fn all_of_few_routes_are_found_shortest_first() {
    // The network is a square with a diagonal.
    let graph = core_network(4, &[(0, 1), (1, 3), (0, 2), (2, 3), (1, 2)]);
    let found: Vec<_> = core_routes(&graph, 0, 3, 20)
        .into_iter()
        .map(|route| route.links)
        .collect();
    assert_eq!(
        found,
        [vec![0, 1], vec![2, 3], vec![0, 4, 3], vec![2, 4, 1]]
    );
}

#[test]
fn the_most_diverse_of_many_routes_are_selected() {
    // Two steps with five parallel links each give 25 routes of the same length.
    let links: Vec<_> = (0..10).map(|at| (at / 5, at / 5 + 1)).collect();
    let graph = core_network(3, &links);
    let found = core_routes(&graph, 0, 2, 10);
    assert_eq!(found.len(), 10);
    for link in 0..10 {
        let uses = found.iter().filter(|r| r.links.contains(&link)).count();
        assert!((1..=3).contains(&uses), "link {link} in {found:?}");
    }
    // A short route with many parallel links does not hide the longer one.
    let mut links: Vec<_> = (0..30).map(|_| (0, 1)).collect();
    links.extend([(1, 3), (0, 2), (2, 4), (4, 3)]);
    let graph = core_network(5, &links);
    let found = core_routes(&graph, 0, 3, 4);
    assert!(found.iter().any(|r| r.links == [31, 32, 33]), "{found:?}");
    assert_eq!(found[0].links.len(), 2);
}

#[test]
fn segments_are_not_longer_than_the_bound() {
    let longest = MAX_SEGMENT_LINKS as usize;
    let chain: Vec<_> = (0..longest + 1).map(|at| (at, at + 1)).collect();
    let graph = core_network(longest + 2, &chain);
    assert_eq!(core_routes(&graph, 0, longest, 20).len(), 1);
    assert_eq!(core_routes(&graph, 0, longest + 1, 20), []);
}

#[test]
fn the_search_of_a_dense_network_is_bounded() {
    // A full mesh of 30 ASes has about 30! routes, of which the search visits few.
    let mesh: Vec<_> = (0..30)
        .flat_map(|a| (a + 1..30).map(move |b| (a, b)))
        .collect();
    let graph = core_network(30, &mesh);
    let found = core_routes(&graph, 0, 29, 20);
    assert_eq!(found.len(), 20);
    assert_eq!(found[0].links.len(), 1);
    // The routes over one AS share no links with each other.
    assert!(found.iter().all(|route| route.links.len() <= 2));
}

#[test]
fn a_large_dead_end_does_not_hide_the_route() {
    // The only route is over 0 - 1; a large clique is connected to 0.
    let mut links = vec![(0, 1), (1, 2)];
    for a in 3..15 {
        links.push((0, a));
        links.extend((a + 1..15).map(|b| (a, b)));
    }
    let graph = core_network(15, &links);
    let found = core_routes(&graph, 0, 2, 20);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].ases, [0, 1, 2]);
}
