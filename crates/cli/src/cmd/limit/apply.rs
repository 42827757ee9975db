//! `hawser limit apply`.

use hawser_limit::{Limiter, Outcome, Plan, Summary};
use serde::Serialize;

use super::failed::{Failed, finish};
use super::wanted::{ReplaceArgs, Wanted, WantedArgs};
use super::{Changed, sentence};
use crate::cmd::print;
use crate::failure::Failure;
use crate::out::{errln, outln, plain};

#[derive(clap::Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    wanted: WantedArgs,
    #[command(flatten)]
    replace: ReplaceArgs,
    /// Print what would be changed, as commands, and change nothing
    #[arg(long)]
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
    changes: Changed<'a>,
    commands: Vec<&'a str>,
}

/// Sets the limits.
pub fn run(args: &ApplyArgs) -> Result<(), Failure> {
    let mut limiter = Limiter::open()?.with_replace(args.replace.replace);
    let Wanted {
        devices,
        mut failed,
    } = args.wanted.read(&mut limiter)?;
    if args.dry_run {
        return dry_run(&limiter.plan(&devices)?, failed, args.json);
    }
    // IFBs of devices that are gone are in nobody's way, but may be of the next device's number.
    for error in limiter.remove_orphans()?.failed.values() {
        errln!("hawser: {}", plain(&error.to_string()));
    }
    let outcome = limiter.apply(&devices)?;
    failed.splice(0..0, Failed::devices(&outcome.failed));
    report(outcome.done, &failed, args.json)
}

/// Says what was changed, and what failed.
pub fn report(done: Summary, failed: &[Failed], json: bool) -> Result<(), Failure> {
    match json {
        true => print::pretty_json(&Changed::new(done, failed))?,
        // "No changes needed" would be wrong: what failed is not in force.
        false if done.requests == 0 && !failed.is_empty() => {}
        false => outln!("{}", sentence(done)),
    }
    finish(failed)
}

/// Prints what would be changed.
pub fn dry_run(
    outcome: &Outcome<Vec<Plan>>,
    mut failed: Vec<Failed>,
    json: bool,
) -> Result<(), Failure> {
    failed.splice(0..0, Failed::devices(&outcome.failed));
    let plans = &outcome.done;
    if json {
        let is_command = |line: &&str| !line.starts_with('#');
        let planned = plans.iter().map(|plan| Planned {
            device: &plan.device,
            changes: Changed::new(plan.summary, &[]),
            commands: plan
                .commands
                .iter()
                .map(String::as_str)
                .filter(is_command)
                .collect(),
        });
        print::pretty_json(&planned.collect::<Vec<_>>())?;
        return finish(&failed);
    }
    for plan in plans {
        outln!("# {}: {}", plain(&plan.device), sentence(plan.summary));
        for command in &plan.commands {
            outln!("{command}");
        }
    }
    finish(&failed)
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
