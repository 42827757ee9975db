//! `hawser bench mptcp`: TCP programs through the shim over several paths.

use std::time::Duration;

use hawser_experiments::mptcp::{Mptcp, MptcpCarrier};
use hawser_experiments::shape::{Choice, choice};
use hawser_topology::parse_duration;

use super::args::{ResultArgs, ascending, at_least, measure};
use super::bulk_distance::rate;
use crate::cmd::process;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct MptcpArgs {
    /// Run these only: mptcp (a TCP program through the shim), shim-quic (the same with --carrier quic),
    /// quic (a connection over each path), tcp (the program over plain IP, one path)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<MptcpCarrier>)]
    only: Vec<MptcpCarrier>,
    /// Numbers of paths, 1 to 8
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values = ["1", "2", "4", "6", "8"], value_parser = clap::value_parser!(u8).range(1..=8))]
    paths: Vec<u8>,
    /// Limit of the link of each path, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE", default_value = "20mbit", value_parser = rate)]
    rate: u64,
    /// Delay of these links in each direction, up to 500ms
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = delay)]
    delay: Duration,
    /// How long each sends, at least 2s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = at_least(2))]
    time: Duration,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    #[command(flatten)]
    result: ResultArgs,
}

fn delay(text: &str) -> Result<Duration, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        delay if delay <= Duration::from_millis(500) => Ok(delay),
        _ => Err("up to 500ms".to_owned()),
    }
}

/// Runs `hawser bench mptcp`, and always takes its network down.
pub fn run(args: MptcpArgs) -> Result<(), Failure> {
    let mptcp = Mptcp {
        program: process::program()?,
        carriers: MptcpCarrier::chosen(&args.only),
        paths: ascending(args.paths),
        rate: args.rate,
        delay: args.delay,
        time: args.time,
        repeat: args.repeat,
    };
    measure(&mptcp, &args.result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_a_bound() {
        assert_eq!(delay("75ms"), Ok(Duration::from_millis(75)));
        assert!(delay("1s").is_err() && delay("x").is_err());
    }
}
