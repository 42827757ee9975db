//! `hawser lab apply`: changes a running network to that of a file.

use hawser_lab::{Applied, Lab};
use serde_json::json;

use super::name::LabName;
use crate::cmd::files;
use crate::failure::Failure;
use crate::out::{errln, outln};

#[derive(clap::Args)]
pub struct ApplyArgs {
    /// A .topo file, or a ready topology: fig4, fig7a, fig9
    #[arg(value_name = "FILE")]
    topology: String,
    /// Print the steps, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lab: LabName,
}

/// Changes the lab by difference, and prints the steps.
pub fn run(args: &ApplyArgs) -> Result<(), Failure> {
    let network = files::topology(&args.topology)?;
    let lab = args.lab.open()?;
    let say = |step: &dyn std::fmt::Display| {
        if !args.json {
            outln!("{step}");
        }
    };
    let applied = match args.dry_run {
        true => lab.plan(&network)?,
        false => lab.apply(&network, |step| say(step))?,
    };
    if args.dry_run {
        applied.steps.iter().for_each(|step| say(step));
    }
    report(&lab, &applied, (args.dry_run, args.json))
}

/// Prints what was done in whole, and fails if links did not come up.
pub fn report(lab: &Lab, applied: &Applied, (dry_run, json): (bool, bool)) -> Result<(), Failure> {
    let (name, count) = (lab.name(), applied.steps.len());
    if json {
        let object = json!({
            "name": name,
            "dry_run": dry_run,
            "steps": applied.steps,
            "notes": applied.notes,
            "dead_links": applied.dead_links,
        });
        outln!("{object:#}");
    } else {
        match (count, dry_run) {
            (0, _) => outln!("lab {name}: no changes needed"),
            (_, true) => outln!("lab {name}: {count} steps, none of them done"),
            (_, false) => outln!("lab {name} is changed: {count} steps"),
        }
    }
    for note in &applied.notes {
        errln!("hawser: {note}");
    }
    match applied.dead_links.is_empty() {
        true => Ok(()),
        false => Err(Failure::job(format!(
            "links that were added did not come up: {}; see `hawser lab status --name {name}`",
            applied.dead_links.join(", ")
        ))),
    }
}
