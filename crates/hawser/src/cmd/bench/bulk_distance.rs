//! `hawser bench bulk-distance`: tools compared on a far path.

use std::time::Duration;

use hawser_experiments::bulk::{
    Distance, DistanceProgress, DistanceRow, DistanceTable, Tool, draw_distance,
};
use hawser_topology::parse_rate;

use super::args::{ResultArgs, at_least};
use crate::cmd::experiment::until_interrupted;
use crate::cmd::process;
use crate::failure::Failure;
use crate::out::{errln, outln};

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
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = at_least(2))]
    time: Duration,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    #[command(flatten)]
    result: ResultArgs,
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

/// Runs `hawser bench bulk-distance`, and always takes its networks down.
pub fn run(args: BulkDistanceArgs) -> Result<(), Failure> {
    let figure = args.result.figure()?;
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
    args.result.show(&table, figure, draw_distance, print_table)
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
        assert_eq!(at_least(2)("1s"), Err("at least 2s".to_owned()));
        assert_eq!(at_least(2)("2s"), Ok(Duration::from_secs(2)));
    }
}
