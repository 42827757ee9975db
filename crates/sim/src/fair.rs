//! How flows share links: max-min fairly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The max-min fair rates of flows: no flow can get more except at the cost of one that has no more
/// than it (progressive filling: Bertsekas, Gallager, *Data Networks*, section 6.5.2).
///
/// `capacity` has the capacity of each link, and `flows` the links that each flow crosses, as
/// indices into `capacity`; rates are in the unit of `capacity`. A flow that crosses no link gets
/// infinity. Takes time in proportion to the links crossed by all flows, times a logarithm.
pub fn max_min(capacity: &[f64], flows: &[&[u32]]) -> Vec<f64> {
    let mut left = capacity.to_vec();
    let mut open = vec![0_u32; capacity.len()];
    for link in flows.iter().copied().flatten() {
        open[*link as usize] += 1;
    }
    // The flows of each link, one link after another.
    let mut end = Vec::with_capacity(capacity.len());
    let mut total = 0;
    for count in &open {
        end.push(total);
        total += *count as usize;
    }
    let mut crossing = vec![0_u32; total];
    for (flow, links) in flows.iter().enumerate() {
        for link in *links {
            let place = &mut end[*link as usize];
            crossing[*place] = flow as u32;
            *place += 1;
        }
    }
    let begin = |link: usize| link.checked_sub(1).map_or(0, |before| end[before]);
    let mut rates = vec![f64::INFINITY; flows.len()];
    let mut settled: Vec<bool> = vec![false; flows.len()];
    let shares = (0..capacity.len()).filter(|&link| open[link] > 0);
    // The capacity left on each link per flow. It is never negative, so its bits sort like the
    // number.
    let shares = shares.map(|link| Reverse(((left[link] / f64::from(open[link])).to_bits(), link)));
    let mut shares: BinaryHeap<_> = shares.collect();
    while let Some(Reverse((known, link))) = shares.pop() {
        if open[link] == 0 {
            continue;
        }
        let share = left[link] / f64::from(open[link]);
        if share > f64::from_bits(known) {
            // Some of its flows were settled at a lower rate meanwhile.
            shares.push(Reverse((share.to_bits(), link)));
            continue;
        }
        for &flow in &crossing[begin(link)..end[link]] {
            let flow = flow as usize;
            if std::mem::replace(&mut settled[flow], true) {
                continue;
            }
            rates[flow] = share;
            for &crossed in flows[flow] {
                let crossed = crossed as usize;
                left[crossed] = (left[crossed] - share).max(0.0);
                open[crossed] -= 1;
            }
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_examples() {
        // One link, three flows.
        assert_eq!(max_min(&[9.0], &[&[0], &[0], &[0]]), [3.0, 3.0, 3.0]);
        // A long flow over two links, a short one on each (Bertsekas, Gallager, Fig. 6.12).
        assert_eq!(
            max_min(&[1.0, 2.0], &[&[0, 1], &[0], &[1]]),
            [0.5, 0.5, 1.5]
        );
        // The second link limits three flows; the last flow gets what they leave of the third link.
        let rates = max_min(&[10.0, 12.0, 30.0], &[&[0, 1], &[0, 1], &[1, 2], &[2]]);
        assert_eq!(rates, [4.0, 4.0, 4.0, 26.0]);
        assert_eq!(max_min(&[], &[]), Vec::<f64>::new());
        assert_eq!(max_min(&[5.0], &[&[]]), [f64::INFINITY]);
    }

    proptest! {
        /// The definition of max-min fairness: no link carries too much, and each flow crosses a
        /// full link on which no flow has more than it.
        #[test]
        fn each_flow_has_its_bottleneck(
            capacity in prop::collection::vec(1.0..1000.0_f64, 1..12),
            flows in prop::collection::vec(prop::collection::btree_set(0_u32..12, 1..6), 0..30),
        ) {
            let count = capacity.len() as u32;
            let flows: Vec<Vec<u32>> = flows
                .into_iter()
                .map(|links| {
                    let mut links: Vec<u32> = links.into_iter().map(|link| link % count).collect();
                    links.sort_unstable();
                    links.dedup();
                    links
                })
                .collect();
            let links: Vec<&[u32]> = flows.iter().map(Vec::as_slice).collect();
            let rates = max_min(&capacity, &links);
            let on = |link: u32| {
                let flows = flows.iter().zip(&rates);
                flows.filter(move |(links, _)| links.contains(&link)).map(|(_, rate)| *rate)
            };
            for (link, capacity) in capacity.iter().enumerate() {
                prop_assert!(on(link as u32).sum::<f64>() <= capacity * (1.0 + 1e-9));
            }
            for (links, rate) in flows.iter().zip(&rates) {
                prop_assert!(*rate > 0.0);
                let is_bottleneck = |link: &u32| {
                    let full = on(*link).sum::<f64>() >= capacity[*link as usize] * (1.0 - 1e-9);
                    full && on(*link).all(|other| other <= rate * (1.0 + 1e-9))
                };
                prop_assert!(links.iter().any(is_bottleneck));
            }
        }
    }
}
