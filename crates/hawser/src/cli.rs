//! The arguments of every command.

mod address;
mod bench;
mod choice;
mod demo;
mod format;
mod get;
mod host;
mod lab;
mod mistake;
mod paths;
mod ping;
mod policy;
mod quantity;
mod seed;
mod seeding;
mod select;
mod service;
mod shell;
mod simulate;
mod strategies;
mod torrent;
mod traceroute;

use clap::{CommandFactory, Parser, Subcommand};

pub use self::address::*;
pub use self::bench::*;
pub use self::choice::*;
pub use self::demo::*;
pub use self::format::*;
pub use self::get::*;
pub use self::host::*;
pub use self::lab::*;
pub use self::paths::*;
pub use self::ping::*;
pub use self::policy::*;
pub use self::seed::*;
pub use self::select::*;
pub use self::service::*;
pub use self::shell::*;
pub use self::simulate::*;
pub use self::torrent::*;
pub use self::traceroute::*;

/// Moves data over every useful path of a SCION network at once.
#[derive(Parser)]
#[command(name = "hawser", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the paths to an AS
    Paths(PathsArgs),
    /// Send SCMP echo requests to a host
    Ping(PingArgs),
    /// Show the border routers on a path, and the round-trip time to each
    Traceroute(TracerouteArgs),
    /// Make and show .torrent files
    Torrent(TorrentArgs),
    /// Serve a file or folder to others
    Seed(SeedArgs),
    /// Download a torrent, over several paths at once
    Get(GetArgs),
    /// Run a SCION network on this machine
    Lab(LabArgs),
    /// Show multipath at work: network, seeder and downloads in one go
    Demo(DemoArgs),
    /// Repeat the papers' experiments
    Bench(BenchArgs),
    /// Compute how many leechers share a network, without bringing it up
    Simulate(SimulateArgs),
    /// Run the border router of an AS
    Router(RouterArgs),
    /// Run the control service and daemon of an AS
    Control(ControlArgs),
    /// Print a script by which a shell completes hawser's commands
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
    /// Processes that hawser starts for itself
    #[command(hide = true)]
    Internal(InternalArgs),
}

impl Cli {
    /// Reads the arguments of this process; if they are invalid, says why and ends it.
    pub fn read() -> Self {
        let args = mistake::join_negative_values(std::env::args_os().collect());
        Self::try_parse_from(&args).unwrap_or_else(|error| {
            let error = mistake::suggest_command(error, &args, &Self::command());
            error.exit()
        })
    }
}

#[cfg(test)]
mod tests {
    use hawser_experiments::CATALOG;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_download_of_an_experiment_has_arguments_that_get_takes() {
        for entry in CATALOG {
            let experiment = entry.experiment(1.0).unwrap();
            for variant in &experiment.variants {
                for download in &variant.downloads {
                    let peer = "1-ff00:0:1,10.0.0.1:1";
                    let get = ["hawser", "get", "x.torrent", "--peer", peer];
                    let args = download.args.iter().map(String::as_str);
                    if let Err(error) = Cli::try_parse_from(get.into_iter().chain(args)) {
                        panic!("{}, {}: {error}", experiment.name, variant.name);
                    }
                }
            }
        }
    }
}
