//! This process: its runtime, the signals that end it, and its program.

use std::future::Future;
use std::path::PathBuf;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Doing, Failure};

/// A runtime for commands that transfer data.
pub fn runtime() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().build().doing("starting")
}

/// A runtime with one thread: for services, of which a lab runs many, and for commands that mostly
/// wait.
pub fn small_runtime() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().doing("starting")
}

/// The path of this program, from which labs and experiments start processes.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().doing("finding the hawser program")
}

/// The SIGHUPs to this process, which do not end it from now on.
pub fn hangups() -> Result<Signal, Failure> {
    signal(SignalKind::hangup()).doing("waiting for signals")
}

/// Keeps SIGHUP from ending this process: for services that read their files again by themselves when
/// these change, as administrators send it after they have changed one.
pub fn survive_hangup() -> Result<(), Failure> {
    let mut hangups = hangups()?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            tracing::info!("files are read again when they change, without SIGHUP");
        }
    });
    Ok(())
}

/// The first SIGINT or SIGTERM from this call on, which does not end this process any more: what announces
/// that it is ready must have called this before. Must be called inside a tokio runtime.
pub fn interrupted() -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).doing("waiting for signals")?;
    let mut terminate = signal(SignalKind::terminate()).doing("waiting for signals")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Lets this process end, by SIGKILL, when the thread that started it ends, in the process `owner`;
/// without one it lives on.
pub fn end_with(owner: Option<i32>) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let Some(owner) = owner else {
        return Ok(());
    };
    set_parent_process_death_signal(Some(Signal::KILL)).doing("following its owner")?;
    // The owner may have ended before that was set.
    match getppid().map(|parent| parent.as_raw_nonzero().get()) {
        Some(parent) if parent == owner => Ok(()),
        _ => Err(Failure::job(format_args!(
            "its owner, process {owner}, has ended"
        ))),
    }
}

/// Lets this process open as many files as the system allows it: each connection takes some.
pub fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Otherwise the limit stays as it is, and shows where it is met.
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
