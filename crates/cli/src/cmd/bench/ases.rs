//! `hawser bench ases`: what an AS of a lab costs.

use std::time::Duration;

use hawser_experiments::ases::AsGrowth;

use super::args::{ResultArgs, ascending, at_least, measure};
use crate::cmd::process;
use crate::failure::Failure;

#[derive(clap::Args)]
pub struct AsesArgs {
    /// Numbers of ASes
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "10,100,1000", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    ases: Vec<u16>,
    /// How long a lab is left alone, before and while its processor time is measured
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = at_least(1))]
    time: Duration,
    /// Run each this many times
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// Runs `hawser bench ases`, and always takes its labs down.
pub fn run(args: AsesArgs) -> Result<(), Failure> {
    let growth = AsGrowth {
        program: process::program()?,
        ases: ascending(args.ases),
        rest: args.time,
        repeat: args.repeat,
    };
    measure(&growth, &ResultArgs::without_figure(args.json))
}
