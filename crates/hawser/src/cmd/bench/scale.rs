//! `hawser bench scale`: the cost of a byte, as downloads grow.

use hawser_experiments::scale::{Axis, Case, FLAT, Progress, Row, Scale, Table};

use crate::cmd::experiment::until_interrupted;
use crate::cmd::quantity::size;
use crate::cmd::{print, process};
use crate::failure::Failure;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct ScaleArgs {
    /// Vary these only: paths, peers, torrents, size, piece
    #[arg(long, value_name = "AXIS,...", value_delimiter = ',')]
    only: Vec<Axis>,
    /// Measure the whole range: 1 to 8 paths, 1 to 64 peers, 1 MB to 50 GB (on disk where memory
    /// does not suffice), pieces of 16 KiB to 16 MiB
    #[arg(long)]
    all: bool,
    /// Bytes of the downloads that vary in something else
    #[arg(long, value_name = "N", default_value = "256MB", value_parser = size)]
    size: u64,
    /// Run each this many times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// Runs `hawser bench scale`, and always takes its networks down.
pub fn run(args: ScaleArgs) -> Result<(), Failure> {
    let scale = Scale {
        program: process::program()?,
        axes: match &args.only[..] {
            [] => Axis::ALL.to_vec(),
            only => only.to_vec(),
        },
        base: Case::base(args.size),
        all: args.all,
        repeat: args.repeat,
    };
    let name = |case: Option<(Axis, u64)>| match case {
        None => "base".to_owned(),
        Some((axis, value)) => format!("{axis} {}", axis.text(value)),
    };
    let mut observe = |progress: Progress<'_>| match progress {
        Progress::Run { turn, case, gbit } => {
            errln!("{turn}/{}: {} {gbit:.2} Gbit/s", args.repeat, name(case));
        }
        Progress::Failed { case, why } => errln!("{}: {why}", name(case)),
        _ => {}
    };
    let table = until_interrupted(async { Ok(scale.run(&mut observe).await) })?;
    match args.json {
        true => print::json(&table)?,
        false => print_table(&table),
    }
    Ok(())
}

fn print_table(table: &Table) {
    let base = &table.base.case;
    outln!(
        "base: {} in pieces of {}, one torrent, one seeder, one path",
        Axis::Size.text(base.bytes),
        Axis::Piece.text(base.piece)
    );
    outln!(
        "{:<9} {:>8} {:>5} {:>8}   CPU s/GB: {:>6} {:>8} {:>7} {:>7} {:>6}",
        "axis",
        "value",
        "runs",
        "Gbit/s",
        "seeder",
        "leecher",
        "routers",
        "spread",
        "ratio"
    );
    for row in [&table.base].into_iter().chain(&table.rows) {
        outln!("{}", line(row));
    }
    let beyond = table
        .rows
        .iter()
        .filter(|row| row.flat == Some(false))
        .count();
    let percent = 100.0 * FLAT;
    outln!(
        "* beyond {percent:.0} % of the base case: {beyond} of {}",
        table.rows.len()
    );
}

fn line(row: &Row) -> String {
    let (axis, value) = match row.axis {
        None => ("base".to_owned(), String::new()),
        Some(axis) => (axis.to_string(), axis.text(value(axis, row))),
    };
    let (Some(gbit), Some(spread), Some(cpu)) = (row.gbit, row.cpu_spread, &row.cpu_per_gb) else {
        let why = row.failure.as_deref().unwrap_or("not measured");
        return format!("{axis:<9} {value:>8} {why}");
    };
    let (runs, percent) = (row.runs_gbit.len(), 100.0 * spread);
    let routers = cpu.routers.iter().fold(0.0, |all, one| all + one);
    let ratio = row
        .ratio
        .map_or(String::new(), |ratio| format!("{ratio:.2}"));
    let mark = if row.flat == Some(false) { "*" } else { "" };
    let text = format!(
        "{axis:<9} {value:>8} {runs:>5} {gbit:>8.2}             {:>6.2} {:>8.2} {routers:>7.2} {percent:>6.1}% {ratio:>6}{mark}",
        cpu.sender, cpu.receiver
    );
    text.trim_end().to_owned()
}

/// The value of a row on its axis.
fn value(axis: Axis, row: &Row) -> u64 {
    let case = &row.case;
    match axis {
        Axis::Paths => case.paths,
        Axis::Peers => case.peers,
        Axis::Torrents => case.torrents,
        Axis::Size => case.bytes,
        Axis::Piece => case.piece,
    }
}
