//! `hawser shim`: TCP programs over several SCION paths.

mod attach;
pub mod busy;
mod client;
mod down;
mod exposed;
mod filter;
mod gateway;
mod holder;
mod map;
mod place;
mod report;
mod status;
mod up;

use std::process::ExitCode;

use clap::Subcommand;

pub use self::client::ClientArgs;
pub use self::holder::run as hold;
pub use self::place::ShimName;
use crate::cmd::headings;
use crate::failure::Failure;

#[derive(Subcommand)]
pub enum ShimCommand {
    /// Carry programs' TCP connections over SCION, and serve those of other hosts, until SIGINT or
    /// SIGTERM
    Up(Box<up::UpArgs>),
    /// End the shim with all of its connections, and remove what it has set up
    Down(down::DownArgs),
    /// Show sessions, paths and connections
    Status(status::StatusArgs),
    /// Say which destinations of programs go over SCION, and where to
    #[command(subcommand)]
    Map(map::MapCommand),
}

/// Which of the shims of a machine is meant.
#[derive(clap::Args)]
pub struct NameArgs {
    /// The name of the shim, where a machine has several, as in a lab
    #[arg(long, value_name = "NAME", default_value = "shim", help_heading = headings::RARE, hide_short_help = true)]
    pub name: ShimName,
}

/// Runs `hawser shim`.
pub fn run(command: ShimCommand) -> Result<ExitCode, Failure> {
    match command {
        ShimCommand::Up(args) => up::run(*args).map(|()| ExitCode::SUCCESS),
        ShimCommand::Down(args) => down::run(&args).map(|()| ExitCode::SUCCESS),
        ShimCommand::Status(args) => status::run(&args),
        ShimCommand::Map(command) => map::run(command).map(|()| ExitCode::SUCCESS),
    }
}
