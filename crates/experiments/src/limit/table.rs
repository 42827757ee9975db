//! The measurements: the object that `hawser bench limit --json` prints.

use serde::Serialize;

use super::names::{IpVersion, LimitTool, Traffic, Way};
use crate::report::median;

/// The measurements of all parts.
#[derive(Debug, Default, Serialize)]
pub struct LimitTable {
    /// The experiment's name: `limit`.
    pub experiment: &'static str,
    /// The section of the paper, and what is between the namespaces.
    pub about: String,
    /// Tools that were left out.
    pub skipped: Vec<SkippedTool>,
    /// Goodput by the size of datagrams.
    pub size: Vec<PointRow>,
    /// Goodput by the rate at which is sent.
    pub rate: Vec<PointRow>,
    /// How far the rate of frames is from the limit.
    pub accuracy: Vec<AccuracyRow>,
    /// Throughput through limits of few and of many links.
    pub links: Vec<LinksRow>,
    /// How long it takes to set them.
    pub program: Vec<ProgramRow>,
    /// How long it takes to change one, and what another link sees of it.
    pub change: Vec<ChangeRow>,
}

/// A tool that was left out.
#[derive(Debug, Serialize)]
pub struct SkippedTool {
    /// The tool.
    pub tool: LimitTool,
    /// Why.
    pub why: String,
}

/// Samples of UDP through a limit.
#[derive(Debug, Clone, Serialize)]
pub struct PointRow {
    /// What set the limit.
    pub tool: LimitTool,
    /// The direction.
    pub direction: Way,
    /// The version of IP.
    pub ip: IpVersion,
    /// The limit, in kbit/s.
    pub limit_kbit: f64,
    /// Bytes of payload of a datagram.
    pub datagram: usize,
    /// The rate at which payload is offered, in kbit/s.
    pub offered_kbit: f64,
    /// Payload of whole datagrams received in each sample, in kbit/s.
    pub samples_kbit: Vec<f64>,
    /// Their mean.
    pub mean_kbit: f64,
    /// Their standard deviation.
    pub deviation_kbit: f64,
    /// Frames that the limit let pass in the same time, in kbit/s.
    pub frames_kbit: f64,
    /// Samples without any datagram.
    pub zeros: usize,
    /// Packets that the queue dropped, fragments counted each.
    pub drops: u32,
}

/// How far the rate of frames is from a limit.
#[derive(Debug, Clone, Serialize)]
pub struct AccuracyRow {
    /// What set the limit.
    pub tool: LimitTool,
    /// The limit, in bit/s.
    pub limit: u64,
    /// The direction.
    pub direction: Way,
    /// The version of IP.
    pub ip: IpVersion,
    /// What was sent.
    pub traffic: Traffic,
    /// Rate of frames less the limit, in percent of the limit, of each run.
    pub runs_percent: Vec<f64>,
    /// The median of the runs.
    pub percent: f64,
    /// The largest, without sign.
    pub worst_percent: f64,
    /// Largest less smallest.
    pub spread_percent: f64,
    /// Payload received, in percent of the limit: the median.
    pub goodput_percent: f64,
    /// The least share of readings at which packets waited, of all runs: below 1 the load was at times
    /// too small for the limit.
    pub waiting: f64,
    /// Why there are fewer runs than requested, or none.
    pub failure: Option<String>,
}

/// Throughput through limits that are higher than the CPU can send.
#[derive(Debug, Clone, Serialize)]
pub struct LinksRow {
    /// What set the limits.
    pub tool: LimitTool,
    /// The number of links with limits.
    pub links: usize,
    /// The direction.
    pub direction: Way,
    /// What was sent.
    pub traffic: Traffic,
    /// Payload received in each run, in Gbit/s.
    pub runs_gbit: Vec<f64>,
    /// The median.
    pub gbit: f64,
    /// By that through the least number of links in the same turn: the median.
    pub ratio: f64,
}

/// How long it takes to set limits of links that have none, in both directions.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramRow {
    /// What set the limits.
    pub tool: LimitTool,
    /// The number of links.
    pub links: usize,
    /// Milliseconds of each run.
    pub runs_ms: Vec<f64>,
    /// The median.
    pub ms: f64,
}

/// What one link sees while the limit of another is changed.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeRow {
    /// What set the limits.
    pub tool: LimitTool,
    /// The number of links.
    pub links: usize,
    /// How often a limit was changed; 0 for comparison.
    pub changes: usize,
    /// Milliseconds of a change: the median.
    pub ms: Option<f64>,
    /// The longest.
    pub most_ms: Option<f64>,
    /// Datagrams that were sent over the other link.
    pub sent: u64,
    /// Those that did not arrive.
    pub lost: u64,
    /// The longest delay there, in milliseconds.
    pub delay_ms: f64,
    /// The longest time there without a datagram, in milliseconds.
    pub gap_ms: f64,
}

/// Mean and standard deviation.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|one| (one - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}

/// Largest and smallest value.
pub fn extremes(values: &[f64]) -> (f64, f64) {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    (largest, smallest)
}

impl AccuracyRow {
    /// Sums up runs: error in percent, goodput in percent, share of readings with waiting packets.
    pub(super) fn new(
        (tool, limit, direction, ip, traffic): (LimitTool, u64, Way, IpVersion, Traffic),
        runs: &[[f64; 3]],
        failure: Option<String>,
    ) -> Self {
        let of = |index: usize| -> Vec<f64> { runs.iter().map(|run| run[index]).collect() };
        let runs_percent = of(0);
        let (largest, smallest) = extremes(&runs_percent);
        Self {
            tool,
            limit,
            direction,
            ip,
            traffic,
            percent: median(&runs_percent),
            worst_percent: largest.abs().max(smallest.abs()),
            spread_percent: largest - smallest,
            goodput_percent: median(&of(1)),
            waiting: extremes(&of(2)).1,
            runs_percent,
            failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_summed_up() {
        let name = (
            LimitTool::Hawser,
            500_000,
            Way::Egress,
            IpVersion::V4,
            Traffic::Tcp,
        );
        let runs = [[0.25, 95.0, 1.0], [-0.5, 94.0, 0.5], [0.0, 96.0, 1.0]];
        let row = AccuracyRow::new(name, &runs, None);
        assert_eq!(
            (row.percent, row.worst_percent, row.spread_percent),
            (0.0, 0.5, 0.75)
        );
        assert_eq!((row.goodput_percent, row.waiting), (95.0, 0.5));
        assert_eq!(mean(&[1.0, 3.0]), (2.0, 1.0));
    }
}
