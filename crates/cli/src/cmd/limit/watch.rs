//! `hawser limit watch`: the limits as a service.

use std::path::PathBuf;
use std::time::Duration;

use hawser_file::Stamp;
use hawser_http::{READY, notify};
use hawser_limit::{Limiter, Summary};
use tokio::signal::unix::{SignalKind, signal};

use super::failed::Failed;
use super::sentence;
use super::wanted::{ReplaceArgs, Wanted, WantedArgs};
use crate::failure::Failure;
use crate::out::{errln, outln};

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_millis(250);
/// After so many looks the kernel's state is read again, even if nothing was reported.
const LOOKS: u32 = 120;
/// Number of looks after which what failed is tried again.
const RETRY: u32 = 4;

#[derive(clap::Args)]
pub struct WatchArgs {
    #[command(flatten)]
    wanted: WantedArgs,
    #[command(flatten)]
    replace: ReplaceArgs,
}

/// The states of these files.
fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| Stamp::of(file)).collect()
}

/// Sets the limits until this process gets SIGINT or SIGTERM. They stay in force then.
pub fn run(args: &WatchArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(watch(args))
}

/// What was said last, so that it is said once.
#[derive(Default)]
struct Said {
    /// Why nothing could be applied.
    error: Option<String>,
    /// The devices and links that failed.
    failed: Vec<Failed>,
}

async fn watch(args: &WatchArgs) -> Result<(), Failure> {
    let mut limiter = Limiter::open()?.with_replace(args.replace.replace);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stamp = stamps(&args.wanted.files()?);
    let mut said = Said::default();
    // What is wrong from the beginning ends it, but for what failed of one device or link.
    let (summary, failed) = apply(args, &mut limiter)?;
    said.applied(summary, failed, true);
    notify(READY)?;
    let mut looks = tokio::time::interval(LOOK);
    let (mut until_read, mut until_retry) = (LOOKS, RETRY);
    loop {
        let mut is_due = tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => true,
            _ = looks.tick() => false,
        };
        until_read -= 1;
        if until_read == 0 {
            limiter.forget();
            is_due = true;
            until_read = LOOKS;
        }
        until_retry -= 1;
        if until_retry == 0 {
            // A device or a route may have appeared.
            is_due |= !said.failed.is_empty();
            until_retry = RETRY;
        }
        let now = stamps(&args.wanted.files()?);
        is_due |= now != stamp || limiter.is_disturbed()?;
        stamp = now;
        if !is_due {
            continue;
        }
        match apply(args, &mut limiter) {
            Ok((summary, failed)) => said.applied(summary, failed, false),
            // The limits before stay in force if a file is wrong.
            Err(failure) => said.nothing(&failure),
        }
    }

    Ok(())
}

impl Said {
    /// Says what was changed, and what failed that was not said.
    fn applied(&mut self, summary: Summary, failed: Vec<Failed>, is_first: bool) {
        let is_new = self.error.take().is_some() || failed != self.failed;
        for one in failed.iter().filter(|one| !self.failed.contains(one)) {
            errln!("hawser: {one} (this is tried again)");
        }
        let is_whole = failed.is_empty();
        self.failed = failed;
        let has_changed = summary.requests > 0;
        if has_changed || (is_whole && (is_new || is_first)) {
            outln!("{}", sentence(summary));
        }
    }

    /// Says why nothing was applied.
    fn nothing(&mut self, failure: &Failure) {
        let error = failure.to_string();
        if self.error.as_ref() != Some(&error) {
            errln!("hawser: {error} (the limits stay as they are)");
            self.error = Some(error);
        }
    }
}

/// Sets what is wanted; returns what was changed, and what failed.
fn apply(args: &WatchArgs, limiter: &mut Limiter) -> Result<(Summary, Vec<Failed>), Failure> {
    let Wanted {
        devices,
        mut failed,
    } = args.wanted.read(limiter)?;
    let orphans = limiter.remove_orphans()?;
    let outcome = limiter.apply(&devices)?;
    let devices = [&orphans.failed, &outcome.failed];
    failed.splice(0..0, devices.into_iter().flat_map(Failed::devices));
    Ok((outcome.done, failed))
}
