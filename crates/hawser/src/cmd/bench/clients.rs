//! `hawser bench clients`: BitTorrent clients compared over plain TCP.

use std::path::PathBuf;

use hawser_experiments::clients::{Client, Comparison, Row, Table};

use crate::cmd::experiment::failure;
use crate::cmd::quantity::size;
use crate::cmd::{print, process};
use crate::failure::Failure;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct ClientsArgs {
    /// Compare these only: hawser, rqbit, libtorrent
    #[arg(long, value_name = "CLIENT,...", value_delimiter = ',')]
    only: Vec<Client>,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Transfer this many bytes
    #[arg(long, value_name = "N", default_value = "2GB", value_parser = size)]
    size: u64,
    /// Bytes of a piece: a power of two from 16KiB to 128MiB; chosen by size when not given
    #[arg(long, value_name = "N", value_parser = piece_length)]
    piece_length: Option<u64>,
    /// Keep the files in this folder; in memory when not given
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// Refused here, a wrong length is wrong use, not a failure of the first run.
fn piece_length(text: &str) -> Result<u64, String> {
    let length = size(text)?;
    let fits = (16 << 10..=128 << 20).contains(&length);
    match fits && length.is_power_of_two() {
        true => Ok(length),
        false => Err(format!(
            "a piece has a power of two from 16KiB to 128MiB, not {text}"
        )),
    }
}

/// Runs `hawser bench clients`.
pub fn run(args: ClientsArgs) -> Result<(), Failure> {
    let comparison = Comparison {
        program: process::program()?,
        clients: match &args.only[..] {
            [] => Client::ALL.to_vec(),
            only => only.to_vec(),
        },
        repeat: args.repeat,
        bytes: args.size,
        piece: args.piece_length,
        folder: args.folder,
    };
    let table = comparison.run(&mut |client, turn, run| {
        let repeat = comparison.repeat;
        errln!("{turn}/{repeat}: {client} {:.2} Gbit/s", run.gbit);
    });
    let table = table.map_err(failure)?;
    match args.json {
        true => print::json(&table)?,
        false => print_table(&table),
    }
    Ok(())
}

fn print_table(table: &Table) {
    let gigabytes = table.bytes as f64 / 1e9;
    outln!("{gigabytes:.1} GB over TCP on this host, one seeder and one leecher");
    let columns = "version   runs  Gbit/s  spread   CPU s/GB: seeder leecher    all";
    outln!("{:<11} {columns}", "client");
    table.rows.iter().for_each(|row| outln!("{}", line(row)));
}

fn line(row: &Row) -> String {
    let client = row.client;
    let (Some(gbit), Some(spread), Some(all)) = (row.gbit, row.spread, row.cpu_per_gb) else {
        return format!("{client:<11} {}", row.missing.unwrap_or("not run"));
    };
    let version = row.version.as_deref().unwrap_or("?");
    let (runs, percent) = (row.runs.len(), 100.0 * spread);
    let (seeder, leecher) = (row.seeder_cpu_per_gb(), row.leecher_cpu_per_gb());
    format!(
        "{client:<11} {version:<8} {runs:>5} {gbit:>7.2} {percent:>6.1}%            {seeder:>6.2} {leecher:>7.2} {all:>6.2}"
    )
}
