//! `hawser bench bulk-congested`: two paths of a shared link, one of them congested for a while.

use std::time::Duration;

use hawser_experiments::bulk::{
    Case, Congested, CongestedProgress, CongestedRow, CongestedTable, Facts, draw_congested,
};

use super::args::{ResultArgs, at_least};
use super::bulk_distance::rate;
use super::share;
use crate::cmd::experiment::until_interrupted;
use crate::cmd::process;
use crate::failure::Failure;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct BulkCongestedArgs {
    /// Run only this variant; may be given several times: hawser-beside-udp, tcp-beside-udp,
    /// hawser-beside-tcp, tcp-beside-tcp
    #[arg(long, value_name = "NAME")]
    variant: Vec<Case>,
    /// Limit of the links, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE", default_value = "500mbit", value_parser = rate)]
    rate: u64,
    /// Rate of the UDP traffic that congests a path, in percent of the limit
    #[arg(long, value_name = "PERCENT", default_value = "82%", value_parser = share)]
    cross: f64,
    /// How long a run takes, at least 3s; the path is congested in the second third
    #[arg(long, value_name = "TIME", default_value = "45s", value_parser = at_least(3))]
    time: Duration,
    /// Run each variant this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    #[command(flatten)]
    result: ResultArgs,
}

/// Runs `hawser bench bulk-congested`, and always takes its network down.
pub fn run(args: BulkCongestedArgs) -> Result<(), Failure> {
    let figure = args.result.figure()?;
    let congested = Congested {
        program: process::program()?,
        cases: match &args.variant[..] {
            [] => Case::ALL.to_vec(),
            some => some.to_vec(),
        },
        rate: args.rate,
        cross: args.cross,
        time: args.time,
        repeat: args.repeat,
    };
    let mut observe = |progress: CongestedProgress<'_>| match progress {
        CongestedProgress::Run { turn, case, facts } => errln!(
            "{turn}/{}: {case} {:.3} of the ceiling, at least {:.3}",
            congested.repeat,
            facts.overall_share,
            facts.least_share
        ),
        CongestedProgress::Failed { case, why } => errln!("{case} is left out: {why}"),
        _ => {}
    };
    let table = until_interrupted(congested.run(&mut observe))?;
    args.result
        .show(&table, figure, draw_congested, print_table)
}

fn print_table(table: &CongestedTable) {
    outln!("{}: {}", table.experiment, table.about);
    let phases = table.phases;
    outln!(
        "congested from second {} to {}; total by the ceiling, medians:",
        phases.from,
        phases.to
    );
    outln!(
        "variant            runs  ceiling  overall  before  during  after   least  during  below  taken"
    );
    table.rows.iter().for_each(print_row);
    outln!("least: in any second, and in any of the congestion; below: longest time under 0.95;");
    outln!("taken: when the other path has 0.9 of what the congested one gives up, and the least");
    outln!("share that it has a second later");
}

fn print_row(row: &CongestedRow) {
    let name = row.variant;
    let of = |fact: fn(&Facts) -> f64| row.median(fact).unwrap_or(f64::NAN);
    let Some(ceiling) = row.ceiling_mbit else {
        let why = row.failure.as_deref().unwrap_or("not measured");
        outln!("{name:<18} left out: {why}");
        return;
    };
    let runs = row.runs.len();
    // A path that gives up nothing is no run in which the other is slow.
    let seconds: Option<Vec<f64>> = row.runs.iter().map(|run| run.taken_seconds).collect();
    let seconds = seconds.map(|all| hawser_experiments::median(&all));
    let shares: Vec<f64> = row.runs.iter().filter_map(|run| run.taken_share).collect();
    let taken = match (seconds, shares.is_empty()) {
        (_, true) => "nothing was free".to_owned(),
        (Some(seconds), false) => {
            let share = hawser_experiments::median(&shares);
            format!("{seconds:.1} s, {share:.2}")
        }
        (None, false) => "not every time".to_owned(),
    };
    outln!(
        "{name:<18} {runs:>5} {ceiling:>8.1} {:>8.3} {:>7.3} {:>7.3} {:>6.3} {:>7.3} {:>7.3} {:>4.1} s  {taken}",
        of(|run| run.overall_share),
        of(|run| run.before_share),
        of(|run| run.during_share),
        of(|run| run.after_share),
        of(|run| run.least_share),
        of(|run| run.least_during_share),
        of(|run| run.below_seconds),
    );
    if let (Some(overall), Some(least)) = (row.paper_overall_share, row.paper_least_share) {
        outln!(
            "  paper (of its limit)            {overall:>8.3} {:>31} {least:>7.3}",
            ""
        );
    }
    if let Some(why) = &row.failure {
        outln!("  fewer runs than requested: {why}");
    }
}
