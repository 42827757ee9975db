//! Which AS is on which host: as many on each as on any other, with few links between hosts.
//!
//! A partition is begun in two ways: round robin, and in the order in which a search from the first AS
//! finds them, cut into equal runs. Each is refined, as by Kernighan and Lin, by moves of an AS to a host
//! with fewer and by exchanges of two, as long as these lower the number of links between hosts; of both
//! the better is taken. So it is never worse than round robin, and always the same for the same network.

use std::collections::VecDeque;

/// Most rounds of refinement. Each but the last lowers the number of links between hosts; networks of
/// hundreds of ASes take fewer than ten.
const MAX_ROUNDS: usize = 50;

/// Places `count` ASes, joined by `links`, on `hosts` hosts, at least one. Returns the host of each; their
/// numbers of ASes differ by one at most.
pub(crate) fn partition(count: usize, links: &[(usize, usize)], hosts: usize) -> Vec<usize> {
    let hosts = hosts.max(1);
    let graph = Graph::new(count, links);
    let round_robin: Vec<usize> = (0..count).map(|at| at % hosts).collect();
    let mut runs = vec![0; count];
    for (position, at) in graph.order().into_iter().enumerate() {
        // Runs whose lengths differ by one at most.
        runs[at] = position * hosts / count;
    }
    let refined = [runs, round_robin].map(|begin| graph.refine(begin, hosts));
    let best = refined.into_iter().min_by_key(|one| cut(links, one));
    best.unwrap_or_default()
}

/// How many links are between hosts.
pub(crate) fn cut(links: &[(usize, usize)], host: &[usize]) -> usize {
    let between = |(a, b): &&(usize, usize)| host.get(*a) != host.get(*b);
    links.iter().filter(between).count()
}

struct Graph {
    /// The ASes at the other ends of each AS's links.
    neighbours: Vec<Vec<usize>>,
}

impl Graph {
    fn new(count: usize, links: &[(usize, usize)]) -> Self {
        let mut neighbours = vec![Vec::new(); count];
        for &(a, b) in links.iter().filter(|(a, b)| a != b) {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        Self { neighbours }
    }

    /// All ASes, each after one that it has a link to, as far as there is one.
    fn order(&self) -> Vec<usize> {
        let mut found = vec![false; self.neighbours.len()];
        let mut order = Vec::with_capacity(found.len());
        for first in 0..self.neighbours.len() {
            let mut next = VecDeque::from([first]);
            while let Some(at) = next.pop_front() {
                if !std::mem::replace(&mut found[at], true) {
                    order.push(at);
                    next.extend(&self.neighbours[at]);
                }
            }
        }
        order
    }

    /// How many links an AS has to ASes on `there`.
    fn links_to(&self, at: usize, there: usize, host: &[usize]) -> i64 {
        let on = self.neighbours[at].iter().filter(|&&n| host[n] == there);
        on.count() as i64
    }

    /// How many links fewer would be between hosts with an AS on `there`.
    fn gain(&self, at: usize, there: usize, host: &[usize]) -> i64 {
        self.links_to(at, there, host) - self.links_to(at, host[at], host)
    }

    /// Moves and exchanges ASes while that lowers the number of links between hosts.
    fn refine(&self, mut host: Vec<usize>, hosts: usize) -> Vec<usize> {
        let mut sizes = vec![0; hosts];
        host.iter().for_each(|&on| sizes[on] += 1);
        for _ in 0..MAX_ROUNDS {
            let mut improved = false;
            for at in 0..host.len() {
                improved |= self.improve(at, &mut host, &mut sizes);
            }
            if !improved {
                break;
            }
        }
        host
    }

    /// Finds the best change that an AS is part of, and makes it if it is an improvement.
    fn improve(&self, at: usize, host: &mut [usize], sizes: &mut [usize]) -> bool {
        let here = host[at];
        let mut best: (i64, Option<(usize, Option<usize>)>) = (0, None);
        // Only where it has links can it be better.
        let mut there: Vec<usize> = self.neighbours[at].iter().map(|&n| host[n]).collect();
        there.sort_unstable();
        there.dedup();
        for there in there.into_iter().filter(|&there| there != here) {
            let gain = self.gain(at, there, host);
            if sizes[there] < sizes[here] {
                if gain > best.0 {
                    best = (gain, Some((there, None)));
                }
                continue;
            }
            for with in (0..host.len()).filter(|&with| host[with] == there) {
                // Links between both stay between hosts, and were counted as gained on each side.
                let joined = self.neighbours[at].iter().filter(|&&n| n == with).count() as i64;
                let both = gain + self.gain(with, here, host) - 2 * joined;
                if both > best.0 {
                    best = (both, Some((there, Some(with))));
                }
            }
        }
        let Some((there, with)) = best.1 else {
            return false;
        };
        host[at] = there;
        match with {
            Some(with) => host[with] = here,
            None => {
                sizes[here] -= 1;
                sizes[there] += 1;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn graphs() -> impl Strategy<Value = (usize, Vec<(usize, usize)>, usize)> {
        (1..40usize).prop_flat_map(|count| {
            let links = prop::collection::vec((0..count, 0..count), 0..100);
            (Just(count), links, 1..6usize)
        })
    }

    proptest! {
        #[test]
        fn hosts_are_even_and_no_worse_than_round_robin((count, links, hosts) in graphs()) {
            let host = partition(count, &links, hosts);
            prop_assert_eq!(host.len(), count);
            let mut sizes = vec![0; hosts];
            for &on in &host {
                sizes[on] += 1;
            }
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{sizes:?}");
            let round_robin: Vec<usize> = (0..count).map(|at| at % hosts).collect();
            prop_assert!(cut(&links, &host) <= cut(&links, &round_robin));
            prop_assert_eq!(partition(count, &links, hosts), host);
        }
    }

    #[test]
    fn groups_stay_together() {
        // Two rings of ten, joined by one link, whose ASes alternate in the list.
        let mut links = vec![(0, 1)];
        for at in 0..20 {
            links.push((at, (at + 2) % 20));
        }
        let host = partition(20, &links, 2);
        assert_eq!(cut(&links, &host), 1, "{host:?}");
    }
}
