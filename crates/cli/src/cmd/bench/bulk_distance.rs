//! `hawser bench bulk-distance`: tools compared on a far path.

use std::time::Duration;

use hawser_experiments::bulk::{Distance, Tool};
use hawser_experiments::shape::{Choice, choice};
use hawser_topology::parse_rate;

use super::args::{ResultArgs, at_least, measure};
use crate::cmd::process;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct BulkDistanceArgs {
    /// Run these only: hawser-send, hawser-quic, cubic-1, cubic-4, cubic-10 (flows of iperf3) and the
    /// same of bbr and htcp, rsync
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = choice::<Tool>)]
    only: Vec<Tool>,
    /// Shares of packets that the link loses
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_values = ["0%", "0.01%", "0.1%"], value_parser = loss)]
    loss: Vec<f64>,
    /// Limit of the link, counted in Ethernet frames, up to 5gbit
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = rate)]
    rate: u64,
    /// How long each sends, at least 2s
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = at_least(2))]
    time: Duration,
    /// Run each this many times, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    #[command(flatten)]
    result: ResultArgs,
}

/// Reads `0.1%` as 0.1.
fn loss(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    match number {
        Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(percent),
        _ => Err("write for example 0.1%, from 0% to 50%".to_owned()),
    }
}

/// Reads the limit of links, of which the fastest have ten times as much.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    match parse_rate(text).map_err(|error| error.to_string())? {
        rate if (1_000_000..=5_000_000_000).contains(&rate) => Ok(rate),
        _ => Err("from 1mbit to 5gbit".to_owned()),
    }
}

/// Runs `hawser bench bulk-distance`, and always takes its networks down.
pub fn run(args: BulkDistanceArgs) -> Result<(), Failure> {
    let distance = Distance {
        program: process::program()?,
        tools: Tool::chosen(&args.only),
        losses: args.loss,
        rate: args.rate,
        time: args.time,
        repeat: args.repeat,
    };
    measure(&distance, &args.result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_rates_and_times_have_bounds() {
        assert_eq!(loss("0.01%"), Ok(0.01));
        assert!(loss("51%").is_err() && loss("x").is_err());
        assert_eq!(rate("200mbit"), Ok(200_000_000));
        assert!(rate("10gbit").is_err() && rate("1kbit").is_err());
        assert_eq!(at_least(2)("1s"), Err("at least 2s".to_owned()));
        assert_eq!(at_least(2)("2s"), Ok(Duration::from_secs(2)));
    }
}
