//! The measurements: the object that `hawser bench throughput --json` prints.

use serde::Serialize;

use super::carrier::Carrier;
use super::course::Course;
use crate::report::{median, spread};
use crate::stage::Carried;

/// The measurements of all carriers on all courses.
#[derive(Debug, Serialize)]
pub struct Table {
    /// The experiment's name: `throughput`.
    pub experiment: &'static str,
    /// Number of runs of each carrier on each course, one of each in turn.
    pub repeat: u16,
    /// How long each carrier sends in a run, in seconds; BitTorrent transfers `bytes` instead.
    pub seconds: f64,
    /// Bytes that BitTorrent transfers in a run, in memory.
    pub bytes: u64,
    /// One row for each carrier on each course, in order.
    pub rows: Vec<Row>,
}

/// The measurements of one carrier on one course.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Where the bytes moved.
    #[serde(flatten)]
    pub course: Course,
    /// What moved them.
    #[serde(serialize_with = "as_text")]
    pub carrier: Carrier,
    /// Goodput of every run, in Gbit/s.
    pub runs_gbit: Vec<f64>,
    /// The median of the runs.
    pub gbit: Option<f64>,
    /// Largest less smallest goodput, divided by the median.
    pub spread: Option<f64>,
    /// Processor time in seconds per GB (10^9 bytes): medians of the runs.
    pub cpu_per_gb: Option<PerGigabyte>,
    /// Most paths that carried anything in a run.
    pub paths: usize,
    /// Why there are fewer runs than requested, or none.
    pub failure: Option<String>,
}

/// Processor time, in seconds per GB.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerGigabyte {
    /// Of the sending process.
    pub sender: f64,
    /// Of the receiving process.
    pub receiver: f64,
    /// Of each border router that took part.
    pub routers: Vec<f64>,
    /// Of all together. Forwarding of plain IP by the kernel is not part of it where it is done in
    /// interrupts of idle processors.
    pub all: f64,
}

impl Row {
    /// Sums up runs.
    pub(super) fn new(
        course: Course,
        carrier: Carrier,
        runs: &[Carried],
        failure: Option<String>,
    ) -> Self {
        let gbit: Vec<f64> = runs.iter().map(Carried::gbit).collect();
        let any = !runs.is_empty();
        Self {
            course,
            carrier,
            gbit: any.then(|| median(&gbit)),
            spread: any.then(|| spread(&gbit)),
            runs_gbit: gbit,
            cpu_per_gb: PerGigabyte::of(runs),
            paths: runs.iter().map(|run| run.paths).max().unwrap_or(0),
            failure,
        }
    }
}

impl PerGigabyte {
    /// The medians of runs; `None` without runs.
    pub(crate) fn of(runs: &[Carried]) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let of = |seconds: &dyn Fn(&Carried) -> f64| {
            let all = runs.iter().map(|run| run.per_gb(seconds(run)));
            median(&all.collect::<Vec<_>>())
        };
        let routers = runs.iter().map(|run| run.routers.len()).max().unwrap_or(0);
        let router = |index: usize| {
            let at = move |run: &Carried| run.routers.get(index).copied().unwrap_or(0.0);
            of(&at)
        };
        Some(Self {
            sender: of(&|run| run.sender),
            receiver: of(&|run| run.receiver),
            routers: (0..routers).map(router).collect(),
            all: of(&|run| run.sender + run.receiver + run.routers.iter().sum::<f64>()),
        })
    }
}

fn as_text<S: serde::Serializer>(carrier: &Carrier, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(carrier)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(bytes: u64, seconds: f64, routers: Vec<f64>) -> Carried {
        Carried {
            bytes,
            seconds,
            sender: 0.5,
            receiver: 1.0,
            routers,
            paths: 2,
        }
    }

    #[test]
    fn rows_have_medians_per_gigabyte() {
        let runs = [
            run(500_000_000, 1.0, vec![0.1, 0.2]),
            run(500_000_000, 2.0, vec![0.1, 0.2]),
            run(500_000_000, 4.0, vec![0.1, 0.4]),
        ];
        let row = Row::new(Course::TELLING[0], Carrier::Torrent(2), &runs, None);
        assert_eq!(row.gbit, Some(2.0));
        assert_eq!(row.spread, Some(1.5));
        let cpu = row.cpu_per_gb.clone().unwrap();
        assert_eq!((cpu.sender, cpu.receiver), (1.0, 2.0));
        assert_eq!(cpu.routers, [0.2, 0.4]);
        assert!((cpu.all - 3.6).abs() < 1e-9);
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(
            (&json["carrier"], &json["mtu"]),
            (&"torrent-2".into(), &1500.into())
        );
    }

    #[test]
    fn a_carrier_without_runs_has_no_figures() {
        let why = Some("install iperf3".to_owned());
        let row = Row::new(Course::TELLING[0], Carrier::Tcp, &[], why);
        assert_eq!((row.gbit, row.spread, &row.cpu_per_gb), (None, None, &None));
    }
}
