//! `hawser completions` and `hawser man`: shell completions and manual pages, generated from the
//! descriptions of the arguments.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::{Doing, Failure};
use crate::output::Output;

#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(clap::Args)]
pub struct ManArgs {
    /// Write hawser.1, hawser-get.1 and so on into this folder, which is made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Overwrite existing pages
    #[arg(long, requires = "output")]
    force: bool,
}

/// Prints the script by which a shell completes the commands of `program`.
pub fn completions(args: CompletionsArgs, mut program: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "hawser", &mut script);
    Output::stdout().write(&script)
}

/// Prints the page of `program`, or writes a page for each of its commands into a folder.
pub fn run(args: ManArgs, mut program: Command) -> Result<(), Failure> {
    // Gives every command its full name, and the flags that it inherits.
    program.build();
    match args.output {
        None => Output::stdout().write(&page(&program)?)?,
        Some(folder) => {
            if folder.exists() && !folder.is_dir() {
                let name = folder.display();
                return Err(Failure::usage(format!(
                    "{name}: this is no folder: name one"
                )));
            }
            std::fs::create_dir_all(&folder).doing(folder.display())?;
            let mut pages = Vec::new();
            collect(&program, &mut pages)?;
            // Check all pages before the first is written.
            let check = |(name, page): (String, Vec<u8>)| {
                let output = Output::check("", &folder.join(name), args.force, &[])?;
                Ok((output, page))
            };
            let checked: Result<Vec<_>, Failure> = pages.into_iter().map(check).collect();
            for (output, page) in checked? {
                output.write(&page)?;
            }
        }
    }
    Ok(())
}

/// The manual page of a command.
fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .render(&mut page)
        .doing("writing a manual page")?;
    Ok(page)
}

/// The pages of a command and its subcommands, except hidden ones.
fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    pages.push((format!("{name}.1"), page(command)?));
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        .try_for_each(|below| collect(below, pages))
}
