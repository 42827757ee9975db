//! `hawser limit show`.

use std::collections::BTreeMap;
use std::iter::repeat_n;
use std::thread;
use std::time::{Duration, Instant};

use console::{Term, measure_text_width};
use hawser_http::{LimitLabels, LimitMetric, Metrics};
use hawser_limit::{Direction, LimitReading, Limiter, Owner};
use hawser_topology::format_rate;
use serde::Serialize;

use super::failed::{Failed, finish};
use crate::cmd::print;
use crate::cmd::watch::WatchArgs;
use crate::failure::Failure;
use crate::format;
use crate::out::{out, outln, plain};

/// Time over which the rate is measured that is shown once.
const SAMPLE: Duration = Duration::from_millis(100);

#[derive(clap::Args, Default)]
pub struct ShowArgs {
    /// Only those of this device; may be given several times
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Print JSON; with --watch a line of it each time
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,
    /// Print them for Prometheus
    #[arg(long, conflicts_with = "watch")]
    prometheus: bool,
    #[command(flatten)]
    watch: WatchArgs,
}

/// A limit and what goes through it, for programs.
#[derive(Debug, Clone, Serialize)]
struct Row {
    device: String,
    /// The far end, or `default` for all other traffic.
    link: String,
    direction: &'static str,
    /// Bit/s.
    limit: u64,
    /// Bit/s now.
    rate: u64,
    bytes: u64,
    packets: u64,
    drops: u32,
    backlog: u32,
    /// Length of the queue in bytes.
    queue: u32,
}

/// The limits at a time.
struct Sample {
    at: Instant,
    /// By their device.
    limits: BTreeMap<String, Vec<LimitReading>>,
    /// The devices whose limits are not known.
    failed: Vec<Failed>,
}

impl Sample {
    /// Each limit, with its device.
    fn each(&self) -> impl Iterator<Item = (&str, &LimitReading)> {
        self.limits
            .iter()
            .flat_map(|(device, limits)| limits.iter().map(move |limit| (device.as_str(), limit)))
    }
}

/// A limit, or a device whose limits are not known.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Limit(&'a Row),
    Failed(&'a Failed),
}

/// Shows the limits.
pub fn run(args: &ShowArgs) -> Result<(), Failure> {
    let mut limiter = Limiter::open()?;
    let mut before = sample(&mut limiter, args)?;
    if args.prometheus {
        out(format_args!("{}", prometheus(&before)));
        return finish(&before.failed);
    }
    let is_watched = args.watch.watch.is_some();
    let wait = args.watch.watch.unwrap_or(SAMPLE);
    loop {
        let has_any = before.each().next().is_some();
        if has_any || is_watched {
            // The counters are those of the begin of a reading, more or less.
            thread::sleep(wait.saturating_sub(before.at.elapsed()));
        }
        let now = match is_watched {
            true => sample(&mut limiter, args)?,
            false => sample_again(&mut limiter, args, &before)?,
        };
        let rows = rows(&before, &now);
        let limits = rows.iter().map(Entry::Limit);
        let entries = limits.chain(now.failed.iter().map(Entry::Failed));
        match (args.json, is_watched) {
            (true, false) => print::pretty_json(&entries.collect::<Vec<_>>())?,
            (true, true) => outln!("{}", serde_json::to_string(&entries.collect::<Vec<_>>())?),
            (false, is_again) => show(&rows, &now.failed, is_again),
        }
        if !is_watched {
            return finish(&now.failed);
        }
        before = now;
    }
}

fn sample(limiter: &mut Limiter, args: &ShowArgs) -> Result<Sample, Failure> {
    let named = (!args.devices.is_empty()).then_some(&args.devices[..]);
    let at = Instant::now();
    let outcome = limiter.read_all(named)?;
    Ok(Sample {
        at,
        limits: outcome.done,
        failed: Failed::devices(&outcome.failed).collect(),
    })
}

/// The limits of a moment ago with their counters now; the limits now, if these are others.
fn sample_again(
    limiter: &mut Limiter,
    args: &ShowArgs,
    before: &Sample,
) -> Result<Sample, Failure> {
    let at = Instant::now();
    let mut limits = before.limits.clone();
    match limiter.read_counters(&mut limits)? {
        true => Ok(Sample {
            at,
            limits,
            failed: before.failed.clone(),
        }),
        false => sample(limiter, args),
    }
}

fn rows(before: &Sample, now: &Sample) -> Vec<Row> {
    let old: BTreeMap<_, u64> = before
        .each()
        .map(|(device, limit)| {
            let key = (device, limit.owner, limit.direction);
            (key, limit.counters.bytes)
        })
        .collect();
    let seconds = now.at.duration_since(before.at).as_secs_f64();
    let row = |(device, limit): (&str, &LimitReading)| {
        let counters = limit.counters;
        // A limit that was set up anew counts from 0 again.
        let sent = old
            .get(&(device, limit.owner, limit.direction))
            .and_then(|old| counters.bytes.checked_sub(*old));
        let rate = sent.map_or(0.0, |bytes| bytes as f64 * 8.0 / seconds.max(1e-9));
        Row {
            device: device.to_owned(),
            link: link(limit.owner),
            direction: direction(limit.direction),
            limit: limit.rate,
            rate: rate as u64,
            bytes: counters.bytes,
            packets: counters.packets,
            drops: counters.drops,
            backlog: counters.backlog,
            queue: limit.queue,
        }
    };
    now.each().map(row).collect()
}

fn link(owner: Owner) -> String {
    match owner {
        Owner::Link(remote) => remote.to_string(),
        Owner::Default => "default".to_owned(),
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Egress => "egress",
        Direction::Ingress => "ingress",
    }
}

/// Prints a table, over the last one on a terminal.
fn show(rows: &[Row], failed: &[Failed], is_again: bool) {
    let term = Term::stdout();
    if is_again && term.is_term() {
        // If the screen cannot be cleared, the tables stand one below the other.
        let _ = term.clear_screen();
    }
    match rows.is_empty() {
        false => out(format_args!("{}", table(rows, width))),
        true if failed.is_empty() => outln!("no limits are set here"),
        true => {}
    }
    // Without --watch they are said when all is shown.
    for one in failed.iter().filter(|_| is_again) {
        outln!("{one}");
    }
}

/// The width of a text on a terminal.
fn width(text: &str) -> usize {
    // Of most cells it is plain, and thousands are measured.
    match text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        true => text.len(),
        false => measure_text_width(text),
    }
}

/// The limits as a table. `measure` is the width of a text on a terminal.
fn table(rows: &[Row], measure: impl Fn(&str) -> usize) -> String {
    let head = [
        "DEVICE", "LINK", "", "LIMIT", "RATE", "USE", "BYTES", "PACKETS", "DROPS", "BACKLOG",
    ];
    let cells = rows.iter().map(|row| {
        let percent = match row.limit {
            0 => "-".to_owned(),
            limit => format!("{:.0}%", 100.0 * row.rate as f64 / limit as f64),
        };
        [
            plain(&row.device),
            row.link.clone(),
            row.direction.to_owned(),
            format_rate(row.limit),
            format::rate(row.rate as f64),
            percent,
            format::bytes(row.bytes),
            row.packets.to_string(),
            row.drops.to_string(),
            format::bytes(row.backlog.into()),
        ]
    });
    let lines: Vec<[String; 10]> = std::iter::once(head.map(str::to_owned))
        .chain(cells)
        .collect();
    let widths: Vec<[usize; 10]> = lines
        .iter()
        .map(|line| line.each_ref().map(|cell| measure(cell)))
        .collect();
    let mut widest = [0; 10];
    for line in &widths {
        widest = std::array::from_fn(|column| widest[column].max(line[column]));
    }
    let mut text = String::new();
    for (line, widths) in lines.iter().zip(&widths) {
        let start = text.len();
        for (column, cell) in line.iter().enumerate() {
            let gap = repeat_n(' ', widest[column] - widths[column]);
            // Numbers stand on the right.
            match column {
                0..3 => {
                    text += cell;
                    text.extend(gap);
                }
                _ => {
                    text.extend(gap);
                    text += cell;
                }
            }
            text += "  ";
        }
        text.truncate(start + text[start..].trim_end().len());
        text += "\n";
    }
    text
}

/// The limits and their counters in Prometheus's text format.
fn prometheus(sample: &Sample) -> String {
    type Value = fn(&LimitReading) -> u64;
    let metrics: [(LimitMetric, Value); 5] = [
        (LimitMetric::Rate, |one| one.rate),
        (LimitMetric::Bytes, |one| one.counters.bytes),
        (LimitMetric::Packets, |one| one.counters.packets),
        (LimitMetric::Drops, |one| one.counters.drops.into()),
        (LimitMetric::Backlog, |one| one.counters.backlog.into()),
    ];
    let links: Vec<String> = (sample.each())
        .map(|(_, limit)| link(limit.owner))
        .collect();
    let mut text = Metrics::default();
    for (metric, value) in metrics {
        let values = sample.each().zip(&links);
        let values = values.map(|((device, limit), link)| {
            let labels = LimitLabels {
                attachment_point: "",
                device,
                link,
                direction: direction(limit.direction),
                number: "",
            };
            (labels, value(limit))
        });
        metric.write(&mut text, values);
    }
    text.into_text()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn row(number: u64) -> Row {
        Row {
            device: "eth0".to_owned(),
            link: format!("10.0.0.{number}"),
            direction: "egress",
            limit: 1_000_000,
            rate: number,
            bytes: number,
            packets: 0,
            drops: 0,
            backlog: 0,
            queue: 0,
        }
    }

    #[test]
    fn each_cell_of_a_table_is_measured_once() {
        for count in [10, 4000] {
            let rows: Vec<Row> = (0..count).map(row).collect();
            let measured = Cell::new(0);
            let measure = |text: &str| {
                measured.set(measured.get() + 1);
                text.len()
            };
            assert_eq!(table(&rows, measure).lines().count() as u64, count + 1);
            assert_eq!(measured.get(), 10 * (count + 1));
        }
    }

    #[test]
    fn widths_are_those_on_a_terminal() {
        for text in [
            "",
            "eth0",
            " ~",
            "a\u{301}",
            "ü",
            "線",
            "\u{1b}[1mx\u{1b}[0m",
            "\t",
        ] {
            assert_eq!(width(text), measure_text_width(text), "{text:?}");
        }
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            table(&[row(7), row(123)], str::len),
            "DEVICE  LINK                LIMIT       RATE  USE  BYTES  PACKETS  DROPS  BACKLOG\n\
             eth0    10.0.0.7    egress  1mbit    7 bit/s   0%    7 B        0      0      0 B\n\
             eth0    10.0.0.123  egress  1mbit  123 bit/s   0%  123 B        0      0      0 B\n"
        );
    }
}
