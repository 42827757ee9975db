//! One module a command.

pub mod bench;
mod changes;
mod choose;
pub mod completions;
pub mod demo;
mod document;
mod experiment;
pub mod get;
pub mod lab;
pub mod man;
mod metainfo;
mod network;
mod news;
pub mod paths;
pub mod ping;
mod policy;
pub mod seed;
mod select;
pub mod service;
pub mod simulate;
pub mod torrent;
pub mod traceroute;
mod work;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hawser_endhost::Endhost;

use crate::cli::{Format, HostArgs};
use crate::failure::{Doing, Failure};
use crate::out::{out, outln};

/// Checks that a file or folder which the arguments name is there, before anything else is done.
pub fn input(path: &Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// A file or folder which the arguments name cannot be read: they are wrong.
pub fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::usage(match error.kind() {
        ErrorKind::NotFound => format!("{path}: no such file or folder"),
        ErrorKind::IsADirectory => format!("{path}: is a folder: name a file"),
        _ => format!("{path}: cannot be read: {error}"),
    })
}

/// A runtime for commands that move data.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing("starting")
}

/// The path of this program, of which labs and experiments start processes.
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().doing("finding the hawser program")
}

/// Gets this host into its network.
async fn host(args: &HostArgs) -> Result<Endhost, Failure> {
    if let Some(folder) = &args.config_dir {
        input(folder)?;
    }
    Endhost::bootstrap(&args.bootstrap())
        .await
        .map_err(Failure::job)
}

/// Prints a report for programs; false when it is one for people.
fn print_document(format: Format, report: &impl serde::Serialize) -> Result<bool, Failure> {
    match format {
        Format::Human => return Ok(false),
        Format::Json => {
            let text = serde_json::to_string_pretty(report).doing("writing JSON")?;
            outln!("{text}");
        }
        Format::Yaml => {
            let text = serde_saphyr::to_string(report).doing("writing YAML")?;
            out(format_args!("{text}"));
        }
    }
    Ok(true)
}

/// Refuses what is asked of EPIC.
fn no_epic(epic: bool) -> Result<(), Failure> {
    match epic {
        true => Err(Failure::usage(
            "--epic: EPIC paths are not supported: leave it out",
        )),
        false => Ok(()),
    }
}

/// Waits for an interrupt or a request to end.
pub async fn interrupted() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).doing("waiting for signals")?;
    tokio::select! {
        ended = tokio::signal::ctrl_c() => ended.doing("waiting for signals"),
        _ = terminate.recv() => Ok(()),
    }
}
