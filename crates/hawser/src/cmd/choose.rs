//! Which path a command takes.

use std::time::Duration;

use hawser_endhost::probe::{Status, probe};
use hawser_endhost::{Endhost, IsdAsn, Path};
use hawser_path::show::Entry;

use super::{known, path_text};
use crate::cli::ChoiceArgs;
use crate::failure::Failure;
use crate::out::{err, errln};
use crate::paint::Paint;

/// Longest time of a probe before a path counts as dead, as of `scion ping`.
const PATIENCE: Duration = Duration::from_secs(2);

/// The path to `dst` that the arguments name, the shortest if several match.
pub async fn path(
    host: &Endhost,
    dst: IsdAsn,
    args: &ChoiceArgs,
    healthy_only: bool,
    paint: Paint,
) -> Result<Path, Failure> {
    let mut paths = known::paths(host, dst, args.refresh, args.sequence.as_ref()).await?;
    if paths.is_empty() {
        return Err(Failure::job(match &args.sequence {
            Some(sequence) => format!("no path to {dst} follows the sequence '{sequence}'"),
            None => format!("no path to {dst}"),
        }));
    }
    known::sort(&mut paths);
    if let Some(prefix) = &args.path {
        paths.retain(|path| path.fingerprint().matches_prefix(prefix));
        match paths.len() {
            0 => {
                return Err(Failure::job(format!(
                    "--path {prefix}: no path to {dst} begins like this: see `hawser paths {dst}`"
                )));
            }
            1 => {}
            _ => {
                return Err(Failure::usage(format!(
                    "--path {prefix}: several paths begin like this: give more digits"
                )));
            }
        }
    }
    if healthy_only {
        let probes = probe(host, &paths, PATIENCE).await;
        let mut alive = probes.iter().map(|p| matches!(p.status, Status::Alive(_)));
        paths.retain(|_| alive.next().unwrap_or_default());
    }
    if args.interactive && !paths.is_empty() {
        return tokio::task::block_in_place(|| ask(&paths, dst, paint));
    }
    let first = paths.into_iter().next();
    first.ok_or_else(|| Failure::job(format!("no path to {dst} is alive")))
}

/// Lets the user choose. The question goes to standard error: standard output is the report's.
fn ask(paths: &[Path], dst: IsdAsn, paint: Paint) -> Result<Path, Failure> {
    let entry = |path: &Path| Entry::new(path.info(), path.next_hop());
    let entries: Vec<Entry> = paths.iter().map(entry).collect();
    errln!("Available paths to {dst}:");
    for line in path_text::listing(paths, &entries, false, paint) {
        errln!("{line}");
    }
    loop {
        err(format_args!("Choose path: "));
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(0) => return Err(Failure::job("no path was chosen")),
            Ok(_) => {}
            Err(error) => return Err(Failure::job(format!("reading the choice: {error}"))),
        }
        let chosen = line.trim().parse().ok();
        if let Some(path) = chosen.and_then(|index: usize| paths.get(index)) {
            return Ok(path.clone());
        }
        errln!("Write a number from 0 to {}", paths.len() - 1);
    }
}
