//! Runs of the program for one AS: several at once are a mistake, one after the other is a restart.

use std::net::IpAddr;

/// Time after which a run that is not heard of has ended, in milliseconds: a living one asks again
/// sooner, also after failures.
const RUN_TIMEOUT: u64 = 150_000;
/// Most runs that are remembered.
const MAX_RUNS: usize = 8;

/// A run, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// The number that it has chosen at random.
    number: u64,
    /// Where it was last heard from.
    address: IpAddr,
    /// When it was first and last heard of, in milliseconds since 1970.
    first: u64,
    last: u64,
}

/// The runs for one AS that were heard of lately.
///
/// A run that begins when another one has ended is a restart, however short the time between them
/// is. So two count as being there at once as soon as the older one is heard of after the younger
/// one, and as long as both are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instances(Vec<Run>);

impl Instances {
    /// The run `number` was heard of at `address`, now. Returns whether all others should be asked
    /// whether they are still there, or are to learn of one another.
    pub fn note(&mut self, number: u64, address: IpAddr, now: u64) -> bool {
        self.0.retain(|run| is_there(run, now));
        let before = self.at_once(now).len();
        if let Some(run) = self.0.iter_mut().find(|run| run.number == number) {
            (run.address, run.last) = (address, now.max(run.last));
            return self.at_once(now).len() != before;
        }
        if self.0.len() == MAX_RUNS {
            // The one that was not heard of for the longest time.
            let oldest = self.0.iter().enumerate().min_by_key(|(_, run)| run.last);
            oldest.map(|(at, _)| at).map(|at| self.0.remove(at));
        }
        self.0.push(Run {
            number,
            address,
            first: now,
            last: now,
        });
        self.0.len() > 1
    }

    /// The addresses of the runs that are there at once, the oldest first; none if there is one.
    pub fn at_once(&self, now: u64) -> Vec<IpAddr> {
        let rivals = self.0.iter().filter(|run| self.rival(run, now).is_some());
        rivals.map(|run| run.address).collect()
    }

    /// The address of another run that is there beside the run `number`.
    pub fn beside(&self, number: u64, now: u64) -> Option<IpAddr> {
        let own = self.0.iter().find(|run| run.number == number)?;
        self.rival(own, now).map(|run| run.address)
    }

    fn rival(&self, own: &Run, now: u64) -> Option<&Run> {
        let mut others = self.0.iter().filter(|run| run.number != own.number);
        others.find(|run| {
            let both = is_there(run, now) && is_there(own, now);
            both && run.last > own.first && own.last > run.first
        })
    }
}

fn is_there(run: &Run, now: u64) -> bool {
    now.saturating_sub(run.last) < RUN_TIMEOUT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn two_at_once_are_found() {
        let mut runs = Instances::default();
        assert!(!runs.note(1, ip(1), 1000));
        assert!(!runs.note(1, ip(1), 2000));
        // The first one may have ended: it is asked.
        assert!(runs.note(2, ip(2), 3000));
        assert!(runs.at_once(3000).is_empty());
        assert_eq!(runs.beside(2, 3000), None);
        assert!(runs.note(1, ip(1), 3100));
        assert_eq!(runs.at_once(3100), [ip(1), ip(2)]);
        assert_eq!(runs.beside(2, 3100), Some(ip(1)));
        assert_eq!(runs.beside(1, 3100), Some(ip(2)));
        assert!(!runs.note(2, ip(2), 3200));
        // The second one ends.
        for now in (4000..4000 + RUN_TIMEOUT).step_by(10_000) {
            runs.note(1, ip(1), now);
        }
        assert!(runs.at_once(3200 + RUN_TIMEOUT).is_empty());
        assert_eq!(runs.beside(1, 3200 + RUN_TIMEOUT), None);
    }

    #[test]
    fn machines_behind_one_address_are_two() {
        let mut runs = Instances::default();
        for (number, now) in [(1, 1), (2, 2), (1, 3)] {
            runs.note(number, ip(9), now);
        }
        assert_eq!(runs.at_once(3), [ip(9), ip(9)]);
    }

    #[test]
    fn an_address_that_changes_is_the_same_machine() {
        let mut runs = Instances::default();
        for now in 0..10 {
            assert!(!runs.note(1, ip(now as u8), now));
        }
        assert!(runs.at_once(10).is_empty());
    }

    proptest! {
        /// However often and fast a machine starts again, it is one.
        #[test]
        fn restarts_are_no_duplicates(steps in prop::collection::vec((0..20_000_u64, any::<bool>()), 1..60)) {
            let mut runs = Instances::default();
            let (mut now, mut number) = (0, 0);
            for (wait, restarts) in steps {
                now += wait;
                number += u64::from(restarts);
                runs.note(number, ip(1), now);
                prop_assert_eq!(runs.at_once(now), Vec::<IpAddr>::new());
                prop_assert!(runs.0.len() <= MAX_RUNS);
            }
        }

        /// Two that are heard of in turns are found, whatever the times are.
        #[test]
        fn duplicates_are_found(waits in prop::collection::vec(1..RUN_TIMEOUT / 2, 3..40)) {
            let mut runs = Instances::default();
            let mut now = 1;
            for (turn, wait) in waits.iter().enumerate() {
                now += wait;
                runs.note(turn as u64 % 2, ip(turn as u8 % 2), now);
            }
            prop_assert_eq!(runs.at_once(now), [ip(0), ip(1)]);
        }
    }
}
