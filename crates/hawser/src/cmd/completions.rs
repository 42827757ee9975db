//! `hawser completions`: scripts by which shells complete its commands.

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::out::out;

/// Prints the script for a shell.
pub fn run(args: CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hawser", &mut script);
    out(format_args!("{}", String::from_utf8_lossy(&script)));
    Ok(())
}
