//! `hawser bench bulk-distance`: tools compared on a far path.

use std::path::PathBuf;
use std::time::Duration;

use hawser_experiments::bulk::{
    Distance, DistanceProgress, DistanceRow, DistanceTable, Tool, draw_distance,
};
use hawser_topology::{parse_duration, parse_rate};

use crate::cmd::experiment::{failure, until_interrupted};
use crate::cmd::{print, process};
use crate::failure::Failure;
use crate::out::{errln, outln};
use crate::output::Output;

#[derive(clap::Args)]
pub struct BulkDistanceArgs {
    /// Run these only: hawser-send, hawser-quic, cubic-1, cubic-4, cubic-10 (flows of iperf3) and the
    /// same of bbr and htcp, rsync
    #[arg(long, value_name = "TOOL,...", value_delimiter = ',')]
    only: Vec<Tool>,
    /// Shares of packets that the link loses
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_values = ["0%", "0.01%", "0.1%"], value_parser = loss)]
    loss: Vec<f64>,
    /// Limit of the link, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = rate)]
    rate: u64,
    /// How long each sends, at least 2s
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    time: Duration,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Draw the result: an SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Replace the figure if the file exists
    #[arg(long, requires = "plot")]
    force: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// Reads `0.1%` as 0.1.
fn loss(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    match number {
        Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(percent),
        _ => Err("write for example 0.1%, from 0% to 50%".to_owned()),
    }
}

/// Reads the limit of links, of which the fastest have ten times as much.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    match parse_rate(text).map_err(|error| error.to_string())? {
        rate if (1_000_000..=5_000_000_000).contains(&rate) => Ok(rate),
        _ => Err("from 1mbit to 5gbit".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        time if time < Duration::from_secs(2) => Err("at least 2s".to_owned()),
        time => Ok(time),
    }
}

/// Runs `hawser bench bulk-distance`, and always takes its networks down.
pub fn run(args: BulkDistanceArgs) -> Result<(), Failure> {
    // Checked before the measurement, which takes minutes.
    let plot = Output::check_any("--plot", args.plot.as_deref(), args.force)?;
    let distance = Distance {
        program: process::program()?,
        tools: match &args.only[..] {
            [] => Tool::ALL.to_vec(),
            only => only.to_vec(),
        },
        losses: args.loss,
        rate: args.rate,
        time: args.time,
        repeat: args.repeat,
    };
    let mut observe = |progress: DistanceProgress<'_>| match progress {
        DistanceProgress::Network { loss } => errln!("{loss} % loss"),
        DistanceProgress::Run { turn, tool, mbit } => {
            errln!("  {turn}/{}: {tool} {mbit:.1} Mbit/s", distance.repeat);
        }
        DistanceProgress::Failed { tool, why } => errln!("  {tool} is left out: {why}"),
        _ => {}
    };
    let table = until_interrupted(distance.run(&mut observe))?;
    let plotted = plot.map_or(Ok(()), |file| {
        file.write(draw_distance(&table).map_err(failure)?.as_bytes())
    });
    // Print the results even if the figure cannot be drawn.
    match args.json {
        true => print::json(&table)?,
        false => print_table(&table),
    }
    plotted
}

fn print_table(table: &DistanceTable) {
    outln!("{}: {}", table.experiment, table.about);
    for rows in table.rows.chunk_by(|a, b| a.loss_percent == b.loss_percent) {
        outln!(
            "{} % loss, goodput in Mbit/s after {} s and of the whole {} s",
            rows[0].loss_percent,
            table.settled_seconds,
            table.seconds
        );
        outln!("  tool         runs   after  spread   whole  ceiling  reached  paper");
        rows.iter().for_each(|row| outln!("  {}", line(row)));
    }
}

fn line(row: &DistanceRow) -> String {
    let tool = row.tool;
    let figures = (row.mbit, row.spread, row.whole_mbit, row.ceiling_mbit);
    let (Some(mbit), Some(spread), Some(whole), Some(ceiling)) = figures else {
        let why = row.failure.as_deref().unwrap_or("not measured");
        return format!("{tool:<12} left out: {why}");
    };
    let bound = match tool {
        Tool::Bulk => "at least",
        _ => "at most",
    };
    let paper = row.paper_share.map(|share| 100.0 * share);
    let paper = paper.map_or("-".to_owned(), |share| format!("{bound} {share:.0} %"));
    let (runs, percent) = (row.runs_mbit.len(), 100.0 * spread);
    let reached = 100.0 * row.share.unwrap_or_default();
    let failure = row.failure.as_deref().unwrap_or_default();
    let text = format!(
        "{tool:<12} {runs:>4} {mbit:>7.1} {percent:>6.1}% {whole:>7.1} {ceiling:>8.1} {reached:>7.1}%  {paper}  {failure}"
    );
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_rates_and_times_have_bounds() {
        assert_eq!(loss("0.01%"), Ok(0.01));
        assert!(loss("51%").is_err() && loss("x").is_err());
        assert_eq!(rate("200mbit"), Ok(200_000_000));
        assert!(rate("10gbit").is_err() && rate("1kbit").is_err());
        assert!(time("1s").is_err());
    }
}
