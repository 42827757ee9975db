//! `hawser limit`: how fast the links on this machine may be.

mod apply;
mod failed;
mod letters;
mod reset;
mod settings;
mod show;
mod wanted;
mod watch;

use clap::Subcommand;
use hawser_limit::Summary;
use serde::Serialize;

use self::failed::Failed;
pub use self::wanted::{ReplaceArgs, topology};
use crate::failure::Failure;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct LimitArgs {
    #[command(subcommand)]
    command: Option<LimitCommand>,
    #[command(flatten)]
    letters: letters::LetterArgs,
}

#[derive(Subcommand)]
enum LimitCommand {
    /// Set the limits that a file says
    Apply(apply::ApplyArgs),
    /// Remove all limits, and leave devices as they were before
    Reset(reset::ResetArgs),
    /// Show limits and what goes through them
    Show(show::ShowArgs),
    /// Set the limits, and set them again whenever the file changes or somebody else changes them
    Watch(watch::WatchArgs),
}

/// Runs `hawser limit`.
pub fn run(args: LimitArgs) -> Result<(), Failure> {
    match args.command {
        None => letters::run(args.letters),
        Some(LimitCommand::Apply(args)) => apply::run(&args),
        Some(LimitCommand::Reset(args)) => reset::run(&args),
        Some(LimitCommand::Show(args)) => show::run(&args),
        Some(LimitCommand::Watch(args)) => watch::run(&args),
    }
}

/// What was changed, for programs.
#[derive(Serialize)]
struct Changed<'a> {
    added: usize,
    changed: usize,
    removed: usize,
    /// What failed; left out if nothing did.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    failed: &'a [Failed],
}

impl<'a> Changed<'a> {
    fn new(summary: Summary, failed: &'a [Failed]) -> Self {
        Self {
            added: summary.added,
            changed: summary.changed,
            removed: summary.removed,
            failed,
        }
    }
}

/// What was changed, as a sentence.
fn sentence(summary: Summary) -> String {
    match summary {
        Summary { requests: 0, .. } => "no changes needed".to_owned(),
        Summary {
            added,
            changed,
            removed,
            ..
        } => format!("limits: {added} added, {changed} changed, {removed} removed"),
    }
}
