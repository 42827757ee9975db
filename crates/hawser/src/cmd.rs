//! One module a command.

pub mod get;
pub mod lab;
pub mod paths;
pub mod ping;
pub mod seed;
pub mod service;
pub mod torrent;

use crate::failure::{Doing, Failure};
use hawser_torrent::{Metainfo, metainfo::MAX_METAINFO_BYTES};
use std::{io::Read, path::Path};

/// Reads a `.torrent` file.
fn read_metainfo(file: &Path) -> Result<Metainfo, Failure> {
    // One byte more tells a file that is too large from one that just fits,
    // whatever size a device or a pipe claims to have.
    let limit = MAX_METAINFO_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|f| f.take(limit).read_to_end(&mut bytes))
        .doing(file.display())?;
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
