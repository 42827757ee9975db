//! `hawser bench limit`: the rates that limits of links keep, and what many of them cost.

use std::path::PathBuf;
use std::time::Duration;

use hawser_experiments::limit::{
    AccuracyRow, ChangeRow, IpVersion, LimitBench, LimitProgress, LimitTable, LimitTool, Part,
    PointRow, figures,
};
use hawser_topology::{parse_duration, parse_rate};

use crate::cmd::experiment::failure;
use crate::cmd::print;
use crate::failure::Failure;
use crate::out::{errln, outln};
use crate::output::Output;

#[derive(clap::Args)]
pub struct LimitArgs {
    /// Run these only: size (goodput by the size of datagrams), rate (by the offered rate), accuracy (the
    /// error of the limit), links (throughput and cost of thousands of links)
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    part: Vec<Part>,
    /// Run these tools only: hawser, tc-by-hand (tc with the commands of 004)
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',')]
    only: Vec<LimitTool>,
    /// Versions of IP of size, rate and accuracy
    #[arg(long, value_name = "4,6", value_delimiter = ',', default_values = ["4", "6"])]
    ip: Vec<IpVersion>,
    /// Limits of accuracy, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_values = ["500kbit", "10mbit", "1gbit"], value_parser = rate)]
    rate: Vec<u64>,
    /// Samples of each point of size and rate
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    samples: u16,
    /// Measure every N-th point of size and rate only, counted from the last one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10))]
    every: u16,
    /// Length of a window of accuracy, three times as long below 1 Mbit/s, and of a run of links; at least
    /// 100ms
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    time: Duration,
    /// Run accuracy and links this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Numbers of links, 4 to 9998
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values = ["10", "4000"], value_parser = clap::value_parser!(u16).range(4..=9998))]
    links: Vec<u16>,
    /// Draw size and rate, in the shape of the paper's figures: SVG files in this folder, which must exist
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Replace figures that exist
    #[arg(long, requires = "plot")]
    force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        time if time < Duration::from_millis(100) => Err("at least 100ms".to_owned()),
        time => Ok(time),
    }
}

/// All of a kind if none is named, else those named, once each.
fn chosen<T: Copy + Ord>(named: Vec<T>, all: &[T]) -> Vec<T> {
    let mut chosen = if named.is_empty() {
        all.to_vec()
    } else {
        named
    };
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Runs `hawser bench limit`. Its namespaces end with this process.
pub fn run(args: LimitArgs) -> Result<(), Failure> {
    if let Some(folder) = &args.plot
        && !folder.is_dir()
    {
        let folder = folder.display();
        return Err(Failure::usage(format!(
            "--plot {folder}: no such folder: make it first"
        )));
    }
    let links = args.links.into_iter().map(usize::from).collect();
    let bench = LimitBench {
        parts: chosen(args.part, Part::ALL),
        tools: chosen(args.only, LimitTool::ALL),
        ip: chosen(args.ip, IpVersion::ALL),
        limits: chosen(args.rate, &[]),
        samples: args.samples,
        sample: Duration::from_secs(1),
        time: args.time,
        repeat: args.repeat,
        every: args.every.into(),
        links: chosen(links, &[]),
    };
    // Which figures there are is known before the measurement, which takes minutes.
    let mut files = Vec::new();
    if let Some(folder) = &args.plot {
        for name in bench.figure_names() {
            let path = folder.join(&name);
            files.push((name, Output::check("--plot", &path, args.force, &[])?));
        }
    }
    let table = bench.run(&mut show).map_err(failure)?;
    let mut drawn = Ok(());
    if !files.is_empty() {
        for figure in figures(&table).map_err(failure)? {
            let file = files.iter().find(|(name, _)| *name == figure.file);
            if let Some((_, file)) = file {
                drawn = drawn.and(file.write(figure.svg.as_bytes()));
            }
        }
    }
    match args.json {
        true => print::json(&table)?,
        false => print_table(&table),
    }
    drawn
}

fn show(progress: LimitProgress<'_>) {
    match progress {
        LimitProgress::Skipped(skipped) => errln!("{} is left out: {}", skipped.tool, skipped.why),
        LimitProgress::Point(row) => errln!("{}", point(row)),
        LimitProgress::Accuracy(row) => errln!("{}", accuracy(row)),
        LimitProgress::Links(tool, links, way, traffic, gbit) => {
            errln!("{tool}: {links} links, {way} {traffic} {gbit:.2} Gbit/s");
        }
        LimitProgress::Program(tool, links, ms) => {
            errln!("{tool}: {links} links set in {ms:.1} ms")
        }
        LimitProgress::Change(row) => errln!("{}", change(row)),
        _ => {}
    }
}

fn print_table(table: &LimitTable) {
    outln!("{}: {}", table.experiment, table.about);
    for skipped in &table.skipped {
        outln!("{} left out: {}", skipped.tool, skipped.why);
    }
    for (rows, what) in [(&table.size, "size"), (&table.rate, "rate")] {
        if !rows.is_empty() {
            outln!("{what}: kbit/s; frames by the counters of the limit's HTB class");
            outln!(
                "tool       direction IP datagram offered goodput   deviation  frames at zero  drops"
            );
            rows.iter().for_each(|row| outln!("{}", point(row)));
        }
    }
    if !table.accuracy.is_empty() {
        outln!("accuracy: frames less the limit in percent of it, goodput in percent of it");
        outln!(
            "tool           limit direction IP traffic    median   worst  spread goodput waiting runs"
        );
        table
            .accuracy
            .iter()
            .for_each(|row| outln!("{}", accuracy(row)));
    }
    if !table.links.is_empty() {
        outln!("links: payload in Gbit/s, by that with the fewest links");
        outln!("tool       links direction traffic   Gbit/s  ratio");
        for row in &table.links {
            outln!(
                "{:<10} {:>5} {:<9} {:<8} {:>7.2} {:>6.2}",
                row.tool,
                row.links,
                row.direction,
                row.traffic,
                row.gbit,
                row.ratio
            );
        }
        outln!("setting limits of all links, both directions, ms");
        for row in &table.program {
            outln!("{:<10} {:>5} {:>9.1}", row.tool, row.links, row.ms);
        }
        outln!("another link while one limit is changed");
        table
            .change
            .iter()
            .for_each(|row| outln!("{}", change(row)));
    }
}

fn point(row: &PointRow) -> String {
    let zeros = format!("{}/{}", row.zeros, row.samples_kbit.len());
    format!(
        "{:<10} {:<9} {:>2} {:>8} {:>7.0} {:>7.1} ± {:>7.1} {:>8.1} {zeros:>7} {:>6}",
        row.tool,
        row.direction,
        row.ip,
        row.datagram,
        row.offered_kbit,
        row.mean_kbit,
        row.deviation_kbit,
        row.frames_kbit,
        row.drops
    )
}

fn accuracy(row: &AccuracyRow) -> String {
    let limit = row.limit as f64 / 1e3;
    let name = format!(
        "{:<10} {limit:>9} {:<9} {:>2} {:<8}",
        row.tool, row.direction, row.ip, row.traffic
    );
    let why = row.failure.as_deref().unwrap_or_default();
    if row.runs_percent.is_empty() {
        return format!("{name} left out: {why}");
    }
    let text = format!(
        "{name} {:>+8.3}% {:>6.3}% {:>6.3}% {:>6.1}% {:>6.0}% {:>4}  {why}",
        row.percent,
        row.worst_percent,
        row.spread_percent,
        row.goodput_percent,
        100.0 * row.waiting,
        row.runs_percent.len()
    );
    text.trim_end().to_owned()
}

fn change(row: &ChangeRow) -> String {
    let times = match (row.ms, row.most_ms) {
        (Some(ms), Some(most)) => format!("median {ms:.2} ms, longest {most:.2} ms"),
        _ => "for comparison".to_owned(),
    };
    format!(
        "{:<10} {:>5} links, {:>3} changes ({times}): {} sent, {} lost, longest delay {:.2} ms, longest \
         gap {:.2} ms",
        row.tool, row.links, row.changes, row.sent, row.lost, row.delay_ms, row.gap_ms
    )
}

/// Reads a limit that can be measured.
fn rate(text: &str) -> Result<u64, String> {
    match parse_rate(text) {
        Ok(rate) if (100_000..=5_000_000_000).contains(&rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("from 100kbit to 5gbit".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_runs_once() {
        assert_eq!(chosen(vec![], Part::ALL), Part::ALL);
        assert_eq!(
            chosen(vec![Part::Links, Part::Size, Part::Links], Part::ALL),
            [Part::Size, Part::Links]
        );
        assert!(time("50ms").is_err() && time("100ms").is_ok());
    }
}
