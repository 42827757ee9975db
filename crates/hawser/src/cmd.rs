//! One module a command.

pub mod get;
pub mod lab;
pub mod paths;
pub mod ping;
pub mod seed;
pub mod service;
pub mod torrent;

use crate::failure::{Doing, Failure};
use hawser_torrent::Metainfo;
use std::path::Path;

/// Reads a `.torrent` file.
fn read_metainfo(file: &Path) -> Result<Metainfo, Failure> {
    // BEP 3 sets no bound; this is far above any real one and below trouble.
    const MAX: u64 = 64 << 20;
    let size = std::fs::metadata(file).doing(file.display())?.len();
    if size > MAX {
        return Err(Failure::Job(format!(
            "{}: {size} bytes are too many for a .torrent file: is it the right one?",
            file.display()
        )));
    }
    let bytes = std::fs::read(file).doing(file.display())?;
    Metainfo::parse(&bytes).doing(file.display())
}

/// A runtime for commands that move data.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing("starting")
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
