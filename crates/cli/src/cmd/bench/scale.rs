//! `hawser bench scale`: the cost of a byte, as more moves at once.

use std::time::Duration;

use hawser_experiments::scale::{Axis, Scale};
use hawser_experiments::shape::{Choice, choice};

use super::args::{ResultArgs, at_least, measure};
use crate::cmd::process;
use crate::cmd::quantity::size;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct ScaleArgs {
    /// Vary these only
    ///
    /// Of downloads: paths, peers (seeders), leechers, torrents, size, piece. Beside them: flows (QUIC
    /// streams), senders (bulk transfers into one receiver), shim (TCP connections through it), and
    /// tcp-peers (over TCP on this host, beside libtorrent and rqbit).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Axis>)]
    only: Vec<Axis>,
    /// Measure the whole range: 1 to 8 paths, 1 to 64 of what moves at once, 1 MB to 50 GB
    ///
    /// On disk where memory does not suffice; pieces of 16 KiB to 16 MiB.
    #[arg(long)]
    all: bool,
    /// Bytes of downloads and transfers that vary in something else
    #[arg(long, value_name = "N", default_value = "256MB", value_parser = size)]
    size: u64,
    /// How long streams and connections send
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = at_least(1))]
    time: Duration,
    /// Run each this many times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    #[command(flatten)]
    result: ResultArgs,
}

/// Runs `hawser bench scale`, and always takes its network down.
pub fn run(args: ScaleArgs) -> Result<(), Failure> {
    let scale = Scale {
        program: process::program()?,
        axes: Axis::chosen(&args.only),
        bytes: args.size,
        time: args.time,
        all: args.all,
        repeat: args.repeat,
    };
    measure(&scale, &args.result)
}
