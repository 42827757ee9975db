//! `hawser bench round-trips`: what a round trip of one byte costs.

use hawser_experiments::round_trips::{Means, RoundTrips};
use hawser_experiments::shape::{Choice, choice};

use super::args::{ResultArgs, measure};
use crate::cmd::process;
use crate::cmd::shim::busy;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct RoundTripsArgs {
    /// Run these only: ping (SCION's echo requests), tcp (a TCP program over plain IP), mptcp (the program
    /// through the shim), shim-quic (the same with --carrier quic)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Means>)]
    only: Vec<Means>,
    /// Number of paths of the shim, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    paths: u8,
    /// Give both shims this --busy-poll, a time, auto or off
    #[arg(long, value_name = "TIME|auto|off", value_parser = busy_poll)]
    busy_poll: Option<String>,
    /// Round trips in each run
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u16).range(1..))]
    count: u16,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// The shims read it again.
fn busy_poll(text: &str) -> Result<String, String> {
    busy::parse(text).map(|_| text.to_owned())
}

/// Runs `hawser bench round-trips`, and always takes its network down.
pub fn run(args: RoundTripsArgs) -> Result<(), Failure> {
    let round_trips = RoundTrips {
        program: process::program()?,
        means: Means::chosen(&args.only),
        paths: args.paths,
        busy_poll: args.busy_poll,
        count: args.count,
        repeat: args.repeat,
    };
    measure(&round_trips, &ResultArgs::without_figure(args.json))
}
