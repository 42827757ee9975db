//! `hawser bench bad-path`: every transfer over two good paths and a bad one.

use std::time::Duration;

use hawser_experiments::bad_path::{
    BadPath, BadPathProgress, BadPathTable, Cell, Condition, Transfer,
};

use super::args::at_least;
use super::bulk_distance::rate;
use crate::cmd::experiment::until_interrupted;
use crate::cmd::{print, process};
use crate::failure::Failure;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct BadPathArgs {
    /// Run these only: get (BitTorrent), send (bulk transfer), shim-quic and shim-mptcp (a TCP program
    /// through the shim by either carrier)
    #[arg(long, value_name = "TRANSFER,...", value_delimiter = ',')]
    only: Vec<Transfer>,
    /// Put the third path into these conditions only: loss-1, loss-10, loss-30 (percent of packets), far
    /// (500 ms more in each direction), flap (down for 2 s and up for 2 s), asymmetric (1 Mbit/s for
    /// acknowledgements)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    condition: Vec<Condition>,
    /// Limit of each link, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE", default_value = "50mbit", value_parser = rate)]
    rate: u64,
    /// How long the good paths take for a run, after a start of 3 s that does not count; at least 2s
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = at_least(2))]
    time: Duration,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// Runs `hawser bench bad-path`, and always takes its network down.
pub fn run(args: BadPathArgs) -> Result<(), Failure> {
    let bad_path = BadPath {
        program: process::program()?,
        transfers: match &args.only[..] {
            [] => Transfer::ALL.to_vec(),
            only => only.to_vec(),
        },
        conditions: match &args.condition[..] {
            [] => Condition::ALL.to_vec(),
            some => some.to_vec(),
        },
        rate: args.rate,
        time: args.time,
        repeat: args.repeat,
    };
    let mut observe = |progress: BadPathProgress<'_>| match progress {
        BadPathProgress::Run {
            turn,
            transfer,
            condition,
            facts,
        } => errln!(
            "{turn}/{}: {transfer} {} {:.1} Mbit/s, longest pause {:.2} s until second {:.1}",
            bad_path.repeat,
            name(condition),
            facts.mbit,
            facts.pause_seconds,
            facts.resumed_at
        ),
        BadPathProgress::Failed {
            transfer,
            condition,
            why,
        } => errln!("{transfer} {} failed: {why}", name(condition)),
        _ => {}
    };
    let table = until_interrupted(bad_path.run(&mut observe))?;
    match args.json {
        true => print::json(&table)?,
        false => print_table(&bad_path, &table),
    }
    Ok(())
}

fn name(condition: Option<Condition>) -> String {
    condition.map_or("good paths".to_owned(), |one| one.to_string())
}

fn print_table(bad_path: &BadPath, table: &BadPathTable) {
    let (rate, round_trip) = (table.rate_mbit, table.round_trip_ms);
    outln!("two good paths of {rate} Mbit/s and {round_trip} ms, and one that:");
    for condition in &bad_path.conditions {
        outln!("  {condition:<10}  {}", condition.about());
    }
    outln!("goodput by that of the good paths alone, and the longest pause:");
    let row = |first: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("  {cell:<16}")).collect();
        outln!("{}", format!("{first:<10}{cells}").trim_end());
    };
    let transfers = &bad_path.transfers;
    row("", transfers.iter().map(ToString::to_string).collect());
    let conditions = bad_path.conditions.iter().copied().map(Some);
    for condition in std::iter::once(None).chain(conditions) {
        let cells = transfers.iter();
        let cells = cells.map(|transfer| table.cell(*transfer, condition));
        row(
            &name(condition),
            cells.map(|cell| cell.map_or(String::new(), text)).collect(),
        );
    }
    for cell in &table.cells {
        if let Some(why) = &cell.failure {
            outln!("{} {} failed: {why}", cell.transfer, name(cell.condition));
        }
    }
}

fn text(cell: &Cell) -> String {
    let (Some(mbit), Some(pause)) = (cell.mbit, cell.pause_seconds) else {
        return "failed".to_owned();
    };
    match (cell.condition, cell.ratio) {
        (Some(_), Some(ratio)) => format!("{ratio:.2}, {pause:.2} s"),
        _ => format!("{mbit:.1} Mbit/s"),
    }
}
