//! The arguments of `hawser ping`.

use std::time::Duration;

use clap::Args;

use super::address::{HostAddr, host_address};
use super::choice::ChoiceArgs;
use super::format::FormatArgs;
use super::host::HostArgs;
use super::quantity::duration;

#[derive(Args)]
pub struct PingArgs {
    /// The host, for example 1-ff00:0:110,10.0.1.1
    #[arg(value_name = "DST", value_parser = host_address)]
    pub destination: HostAddr,
    /// Stop after this many requests
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub count: Option<u16>,
    /// Time between requests, from 1ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// How long to wait for each reply
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub timeout: Duration,
    /// Bytes of data in each request
    #[arg(long, short = 's', value_name = "N", default_value_t = 0)]
    pub payload_size: u16,
    /// Bytes of each request's SCION packet, headers included
    #[arg(long, value_name = "N", conflicts_with = "payload_size")]
    pub packet_size: Option<u16>,
    /// Send requests as large as the path takes
    #[arg(long, conflicts_with_all = ["payload_size", "packet_size"])]
    pub max_mtu: bool,
    /// Choose among paths that are alive only
    #[arg(long)]
    pub healthy_only: bool,
    #[command(flatten)]
    pub choice: ChoiceArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    match interval < Duration::from_millis(1) {
        true => Err("at least 1ms".to_owned()),
        false => Ok(interval),
    }
}
