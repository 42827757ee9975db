//! What a run shows: how much of the shared link was used, how long it was not, and how soon one
//! path takes what the other gives up.

use serde::Serialize;

use crate::samples::Samples;

/// Seconds of the window in which the least total counts.
const SECOND: f64 = 1.0;
/// Seconds of the windows in which a rate counts as reached or lost.
const WINDOW: f64 = 0.5;
/// Seconds between windows.
const STEP: f64 = 0.1;
/// The share of the ceiling below which the total is not full.
const FULL: f64 = 0.95;
/// The least share of the ceiling that counts as free.
const FREE: f64 = 0.1;
/// The share of what is free that is to be taken.
const TAKEN: f64 = 0.9;

/// The phases of a run, in seconds from its start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Phases {
    /// End of the start, which does not count.
    pub settled: f64,
    /// Start of the congestion.
    pub from: f64,
    /// End of the congestion.
    pub to: f64,
    /// End of the run.
    pub end: f64,
}

impl Phases {
    /// The phases of a run of `end` seconds; those of the paper at 45.
    pub fn of(end: f64) -> Self {
        Self {
            settled: end / 9.0,
            from: end / 3.0,
            to: end * 2.0 / 3.0,
            end,
        }
    }
}

/// What a run shows. Shares are of the ceiling: what the headers leave of the shared link, all of which
/// the other path can carry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Facts {
    /// The total of the whole run, start included.
    pub overall_share: f64,
    /// The total before the congestion, from the settled start on.
    pub before_share: f64,
    /// The total during the congestion.
    pub during_share: f64,
    /// The total after the congestion.
    pub after_share: f64,
    /// The least total in any second, from the settled start on.
    pub least_share: f64,
    /// When that second began.
    pub least_at: f64,
    /// The least total in any second of the congestion.
    pub least_during_share: f64,
    /// The longest time in a row in which the total was below 0.95 of the ceiling, from the settled
    /// start on, in seconds; in windows of half a second, which may add as much.
    pub below_seconds: f64,
    /// Seconds from when the congested path has given up a tenth of the ceiling until the other has
    /// taken 0.9 of what that gives up; `None` if it gave up less, or never did.
    pub taken_seconds: Option<f64>,
    /// The least share of what the congested path has given up that the other has taken a second
    /// later; `None` if it gave up less than a tenth of the ceiling.
    pub taken_share: Option<f64>,
    /// What the load carried during the congestion, in Mbit/s: goodput of TCP, frames of UDP as sent.
    pub load_mbit: f64,
}

impl Facts {
    /// The facts of a run with a total of `total`, over the path that is not congested (`clear`) and
    /// over the other one (`congested`); the ceiling is in Mbit/s.
    pub fn of(
        (total, clear, congested, load): (&Samples, &Samples, &Samples, &Samples),
        phases: Phases,
        ceiling: f64,
    ) -> Self {
        let Phases {
            settled,
            from,
            to,
            end,
        } = phases;
        let share = |from: f64, to: f64| total.rate(from, to) / ceiling;
        let least = |from: f64, to: f64| {
            let seconds = windows(from, to, SECOND).map(|at| (share(at, at + SECOND), at));
            let least = seconds.min_by(|one, other| one.0.total_cmp(&other.0));
            least.unwrap_or((share(from, to), from))
        };
        let (least_share, least_at) = least(settled, end);
        let below = windows(settled, end, WINDOW).map(|at| share(at, at + WINDOW) < FULL);
        let gained = |at: f64| clear.rate(at, at + WINDOW) - clear.rate(settled, from);
        let freed = |at: f64| congested.rate(settled, from) - congested.rate(at, at + WINDOW);
        let free = |at: &f64| freed(*at) >= FREE * ceiling;
        let first_free = windows(from, to, WINDOW).find(free);
        let taken_seconds = first_free.and_then(|begin| {
            let mut later = windows(begin, to, WINDOW);
            later
                .find(|at| gained(*at) >= TAKEN * freed(*at))
                .map(|at| at - begin)
        });
        let shares = windows(from, to - SECOND, WINDOW).filter(free);
        let shares = shares.map(|at| gained(at + SECOND) / freed(at));
        Self {
            overall_share: share(0.0, end),
            before_share: share(settled, from),
            during_share: share(from, to),
            after_share: share(to, end),
            least_share,
            least_at,
            least_during_share: least(from, to).0,
            below_seconds: longest(below),
            taken_seconds,
            taken_share: shares.min_by(f64::total_cmp),
            load_mbit: load.rate(from, to),
        }
    }
}

/// The starts of all windows of `width` seconds between two times.
fn windows(from: f64, to: f64, width: f64) -> impl Iterator<Item = f64> {
    let count = ((to - width - from) / STEP + 1e-6).floor();
    (0..=count as i64).map(move |step| from + step as f64 * STEP)
}

/// The seconds of the longest run of windows for which something holds.
fn longest(windows: impl Iterator<Item = bool>) -> f64 {
    let (mut longest, mut run) = (0, 0);
    for holds in windows {
        run = if holds { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    f64::from(longest) * STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: Phases = Phases {
        settled: 5.0,
        from: 15.0,
        to: 30.0,
        end: 45.0,
    };

    /// A series of the rate, in Mbit/s, at each time.
    fn series(rate: impl Fn(f64) -> f64) -> Samples {
        let (mut bytes, mut points) = (0.0, vec![(0.0, 0.0)]);
        for step in 1..=4500 {
            let time = f64::from(step) / 100.0;
            bytes += rate(time - 0.005) * 1250.0;
            points.push((time, bytes));
        }
        Samples(points)
    }

    /// Two paths with 50 Mbit/s each; the congested one has 10 during the congestion, and the other
    /// takes what is free `lag` seconds later.
    fn facts(lag: f64) -> Facts {
        let within = |time: f64, lag: f64| time > 15.0 + lag && time <= 30.0;
        let congested = series(|time| if within(time, 0.0) { 10.0 } else { 50.0 });
        let clear = series(|time| if within(time, lag) { 90.0 } else { 50.0 });
        let load = series(|time| if within(time, 0.0) { 30.0 } else { 0.0 });
        let total = Samples::together(&[clear.clone(), congested.clone()]);
        Facts::of((&total, &clear, &congested, &load), PHASES, 100.0)
    }

    #[test]
    fn phases_are_the_papers() {
        assert_eq!(Phases::of(45.0), PHASES);
    }

    #[test]
    fn a_total_that_stays_full_is_full() {
        let facts = facts(0.0);
        for share in [facts.least_share, facts.during_share, facts.overall_share] {
            assert!((share - 1.0).abs() < 1e-6, "{facts:?}");
        }
        assert_eq!(facts.below_seconds, 0.0);
        assert!(facts.taken_seconds.unwrap() < 1e-6, "{facts:?}");
        assert!((facts.taken_share.unwrap() - 1.0).abs() < 1e-6, "{facts:?}");
        assert!((facts.load_mbit - 30.0).abs() < 1e-6);
    }

    #[test]
    fn a_slow_path_leaves_some_of_the_link() {
        let facts = facts(2.0);
        assert!((facts.least_share - 0.6).abs() < 1e-3, "{facts:?}");
        assert!((15.0..=16.0).contains(&facts.least_at), "{facts:?}");
        assert_eq!(facts.least_share, facts.least_during_share);
        assert!((facts.during_share - (1.0 - 0.4 * 2.0 / 15.0)).abs() < 1e-3);
        // Half a second of window at most on top of the two seconds.
        assert!((2.0..=2.5).contains(&facts.below_seconds), "{facts:?}");
        let taken = facts.taken_seconds.unwrap();
        assert!((1.5..=2.1).contains(&taken), "{facts:?}");
        assert!(facts.taken_share.unwrap() < 1e-6, "{facts:?}");
    }

    #[test]
    fn nothing_is_taken_where_nothing_becomes_free() {
        let path = series(|_| 50.0);
        let total = Samples::together(&[path.clone(), path.clone()]);
        let load = Samples::default();
        let facts = Facts::of((&total, &path, &path, &load), PHASES, 100.0);
        assert_eq!((facts.taken_seconds, facts.taken_share), (None, None));
    }
}
