//! The outcome of a simulation.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_manager::SelectBy;
use hawser_path::Interface;
use serde::Serialize;

use crate::host::Host;
use crate::options::STEP;
use crate::swarm::Swarm;

/// Most shared interfaces that are listed.
const MAX_SHARED_LISTED: usize = 10;

/// The outcome of a simulation. Rates are in Mbit/s, times in seconds, both to three decimals.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Which side chose the paths.
    pub select_by: SelectBy,
    /// Virtual time until all leechers were complete, or until the end.
    pub seconds: f64,
    /// Number of leechers that joined.
    pub came: usize,
    /// Number of leechers that were complete.
    pub finished: usize,
    /// Bytes that leechers received.
    pub delivered_bytes: u64,
    /// Goodput of leechers, each from joining to completion, or to the end.
    pub goodput_mbit: Goodput,
    /// Times from joining to completion, of complete leechers; `None` if there were none.
    pub completion_seconds: Option<Completion>,
    /// The same of those among them that ride free.
    pub free_rider_seconds: Option<Completion>,
    /// Jain's fairness index of the goodputs: 1 where all are equal, 1 / n where one has all.
    pub jain: f64,
    /// Number of path-level peers that carried data.
    pub path_level_peers: usize,
    /// The outgoing interfaces that most path-level peers used at once, most first.
    pub shared: Vec<Shared>,
    /// How often a path was held.
    pub waits: u64,
    /// Number of turns that uploaders gave to waiting leechers.
    pub turns: u64,
    /// Decisions about paths, by verdict and kind of reason.
    pub decisions: BTreeMap<String, u64>,
}

/// Goodput of leechers in Mbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goodput {
    /// The goodput of the slowest leecher.
    pub min: f64,
    /// Half of the leechers have no more.
    pub median: f64,
    /// The goodput of the fastest leecher.
    pub max: f64,
    /// The sum over all leechers.
    pub sum: f64,
    /// All bytes divided by all the time.
    pub together: f64,
}

/// Times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Completion {
    /// Half of the leechers took no longer.
    pub median: f64,
    /// 95 % of the leechers took no longer.
    pub p95: f64,
    /// The longest.
    pub longest: f64,
    /// Time from the beginning until the last leecher was complete.
    pub last: f64,
}

/// The traffic that left an AS over an interface.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shared {
    /// The interface.
    pub interface: Interface,
    /// The capacity of its link.
    pub rate_mbit: f64,
    /// Most path-level peers that carried data over it at once.
    pub most: u32,
    /// Average number of path-level peers that carried data over it.
    pub mean: f64,
    /// The part of its capacity that was used, 0 to 1.
    pub utilisation: f64,
}

impl Outcome {
    pub(crate) fn of(swarm: &Swarm, by: SelectBy) -> Self {
        let now = swarm.now();
        let size: u64 = swarm.hosts.first().map_or(0, |host| host.pieces.size());
        let came = || swarm.leechers().iter().filter(|one| one.arrives < now);
        let finished = || came().filter_map(|one| Some((one, one.finished?)));
        let got = |left: u64| (size - left) as f64 * 8.0 / 1e6;
        let mut goodput: Vec<f64> = came()
            .map(|one| {
                let time = one.finished.unwrap_or(now).saturating_sub(one.arrives);
                got(one.pieces.left()) / time.as_secs_f64().max(1e-6)
            })
            .collect();
        goodput.sort_by(f64::total_cmp);
        let last = finished().map(|(_, end)| end).max().unwrap_or_default();
        let all_done = finished().count() == swarm.leechers().len();
        let end = if all_done { last } else { now };
        let delivered: u64 = came().map(|one| size - one.pieces.left()).sum();
        Self {
            select_by: by,
            seconds: rounded(end.as_secs_f64()),
            came: came().count(),
            finished: finished().count(),
            delivered_bytes: delivered,
            goodput_mbit: Goodput {
                min: rounded(quantile(&goodput, 0.0)),
                median: rounded(quantile(&goodput, 0.5)),
                max: rounded(quantile(&goodput, 1.0)),
                sum: rounded(goodput.iter().sum()),
                together: rounded(delivered as f64 * 8e-6 / end.as_secs_f64().max(1e-6)),
            },
            completion_seconds: Completion::of(finished()),
            free_rider_seconds: Completion::of(finished().filter(|(one, _)| one.rides_free)),
            jain: rounded(jain(&goodput)),
            path_level_peers: swarm.total().flows,
            shared: shared(swarm),
            waits: swarm.orders.waits,
            turns: swarm.orders.turns,
            decisions: swarm.orders.decisions.clone(),
        }
    }
}

impl Completion {
    /// Of complete leechers, each with the time at which it was; `None` if there are none.
    fn of<'a>(finished: impl Iterator<Item = (&'a Host, Duration)>) -> Option<Self> {
        let mut last = Duration::ZERO;
        let taken = finished.map(|(one, end)| {
            last = last.max(end);
            end.saturating_sub(one.arrives).as_secs_f64()
        });
        let mut taken: Vec<f64> = taken.collect();
        taken.sort_by(f64::total_cmp);
        (!taken.is_empty()).then(|| Self {
            median: rounded(quantile(&taken, 0.5)),
            p95: rounded(quantile(&taken, 0.95)),
            longest: rounded(quantile(&taken, 1.0)),
            last: rounded(last.as_secs_f64()),
        })
    }
}

fn shared(swarm: &Swarm) -> Vec<Shared> {
    let seconds = swarm.now().as_secs_f64().max(1e-6);
    let steps = (seconds / STEP.as_secs_f64()).round();
    let loads = swarm.loads.iter().enumerate();
    let mut loads: Vec<_> = loads.filter(|(_, load)| load.most > 0).collect();
    // By the maximum at once, then by the sum; equal ones in the order of the topology.
    loads.sort_by_key(|(at, load)| (std::cmp::Reverse((load.most, load.sum)), *at));
    let shared = loads
        .into_iter()
        .take(MAX_SHARED_LISTED)
        .filter_map(|(at, load)| {
            let rate = swarm.book.capacity[at];
            Some(Shared {
                interface: swarm.book.interface(at)?,
                rate_mbit: rounded(rate * 8e-6),
                most: load.most,
                mean: rounded(load.sum as f64 / steps),
                utilisation: rounded(load.bytes as f64 / (rate * seconds)),
            })
        });
    shared.collect()
}

/// The least of the sorted values that this share of them does not exceed; 0 if there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(place.saturating_sub(1).min(last))
        .copied()
        .unwrap_or(0.0)
}

/// The fairness index of Jain, Chiu, Hawe: *A Quantitative Measure of Fairness*, 1984.
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|one| one * one).sum();
    match squares > 0.0 {
        true => sum * sum / (values.len() as f64 * squares),
        false => 1.0,
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_known_values() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[0.0, 0.0, 8.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&values, 0.5), 10.0);
        assert_eq!(quantile(&values, 0.95), 19.0);
        assert_eq!(quantile(&values, 1.0), 20.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
