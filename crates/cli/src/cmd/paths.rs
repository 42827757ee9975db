//! `hawser paths`: the paths to an AS, and which of them are alive.

use std::process::ExitCode;
use std::time::Duration;

use hawser_backoff::Backoff;
use hawser_endhost::Path;
use hawser_endhost::probe::{Probe, Status, probe};
use hawser_path::show::{self, Chosen, Entry, Listing};
use hawser_path::{Explanation, Interface, Policy, Reason, Select, explain};
use hawser_topology::{IsdAsn, parse_duration};
use tokio::time::{Instant, sleep, timeout_at};

use super::address::one_as;
use super::choose::{self, EpicArg};
use super::network::HostArgs;
use super::print::FormatArgs;
use super::select::PathArgs;
use super::wait::WaitArgs;
use super::{headings, path_text, policy, process};
use crate::failure::Failure;
use crate::out::{errln, outln};

/// Help for `--wait`.
const WAIT_HELP: &str = "Wait until a path is alive, or this time is over";

#[derive(clap::Args)]
#[command(mut_arg("wait", |arg| arg.help(WAIT_HELP).long_help(WAIT_HELP)))]
pub struct PathsArgs {
    /// The destination AS, for example 1-ff00:0:110
    #[arg(value_name = "DST", value_parser = one_as)]
    pub destination: IsdAsn,
    /// Show which paths the flags of a download choose, in which order, and why the others are left
    #[arg(long, short = 'v')]
    pub explain: bool,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Show at most this many; 0 for all [default: 10, or all with --explain]
    #[arg(long, short, value_name = "N")]
    pub maxpaths: Option<usize>,
    /// Look paths up anew
    #[arg(long, short)]
    pub refresh: bool,
    /// Do not probe which paths are alive
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    pub no_probe: bool,
    /// Print everything known of each path
    #[arg(long, short)]
    pub extended: bool,
    /// How long it may take in all
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration, help_heading = headings::RARE, hide_short_help = true)]
    pub timeout: Duration,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub epic: EpicArg,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub host: HostArgs,
}

/// Number of paths listed by default, as in `scion showpaths`.
const SHOWN: usize = 10;

/// The first pause between two looks while a path is waited for.
const INITIAL_BACKOFF: Duration = Duration::from_millis(100);
/// The longest one.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// Runs `hawser paths`. Exit code 1 if no path in the report for people is alive.
pub fn run(args: PathsArgs) -> Result<ExitCode, Failure> {
    args.epic.refuse()?;
    let policy = policy::read(&args.paths.policy)?;
    let select = match (args.explain, args.paths.select.given()) {
        (false, Some(flag)) => {
            return Err(Failure::usage(format!(
                "{flag}: nothing is taken here: add --explain to see what would be"
            )));
        }
        _ => args.paths.select.read()?,
    };
    process::runtime()?.block_on(async {
        let report = report(&args, policy.as_ref(), select).await?;
        let (listing, dst) = (&report.listing, args.destination);
        if args.format.document(listing)? {
            return Ok(ExitCode::SUCCESS);
        }
        if dst == listing.local_isd_as {
            outln!("Empty path, destination is local AS {dst}");
            return Ok(ExitCode::SUCCESS);
        }
        outln!("Available paths to {dst}");
        for line in listing.selection.iter().flat_map(heading) {
            outln!("{line}");
        }
        let (paths, entries) = (&report.paths, &listing.paths);
        for line in path_text::listing(paths, entries, args.extended, args.format.paint()) {
            outln!("{line}");
        }
        let trouble = match (report.is_any_allowed, args.no_probe) {
            (false, _) if report.refused.is_some() => {
                report.refused.map_or_else(String::new, |(count, reason)| {
                    format!("no path to {dst} is allowed: {count} left, the first by {reason}")
                })
            }
            (false, _) => {
                format!(
                    "no path found to {dst}: does the AS exist, are its links up? `hawser doctor \
                     {dst}` looks for the cause"
                )
            }
            (true, false) if !report.is_any_alive => {
                let probed = entries.iter().filter(|entry| entry.status.is_some());
                format!("no path alive: none of {} to {dst} answers", probed.count())
            }
            _ => return Ok(ExitCode::SUCCESS),
        };
        errln!("hawser: {trouble}");
        Ok(ExitCode::from(1))
    })
}

/// What is known of the paths to the destination.
struct Report {
    listing: Listing,
    /// Those of the listing, in its order.
    paths: Vec<Path>,
    is_any_allowed: bool,
    /// Whether a probe was answered.
    is_any_alive: bool,
    /// How many paths the policy refuses, and the first reason.
    refused: Option<(usize, Reason)>,
}

/// The report, with `--wait` as soon as a path in it is alive, or there is one at all with
/// `--no-probe`; once the time for it is over, it is returned as it is.
async fn report(
    args: &PathsArgs,
    policy: Option<&Policy>,
    select: Select,
) -> Result<Report, Failure> {
    let began = Instant::now();
    let waits = !args.wait.time().is_zero();
    let mut backoff = Backoff::new(INITIAL_BACKOFF, MAX_BACKOFF);
    let mut is_reported = false;
    loop {
        // What is printed is what ended the wait: a service may start again between two looks.
        let looked = look(args, policy, select.clone(), args.refresh || waits).await;
        let is_final = match &looked {
            Ok(report) => {
                let is_here = report.listing.local_isd_as == args.destination;
                is_here || report.is_any_alive || args.no_probe && report.is_any_allowed
            }
            Err(failure) => failure.is_wrong_use(),
        };
        let left = args.wait.time().saturating_sub(began.elapsed());
        if is_final || left.is_zero() {
            return looked;
        }
        if !std::mem::replace(&mut is_reported, true) {
            errln!(
                "hawser: no path to {} yet: waiting for one",
                args.destination
            );
        }
        sleep(backoff.fail().min(left)).await;
    }
}

/// Looks paths up once, `refresh` for anew, and probes them.
async fn look(
    args: &PathsArgs,
    policy: Option<&Policy>,
    select: Select,
    refresh: bool,
) -> Result<Report, Failure> {
    let deadline = Instant::now() + args.timeout;
    let late = |_| {
        Failure::job(format!(
            "no answer from the daemon or control service within {:?}: give it longer with --timeout, or mend it",
            args.timeout
        ))
    };
    let host = timeout_at(deadline, args.host.join());
    let host = host.await.map_err(late)??;
    let (local, dst) = (host.local_as(), args.destination);
    let mut paths = Vec::new();
    let (mut explanations, mut chosen, mut refused) = (Vec::new(), None, None);
    if dst != local {
        let known = choose::known(&host, dst, refresh);
        paths = timeout_at(deadline, known).await.map_err(late)??;
        let most = args.maxpaths.filter(|&most| most != 0);
        if args.explain {
            let all = order(&mut paths, policy, select, args.paths.select.most());
            (explanations, chosen) = (all.0, Some(all.1));
            refused = refused_by(&explanations);
            paths.truncate(most.unwrap_or(usize::MAX));
        } else {
            refused = policy.and_then(|policy| keep(&mut paths, policy));
            let default = args.maxpaths.map_or(SHOWN, |_| usize::MAX);
            paths.truncate(most.unwrap_or(default));
            choose::sort(&mut paths);
        }
    }
    let left = deadline.saturating_duration_since(Instant::now());
    // Do not send packets over paths that the policy forbids.
    let allowed: Vec<bool> = (0..paths.len())
        .map(|at| explanations.get(at).is_none_or(|one| !is_refused(one)))
        .collect();
    let probes = match args.no_probe {
        true => Vec::new(),
        false => {
            let probed = paths.iter().zip(&allowed).filter(|(_, allowed)| **allowed);
            let probed: Vec<Path> = probed.map(|(path, _)| path.clone()).collect();
            probe(&host, &probed, left).await
        }
    };
    Ok(Report {
        listing: Listing {
            local_isd_as: local,
            destination: dst,
            paths: entries(&paths, &allowed, &probes, explanations),
            selection: chosen,
        },
        paths,
        is_any_allowed: allowed.contains(&true),
        is_any_alive: probes.iter().any(is_alive),
        refused,
    })
}

fn is_alive(probe: &Probe) -> bool {
    matches!(probe.status, Status::Alive(_))
}

/// Keeps the paths that `policy` allows. Returns how many it refused, and the first reason.
fn keep(paths: &mut Vec<Path>, policy: &Policy) -> Option<(usize, Reason)> {
    let judged = policy.filter(paths);
    let mut kept = judged.iter().map(Result::is_ok);
    paths.retain(|_| kept.next().unwrap_or_default());
    let mut left = judged.into_iter().filter_map(Result::err);
    let first = left.next()?;
    Some((1 + left.count(), first))
}

/// The report's paths: with the results of probes of the allowed ones, and with verdicts if there
/// are any.
fn entries(
    paths: &[Path],
    allowed: &[bool],
    probes: &[Probe],
    explanations: Vec<Explanation>,
) -> Vec<Entry> {
    let entry = |path: &Path| Entry::new(path.info(), path.next_hop());
    let mut entries: Vec<Entry> = paths.iter().map(entry).collect();
    for (entry, explanation) in entries.iter_mut().zip(explanations) {
        entry.explanation = Some(explanation);
    }
    let probed = entries.iter_mut().zip(allowed).filter(|(_, on)| **on);
    for ((entry, _), probe) in probed.zip(probes) {
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

/// Sorts all paths in the order in which they are picked, and returns the verdict on each.
fn order(
    paths: &mut Vec<Path>,
    policy: Option<&Policy>,
    select: Select,
    most: usize,
) -> (Vec<Explanation>, Chosen) {
    choose::sort(paths);
    let policies = policy.map_or(&[][..], std::slice::from_ref);
    let explained = explain(paths, policies, &select, most);
    let in_order = |at: &usize| {
        let explanation = explained.explanations.get(*at)?;
        Some((paths.get(*at)?.clone(), explanation.clone()))
    };
    let (ordered, explanations) = explained.order.iter().filter_map(in_order).unzip();
    *paths = ordered;
    let chosen = Chosen {
        select,
        max_paths: most,
        ignored: explained.ignored,
    };
    (explanations, chosen)
}

/// Whether a policy refuses the path.
fn is_refused(explanation: &Explanation) -> bool {
    matches!(explanation.reason, Reason::Policy { .. })
}

/// How many paths policies refuse, and the first reason.
fn refused_by(explanations: &[Explanation]) -> Option<(usize, Reason)> {
    let mut left = explanations.iter().filter(|one| is_refused(one));
    let first = left.next()?.reason.clone();
    Some((1 + left.count(), first))
}

/// The strategies and limits by which paths were chosen.
fn heading(chosen: &Chosen) -> Vec<String> {
    let (select, most) = (&chosen.select, chosen.max_paths);
    let plural = if most == 1 { "" } else { "s" };
    let mut lines = vec![format!("Picked by {select}, at most {most} path{plural}")];
    if !chosen.ignored.is_empty() {
        let ignored: Vec<String> = chosen.ignored.iter().map(Interface::to_string).collect();
        lines.push(format!(
            "Not counted, since every path crosses them: {}",
            ignored.join(", ")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_names_the_strategy_and_the_most_paths() {
        let select: Select = "latency,spread:40%".parse().unwrap();
        let (explanations, chosen) = order(&mut Vec::new(), None, select, 2);
        assert!(explanations.is_empty());
        let expected = ["Picked by latency,spread:40%, at most 2 paths"];
        assert_eq!(heading(&chosen), expected);
    }
}
