//! `hawser limit apply`.

use hawser_limit::{Limiter, Plan};
use serde::Serialize;

use super::wanted::{ReplaceArgs, WantedArgs};
use super::{Changed, sentence};
use crate::cmd::print;
use crate::failure::Failure;
use crate::out::outln;

#[derive(clap::Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    wanted: WantedArgs,
    #[command(flatten)]
    replace: ReplaceArgs,
    /// Print what would be changed, as commands, and change nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The changes of a device, for programs.
#[derive(Serialize)]
struct Planned<'a> {
    device: &'a str,
    #[serde(flatten)]
    changes: Changed,
    commands: Vec<&'a str>,
}

/// Sets the limits.
pub fn run(args: &ApplyArgs) -> Result<(), Failure> {
    let mut limiter = Limiter::open()?.with_replace(args.replace.replace);
    let wanted = args.wanted.read(&mut limiter)?;
    if args.dry_run {
        return dry_run(&limiter.plan(&wanted)?, args.json);
    }
    // IFBs of devices that are gone are in nobody's way, but may be of the next device's number.
    limiter.remove_orphans()?;
    let summary = limiter.apply(&wanted)?;
    match args.json {
        true => print::pretty_json(&Changed::from(summary))?,
        false => outln!("{}", sentence(summary)),
    }
    Ok(())
}

/// Prints what would be changed.
pub fn dry_run(plans: &[Plan], json: bool) -> Result<(), Failure> {
    if json {
        let is_command = |line: &&str| !line.starts_with('#');
        let planned = plans.iter().map(|plan| Planned {
            device: &plan.device,
            changes: plan.summary.into(),
            commands: plan
                .commands
                .iter()
                .map(String::as_str)
                .filter(is_command)
                .collect(),
        });
        return print::pretty_json(&planned.collect::<Vec<_>>());
    }
    for plan in plans {
        outln!("# {}: {}", plan.device, sentence(plan.summary));
        for command in &plan.commands {
            outln!("{command}");
        }
    }
    Ok(())
}

impl ApplyArgs {
    /// Sets what is wanted, and says so for people.
    pub fn new(wanted: WantedArgs, replace: ReplaceArgs) -> Self {
        Self {
            wanted,
            replace,
            dry_run: false,
            json: false,
        }
    }
}
