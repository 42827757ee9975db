//! One module a command.

mod choose;
mod document;
pub mod get;
pub mod lab;
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

use crate::cli::{Format, HostArgs};
use crate::failure::{Doing, Failure};
use crate::out::{out, outln};
use hawser_endhost::Endhost;

/// A runtime for commands that move data.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing("starting")
}

/// Gets this host into its network.
async fn host(args: &HostArgs) -> Result<Endhost, Failure> {
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
