//! `hawser bench clients`: BitTorrent clients compared over plain TCP.

use std::path::PathBuf;

use hawser_experiments::clients::{Client, Comparison};
use hawser_experiments::shape::{Choice, choice};

use super::args::{ResultArgs, measure};
use crate::cmd::process;
use crate::cmd::quantity::size;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct ClientsArgs {
    /// Compare these only: hawser, rqbit, libtorrent
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Client>)]
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
        clients: Client::chosen(&args.only),
        repeat: args.repeat,
        bytes: args.size,
        piece: args.piece_length,
        folder: args.folder,
    };
    measure(&comparison, &ResultArgs::without_figure(args.json))
}
