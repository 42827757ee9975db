//! Throughput through limits of many links, as fast as the CPU sends, and how long it takes to set them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use super::bed::{LimitBed, Namespaces, USED, far};
use super::bench::LimitBench;
use super::load::{Load, LoadKind};
use super::names::{IpVersion, LimitTool, Traffic, Way};
use super::tool::Set;
use crate::error::ExperimentError;
use crate::numbers::median;
use crate::shape::{
    Choice, Columns, Experiment, Format, Observe, Results, Row, Section, Series, Table,
};

/// A limit that the CPU does not reach, in bit/s.
const HIGH: u64 = 100_000_000_000;
/// Bytes of payload of a datagram.
const LENGTH: usize = 1400;
/// Traffic before the measurement.
const WARM_UP: Duration = Duration::from_millis(500);
/// Most links with the commands of 004: a `u32` table without buckets has numbers for no more filters.
const TC_LINKS: usize = 2047;

/// What limits of many links cost.
pub struct Links {
    pub bench: LimitBench,
}

/// What is sent through limits of a number of links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinksCase {
    tool: LimitTool,
    links: usize,
    direction: Way,
    traffic: Traffic,
}

/// What one run shows.
#[derive(Debug, Clone, Copy)]
pub struct LinksRun {
    /// How long it took to set the limits, in both directions, in milliseconds.
    ms: f64,
    /// Payload received over the links with traffic together, in Gbit/s.
    gbit: f64,
}

impl fmt::Display for LinksCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tool, links) = (self.tool, self.links);
        write!(
            f,
            "{tool}: {links} links, {} {}",
            self.direction, self.traffic
        )
    }
}

impl LimitBench {
    /// Each tool with the numbers of links that it can limit.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (LimitTool, usize)> {
        let tools = self.tools.iter();
        let all = tools.flat_map(|tool| self.links.iter().map(move |links| (*tool, *links)));
        all.filter(|(tool, links)| *tool == LimitTool::Hawser || *links <= TC_LINKS)
    }
}

impl Experiment for Links {
    type Place = ();
    type Bed = LimitBed;
    type Case = LinksCase;
    type Run = LinksRun;

    fn turns(&self) -> u16 {
        self.bench.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<LinksCase> {
        let cases = self.bench.numbers().flat_map(|(tool, links)| {
            let traffic = |way| Traffic::LINKS.map(|traffic| (way, traffic));
            let all = Way::ALL.iter().flat_map(move |way| traffic(*way));
            all.map(move |(direction, traffic)| LinksCase {
                tool,
                links,
                direction,
                traffic,
            })
        });
        cases.collect()
    }

    async fn set_up(&self, (): &(), _: Observe<'_>) -> Result<LimitBed, ExperimentError> {
        LimitBed::make()
    }

    async fn measure(&self, bed: &LimitBed, case: &LinksCase) -> Result<LinksRun, ExperimentError> {
        let (case, time) = (*case, self.bench.time);
        bed.inside(move |bed| case.measure(bed, time)).await
    }

    fn summary(&self, run: &LinksRun) -> String {
        format!("{:.2} Gbit/s, set in {:.1} ms", run.gbit, run.ms)
    }

    fn table(&self, results: &Results<Self>) -> Table {
        let program = Section::new(
            "program",
            "setting limits of all links, both directions, ms",
            self.setting(results),
            &Columns::<Setting>::new()
                .both("tool", "tool", Format::Name, |row| row.tool.to_string())
                .both("links", "links", Format::Name, |row| row.links)
                .json("runs_ms", |row| row.runs_ms.clone())
                .both("ms", "ms", Format::Number(1), |row| median(&row.runs_ms)),
        );
        let title = "links: payload in Gbit/s, by that with the fewest links";
        Table {
            experiment: "links",
            sections: vec![
                Section::of("links", self, results, &columns()).titled(title),
                program,
            ],
            ..Table::default()
        }
    }
}

/// How long it took to set limits of links that had none.
struct Setting {
    tool: LimitTool,
    links: usize,
    runs_ms: Vec<f64>,
}

impl Links {
    fn setting<'b>(&'b self, results: &'b Results<Self>) -> impl Iterator<Item = Setting> + 'b {
        self.bench.numbers().map(|(tool, links)| {
            let all = results.places.iter().flat_map(|(_, all)| all);
            let own = all.filter(|series| (series.case.tool, series.case.links) == (tool, links));
            Setting {
                tool,
                links,
                runs_ms: own.flat_map(|series| series.values(|run| run.ms)).collect(),
            }
        })
    }
}

fn columns<'a>() -> Columns<Row<'a, Links>> {
    use Format::{Name, Number};
    Columns::<Row<'a, Links>>::new()
        .name("tool", "tool", |case| case.tool)
        .both("links", "links", Name, |row| row.case.links)
        .name("direction", "direction", |case| case.direction)
        .name("traffic", "traffic", |case| case.traffic)
        .values("runs_gbit", |run| run.gbit)
        .median("gbit", "Gbit/s", Number(2), |run| run.gbit)
        .both("ratio", "ratio", Number(2), |row| {
            ratio(row.series, row.all)
        })
}

/// Throughput by that through the least number of links in the same turn: the median.
fn ratio(own: &Series<LinksCase, LinksRun>, all: &[Series<LinksCase, LinksRun>]) -> Option<f64> {
    let alike = |one: &&Series<LinksCase, LinksRun>| {
        let links = own.case.links;
        LinksCase { links, ..one.case } == own.case
    };
    let few = all.iter().filter(alike).min_by_key(|one| one.case.links)?;
    let ratios = own.runs.iter().zip(&few.runs);
    let ratios: Vec<f64> = ratios.map(|(own, few)| own.gbit / few.gbit).collect();
    (!ratios.is_empty()).then(|| median(&ratios))
}

impl LinksCase {
    /// Sets limits, and lets all links with traffic send for `time`. To be called inside the attachment
    /// point.
    fn measure(self, bed: &Namespaces, time: Duration) -> Result<LinksRun, ExperimentError> {
        let links = addresses(self.links);
        let begin = Instant::now();
        let set = Set::new(self.tool, &links, HIGH)?;
        let ms = 1e3 * begin.elapsed().as_secs_f64();
        let kind = match self.traffic {
            Traffic::Tcp => LoadKind::Tcp,
            Traffic::UdpSegmented => LoadKind::UdpSegmented { length: LENGTH },
            _ => LoadKind::Udp {
                length: LENGTH,
                rate: None,
            },
        };
        let start = |number| Load::start(bed, self.direction, IpVersion::V4, number, kind);
        let loads = (0..USED).map(start).collect::<Result<Vec<_>, _>>()?;
        let all = || loads.iter().map(Load::received).sum::<u64>();
        std::thread::sleep(WARM_UP);
        let (begin, before) = (Instant::now(), all());
        std::thread::sleep(time);
        let bits = 8 * (all() - before);
        let gbit = bits as f64 / begin.elapsed().as_secs_f64() / 1e9;
        drop(loads);
        set.reset()?;
        Ok(LinksRun { ms, gbit })
    }
}

/// The far ends of `count` links; those with traffic are spread over all, the last one among them.
pub fn addresses(count: usize) -> Vec<IpAddr> {
    let mut links: Vec<IpAddr> = (0..count as u32)
        .map(|i| Ipv4Addr::from(0x0a08_0000 + i).into())
        .collect();
    for number in 0..USED {
        links[used(count, number)] = far(IpVersion::V4, number);
    }
    links
}

/// The place of a link with traffic.
pub fn used(count: usize, number: u8) -> usize {
    (usize::from(number) + 1) * count / usize::from(USED) - 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn links_with_traffic_are_spread_over_all() {
        for count in [10, 4000] {
            let links = addresses(count);
            assert_eq!(links.iter().collect::<BTreeSet<_>>().len(), count);
            assert_eq!(links[count - 1], far(IpVersion::V4, USED - 1));
            assert_eq!(links[used(count, 0)], far(IpVersion::V4, 0));
        }
    }

    #[test]
    fn throughput_is_compared_with_that_of_few_links() {
        let bench = LimitBench::small();
        let links = Links { bench };
        // tc has numbers for 2047 links.
        let numbers: Vec<_> = links.bench.numbers().map(|(_, links)| links).collect();
        assert_eq!(numbers, [10, 4000, 10]);
        let series = links.cases(&()).into_iter().map(|case| {
            let few = case.links == 10;
            let run = |gbit| LinksRun {
                ms: if few { 1.0 } else { 50.0 },
                gbit: if few { gbit } else { 0.9 * gbit },
            };
            Series {
                case,
                runs: vec![run(2.0), run(4.0)],
                failure: None,
            }
        });
        let places = vec![((), series.collect())];
        let table = links.table(&Results { places });
        let json = serde_json::to_value(table).unwrap();
        let rows = json["links"].as_array().unwrap();
        let ratios: Vec<_> = rows
            .iter()
            .map(|row| row["ratio"].as_f64().unwrap())
            .collect();
        assert_eq!(ratios, [[1.0; 6], [0.9; 6], [1.0; 6]].concat());
        assert_eq!(json["program"][1]["ms"], 50.0);
        assert_eq!(json["program"][2]["runs_ms"].as_array().unwrap().len(), 12);
    }
}
