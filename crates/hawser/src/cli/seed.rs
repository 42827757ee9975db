//! The arguments of `hawser seed`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use hawser_path::{Policy, Select};
use hawser_torrent::{PathOptions, SeedOptions, SelectBy};

use super::address::{Listen, listen, tcp};
use super::host::HostArgs;
use super::policy::PolicyArgs;
use super::strategies;

#[derive(Args)]
pub struct SeedArgs {
    /// The .torrent file
    pub torrent: PathBuf,
    /// The file or folder that it describes
    pub path: PathBuf,
    /// Listen here: IP:PORT, or a SCION address of this AS; port 0 is any that routers deliver to
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<Listen>,
    /// Serve IP peers too, by plain TCP at this address, for example 0.0.0.0:6881; port 0 is any
    /// that is free. Where no SCION network is found, IP peers are served alone, unless a flag that
    /// concerns SCION is given
    #[arg(long, value_name = "IP:PORT", value_parser = tcp)]
    pub tcp: Option<SocketAddr>,
    /// Serve IP peers alone: do not look for a SCION network
    #[arg(long, requires = "tcp", conflicts_with_all = SCION_FLAGS)]
    pub no_scion: bool,
    /// The side that chooses the paths of uploads: uploader, this side, which sees all its
    /// downloaders, or downloader [default: uploader]
    #[arg(long, value_name = "SIDE")]
    pub select_by: Option<SelectBy>,
    #[arg(
        long,
        value_name = "STRATEGY,...",
        value_parser = strategies::ranking,
        help = strategies::ranking_help()
    )]
    pub select: Option<Select>,
    /// Grams of CO2 per GB, for the strategy carbon: a file as `hawser get --help` describes it
    #[arg(long, value_name = "FILE")]
    pub carbon: Option<PathBuf>,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Do not try paths that share links with those assigned
    #[arg(long)]
    pub no_sensing: bool,
    /// Report the reason for every path, also for those that are not used
    #[arg(long, short)]
    pub verbose: bool,
    /// Print JSON: one object when listening, and with --verbose one whenever the decision on
    /// a path changes
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

/// Flags of a seeder that need a SCION network, by their names in clap.
const SCION_FLAGS: [&str; 11] = [
    "sciond",
    "config_dir",
    "local",
    "listen",
    "policy",
    "acl",
    "sequence",
    "select_by",
    "select",
    "carbon",
    "no_sensing",
];

impl SeedArgs {
    /// The first flag given that needs a SCION network.
    pub fn scion_flag(&self) -> Option<String> {
        // In the order of `SCION_FLAGS`.
        let given = [
            self.host.sciond.is_some(),
            self.host.config_dir.is_some(),
            self.host.local.is_some(),
            self.listen.is_some(),
            self.policy.policy.is_some(),
            !self.policy.acl.is_empty(),
            self.policy.sequence.is_some(),
            self.select_by.is_some(),
            self.select.is_some(),
            self.carbon.is_some(),
            self.no_sensing,
        ];
        let mut flags = SCION_FLAGS.iter().zip(given);
        let (flag, _) = flags.find(|(_, given)| *given)?;
        Some(format!("--{}", flag.replace('_', "-")))
    }

    /// What the seeder is given, with the paths it may use and their order.
    pub fn options(&self, select: Select, policy: Option<Policy>) -> SeedOptions {
        SeedOptions {
            select_by: self.select_by.unwrap_or(SelectBy::Uploader),
            paths: PathOptions {
                select,
                policy,
                sensing: !self.no_sensing,
                ..PathOptions::default()
            },
        }
    }
}
