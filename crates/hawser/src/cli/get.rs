//! The arguments of `hawser get`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hawser_path::{Policy, Select, SlotOptions};
use hawser_torrent::{DownloadOptions, PathOptions, PeerAddr, SelectBy};

use super::address::{Listen, listen, tcp};
use super::host::HostArgs;
use super::policy::PolicyArgs;
use super::seeding::SeedingArgs;
use super::select::SelectArgs;

#[derive(Args)]
pub struct GetArgs {
    /// The .torrent file
    pub torrent: PathBuf,
    /// The folder to download into
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Overwrite files in the folder that are not the torrent's
    #[arg(long)]
    pub force: bool,
    /// A peer, for example 1-ff00:0:110,10.0.1.1:31000, or 10.0.1.1:6881 for one over plain IP; may
    /// be given several times
    #[arg(long, value_name = "ADDR", num_args = 1..)]
    pub peer: Vec<PeerAddr>,
    /// Let IP peers connect, by plain TCP at this address, for example 0.0.0.0:6881; port 0 is any
    /// that is free
    #[arg(long, value_name = "IP:PORT", value_parser = tcp)]
    pub tcp: Option<SocketAddr>,
    /// Let SCION peers connect here, as they can at any port otherwise: IP:PORT, or a SCION address
    /// of this AS
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    pub listen: Option<Listen>,
    #[command(flatten)]
    pub seeding: SeedingArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// The side that chooses among paths, also those to downloaders: uploader, which sees all its
    /// downloaders, or downloader [default: uploader, or downloader with --select]
    #[arg(long, value_name = "SIDE")]
    pub select_by: Option<SelectBy>,
    /// Report the reason for every path, also for those that are not used
    #[arg(long, short)]
    pub verbose: bool,
    /// Let a path wait if it carries less than this percentage of what the best one carries; not
    /// with spread
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub min_weight: f64,
    /// Compare the paths' rates every MS milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub time_slot: u64,
    /// Do not try paths that share links with those in use
    #[arg(long)]
    pub no_sensing: bool,
    /// Add the progress to the JSON object, about ten times a second
    #[arg(long, requires = "json")]
    pub samples: bool,
    /// Print one JSON object at the end; with --seed one when done, and one when seeding has ended
    #[arg(long)]
    pub json: bool,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}

impl GetArgs {
    /// What the download is given, with the paths it may use and how they are chosen.
    pub fn options(&self, select: Select, policy: Option<Policy>) -> DownloadOptions {
        let slots = SlotOptions {
            min_weight: self.min_weight / 100.0,
            time_slot: Duration::from_millis(self.time_slot),
            ..SlotOptions::default()
        };
        DownloadOptions {
            select_by: self.select_by(),
            paths: PathOptions {
                select,
                subflows: self.select.most(),
                policy,
                slots,
                sensing: !self.no_sensing,
                ..PathOptions::default()
            },
            overwrite: self.force,
            seed: self.seeding.limits(),
            ..DownloadOptions::default()
        }
    }

    /// The side that chooses paths: the downloader, if it was given a strategy.
    fn select_by(&self) -> SelectBy {
        self.select_by.unwrap_or(match self.select.select {
            Some(_) => SelectBy::Downloader,
            None => SelectBy::Uploader,
        })
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    number
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("'{text}' is no percentage: give a number from 0 to 100"))
}
