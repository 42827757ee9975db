//! What a round trip of one byte costs a TCP program: its time, and how often the shim's processes are
//! woken for it, beside SCION's ping and plain TCP in the same network.

mod means;

use std::path::PathBuf;

use hawser_topology::IsdAsn;

pub use self::means::Means;
use crate::bed::{Server, Shared, ShimPair, TestBed};
use crate::error::ExperimentError;
use crate::experiment::isd_as;
use crate::network::{LinkSpec, parallel};
use crate::numbers::median;
use crate::scratch::Scratch;
use crate::shape::{Columns, Experiment, Format, Observe, OnFailure, Results, Row, Section, Table};

/// Limit of the links, in Mbit/s: no round trip meets it.
const LIMIT: f64 = 1000.0;
/// The port of the receiver that answers.
const ANSWER: u16 = 5002;
/// Round trips of a connection before those that count: the shim's paths are up by then, and what it does
/// differently for connections that carry little is done.
const BEFORE: u32 = 200;

/// What is measured.
#[derive(Debug, Clone)]
pub struct RoundTrips {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// What carries the bytes, in the order in which they take turns.
    pub means: Vec<Means>,
    /// Number of paths of the shim, 1 to 8.
    pub paths: u8,
    /// `--busy-poll` of the shims, if it is given.
    pub busy_poll: Option<String>,
    /// Number of round trips in each run.
    pub count: u16,
    /// Number of runs of each.
    pub repeat: u16,
}

/// What all runs use.
pub struct Ends {
    sender: IsdAsn,
    receiver: IsdAsn,
    /// Answers to TCP programs.
    _answers: Server,
}

/// What one run shows.
#[derive(Debug, Clone)]
pub struct RoundTripsRun {
    /// The median of all round trips, in microseconds.
    pub micros: f64,
    /// How often the shim's processes at both hosts were woken, by round trip; `None` without the shim.
    pub wake_ups: Option<f64>,
}

impl Experiment for RoundTrips {
    type Place = ();
    type Bed = Shared<Ends>;
    type Case = Means;
    type Run = RoundTripsRun;

    fn turns(&self) -> u16 {
        self.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<Means> {
        self.means.clone()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<Self::Bed, ExperimentError> {
        let (sender, receiver) = (isd_as("1-ff00:0:110")?, isd_as("1-ff00:0:111")?);
        let links = vec![LinkSpec::new(LIMIT, 0); self.paths.into()];
        let folder = Scratch::create()?;
        let bed = TestBed::up(
            parallel(&links)?,
            "round-trips",
            &self.program,
            false,
            folder,
        )?;
        let answers = bed.serve_answers(receiver, ANSWER).await?;
        Ok(bed.with(Ends {
            sender,
            receiver,
            _answers: answers,
        }))
    }

    async fn measure(
        &self,
        bed: &Self::Bed,
        case: &Means,
    ) -> Result<RoundTripsRun, ExperimentError> {
        let Ends {
            sender, receiver, ..
        } = bed.servers;
        match case {
            Means::Ping => {
                let times = bed.ping(sender, receiver, self.count).await?;
                Ok(RoundTripsRun::new(&times, None))
            }
            Means::Tcp => {
                let to = (bed.host(receiver)?, ANSWER).into();
                let count = (BEFORE, self.count.into());
                let (times, _) = bed.dialogue(sender, to, count, &[]).await?;
                Ok(RoundTripsRun::new(&times, None))
            }
            Means::Mptcp => self.through_shim(bed, "mptcp").await,
            Means::Streams => self.through_shim(bed, "quic").await,
        }
    }

    fn on_failure(&self) -> OnFailure {
        OnFailure::LeaveOut
    }

    fn summary(&self, run: &RoundTripsRun) -> String {
        let wake_ups = run.wake_ups.map(|count| format!(", {count:.1} wake-ups"));
        format!("{:.0} us{}", run.micros, wake_ups.unwrap_or_default())
    }

    fn table(&self, results: &Results<Self>) -> Table {
        Table {
            experiment: "round-trips",
            facts: vec![
                ("paths", self.paths.into()),
                ("count", self.count.into()),
                ("repeat", self.repeat.into()),
            ],
            about: vec![format!(
                "medians of {} round trips of one byte; wake-ups are those of the shim's processes at both \
                 hosts, by round trip",
                self.count
            )],
            sections: vec![Section::of("rows", self, results, &columns())],
            notes: Vec::new(),
        }
    }
}

impl RoundTrips {
    /// Brings the shims up for one run.
    async fn through_shim(
        &self,
        bed: &Shared<Ends>,
        carrier: &str,
    ) -> Result<RoundTripsRun, ExperimentError> {
        let Ends {
            sender, receiver, ..
        } = bed.servers;
        let paths = self.paths.to_string();
        let args = ["--any-server", "--carrier", carrier, "--paths", &paths];
        let args = args.map(str::to_owned).into();
        let busy_poll = self.busy_poll.iter();
        let both: Vec<String> = busy_poll
            .map(|time| format!("--busy-poll={time}"))
            .collect();
        let shims = bed.shims_up((sender, receiver), &[ANSWER], args, &both);
        let shims = shims.await?;
        let to = (ShimPair::MAPPED, ANSWER).into();
        let count = (BEFORE, self.count.into());
        let run = bed.dialogue(sender, to, count, &shims.processes()).await;
        let (times, wake_ups) = run?;
        shims.down().await?;
        let by_round_trip = wake_ups as f64 / f64::from(self.count);
        Ok(RoundTripsRun::new(&times, Some(by_round_trip)))
    }
}

impl RoundTripsRun {
    /// Sums up round trips, in seconds.
    fn new(times: &[f64], wake_ups: Option<f64>) -> Self {
        Self {
            micros: 1e6 * median(times),
            wake_ups,
        }
    }
}

fn columns<'a>() -> Columns<Row<'a, RoundTrips>> {
    use Format::Number;
    Columns::<Row<'a, RoundTrips>>::new()
        .name("carrier", "carrier", |case| *case)
        .values("runs_us", |run| run.micros)
        .runs()
        .median("us", "us", Number(0), |run| run.micros)
        .both("more_us", "more than ping", Number(0), more_than_ping)
        .both("wake_ups", "wake-ups", Number(2), |row| {
            let counted = row.series.runs.iter().all(|run| run.wake_ups.is_some());
            let wake_ups = |run: &RoundTripsRun| run.wake_ups.unwrap_or_default();
            row.series.median(wake_ups).filter(|_| counted)
        })
}

/// How much longer a round trip took than SCION's own, in microseconds.
fn more_than_ping(row: &Row<'_, RoundTrips>) -> Option<f64> {
    let micros = |run: &RoundTripsRun| run.micros;
    let ping = row.all.iter().find(|series| series.case == Means::Ping)?;
    let more = row.series.median(micros)? - ping.median(micros)?;
    matches!(row.case, Means::Mptcp | Means::Streams).then_some(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Series;

    #[test]
    fn the_shim_is_compared_with_ping() {
        let series = |case, micros, wake_ups| Series {
            case,
            runs: vec![RoundTripsRun { micros, wake_ups }],
            failure: None,
        };
        let all = vec![
            series(Means::Ping, 150.0, None),
            series(Means::Tcp, 20.0, None),
            series(Means::Mptcp, 240.0, Some(3.8)),
        ];
        let more: Vec<_> = (all.iter())
            .map(|series| {
                more_than_ping(&Row {
                    place: &(),
                    case: &series.case,
                    series,
                    all: &all,
                })
            })
            .collect();
        assert_eq!(more, [None, None, Some(90.0)]);
    }
}
