//! `hawser as health`: whether the AS that runs on this machine is alive, or ready.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::cmd::{folders, print};
use crate::failure::{Doing, Failure};
use crate::out::outln;

#[derive(clap::Args)]
pub struct HealthArgs {
    /// The folder of the AS, as `as join --state` has it; may be left out where one AS has a folder in the
    /// usual place
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Ask whether all links are up, limits are in force and there are paths, not only whether it runs
    #[arg(long)]
    ready: bool,
    /// Print JSON: whether it is alive, or whether it is ready and what is missing
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Alive {
    alive: bool,
}

/// Asks, and fails unless the AS is alive or ready.
pub fn run(args: &HealthArgs) -> Result<ExitCode, Failure> {
    let folder = match &args.state {
        Some(folder) => folder.clone(),
        None => only_folder()?,
    };
    if !args.ready {
        hawser_node::is_alive(&folder)?;
        match args.json {
            true => print::json(&Alive { alive: true })?,
            false => outln!("alive"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = hawser_node::ask(&folder)?;
    if args.json {
        print::json(&report)?;
        return Ok(match report.ready {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        });
    }
    match report.ready {
        true => outln!("ready"),
        false => {
            let reasons = report.reasons.join("; ");
            return Err(Failure::job(format_args!("not ready: {reasons}")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder in the usual place, if one AS has one.
fn only_folder() -> Result<PathBuf, Failure> {
    let usual = folders::state("as")?;
    let mut found = Vec::new();
    if usual.exists() {
        for entry in usual.read_dir().doing(usual.display())? {
            let path = entry.doing(usual.display())?.path();
            if path.join("current").exists() {
                found.push(path);
            }
        }
    }
    let usual = usual.display();
    match (found.pop(), found.is_empty()) {
        (Some(folder), true) => Ok(folder),
        (None, _) => Err(Failure::usage(format_args!(
            "as health: no AS has a folder in {usual}: name its folder with --state"
        ))),
        (Some(_), false) => Err(Failure::usage(format_args!(
            "as health: several ASes have folders in {usual}: name one with --state"
        ))),
    }
}
