//! `hawser lab`: a SCION network on this machine.

mod restart;
mod status;

use crate::out::{errln, outln};
use crate::{
    cli::{LabArgs, LabCommand, LinkCommand, SomeAs},
    failure::{Doing, Failure},
    scratch,
};
use hawser_lab::{EnterError, Lab, LinkChange, Options};
use hawser_topology::{IsdAsn, Network};
use std::{
    io::ErrorKind,
    path::Path,
    process::{Command, ExitCode},
};

/// Runs `hawser lab`.
pub fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    if !matches!(args.command, LabCommand::Exec { .. }) {
        // What commands left that were killed.
        Lab::sweep().map_err(Failure::job)?;
        scratch::sweep();
    }
    match args.command {
        LabCommand::Up {
            topology,
            no_router,
            no_control,
            segment_lifetime,
            owner,
            lab,
        } => {
            let network = network(&topology)?;
            let mut options = Options::new(program()?)
                .with_name(lab.name)
                .with_no_router(ases(&network, &no_router))
                .with_no_control(ases(&network, &no_control));
            if let Some(lifetime) = segment_lifetime {
                options = options.with_segment_lifetime(lifetime);
            }
            if let Some(pid) = owner {
                options = options.with_owner(pid);
            }
            up(&network, &options)?;
        }
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
        LabCommand::Restart {
            isd_as,
            service,
            router,
            lab,
        } => restart::run(&open(&lab.name)?, isd_as, service, router)?,
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

/// A network by its file's path, or a ready one by its name.
pub(super) fn network(topology: &str) -> Result<Network, Failure> {
    match Network::ready(topology) {
        Some(network) => Ok(network),
        None if Path::new(topology).exists() => Network::load(Path::new(topology)).doing(topology),
        None => {
            let ready: Vec<_> = Network::ready_names().collect();
            Err(Failure::job(format!(
                "{topology}: there is no such file, nor a ready topology of that name ({})",
                ready.join(", ")
            )))
        }
    }
}

/// The ASes that are meant.
fn ases(network: &Network, named: &[SomeAs]) -> Vec<IsdAsn> {
    if named.contains(&SomeAs::All) {
        return network.ases.iter().map(|a| a.isd_as).collect();
    }
    let one = |some: &SomeAs| match some {
        SomeAs::One(isd_as) => Some(*isd_as),
        SomeAs::All => None,
    };
    named.iter().filter_map(one).collect()
}

fn up(network: &Network, options: &Options) -> Result<(), Failure> {
    let up = Lab::up(network, options).map_err(Failure::job)?;
    let lab = &up.lab;
    if up.cleared {
        errln!(
            "hawser: the earlier lab {} had lost its supervisor: what was left of it was cleared away",
            lab.name()
        );
    }
    outln!(
        "lab {} is up: {} ASes, {} links",
        lab.name(),
        network.ases.len(),
        network.links.len()
    );
    let hosts = lab.hosts().map_err(Failure::job)?;
    for a in &network.ases {
        let host = hosts.get(&a.isd_as);
        let host = host.map_or_else(String::new, |ip| ip.to_string());
        let note = a.note.as_deref().unwrap_or_default();
        outln!("  {:<18} {host:<16} {note}", a.isd_as.to_string());
    }
    match up.dead_links.is_empty() {
        true => Ok(()),
        false => Err(Failure::job(format!(
            "{} of {} links did not come up: {}; the lab stays, see `hawser lab status --name {}`",
            up.dead_links.len(),
            network.links.len(),
            up.dead_links.join(", "),
            lab.name()
        ))),
    }
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
