//! How to choose among the paths that may be used.

use std::path::PathBuf;

use clap::Args;
use hawser_path::Select;

use super::strategies;

/// Most paths taken to each peer, unless requested otherwise.
const PATHS: u16 = 4;

/// How to choose among the paths that may be used.
#[derive(Args)]
pub struct SelectArgs {
    /// Take at most this many paths, to each peer if there are several [default: 4]
    #[arg(long, short = 'n', visible_aliases = ["max-paths", "max-connections-per-peer"], value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub paths: Option<u16>,
    #[arg(long, value_name = "STRATEGY,...", help = strategies::select_help())]
    pub select: Option<Select>,
    /// Grams of CO2 per GB, for the strategy carbon: a YAML or JSON file with lines such as
    /// '1-ff00:0:110: 12.5', or '1-ff00:0:110#2: 3' for an interface; where it says nothing, notes
    /// of ASes count
    #[arg(long, value_name = "FILE")]
    pub carbon: Option<PathBuf>,
}

impl SelectArgs {
    /// Most paths taken.
    pub fn most(&self) -> usize {
        self.paths.unwrap_or(PATHS).into()
    }

    /// The first of these flags that was given.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.paths.is_some(), "--paths"),
            (self.select.is_some(), "--select"),
            (self.carbon.is_some(), "--carbon"),
        ];
        let mut given = flags.into_iter().filter(|(given, _)| *given);
        given.next().map(|(_, flag)| flag)
    }
}
