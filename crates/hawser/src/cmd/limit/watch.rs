//! `hawser limit watch`: the limits as a service.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use hawser_limit::Limiter;
use hawser_service::{READY, notify};
use tokio::signal::unix::{SignalKind, signal};

use super::sentence;
use super::wanted::{ReplaceArgs, WantedArgs};
use crate::failure::Failure;
use crate::out::{errln, outln};

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_millis(250);
/// After so many looks the kernel's state is read again, even if nothing was reported.
const LOOKS: u32 = 120;

#[derive(clap::Args)]
pub struct WatchArgs {
    #[command(flatten)]
    wanted: WantedArgs,
    #[command(flatten)]
    replace: ReplaceArgs,
}

/// What shows that a file has changed: also one that another has replaced.
#[derive(Debug, PartialEq, Eq)]
struct Stamp(Vec<Option<(u64, u64, i64, i64)>>);

impl Stamp {
    fn of(files: &[PathBuf]) -> Self {
        let stamp = |file: &PathBuf| {
            let found = std::fs::metadata(file).ok()?;
            Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
        };
        Self(files.iter().map(stamp).collect())
    }
}

/// Sets the limits until this process gets SIGINT or SIGTERM. They stay in force then.
pub fn run(args: &WatchArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(watch(args))
}

async fn watch(args: &WatchArgs) -> Result<(), Failure> {
    let mut limiter = Limiter::open()?.with_replace(args.replace.replace);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stamp = Stamp::of(&args.wanted.files()?);
    // What is wrong from the beginning is said at once.
    outln!("{}", apply(args, &mut limiter)?);
    notify(READY)?;
    let mut looks = tokio::time::interval(LOOK);
    let mut until_read = LOOKS;
    let mut last_error = String::new();
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
        let now = Stamp::of(&args.wanted.files()?);
        is_due |= now != stamp || limiter.is_disturbed()?;
        stamp = now;
        if !is_due {
            continue;
        }
        // The limits before stay in force if a file is wrong; it is said once.
        match apply(args, &mut limiter) {
            Ok(said) => {
                if said != sentence(hawser_limit::Summary::default()) || !last_error.is_empty() {
                    outln!("{said}");
                }
                last_error.clear();
            }
            Err(failure) => {
                let error = failure.to_string();
                if error != last_error {
                    errln!("hawser: {error} (the limits stay as they are)");
                    last_error = error;
                }
            }
        }
    }

    Ok(())
}

fn apply(args: &WatchArgs, limiter: &mut Limiter) -> Result<String, Failure> {
    let wanted = args.wanted.read(limiter)?;
    limiter.remove_orphans()?;
    Ok(sentence(limiter.apply(&wanted)?))
}
