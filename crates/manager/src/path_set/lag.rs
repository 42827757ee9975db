//! Which connected paths are held because they deliver much later than others.
//!
//! Where bytes are delivered in order, what arrives early waits for what was sent over the slower path:
//! once as much waits as the receiver takes, all paths are as slow as that one.

use std::time::{Duration, Instant};

/// The shortest round-trip time counts for one to two such times: longer ones have queues in them, which
/// come and go.
const AGE: Duration = Duration::from_secs(5);

/// The round-trip times of a subflow, and whether it is held for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lag {
    /// The shortest of this time and of the one before, and when this one began.
    shortest: Option<Duration>,
    before: Option<Duration>,
    began: Option<Instant>,
    is_held: bool,
}

impl Lag {
    pub(super) fn measure(&mut self, rtt: Duration, now: Instant) {
        let is_over = |began: Instant| now.saturating_duration_since(began) >= AGE;
        if self.began.is_none_or(is_over) {
            (self.before, self.shortest) = (self.shortest, None);
            self.began = Some(now);
        }
        self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        [self.shortest, self.before].into_iter().flatten().min()
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Sets whether it is held. Returns whether that is a change.
    pub(super) fn set_held(&mut self, is_held: bool) -> bool {
        std::mem::replace(&mut self.is_held, is_held) != is_held
    }
}

#[cfg(test)]
mod tests {
    use hawser_path::{Select, Verdict};

    use super::super::testing::{Bench, MS, path};
    use super::super::{Carried, PathOptions};
    use crate::backoff::Failure;
    use crate::order::Action;

    fn bench(most_lag: Option<super::Duration>) -> Bench {
        Bench::with(PathOptions {
            select: Select::disjoint(),
            sensing: false,
            most_lag,
            ..PathOptions::default()
        })
    }

    /// What is ordered at a tick, with the path.
    fn tick(bench: &mut Bench, now: super::Instant) -> Vec<(hawser_path::Fingerprint, Action)> {
        bench.set.tick(|_| Carried::default(), now);
        let orders = bench.orders(now).into_iter();
        orders.map(|order| (order.path, order.action)).collect()
    }

    #[test]
    fn a_far_path_is_held_until_it_is_the_best_one() {
        let mut bench = bench(Some(150 * MS));
        let mut now = super::Instant::now();
        let (near, far) = (path(&[1]), path(&[2]));
        bench.offer(&[near.clone(), far.clone()], now);
        for (path, rtt) in [(&near, 20), (&far, 520)] {
            bench.connected(path, rtt * MS, now);
            let subflow = bench.subflows[&path.fingerprint()];
            bench.set.measured(subflow, rtt * MS, now);
        }
        assert_eq!(tick(&mut bench, now), [(far.fingerprint(), Action::Hold)]);
        let decision = bench.set.decision(far.fingerprint()).unwrap();
        assert_eq!(decision.verdict, Verdict::Waiting);
        assert_eq!(tick(&mut bench, now), []);
        // A queue of the near one is no reason.
        let queue = bench.subflows[&near.fingerprint()];
        bench.set.measured(queue, 500 * MS, now);
        assert_eq!(tick(&mut bench, now), []);
        // It is all that is left.
        bench.set.lost(queue, Failure::Closed, "silent".into(), now);
        let orders = tick(&mut bench, now);
        assert!(
            orders.contains(&(far.fingerprint(), Action::Resume)),
            "{orders:?}"
        );
        // The near one is back, and then becomes as far.
        now += 1000 * MS;
        bench.connected(&near, 20 * MS, now);
        let near = bench.subflows[&near.fingerprint()];
        bench.set.measured(near, 20 * MS, now);
        assert_eq!(tick(&mut bench, now), [(far.fingerprint(), Action::Hold)]);
        let mut orders = Vec::new();
        for _ in 0..300 {
            now += 50 * MS;
            bench.set.measured(near, 450 * MS, now);
            orders.extend(tick(&mut bench, now));
        }
        assert_eq!(orders, [(far.fingerprint(), Action::Resume)]);
    }

    #[test]
    fn transfers_without_an_order_use_far_paths() {
        let mut bench = bench(None);
        let now = super::Instant::now();
        let paths = [path(&[1]), path(&[2])];
        bench.offer(&paths, now);
        for (path, rtt) in paths.iter().zip([20, 520]) {
            bench.connected(path, rtt * MS, now);
            let subflow = bench.subflows[&path.fingerprint()];
            bench.set.measured(subflow, rtt * MS, now);
        }
        assert_eq!(tick(&mut bench, now), []);
    }

    #[test]
    fn a_far_path_that_is_offered_again_carries_when_it_is_all_that_is_left() {
        let mut bench = bench(Some(150 * MS));
        let now = super::Instant::now();
        let both = [path(&[1]), path(&[2])];
        bench.offer(&both, now);
        for (path, rtt) in both.iter().zip([20, 520]) {
            bench.connected(path, rtt * MS, now);
            let subflow = bench.subflows[&path.fingerprint()];
            bench.set.measured(subflow, rtt * MS, now);
        }
        let [near, far] = both.each_ref().map(|path| path.fingerprint());
        assert_eq!(tick(&mut bench, now), [(far, Action::Hold)]);
        // Withdrawn while it is held: nothing more is ordered, and nothing can come that shows it delivers.
        bench.offer(&both[..1], now);
        assert_eq!(bench.orders(now), []);
        bench.offer(&both, now);
        assert_eq!(tick(&mut bench, now + 1000 * MS), []);
        bench.failed(near, now + 1000 * MS);
        let orders = tick(&mut bench, now + 1000 * MS);
        assert!(orders.contains(&(far, Action::Resume)), "{orders:?}");
    }
}
