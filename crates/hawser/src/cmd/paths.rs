//! `hawser paths`: the paths to an AS, and which of them are alive.

pub mod human;

use crate::out::{errln, outln};
use crate::{
    cli::PathsArgs,
    cmd::{self, choose},
    failure::Failure,
    paint::Paint,
};
use hawser_endhost::{
    Path,
    probe::{Probe, Status, probe},
};
use hawser_path::show::{self, Entry, Listing};
use hawser_path::{Judged, Policy, Reason};
use std::process::ExitCode;
use tokio::time::{Instant, timeout_at};

/// Runs `hawser paths`. Exit code 1 when the report for people has no path alive.
pub fn run(args: PathsArgs) -> Result<ExitCode, Failure> {
    cmd::no_epic(args.epic)?;
    let policy = cmd::policy::read(&args.policy)?;
    cmd::runtime()?.block_on(async {
        let deadline = Instant::now() + args.timeout;
        let late = |_| {
            Failure::job(format!(
                "no answer from the daemon or control service within {:?}: give it longer with --timeout, or mend it",
                args.timeout
            ))
        };
        let host = timeout_at(deadline, cmd::host(&args.host));
        let host = host.await.map_err(late)??;
        let (local, dst) = (host.local_as(), args.destination);
        let mut paths = Vec::new();
        let mut refused = None;
        if dst != local {
            let known = choose::known(&host, dst, args.refresh, args.sequence.as_ref());
            paths = timeout_at(deadline, known).await.map_err(late)??;
            if let Some(policy) = &policy {
                refused = keep(&mut paths, policy);
            }
            if args.maxpaths != 0 {
                paths.truncate(args.maxpaths);
            }
            choose::sort(&mut paths);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let probes = match args.no_probe {
            true => Vec::new(),
            false => probe(&host, &paths, left).await,
        };
        let listing = Listing {
            local_isd_as: local,
            destination: dst,
            paths: entries(&paths, &probes),
        };
        if cmd::print_document(args.format.format(), &listing)? {
            return Ok(ExitCode::SUCCESS);
        }
        if dst == local {
            outln!("Empty path, destination is local AS {dst}");
            return Ok(ExitCode::SUCCESS);
        }
        outln!("Available paths to {dst}");
        let paint = Paint::new(args.format.no_color);
        for line in human::listing(&paths, &listing.paths, args.extended, paint) {
            outln!("{line}");
        }
        let alive = |probe: &Probe| matches!(probe.status, Status::Alive(_));
        let trouble = match (paths.is_empty(), args.no_probe) {
            (true, _) if refused.is_some() => refused.map_or_else(String::new, |(count, reason)| {
                format!("no path to {dst} is allowed: {count} left, the first by {reason}")
            }),
            (true, _) if args.sequence.is_some() => {
                format!("no path found to {dst} that fits the sequence")
            }
            (true, _) => {
                format!("no path found to {dst}: does the AS exist, are its links up?")
            }
            (false, false) if !probes.iter().any(alive) => {
                format!("no path alive: none of {} to {dst} answers", paths.len())
            }
            _ => return Ok(ExitCode::SUCCESS),
        };
        errln!("hawser: {trouble}");
        Ok(ExitCode::from(1))
    })
}

/// Keeps the paths that `policy` keeps. Returns how many it left, and why the first of them.
fn keep(paths: &mut Vec<Path>, policy: &Policy) -> Option<(usize, Reason)> {
    let judged = policy.filter(paths);
    let mut kept = judged.iter().map(|one| matches!(one, Judged::Kept { .. }));
    paths.retain(|_| kept.next().unwrap_or_default());
    let mut left = judged.into_iter().filter_map(|one| match one {
        Judged::Left(reason) => Some(reason),
        Judged::Kept { .. } => None,
    });
    let first = left.next()?;
    Some((1 + left.count(), first))
}

/// Paths with what probes found, if there were any.
fn entries(paths: &[Path], probes: &[Probe]) -> Vec<Entry> {
    let entry = |path: &Path| Entry::new(path.info(), path.next_hop());
    let mut entries: Vec<Entry> = paths.iter().map(entry).collect();
    for (entry, probe) in entries.iter_mut().zip(probes) {
        let (status, info) = match &probe.status {
            Status::Alive(_) => (show::Status::Alive, None),
            Status::TimedOut => (show::Status::Timeout, None),
            Status::Scmp(error) => (show::Status::Scmp, Some(error.to_string())),
            Status::Unknown(why) => (show::Status::Unknown, Some(why.clone())),
            _ => (show::Status::Unknown, None),
        };
        entry.status = Some(status);
        entry.status_info = info;
        entry.local_ip = probe.local;
    }
    entries
}
