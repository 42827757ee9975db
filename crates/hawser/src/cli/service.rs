//! The arguments of the services of an AS, and of what hawser starts for itself.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::quantity::lifetime;

#[derive(Args)]
pub struct RouterArgs {
    #[command(subcommand)]
    pub command: RouterCommand,
}

#[derive(Subcommand)]
pub enum RouterCommand {
    /// Run until SIGINT or SIGTERM
    Run {
        /// The AS's folder, with topology.json, keys/ and links.json
        dir: PathBuf,
        /// The router's name in topology.json, where the AS has several
        #[arg(long, value_name = "NAME")]
        id: Option<String>,
    },
}

#[derive(Args)]
pub struct ControlArgs {
    #[command(subcommand)]
    pub command: ControlCommand,
}

#[derive(Subcommand)]
pub enum ControlCommand {
    /// Run until SIGINT or SIGTERM
    Run {
        /// The AS's folder, inside the folder of its network
        dir: PathBuf,
        /// Do not answer SCMP echo requests to this host (UDP 30041)
        #[arg(long)]
        no_echo: bool,
        /// Lifetime of path segments, 2s to 24h; 6h when not given
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        segment_lifetime: Option<Duration>,
    },
}

#[derive(Args)]
pub struct InternalArgs {
    #[command(subcommand)]
    pub command: InternalCommand,
}

#[derive(Subcommand)]
pub enum InternalCommand {
    /// Holds the namespaces of a lab
    LabSupervisor { dir: PathBuf },
    /// Sends UDP at a rate (bit/s) for a time (ms)
    CrossTraffic {
        from: IpAddr,
        to: IpAddr,
        rate: u64,
        millis: u64,
    },
}
