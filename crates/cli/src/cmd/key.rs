//! `hawser key`: the key by which other hosts recognise this one.

use std::path::PathBuf;

use clap::Subcommand;
use hawser_keys::KeyFile;
use serde::Serialize;

use super::{headings, print};
use crate::failure::Failure;
use crate::out::outln;

#[derive(clap::Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    command: Option<KeyCommand>,
    #[command(flatten)]
    file: KeyFileArgs,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Print the key that other hosts see; so does `hawser key` alone
    Show,
    /// Print the name of the file with the private key, whether or not it exists
    Path,
}

/// Which key this host shows.
#[derive(clap::Args)]
pub struct KeyFileArgs {
    /// The file with this host's private key, which is made if it does not exist; hawser/key in
    /// $XDG_CONFIG_HOME or ~/.config when not given
    #[arg(long, value_name = "FILE", global = true, help_heading = headings::HOST, hide_short_help = true)]
    key: Option<PathBuf>,
}

impl KeyFileArgs {
    /// The file.
    pub fn file(&self) -> Result<KeyFile, Failure> {
        match &self.key {
            Some(path) => Ok(KeyFile::at(path)),
            None => Ok(KeyFile::of_user()?),
        }
    }
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    path: String,
}

/// Prints this host's key, or where it is.
pub fn run(args: KeyArgs) -> Result<(), Failure> {
    let file = args.file.file()?;
    let key = match args.command {
        None | Some(KeyCommand::Show) => Some(file.open()?.key().to_string()),
        Some(KeyCommand::Path) => None,
    };
    let path = file.path().display().to_string();
    if args.json {
        return print::pretty_json(&Report { key, path });
    }
    outln!("{}", key.unwrap_or(path));
    Ok(())
}
