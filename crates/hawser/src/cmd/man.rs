//! `hawser man`: manual pages, made of the arguments' own descriptions.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::{Cli, ManArgs};
use crate::failure::{Doing, Failure};
use crate::out::out;
use crate::output::Output;

/// Prints the page of the program, or writes a page for each command into a folder.
pub fn run(args: ManArgs) -> Result<(), Failure> {
    let mut program = Cli::command();
    // Gives every command its full name, and the flags that it inherits.
    program.build();
    match args.output {
        None => out(format_args!(
            "{}",
            String::from_utf8_lossy(&page(&program)?)
        )),
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
            // All are checked before the first is written.
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

/// The page of a command.
fn page(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .render(&mut page)
        .doing("writing a manual page")?;
    Ok(page)
}

/// The pages of a command and of those below it, but for hidden ones.
fn collect(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    pages.push((format!("{name}.1"), page(command)?));
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        .try_for_each(|below| collect(below, pages))
}
