//! `hawser lab`: a SCION network on this machine.

mod apply;
mod capture;
mod change;
mod edit;
mod enter;
mod export;
mod graph;
mod host;
mod invite;
mod logs;
mod name;
mod save;
mod shape;
mod status;
mod up;

use std::process::ExitCode;

use clap::Subcommand;
use hawser_lab::{DownProgress, Lab};

use self::name::LabName;
use crate::failure::Failure;
use crate::out::errln;

#[derive(Subcommand)]
pub enum LabCommand {
    /// Bring a network up
    Up(up::UpArgs),
    /// Change a running network to that of a file
    Apply(apply::ApplyArgs),
    /// Add parts to a running network
    #[command(subcommand)]
    Add(edit::AddCommand),
    /// Remove parts of a running network
    #[command(subcommand)]
    Remove(edit::RemoveCommand),
    /// Make a container or network namespace a host of an AS
    Attach(host::AttachArgs),
    /// Take out what `lab attach` has put in
    Detach(host::DetachArgs),
    /// Let another machine join as an AS
    Invite(invite::InviteArgs),
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
    /// Write a network as files for Kubernetes, podman or containerlab
    Export(export::ExportArgs),
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
    // `up` and `down` remove the remains of killed commands. Commands that only look change nothing.
    if matches!(command, LabCommand::Up(_)) {
        sweep()?;
    }
    match command {
        LabCommand::Up(args) => up::run(args)?,
        LabCommand::Apply(args) => apply::run(&args)?,
        LabCommand::Add(command) => edit::add(command)?,
        LabCommand::Remove(command) => edit::remove(command)?,
        LabCommand::Attach(args) => host::attach(args)?,
        LabCommand::Detach(args) => host::detach(&args)?,
        LabCommand::Invite(args) => invite::run(&args)?,
        LabCommand::Status(args) => return status::run(&args),
        LabCommand::Exec(args) => return enter::exec(args),
        LabCommand::Shell(args) => return enter::shell(&args),
        LabCommand::Logs(args) => logs::run(&args)?,
        LabCommand::Capture(args) => capture::run(&args)?,
        LabCommand::Graph(args) => graph::run(&args)?,
        LabCommand::Save(args) => save::run(&args)?,
        LabCommand::Export(args) => export::run(args)?,
        LabCommand::Link(LinkCommand::Set(args)) => change::link(args)?,
        LabCommand::Restart(args) => change::restart(args)?,
        LabCommand::List { json } => status::list(json)?,
        LabCommand::Down { lab } => {
            // Of this lab, `down` removes them, and says so if that takes long.
            let lab = lab.open();
            let downed = lab.and_then(|lab| down(&lab));
            sweep()?;
            downed?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The number of services, or of ASes, from which on progress is shown: fewer take a moment.
const MIN_FOR_PROGRESS: usize = 100;

fn sweep() -> Result<(), Failure> {
    Lab::sweep()?;
    hawser_experiments::sweep();
    Ok(())
}

fn down(lab: &Lab) -> Result<(), Failure> {
    let name = lab.name();
    Ok(lab.down(|progress| match progress {
        DownProgress::Waiting => {
            errln!("hawser: waiting for the command that brings lab {name} up or changes it");
        }
        DownProgress::Interrupting => errln!("hawser: that takes long: ending it"),
        DownProgress::Ending(services) if services >= MIN_FOR_PROGRESS => {
            errln!("hawser: ending {services} services of lab {name}");
        }
        DownProgress::Removing(entries) if entries >= MIN_FOR_PROGRESS => {
            errln!("hawser: removing the folder of lab {name}");
        }
        _ => {}
    })?)
}
