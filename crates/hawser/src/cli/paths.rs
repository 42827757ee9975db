//! The arguments of `hawser paths`.

use std::time::Duration;

use clap::Args;
use hawser_topology::IsdAsn;

use super::address::one_as;
use super::choice::EpicArg;
use super::format::FormatArgs;
use super::host::HostArgs;
use super::policy::PolicyArgs;
use super::quantity::duration;
use super::select::SelectArgs;

#[derive(Args)]
pub struct PathsArgs {
    /// The destination AS, for example 1-ff00:0:110
    #[arg(value_name = "DST", value_parser = one_as)]
    pub destination: IsdAsn,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Show which paths the flags of a download choose, in which order, and why the others are left
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Show at most this many; 0 for all [default: 10, or all with --explain]
    #[arg(long, short, value_name = "N")]
    pub maxpaths: Option<usize>,
    /// Look paths up anew
    #[arg(long, short)]
    pub refresh: bool,
    /// Do not probe which paths are alive
    #[arg(long)]
    pub no_probe: bool,
    /// Print everything known of each path
    #[arg(long, short)]
    pub extended: bool,
    /// How long it may take in all
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
    #[command(flatten)]
    pub epic: EpicArg,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten, next_help_heading = "This host")]
    pub host: HostArgs,
}
