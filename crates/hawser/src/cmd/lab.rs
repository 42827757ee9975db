//! `hawser lab`: a SCION network on this machine.

mod capture;
mod graph;
mod list;
mod logs;
mod open;
mod restart;
mod save;
mod shell;
mod status;

use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use hawser_lab::{Lab, LabError, LinkChange, Options};
use hawser_topology::{As, IsdAsn, Network};

use self::open::open;
use super::{process, topology};
use crate::cli::{LabArgs, LabCommand, LinkCommand, SomeAs};
use crate::failure::Failure;
use crate::out::{errln, outln};

/// Runs `hawser lab`.
pub fn run(args: LabArgs) -> Result<ExitCode, Failure> {
    // Commands that enter an AS must be quick, and have one thread.
    let enters = matches!(
        args.command,
        LabCommand::Exec { .. } | LabCommand::Shell { .. } | LabCommand::Capture(_)
    );
    if !enters {
        // What killed commands left.
        Lab::sweep().map_err(Failure::job)?;
        hawser_experiments::sweep();
    }
    match args.command {
        LabCommand::Up {
            topology,
            no_router,
            no_control,
            segment_lifetime,
            json,
            owner,
            lab,
        } => {
            let network = topology::read(&topology)?;
            let mut options = Options::new(process::program()?)
                .with_name(lab.name)
                .with_no_router(ases(&network, &no_router))
                .with_no_control(ases(&network, &no_control));
            if let Some(lifetime) = segment_lifetime {
                options = options.with_segment_lifetime(lifetime);
            }
            if let Some(pid) = owner {
                options = options.with_owner(pid);
            }
            up(&network, &options, json)?;
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
        LabCommand::Shell { isd_as, lab } => {
            return shell::run(&open(&lab.name)?, isd_as).or_else(not_run);
        }
        LabCommand::Restart {
            isd_as,
            service,
            router,
            lab,
        } => restart::run(&open(&lab.name)?, isd_as, service, router)?,
        LabCommand::Logs(args) => logs::run(&args)?,
        LabCommand::Capture(args) => capture::run(&args)?,
        LabCommand::Graph(args) => graph::run(&args)?,
        LabCommand::Save { file, force, lab } => save::run(&open(&lab.name)?, &file, force)?,
        LabCommand::Link { command } => set_link(command)?,
        LabCommand::List { json } => list::print(json)?,
        LabCommand::Down { lab } => open(&lab.name)?.down().map_err(Failure::job)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The exit codes of a shell for a command that it cannot run: 127 if there is none of that name,
/// 126 if it may not be run.
fn not_run(error: LabError) -> Result<ExitCode, Failure> {
    let code = match &error {
        LabError::Run { source, .. } if source.kind() == ErrorKind::NotFound => 127,
        LabError::Run { .. } => 126,
        _ => return Err(Failure::job(error)),
    };
    errln!("hawser: {error}");
    Ok(ExitCode::from(code))
}

/// The named ASes.
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

fn up(network: &Network, options: &Options, json: bool) -> Result<(), Failure> {
    let up = Lab::up(network, options).map_err(Failure::job)?;
    let lab = &up.lab;
    if up.cleared {
        errln!(
            "hawser: the earlier lab {} had lost its supervisor: what was left of it was cleared away",
            lab.name()
        );
    }
    let hosts = lab.hosts().map_err(Failure::job)?;
    let host = |a: &As| {
        hosts
            .get(&a.isd_as)
            .map_or_else(String::new, |ip| ip.to_string())
    };
    if json {
        let ases: Vec<_> = network
            .ases
            .iter()
            .map(|a| {
                serde_json::json!({
                    "isd_as": a.isd_as.to_string(), "core": a.core, "host": host(a), "note": a.note,
                })
            })
            .collect();
        let object = serde_json::json!({
            "name": lab.name(), "dir": lab.dir(), "links": network.links.len(), "ases": ases,
        });
        outln!("{object:#}");
        return Ok(());
    }
    outln!(
        "lab {} is up: {} ASes, {} links",
        lab.name(),
        network.ases.len(),
        network.links.len()
    );
    for a in &network.ases {
        let host = host(a);
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
