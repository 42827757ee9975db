//! The paths to an AS, and the choice of one of them for a command.

use std::time::Duration;

use hawser_endhost::probe::{Status, probe};
use hawser_endhost::{Endhost, IsdAsn, Path, PathsError};
use hawser_path::Sequence;
use hawser_path::show::Entry;

use super::{headings, path_text};
use crate::failure::{Doing, Failure};
use crate::out::{err, errln};
use crate::paint::Paint;

/// Longest wait for the answer to a probe, as in `scion ping`.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Which of the paths to a host is taken.
#[derive(clap::Args)]
pub struct ChoiceArgs {
    /// Use a path of this sequence of hops, for example '0* 1-ff00:0:110#2 0*'
    #[arg(long, value_name = "SEQUENCE", help_heading = headings::PATHS, hide_short_help = true)]
    sequence: Option<Sequence>,
    /// Use the path whose fingerprint begins like this
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint_prefix)]
    path: Option<String>,
    /// Ask which path to use
    #[arg(long, short)]
    interactive: bool,
    /// Look paths up anew
    #[arg(long, help_heading = headings::PATHS, hide_short_help = true)]
    refresh: bool,
    #[command(flatten)]
    pub epic: EpicArg,
}

/// The flag for EPIC paths, which `scion`'s commands have.
#[derive(clap::Args)]
pub struct EpicArg {
    /// EPIC is not supported
    #[arg(long, hide = true)]
    epic: bool,
}

impl EpicArg {
    /// Refuses the flag if it was given.
    ///
    /// # Errors
    /// Wrong use, if it was given.
    pub fn refuse(&self) -> Result<(), Failure> {
        if self.epic {
            let text = "--epic: EPIC paths are not supported: leave it out";
            return Err(Failure::usage(text));
        }
        Ok(())
    }
}

fn fingerprint_prefix(text: &str) -> Result<String, String> {
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
    if !digits || text.is_empty() || text.len() > 64 {
        return Err("a fingerprint is up to 64 hex digits: see `hawser paths`".to_owned());
    }
    Ok(text.to_owned())
}

/// The paths to `dst`, in the order in which they are offered; empty if no path exists or all are
/// down.
///
/// # Errors
/// When paths cannot be looked up.
pub async fn known(host: &Endhost, dst: IsdAsn, refresh: bool) -> Result<Vec<Path>, Failure> {
    let paths = match refresh {
        true => host.refresh_paths(dst).await,
        false => host.paths(dst).await,
    };
    match paths {
        Err(PathsError::None { .. } | PathsError::AllDown { .. }) => Ok(Vec::new()),
        paths => Ok(paths?),
    }
}

/// Orders paths as `scion showpaths` does: the shortest first, then by their interfaces, then by
/// their expiry.
pub fn sort(paths: &mut [Path]) {
    paths.sort_by_cached_key(|path| {
        let interfaces = path.info().interfaces.clone();
        (interfaces.len(), interfaces, path.expiry())
    });
}

/// The path to `dst` that the arguments name, the shortest if several match.
///
/// # Errors
/// When no path matches, or the user selects none. An ambiguous fingerprint is wrong use.
pub async fn path(
    host: &Endhost,
    dst: IsdAsn,
    args: &ChoiceArgs,
    healthy_only: bool,
    paint: Paint,
) -> Result<Path, Failure> {
    let mut paths = known(host, dst, args.refresh).await?;
    if let Some(sequence) = &args.sequence {
        paths.retain(|path| sequence.matches(path.info()));
    }
    if paths.is_empty() {
        return Err(Failure::job(match &args.sequence {
            Some(sequence) => format!("no path to {dst} follows the sequence '{sequence}'"),
            None => format!("no path to {dst}: `hawser doctor {dst}` looks for the cause"),
        }));
    }
    sort(&mut paths);
    if let Some(prefix) = &args.path {
        paths.retain(|path| path.fingerprint().matches_prefix(prefix));
        if paths.is_empty() {
            return Err(Failure::job(format!(
                "--path {prefix}: no path to {dst} begins like this: see `hawser paths {dst}`"
            )));
        }
        if paths.len() > 1 {
            return Err(Failure::usage(format!(
                "--path {prefix}: several paths begin like this: give more digits"
            )));
        }
    }
    if healthy_only {
        let probes = probe(host, &paths, PROBE_TIMEOUT).await;
        let mut alive = probes.iter().map(|p| matches!(p.status, Status::Alive(_)));
        paths.retain(|_| alive.next().unwrap_or_default());
    }
    if args.interactive && !paths.is_empty() {
        return tokio::task::block_in_place(|| ask(&paths, dst, paint));
    }
    let first = paths.into_iter().next();
    first.ok_or_else(|| Failure::job(format!("no path to {dst} is alive")))
}

/// Lets the user choose. The prompt goes to standard error, because standard output is for the
/// report.
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
        let read = std::io::stdin().read_line(&mut line);
        if read.doing("reading the choice")? == 0 {
            return Err(Failure::job("no path was chosen"));
        }
        let chosen = line.trim().parse().ok();
        if let Some(path) = chosen.and_then(|index: usize| paths.get(index)) {
            return Ok(path.clone());
        }
        errln!("Write a number from 0 to {}", paths.len() - 1);
    }
}
