//! `hawser bench bad-path`: every transfer over two good paths and a bad one.

use std::time::Duration;

use hawser_experiments::bad_path::{BadPath, Condition, Transfer};
use hawser_experiments::shape::{Choice, choice};

use super::args::{ResultArgs, at_least, measure};
use super::bulk_distance::rate;
use crate::cmd::process;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct BadPathArgs {
    /// Run these only: get (BitTorrent), send (bulk transfer), shim-quic and shim-mptcp (a TCP program
    /// through the shim by either carrier)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Transfer>)]
    only: Vec<Transfer>,
    /// Put the third path into these conditions only: loss-1, loss-10, loss-30 (percent of packets), far
    /// (500 ms more in each direction), flap (down for 2 s and up for 2 s), asymmetric (1 Mbit/s for
    /// acknowledgements)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Condition>)]
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
        transfers: Transfer::chosen(&args.only),
        conditions: Condition::chosen(&args.condition),
        rate: args.rate,
        time: args.time,
        repeat: args.repeat,
    };
    measure(&bad_path, &ResultArgs::without_figure(args.json))
}
