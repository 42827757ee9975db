//! The arguments of `hawser simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, ValueEnum};
use hawser_path::Select;
use hawser_topology::IsdAsn;

use super::address::one_as;
use super::quantity::{duration, rate, size};

/// Largest count of an argument: far more than a simulation can compute.
const MOST: u64 = 100_000;

#[derive(Args)]
#[command(group = ArgGroup::new("network").required(true).args(["topology", "generate"]))]
pub struct SimulateArgs {
    /// A .topo file, or a ready topology: fig4, fig7a, fig9
    #[arg(value_name = "TOPO")]
    pub topology: Option<String>,
    /// Simulate nothing: print a made-up topology of this many ASes, in several ISDs
    #[arg(long, value_name = "ASES", value_parser = RangedU64ValueParser::<usize>::new().range(1..=hawser_sim::MAX_ASES as u64))]
    pub generate: Option<usize>,
    /// Seed of all random choices: the same seed gives the same result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of hosts that want the content
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count())]
    pub leechers: usize,
    /// Number of hosts that have it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count())]
    pub seeders: usize,
    /// Bytes of the content
    #[arg(long, value_name = "N", default_value = "64MiB", value_parser = size)]
    pub size: u64,
    /// Leechers arrive at random times until then
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub arrive: Duration,
    /// End after this much virtual time, if not all are done before
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = duration)]
    pub duration: Duration,
    /// How paths are chosen, as for `get`; an uploader ranks by it
    #[arg(long, value_name = "HOW", default_value = "disjoint")]
    pub select: Select,
    /// The side that chooses the paths
    #[arg(long, value_name = "WHO", value_enum, default_value_t = SelectByArg::Both)]
    pub select_by: SelectByArg,
    /// Most paths to each peer
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = count())]
    pub paths: usize,
    /// Most paths known between two ASes, the shortest
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count())]
    pub known: usize,
    /// Other leechers that each knows; 0: seeders alone serve
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub peers: usize,
    /// Rate of links without one
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = rate)]
    pub default_rate: u64,
    /// Rate of each host, out and in
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = rate)]
    pub host_rate: u64,
    /// Put seeders in this AS; may be given several times. ASes without children are chosen at
    /// random when not given
    #[arg(long, value_name = "AS", value_parser = one_as)]
    pub seeder_in: Vec<IsdAsn>,
    /// Put leechers in this AS, as --seeder-in does
    #[arg(long, value_name = "AS", value_parser = one_as)]
    pub leecher_in: Vec<IsdAsn>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write it to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// The side that chooses the paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SelectByArg {
    /// Each leecher for itself
    Downloader,
    /// Each uploader for all that it serves
    Uploader,
    /// One after the other, to compare them
    Both,
}

fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MOST)
}
