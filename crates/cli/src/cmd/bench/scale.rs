//! `hawser bench scale`: the cost of a byte, as downloads grow.

use hawser_experiments::scale::{Axis, Scale};
use hawser_experiments::shape::{Choice, choice};

use super::args::{ResultArgs, measure};
use crate::cmd::process;
use crate::cmd::quantity::size;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct ScaleArgs {
    /// Vary these only: paths, peers, torrents, size, piece
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Axis>)]
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

/// Runs `hawser bench scale`, and always takes its network down.
pub fn run(args: ScaleArgs) -> Result<(), Failure> {
    let scale = Scale {
        program: process::program()?,
        axes: Axis::chosen(&args.only),
        bytes: args.size,
        all: args.all,
        repeat: args.repeat,
    };
    measure(&scale, &ResultArgs::without_figure(args.json))
}
