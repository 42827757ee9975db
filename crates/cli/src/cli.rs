//! The commands, and the parsing of this process's arguments.

mod config;
mod groups;
mod list;
mod mistake;
mod overview;
mod renamed;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::config::Configured;
use crate::cmd::{
    bench, coordinator, daemon, demo, doctor, fetch, get, image, join, key, lab, limit, man, paths,
    perf, ping, receive, run, seed, send, service, shim, simulate, torrent, traceroute, tracker,
};
use crate::failure::Failure;
use crate::out::{errln, outln, plain};

/// The version, and the commit and day of its sources if they were known: `0.1.0 (4a84e091,
/// 2026-11-27)`.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("HAWSER_VERSION_SUFFIX"));

/// Moves data over every useful path of a SCION network at once.
#[derive(Parser)]
#[command(name = "hawser", version = VERSION, about, max_term_width = 80)]
pub struct Cli {
    /// The file of defaults for flags of commands [default: $HAWSER_CONFIG, or config.toml in
    /// /etc/hawser for root, in $XDG_CONFIG_HOME/hawser or ~/.config/hawser for others]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// List the paths to an AS
    Paths(paths::PathsArgs),
    /// Send SCMP echo requests to a host
    Ping(ping::PingArgs),
    /// Show the border routers on a path, and the round-trip time to each
    Traceroute(traceroute::TracerouteArgs),
    /// Measure throughput to a host, from memory to memory
    Perf(perf::PerfArgs),
    /// Make and show .torrent files, and command the torrents of the daemon
    #[command(subcommand)]
    Torrent(torrent::TorrentCommand),
    /// Serve a file or folder to others
    Seed(seed::SeedArgs),
    /// Download a torrent, over several paths at once
    Get(get::GetArgs),
    /// Tell the peers of torrents of each other, as a tracker
    Tracker(tracker::TrackerArgs),
    /// Show the key by which other hosts recognise this one
    Key(key::KeyArgs),
    /// Say what is wrong with this host in its network, and what to do about it
    Doctor(doctor::DoctorArgs),
    /// Send files to another host, over several paths at once
    Send(send::SendArgs),
    /// Receive what other hosts send, and share a folder with them
    Receive(receive::ReceiveArgs),
    /// Fetch files that another host shares, over several paths at once
    Fetch(fetch::FetchArgs),
    /// Run torrents and a queue of transfers in the background, with an HTTP API
    Daemon(Box<daemon::DaemonArgs>),
    /// Carry programs' TCP connections over several SCION paths
    #[command(subcommand)]
    Shim(shim::ShimCommand),
    /// Run a command whose TCP connections go over several SCION paths
    Run(Box<run::RunArgs>),
    /// Limit how fast the links on this machine are
    Limit(limit::LimitArgs),
    /// Run a SCION network on this machine
    #[command(subcommand)]
    Lab(lab::LabCommand),
    /// Run one AS of a network on this machine
    #[command(subcommand)]
    As(join::AsCommand),
    /// Keep the ASes, links and limits of a network, and configure its machines
    Coordinator(coordinator::CoordinatorArgs),
    /// Show multipath at work: network, seeder and downloads in one go
    Demo(demo::DemoArgs),
    /// Repeat the papers' experiments
    Bench(bench::BenchArgs),
    /// Compute how many leechers share a network, without bringing it up
    Simulate(simulate::SimulateArgs),
    /// Run the border router of an AS
    #[command(subcommand)]
    Router(service::RouterCommand),
    /// Run the control service and daemon of an AS
    #[command(subcommand)]
    Control(service::ControlCommand),
    /// Write this program as a container image
    Image(image::ImageArgs),
    /// Print a script by which a shell completes hawser's commands
    Completions(man::CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(man::ManArgs),
    /// Processes that hawser starts for itself
    #[command(hide = true, subcommand)]
    Internal(service::InternalCommand),
}

/// Why arguments are refused.
enum Refused {
    /// What they name has another name now.
    Renamed(String),
    /// They are wrong, as this text says.
    Mistaken(String),
    /// They are wrong, or ask for help.
    Wrong(clap::Error),
}

/// The exit code of wrong use.
const WRONG_USE: i32 = 2;

impl Cli {
    /// Reads the arguments of this process, with what the configuration file has for their command; if
    /// they are invalid, reports that and ends the process. Without any, says what there is.
    ///
    /// # Errors
    /// When the configuration file is wrong.
    pub fn read() -> Result<Self, Failure> {
        let args: Vec<OsString> = std::env::args_os().collect();
        if args.len() <= 1 {
            outln!("{}", overview::OVERVIEW);
            std::process::exit(0);
        }
        let configured = Configured::read(mistake::join_negative_values(args), Self::command)?;
        match read(&configured.args) {
            Ok(cli) => Ok(cli),
            Err(Refused::Renamed(text)) => {
                errln!("hawser: {text}");
                std::process::exit(WRONG_USE)
            }
            Err(Refused::Mistaken(text)) => {
                errln!("hawser: {}", plain(&text));
                configured.explain(&text);
                std::process::exit(WRONG_USE)
            }
            Err(Refused::Wrong(error)) => {
                // Nothing more can be done when it cannot be printed.
                let _ = error.print();
                configured.explain(&error.to_string());
                std::process::exit(error.exit_code())
            }
        }
    }
}

/// Reads arguments, of which the first is the program.
fn read(args: &[OsString]) -> Result<Cli, Refused> {
    if let Some(text) = renamed::command(args) {
        return Err(Refused::Renamed(text));
    }
    let mut program = groups::grouped(Cli::command());
    let matches = program.try_get_matches_from_mut(args);
    let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    read.map_err(|error| {
        if let Some(text) = renamed::argument(&error, args, &program) {
            return Refused::Renamed(text);
        }
        match list::empty_entry(&error, args, &program) {
            Some(text) => Refused::Mistaken(text),
            None => Refused::Wrong(mistake::suggest_command(error, args, &program)),
        }
    })
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// When the job fails, or the command is used wrongly.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let done = |()| ExitCode::SUCCESS;
        match self {
            Self::Paths(args) => paths::run(args).map_err(Failure::like_scion),
            Self::Ping(args) => ping::run(args).map_err(Failure::like_scion),
            Self::Traceroute(args) => traceroute::run(args).map_err(Failure::like_scion),
            Self::Perf(args) => perf::run(args).map(done),
            Self::Torrent(command) => torrent::run(command).map(done),
            Self::Seed(args) => seed::run(args).map(done),
            Self::Get(args) => get::run(args).map(done),
            Self::Tracker(args) => tracker::run(args).map(done),
            Self::Key(args) => key::run(args).map(done),
            Self::Doctor(args) => doctor::run(args),
            Self::Send(args) => send::run(args).map(done),
            Self::Receive(args) => receive::run(args).map(done),
            Self::Fetch(args) => fetch::run(args).map(done),
            Self::Daemon(args) => daemon::run(*args).map(done),
            Self::Shim(command) => shim::run(command),
            Self::Run(args) => run::run(*args),
            Self::As(command) => join::run(command),
            Self::Limit(args) => limit::run(args).map(done),
            Self::Coordinator(args) => coordinator::run(&args).map(done),
            Self::Lab(command) => lab::run(command),
            Self::Demo(args) => demo::run(args).map(done),
            Self::Bench(args) => bench::run(args).map(done),
            Self::Simulate(args) => simulate::run(args).map(done),
            Self::Router(command) => service::router(command).map(done),
            Self::Control(command) => service::control(command).map(done),
            Self::Image(args) => image::run(args).map(done),
            Self::Completions(args) => man::completions(args, Cli::command()).map(done),
            Self::Man(args) => man::run(args, Cli::command()).map(done),
            Self::Internal(command) => Ok(service::internal(command)),
        }
    }
}

#[cfg(test)]
mod tests;
