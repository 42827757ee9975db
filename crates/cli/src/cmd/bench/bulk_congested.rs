//! `hawser bench bulk-congested`: two paths of a shared link, one of them congested for a while.

use std::time::Duration;

use hawser_experiments::bulk::{Case, Congested};
use hawser_experiments::shape::{Choice, choice};

use super::args::{ResultArgs, at_least, measure};
use super::bulk_distance::rate;
use super::share;
use crate::cmd::process;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct BulkCongestedArgs {
    /// Run these variants only: hawser-beside-udp, tcp-beside-udp, hawser-beside-tcp, tcp-beside-tcp
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Case>)]
    only: Vec<Case>,
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
    let congested = Congested {
        program: process::program()?,
        cases: Case::chosen(&args.only),
        rate: args.rate,
        cross: args.cross,
        time: args.time,
        repeat: args.repeat,
    };
    measure(&congested, &args.result)
}
