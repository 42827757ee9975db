//! `hawser bench mptcp`: TCP programs through the shim over several paths.

use std::time::Duration;

use hawser_experiments::mptcp::{
    Connection, HeaderRow, Mptcp, MptcpCarrier, MptcpProgress, MptcpRow, MptcpTable, SetUpRow, draw,
};
use hawser_topology::parse_duration;

use super::args::{ResultArgs, at_least};
use super::bulk_distance::rate;
use crate::cmd::experiment::until_interrupted;
use crate::cmd::process;
use crate::failure::Failure;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct MptcpArgs {
    /// Run these only: mptcp (a TCP program through the shim), shim-quic (the same with --carrier quic),
    /// quic (a connection over each path), tcp (the program over plain IP, one path)
    #[arg(long, value_name = "CARRIER,...", value_delimiter = ',')]
    only: Vec<MptcpCarrier>,
    /// Numbers of paths, 1 to 8
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values = ["1", "2", "4", "6", "8"], value_parser = clap::value_parser!(u8).range(1..=8))]
    paths: Vec<u8>,
    /// Limit of the link of each path, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE", default_value = "20mbit", value_parser = rate)]
    rate: u64,
    /// Delay of these links in each direction, up to 500ms
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = delay)]
    delay: Duration,
    /// How long each sends, at least 2s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = at_least(2))]
    time: Duration,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    #[command(flatten)]
    result: ResultArgs,
}

fn delay(text: &str) -> Result<Duration, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        delay if delay <= Duration::from_millis(500) => Ok(delay),
        _ => Err("up to 500ms".to_owned()),
    }
}

/// Runs `hawser bench mptcp`, and always takes its network down.
pub fn run(mut args: MptcpArgs) -> Result<(), Failure> {
    let figure = args.result.figure()?;
    args.paths.sort_unstable();
    args.paths.dedup();
    let mptcp = Mptcp {
        program: process::program()?,
        carriers: match &args.only[..] {
            [] => MptcpCarrier::ALL.to_vec(),
            only => only.to_vec(),
        },
        paths: args.paths,
        rate: args.rate,
        delay: args.delay,
        time: args.time,
        repeat: args.repeat,
    };
    let mut observe = |progress: MptcpProgress<'_>| match progress {
        MptcpProgress::Run {
            turn,
            carrier,
            paths,
            mbit,
            share,
        } => errln!(
            "{turn}/{}: {carrier} over {} {mbit:.1} Mbit/s, {:.1} % of the ceiling",
            mptcp.repeat,
            count(paths),
            100.0 * share
        ),
        MptcpProgress::Failed {
            carrier,
            paths,
            why,
        } => errln!("{carrier} over {} is left out: {why}", count(paths)),
        _ => {}
    };
    let table = until_interrupted(mptcp.run(&mut observe))?;
    args.result.show(&table, figure, draw, print_table)
}

fn count(paths: u8) -> String {
    match paths {
        1 => "1 path".to_owned(),
        paths => format!("{paths} paths"),
    }
}

fn print_table(table: &MptcpTable) {
    outln!("{}: {}", table.experiment, table.about);
    outln!("medians in Mbit/s over {} s, start included", table.seconds);
    outln!(
        "carrier   paths runs goodput spread  frames overhead ceiling reached by quic by one  paper: goodput (frames), by one"
    );
    for row in &table.rows {
        outln!("{}", line(row));
    }
    if !table.headers.is_empty() {
        outln!("bytes of a full frame");
        outln!("carrier   frame underlay scion path seal  tcp payload overhead  without the path");
        table.headers.iter().for_each(print_headers);
    }
    if !table.set_up.is_empty() {
        outln!("set-up of a connection until the first byte of an answer, ms");
        outln!("carrier          connections  median   least    most  more than plain TCP");
        table.set_up.iter().for_each(print_set_up);
    }
}

fn line(row: &MptcpRow) -> String {
    let name = format!("{:<9} {:>5}", row.carrier, row.paths);
    let figures = (row.mbit, row.spread, row.throughput_mbit, row.overhead);
    let (Some(mbit), Some(spread), Some(frames), Some(overhead)) = figures else {
        let why = row.failure.as_deref().unwrap_or("not measured");
        return format!("{name} left out: {why}");
    };
    let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let ratio = |value: Option<f64>| value.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    let (by_quic, by_one) = (ratio(row.by_quic), ratio(row.by_quic_path));
    let paper = match (row.paper_mbit, row.paper_throughput_mbit) {
        (Some((mean, deviation)), Some((frames, _))) => {
            let by_one = ratio(row.paper_by_quic_path);
            format!("{mean:.2} ± {deviation:.2} ({frames:.2}), {by_one}")
        }
        _ => "-".to_owned(),
    };
    let (runs, ceiling) = (row.runs_mbit.len(), of(row.ceiling_mbit));
    let failure = row.failure.as_deref().unwrap_or_default();
    let (percent, share) = (100.0 * spread, 100.0 * of(row.share));
    let overhead = 100.0 * overhead;
    let text = format!(
        "{name} {runs:>4} {mbit:>7.2} {percent:>5.1}% {frames:>7.2} {overhead:>7.1}% {ceiling:>7.2} {share:>6.1}% {by_quic:>7} {by_one:>6}  {paper}  {failure}"
    );
    text.trim_end().to_owned()
}

fn print_headers(row: &HeaderRow) {
    let HeaderRow {
        carrier,
        frame,
        underlay,
        scion,
        path,
        seal,
        tcp,
        payload,
        ..
    } = row;
    let (all, rest) = (100.0 * row.overhead, 100.0 * row.overhead_without_path);
    outln!(
        "{carrier:<9} {frame:>5} {underlay:>8} {scion:>5} {path:>4} {seal:>4} {tcp:>4} {payload:>7} {all:>7.1}% {rest:>16.1}%"
    );
}

fn print_set_up(row: &SetUpRow) {
    let which = match (row.carrier, row.connection) {
        (MptcpCarrier::Tcp, _) => "all",
        (_, Connection::First) => "first",
        (_, Connection::Later) => "later",
    };
    let (count, more) = (row.all_ms.len(), row.more_ms);
    let more = more.map_or("-".to_owned(), |more| format!("{more:+.1}"));
    outln!(
        "{:<9} {which:>6} {count:>11} {:>7.1} {:>7.1} {:>7.1}  {more:>19}",
        row.carrier,
        row.ms,
        row.least_ms,
        row.most_ms
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_a_bound() {
        assert_eq!(delay("75ms"), Ok(Duration::from_millis(75)));
        assert!(delay("1s").is_err() && delay("x").is_err());
    }
}
