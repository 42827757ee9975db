//! How far the rate of frames is from the limit.

use std::fmt;
use std::time::{Duration, Instant};

use super::bed::{LimitBed, Namespaces, far};
use super::bench::LimitBench;
use super::count::Counter;
use super::load::{Load, LoadKind};
use super::names::{IpVersion, LimitTool, Traffic, Way};
use super::tool::Set;
use crate::error::ExperimentError;
use crate::shape::{Choice, Columns, Experiment, Format, Observe, Results, Row, Section, Table};

/// Below this rate windows are longer, and the traffic before them.
const SLOW_RATE: u64 = 1_000_000;
const SLOWER: u32 = 3;
/// Above this rate datagrams are handed over several at once: one by one the processor does not keep the
/// queue full.
const FAST: u64 = 100_000_000;
/// Traffic before a window: the burst is over.
const WARM_UP: Duration = Duration::from_secs(1);
/// Time between two looks whether packets wait.
const LOOK: Duration = Duration::from_millis(20);

/// The error of limits.
pub struct Accuracy {
    pub bench: LimitBench,
}

/// A limit and what is sent through it.
#[derive(Debug, Clone, Copy)]
pub struct AccuracyCase {
    tool: LimitTool,
    /// In bit/s.
    limit: u64,
    direction: Way,
    ip: IpVersion,
    traffic: Traffic,
}

/// What one window shows.
#[derive(Debug, Clone, Copy)]
pub struct AccuracyRun {
    /// Rate of frames less the limit, in percent of the limit.
    error: f64,
    /// Payload received, in percent of the limit.
    goodput: f64,
    /// Share of readings at which packets waited: below 1 the load was at times too small for the limit.
    waiting: f64,
}

impl fmt::Display for AccuracyCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, direction, traffic) = (self.tool, self.direction, self.traffic);
        let (kbit, ip) = (self.limit as f64 / 1e3, self.ip);
        write!(f, "{tool}: {kbit} kbit/s, {direction}, IPv{ip}, {traffic}")
    }
}

impl Experiment for Accuracy {
    type Place = ();
    type Bed = LimitBed;
    type Case = AccuracyCase;
    type Run = AccuracyRun;

    fn turns(&self) -> u16 {
        self.bench.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<AccuracyCase> {
        let mut cases = Vec::new();
        for &limit in &self.bench.limits {
            for &ip in &self.bench.ip {
                for &direction in Way::ALL {
                    for traffic in Traffic::ACCURACY {
                        let tools = self.bench.tools.iter();
                        cases.extend(tools.map(|&tool| AccuracyCase {
                            tool,
                            limit,
                            direction,
                            ip,
                            traffic,
                        }));
                    }
                }
            }
        }
        cases
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<LimitBed, ExperimentError> {
        LimitBed::make()
    }

    async fn measure(
        &self,
        bed: &LimitBed,
        case: &AccuracyCase,
    ) -> Result<AccuracyRun, ExperimentError> {
        let (case, window) = (*case, self.bench.time);
        bed.inside(move |bed| case.measure(bed, window)).await
    }

    fn summary(&self, run: &AccuracyRun) -> String {
        format!(
            "{:+.3} %, goodput {:.1} % of the limit",
            run.error, run.goodput
        )
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let title = "accuracy: frames less the limit in percent of it, goodput in percent of it";
        let section = Section::of("accuracy", self, results, &columns()).titled(title);
        Table {
            experiment: "accuracy",
            sections: vec![section],
            ..Table::default()
        }
    }
}

fn columns<'a>() -> Columns<Row<'a, Accuracy>> {
    use Format::{Name, Number, Percent};
    Columns::<Row<'a, Accuracy>>::new()
        .name("tool", "tool", |case| case.tool)
        .json("limit", |row| row.case.limit)
        .text("kbit/s", Name, |row| row.case.limit as f64 / 1e3)
        .name("direction", "direction", |case| case.direction)
        .name("ip", "IP", |case| case.ip)
        .name("traffic", "traffic", |case| case.traffic)
        .values("runs_percent", |run| run.error)
        .median("percent", "median", Number(3), |run| run.error)
        .both("worst_percent", "worst", Number(3), |row| {
            let worst = row.series.extremes(|run| run.error.abs());
            worst.map(|(_, largest)| largest)
        })
        .both("spread_percent", "spread", Number(3), |row| {
            let all = row.series.extremes(|run| run.error);
            all.map(|(smallest, largest)| largest - smallest)
        })
        .median("goodput_percent", "goodput", Number(1), |run| run.goodput)
        .both("waiting", "waiting", Percent(0), |row| {
            let all = row.series.extremes(|run| run.waiting);
            all.map(|(least, _)| least)
        })
        .runs()
}

impl AccuracyCase {
    /// Measures for `window`, thrice as long if the limit is low. To be called inside the attachment
    /// point.
    fn measure(self, bed: &Namespaces, window: Duration) -> Result<AccuracyRun, ExperimentError> {
        let Self {
            tool,
            limit,
            direction,
            ip,
            traffic,
        } = self;
        let set = Set::new(tool, &[far(ip, 0)], limit)?;
        let length = match traffic {
            Traffic::UdpSmall => 1000,
            _ => ip.full_datagram(),
        };
        let kind = match traffic {
            Traffic::Tcp => LoadKind::Tcp,
            _ if limit > FAST => LoadKind::UdpSegmented { length },
            _ => LoadKind::Udp {
                length,
                rate: Some(2 * limit),
            },
        };
        let load = Load::start(bed, direction, ip, 0, kind)?;
        let mut counter = Counter::open(direction)?;
        let times = if limit < SLOW_RATE { SLOWER } else { 1 };
        std::thread::sleep(WARM_UP * times);
        let begin = counter.at_frame()?;
        let received = (load.received(), Instant::now());
        let (mut looks, mut waited) = (0, 0);
        while begin.time.elapsed() < window * times {
            std::thread::sleep(LOOK);
            looks += 1;
            waited += u32::from(counter.read()?.waiting > 0);
        }
        let goodput =
            (load.received() - received.0) as f64 * 8.0 / received.1.elapsed().as_secs_f64();
        let end = counter.at_frame()?;
        drop(load);
        set.reset()?;
        let percent = |rate: f64| 100.0 * rate / limit as f64;
        Ok(AccuracyRun {
            error: percent(end.rate_since(&begin)) - 100.0,
            goodput: percent(goodput),
            waiting: f64::from(waited) / f64::from(looks.max(1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Series;

    #[test]
    fn runs_are_summed_up() {
        let bench = LimitBench::small();
        let accuracy = Accuracy { bench };
        let mut cases = accuracy.cases(&()).into_iter();
        let run = |(error, goodput, waiting)| AccuracyRun {
            error,
            goodput,
            waiting,
        };
        let measured = Series {
            case: cases.next().unwrap(),
            runs: [(0.25, 95.0, 1.0), (-0.5, 94.0, 0.5), (0.0, 96.0, 1.0)]
                .map(run)
                .into(),
            failure: None,
        };
        let places = vec![((), vec![measured, Series::new(cases.next().unwrap())])];
        let table = accuracy.table(&Results { places });
        let json = serde_json::to_value(&table).unwrap();
        let row = &json["accuracy"][0];
        assert_eq!(
            (&row["percent"], &row["worst_percent"]),
            (&0.0.into(), &0.5.into())
        );
        assert_eq!(row["spread_percent"], 0.75);
        assert_eq!(
            (&row["goodput_percent"], &row["waiting"]),
            (&95.0.into(), &0.5.into())
        );
        let text = table.to_string();
        assert!(text.contains("left out: not measured"), "{text}");
        assert!(text.contains("\nhawser      500     egress "), "{text}");
    }
}
