//! `hawser lab`: a SCION network on this machine.

mod capture;
mod change;
mod enter;
mod graph;
mod logs;
mod name;
mod save;
mod status;
mod up;

use std::process::ExitCode;

use clap::Subcommand;
use hawser_lab::Lab;

use self::name::LabName;
use crate::failure::Failure;

#[derive(Subcommand)]
pub enum LabCommand {
    /// Bring a network up
    Up(up::UpArgs),
    /// Show the processes and links of a network
    Status(status::StatusArgs),
    /// Run a command on a host of an AS
    Exec(enter::ExecArgs),
    /// Run a shell on a host of an AS
    Shell(enter::ShellArgs),
    /// Print the logs of the routers and control services, in the order of time
    Logs(logs::LogsArgs),
    /// Record what crosses a link, in both directions, in a file for Wireshark
    Capture(capture::CaptureArgs),
    /// Draw the map of the network with rates and state
    Graph(graph::GraphArgs),
    /// Write the network as it is now to a .topo file
    Save(save::SaveArgs),
    /// Change links
    #[command(subcommand)]
    Link(LinkCommand),
    /// End services of an AS and start them again
    Restart(change::RestartArgs),
    /// List the labs that run
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a network down
    Down {
        #[command(flatten)]
        lab: LabName,
    },
}

#[derive(Subcommand)]
pub enum LinkCommand {
    /// Change the properties of a link, in both directions
    Set(change::LinkArgs),
}

/// Runs `hawser lab`.
pub fn run(command: LabCommand) -> Result<ExitCode, Failure> {
    use LabCommand::{Capture, Exec, Shell};
    // Commands that enter an AS must be quick, and have one thread.
    if !matches!(command, Exec(_) | Shell(_) | Capture(_)) {
        // Remove the remains of killed commands.
        Lab::sweep()?;
        hawser_experiments::sweep();
    }
    match command {
        LabCommand::Up(args) => up::run(args)?,
        LabCommand::Status(args) => return status::run(&args),
        LabCommand::Exec(args) => return enter::exec(args),
        LabCommand::Shell(args) => return enter::shell(&args),
        LabCommand::Logs(args) => logs::run(&args)?,
        LabCommand::Capture(args) => capture::run(&args)?,
        LabCommand::Graph(args) => graph::run(&args)?,
        LabCommand::Save(args) => save::run(&args)?,
        LabCommand::Link(LinkCommand::Set(args)) => change::link(args)?,
        LabCommand::Restart(args) => change::restart(args)?,
        LabCommand::List { json } => status::list(json)?,
        LabCommand::Down { lab } => lab.open()?.down()?,
    }
    Ok(ExitCode::SUCCESS)
}
