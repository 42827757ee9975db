//! The arguments of `hawser traceroute`.

use std::time::Duration;

use clap::Args;

use super::address::{HostAddr, host_address};
use super::choice::ChoiceArgs;
use super::format::FormatArgs;
use super::host::HostArgs;
use super::quantity::duration;

#[derive(Args)]
pub struct TracerouteArgs {
    /// The host, for example 1-ff00:0:110,10.0.1.1
    #[arg(value_name = "DST", value_parser = host_address)]
    pub destination: HostAddr,
    /// How long to wait for each answer
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub timeout: Duration,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}
