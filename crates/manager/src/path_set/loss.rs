//! Which connected paths are held because they lose many more packets than another path in use.
//!
//! Where bytes are delivered in order by one connection over all paths, as by MPTCP, a path that loses many
//! packets costs more than it carries: everything waits for what is sent again over it.

use std::time::{Duration, Instant};

/// Loss is measured over this much time and this many packets at least.
const WINDOW: Duration = Duration::from_millis(250);
const PACKETS: u64 = 20;
/// A measurement that takes longer says nothing about now.
const AGE: Duration = Duration::from_secs(5);
/// Measurements in a row after which a path is lossy.
const LOSSY: u32 = 2;
/// Measurements in a row without too much loss after which a path that was held counts as any other.
const TRUST_MEASUREMENTS: u32 = 128;
/// For how long a path is held, at first and at last: doubled with each hold.
const HOLD_TIMES: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(32)];

/// The loss of a subflow, and whether it is held for it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Loss {
    /// The packets sent and arrived when the measurement under way began, and when that was.
    mark: Option<(u64, u64, Instant)>,
    /// The share of the packets that were lost in the last measurement, 0 to 1.
    share: Option<f64>,
    /// Measurements in a row with too much loss, and without.
    lossy: u32,
    clean: u32,
    held_until: Option<Instant>,
    /// How long the last hold was.
    held_for: Option<Duration>,
}

impl Loss {
    /// Takes the number of packets sent and arrived in all. More than the share `most` is too much loss.
    pub(super) fn measure(&mut self, sent: u64, arrived: u64, most: f64, now: Instant) {
        let (sent_before, arrived_before, began) = *self.mark.get_or_insert((sent, arrived, now));
        let sent_now = sent.saturating_sub(sent_before);
        let took = now.saturating_duration_since(began);
        if self.is_held() || took > AGE {
            self.mark = Some((sent, arrived, now));
            return;
        }
        if took < WINDOW || sent_now < PACKETS {
            return;
        }
        let arrived_now = arrived.saturating_sub(arrived_before).min(sent_now);
        let share = 1.0 - arrived_now as f64 / sent_now as f64;
        self.mark = Some((sent, arrived, now));
        self.share = Some(share);
        (self.lossy, self.clean) = match share > most {
            true => (self.lossy + 1, 0),
            false => (0, self.clean + 1),
        };
        if self.clean >= TRUST_MEASUREMENTS {
            self.held_for = None;
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held_until.is_some()
    }

    /// The share of the packets that were lost in the last measurement, 0 to 1.
    pub(super) fn share(&self) -> Option<f64> {
        self.share
    }

    /// Whether too many were lost in several measurements in a row: a full queue loses packets for a moment.
    pub(super) fn is_lossy(&self) -> bool {
        self.lossy >= LOSSY
    }

    /// When it is to be tried again, if it is held.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    pub(super) fn hold(&mut self, now: Instant) {
        let [first, longest] = HOLD_TIMES;
        let length = self.held_for.map_or(first, |last| (last * 2).min(longest));
        self.held_for = Some(length);
        self.held_until = Some(now + length);
    }

    /// Ends the hold: what was measured before it does not count any more.
    pub(super) fn release(&mut self) {
        self.held_until = None;
        (self.share, self.lossy, self.clean) = (None, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use hawser_path::{Fingerprint, Path, Select, Verdict};

    use super::super::testing::{Bench, MS, path};
    use super::super::{Carried, PathOptions};
    use super::*;
    use crate::backoff::Failure;
    use crate::order::Action;

    /// Paths that lose a share of their packets, of which each carries 1000 a second while it is used.
    struct Run {
        bench: Bench,
        now: Instant,
        lost: BTreeMap<Fingerprint, f64>,
        sent: BTreeMap<Fingerprint, (f64, f64)>,
        held: BTreeMap<Fingerprint, bool>,
    }

    impl Run {
        fn new(most_loss: Option<f64>, paths: &[(&Arc<Path>, f64)]) -> Self {
            let mut bench = Bench::with(PathOptions {
                select: Select::disjoint(),
                sensing: false,
                most_loss,
                ..PathOptions::default()
            });
            let now = Instant::now();
            let all: Vec<_> = paths.iter().map(|(path, _)| Arc::clone(path)).collect();
            bench.offer(&all, now);
            all.iter()
                .for_each(|path| bench.connected(path, 20 * MS, now));
            let lost = paths.iter().map(|(path, lost)| (path.fingerprint(), *lost));
            Self {
                bench,
                now,
                lost: lost.collect(),
                sent: BTreeMap::new(),
                held: BTreeMap::new(),
            }
        }

        /// Runs for `ms`; returns what was ordered, each with the time since the beginning of the run.
        fn run(&mut self, ms: u64) -> Vec<(Fingerprint, Action, u64)> {
            let mut all = Vec::new();
            for step in 1..=ms / 50 {
                self.now += 50 * MS;
                for (path, lost) in &self.lost {
                    let (sent, arrived) = self.sent.entry(*path).or_default();
                    if !self.held.get(path).copied().unwrap_or(false) {
                        *sent += 50.0;
                        *arrived += 50.0 * (1.0 - lost);
                    }
                    let subflow = self.bench.subflows[path];
                    let (sent, arrived) = (*sent as u64, *arrived as u64);
                    self.bench.set.arrived(subflow, sent, arrived, self.now);
                }
                self.bench.set.tick(|_| Carried::default(), self.now);
                for order in self.bench.orders(self.now) {
                    match order.action {
                        Action::Hold => drop(self.held.insert(order.path, true)),
                        Action::Resume => drop(self.held.insert(order.path, false)),
                        _ => {}
                    }
                    all.push((order.path, order.action, step * 50));
                }
            }
            all
        }
    }

    #[test]
    fn a_lossy_path_is_held_and_tried_ever_less_often_until_it_is_clean() {
        let (clean, lossy) = (path(&[1]), path(&[2]));
        let mut run = Run::new(Some(0.05), &[(&clean, 0.002), (&lossy, 0.3)]);
        let name = lossy.fingerprint();
        let orders = run.run(29_000);
        assert!(orders.iter().all(|(path, _, _)| *path == name));
        let times = |wanted: Action| -> Vec<u64> {
            let of = orders.iter().filter(|(_, action, _)| *action == wanted);
            of.map(|(_, _, at)| *at).collect()
        };
        let (holds, resumes) = (times(Action::Hold), times(Action::Resume));
        assert_eq!(holds.len(), 3);
        assert!(holds[0] <= 700, "{holds:?}");
        let waits: Vec<u64> = holds.iter().zip(&resumes).map(|(at, to)| to - at).collect();
        assert_eq!(waits, [4000, 8000]);
        // A trial is short.
        assert!(
            resumes
                .iter()
                .zip(&holds[1..])
                .all(|(at, to)| to - at <= 700)
        );
        let decision = run.bench.set.decision(name).unwrap();
        assert_eq!(decision.verdict, Verdict::Waiting);
        assert!(run.bench.set.next_due().is_some());

        run.lost.insert(name, 0.0);
        let orders = run.run(60_000);
        assert!(matches!(orders[..], [(_, Action::Resume, _)]), "{orders:?}");
        let decision = run.bench.set.decision(name).unwrap();
        assert_eq!(decision.verdict, Verdict::Taken);
        // It counts as any other by now.
        run.lost.insert(name, 0.3);
        let orders = run.run(4_500);
        let [(_, Action::Hold, held), (_, Action::Resume, tried)] = orders[..] else {
            panic!("{orders:?}");
        };
        assert_eq!(tried - held, 4000);
    }

    #[test]
    fn what_is_lost_in_a_pause_holds_no_path() {
        let (one, other) = (path(&[1]), path(&[2]));
        let mut run = Run::new(Some(0.05), &[(&one, 0.0), (&other, 0.0)]);
        // This host or the other one stands still: what its queues do not hold is lost, and shows at
        // once when it runs again.
        for (pause, lost) in [
            (1, [0.3, 0.9]),
            (3, [0.9, 0.2]),
            (4, [0.01, 0.5]),
            (12, [0.9, 0.1]),
        ] {
            assert_eq!(run.run(3_000), []);
            for (path, lost) in [&one, &other].into_iter().zip(lost) {
                let (sent, arrived) = run.sent.get_mut(&path.fingerprint()).unwrap();
                *sent += 1000.0 * f64::from(pause);
                *arrived += 1000.0 * f64::from(pause) * (1.0 - lost);
            }
            run.now += Duration::from_secs(pause as u64);
        }
        assert_eq!(run.run(10_000), []);
    }

    #[test]
    fn a_lossy_path_is_used_while_no_other_delivers() {
        let (clean, lossy) = (path(&[1]), path(&[2]));
        let mut run = Run::new(Some(0.05), &[(&clean, 0.0), (&lossy, 0.3)]);
        let orders = run.run(1_000);
        assert!(matches!(orders[..], [(_, Action::Hold, _)]), "{orders:?}");
        let gone = run.bench.subflows[&clean.fingerprint()];
        let now = run.now;
        (run.bench.set).lost(gone, Failure::Closed, "silent".into(), now);
        let orders = run.run(50);
        assert!(orders.contains(&(lossy.fingerprint(), Action::Resume, 50)));
    }

    #[test]
    fn paths_that_all_lose_and_transfers_without_an_order_use_all() {
        let (one, other) = (path(&[1]), path(&[2]));
        let mut run = Run::new(Some(0.05), &[(&one, 0.2), (&other, 0.3)]);
        assert_eq!(run.run(10_000), []);
        let mut run = Run::new(None, &[(&one, 0.0), (&other, 0.3)]);
        assert_eq!(run.run(10_000), []);
        // A queue that is full for a moment.
        let mut run = Run::new(Some(0.05), &[(&one, 0.0), (&other, 0.0)]);
        assert_eq!(run.run(1_050), []);
        run.lost.insert(other.fingerprint(), 0.5);
        assert_eq!(run.run(200), []);
        run.lost.insert(other.fingerprint(), 0.0);
        assert_eq!(run.run(5_000), []);
    }
}
