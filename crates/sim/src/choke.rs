//! Which peers a leecher serves (BEP 3).

use crate::host::HostId;

/// Most peers that a leecher serves at once.
pub(crate) const UNCHOKED: usize = 4;

/// The peers to serve: of those interested, each with the bytes it sent in the last choking period,
/// the best three and a random one.
pub(crate) fn unchoke(interested: &[(HostId, u64)], rng: &mut fastrand::Rng) -> Vec<HostId> {
    let mut ranked: Vec<(HostId, u64)> = interested.to_vec();
    // Peers that sent equally much come in random order.
    rng.shuffle(&mut ranked);
    ranked.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let best = ranked.len().min(UNCHOKED - 1);
    rng.shuffle(&mut ranked[best..]);
    ranked.truncate(UNCHOKED);
    ranked.into_iter().map(|(host, _)| host).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn three_are_served_for_what_they_give_and_one_by_chance() {
        let interested = [(1, 5), (2, 0), (3, 9), (4, 1), (5, 7), (6, 0)];
        let mut rng = fastrand::Rng::with_seed(1);
        let mut by_chance = BTreeSet::new();
        for _ in 0..100 {
            let mut served = unchoke(&interested, &mut rng);
            assert_eq!(served.len(), 4);
            by_chance.insert(served.remove(3));
            assert_eq!(served, [3, 5, 1]);
        }
        assert_eq!(by_chance, BTreeSet::from([2, 4, 6]));
        assert_eq!(unchoke(&interested[..1], &mut rng), [1]);
        assert!(unchoke(&[], &mut rng).is_empty());
    }
}
