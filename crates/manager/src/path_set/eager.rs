//! When failed paths are tried again sooner.

use std::time::{Duration, Instant};

use hawser_path::Path;

use super::PathSet;
use crate::order::Cause;

/// For how long the loss of the last subflow that delivered is taken for a fault of the paths, and not
/// for the end of the remote.
const WORTH: Duration = Duration::from_secs(60);

/// Whether any subflow delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// None did so far, or not for a long time.
    Never,
    Now,
    /// The last one was lost then.
    Until(Instant),
}

impl<P: AsRef<Path> + Clone> PathSet<P> {
    /// Tries failed paths again sooner where that is worth it, whatever is offered: some control planes
    /// go on offering a path that is down, so that nothing there shows when it works again.
    ///
    /// - When the last subflow that delivered is lost, all paths are tried at once.
    /// - While one delivers, and for a while afterwards, pauses are short, and a dial over a path that
    ///   was connected before is begun anew when it takes too long: a dial sends packets ever less
    ///   often, and would notice late that the path works.
    ///
    /// Otherwise the remote itself may be gone, and tries become rare.
    pub(super) fn hasten(&mut self, now: Instant) {
        let delivers = self.entries.values().any(|one| one.delivering().is_some());
        let is_last_lost = !delivers && self.delivery == Delivery::Now;
        self.delivery = match (delivers, is_last_lost) {
            (true, _) => Delivery::Now,
            (false, true) => Delivery::Until(now),
            (false, false) if !self.is_eager(now) => Delivery::Never,
            (false, false) => self.delivery,
        };
        if !self.is_eager(now) {
            return;
        }
        for entry in self.entries.values_mut() {
            match is_last_lost {
                true => entry.backoff.end_pause(now),
                false => entry.backoff.hasten(now),
            }
            if entry.dial_overdue().is_some_and(|at| at <= now) {
                self.orders.extend(entry.end_dial(Cause::Unanswered));
            }
        }
    }

    /// Whether tries are worth it, because a subflow delivers or did a moment ago.
    pub(super) fn is_eager(&self, now: Instant) -> bool {
        match self.delivery {
            Delivery::Never => false,
            Delivery::Now => true,
            Delivery::Until(at) => now <= at + WORTH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, MS, path};
    use super::*;
    use crate::backoff::Failure;

    use hawser_path::Select;

    /// How often a remote is dialed within a minute that ends each connection right after it is connected;
    /// after `bytes` of each arrived.
    fn dials_in_a_minute(bytes: u64) -> usize {
        let mut bench = Bench::new(Select::shortest(), 1);
        let start = Instant::now();
        let (mut now, mut dials) = (start, 0);
        let one = path(&[1]);
        bench.offer(std::slice::from_ref(&one), now);
        while now < start + Duration::from_secs(60) {
            if bench.dials(now).is_empty() {
                now += MS;
                continue;
            }
            dials += 1;
            bench.connected(&one, MS, now);
            bench.set.delivered(one.fingerprint(), bytes);
            now += MS;
            let subflow = bench.subflows[&one.fingerprint()];
            bench.set.lost(subflow, Failure::Closed, "no".into(), now);
        }
        dials
    }

    #[test]
    fn a_remote_that_ends_every_connection_at_once_is_dialed_ever_less_often() {
        let dials = dials_in_a_minute(0);
        assert!((10..=25).contains(&dials), "{dials}");
        // One over which something arrives is dialed again at once.
        assert!(dials_in_a_minute(1) > 1000);
    }
}
