//! `hawser lab`: a SCION network on this machine.

mod status;

use crate::out::{errln, outln};
use crate::{
    cli::{LabArgs, LabCommand, LinkCommand},
    failure::{Doing, Failure},
};
use hawser_lab::{EnterError, Lab, LinkChange, Options};
use hawser_topology::Network;
use std::{
    io::ErrorKind,
    path::Path,
    process::{Command, ExitCode},
};

/// Runs `hawser lab`.
pub fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    match args.command {
        LabCommand::Up { topology, lab } => up(&topology, &lab.name)?,
        LabCommand::Status { json, lab } => return status::print(&open(&lab.name)?, json),
        LabCommand::Exec {
            isd_as,
            command,
            lab,
        } => {
            let mut words = command.into_iter();
            let program = words
                .next()
                .ok_or_else(|| Failure::usage("lab exec: give a command after --"))?;
            let mut command = Command::new(program);
            command.args(words);
            match open(&lab.name)?.exec(isd_as, command) {
                Ok(never) => match never {},
                Err(error) => return not_run(error),
            }
        }
        LabCommand::Link { command } => set_link(command)?,
        LabCommand::List => {
            for lab in Lab::list().map_err(Failure::job)? {
                let state = status::word(lab.running, &lab.name);
                outln!("{:<20} {:>3} ASes  {state}", lab.name, lab.ases);
            }
        }
        LabCommand::Down { lab } => open(&lab.name)?.down().map_err(Failure::job)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a shell says of a command it cannot run: 127 when there is none of that name, 126 when it
/// may not be run, so that scripts see through `lab exec`.
fn not_run(error: EnterError) -> Result<ExitCode, Failure> {
    let code = match &error {
        EnterError::Run { source, .. } if source.kind() == ErrorKind::NotFound => 127,
        EnterError::Run { .. } => 126,
        _ => return Err(Failure::job(error)),
    };
    errln!("hawser: {error}");
    Ok(ExitCode::from(code))
}

fn open(name: &str) -> Result<Lab, Failure> {
    Lab::open(name).map_err(Failure::job)
}

/// The program that runs a lab's parts: this one.
pub fn program() -> Result<std::path::PathBuf, Failure> {
    std::env::current_exe().doing("finding the hawser program")
}

fn up(topology: &str, name: &str) -> Result<(), Failure> {
    let network = match Network::ready(topology) {
        Some(network) => network,
        None if Path::new(topology).exists() => {
            Network::load(Path::new(topology)).doing(topology)?
        }
        None => {
            let ready: Vec<_> = Network::ready_names().collect();
            return Err(Failure::job(format!(
                "{topology}: there is no such file, nor a ready topology of that name ({})",
                ready.join(", ")
            )));
        }
    };
    for isd_as in network.with_several_routers() {
        errln!(
            "hawser: {isd_as}: several border routers in an AS are not supported yet: one has all its interfaces"
        );
    }
    let options = Options::new(program()?).with_name(name);
    let lab = Lab::up(&network, &options).map_err(Failure::job)?;
    outln!(
        "lab {} is up: {} ASes, {} links",
        lab.name(),
        network.ases.len(),
        network.links.len()
    );
    for a in &network.ases {
        let host = lab.host(a.isd_as).map_err(Failure::job)?;
        let host = host.map_or_else(String::new, |ip| ip.to_string());
        let note = a.note.as_deref().unwrap_or_default();
        outln!("  {:<18} {host:<12} {note}", a.isd_as.to_string());
    }
    Ok(())
}

fn set_link(command: LinkCommand) -> Result<(), Failure> {
    let LinkCommand::Set {
        interface,
        rate,
        delay,
        jitter,
        loss,
        queue,
        up,
        down,
        lab,
    } = command;
    let change = LinkChange {
        rate: rate.map(|r| r.0),
        delay,
        jitter,
        loss,
        queue,
        up: (up || down).then_some(up),
    };
    if change == LinkChange::default() {
        return Err(Failure::usage(
            "lab link set: give at least one of --rate, --delay, --jitter, --loss, --queue, --up, --down",
        ));
    }
    open(&lab.name)?
        .set_link(interface.isd_as, interface.id, &change)
        .map_err(Failure::job)?;
    Ok(())
}
