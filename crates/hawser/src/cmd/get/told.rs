//! Why each path is used or not, while a download goes on and when it is over.

use hawser_endhost::Path;
use hawser_path::Interface;
use hawser_torrent::{PathProgress, PathState, PeerAddr, Progress};

use super::{Known, PathReport, Report};
use crate::cmd::news::News;
use crate::format;
use crate::out::{errln, outwrapped, plain};

/// How many paths that were not used the final table tells of.
const UNUSED: usize = 8;

/// What a path is doing and why, in one line: `taken: shares no interface: 2 hops`. A peer may have
/// had a hand in it.
pub fn why(path: &PathProgress) -> Option<String> {
    let decision = path.decision.as_ref().map(ToString::to_string);
    let down = matches!(path.state, PathState::Waiting | PathState::Left);
    let error = path.last_error.clone().filter(|_| down);
    let parts: Vec<String> = decision.into_iter().chain(error).collect();
    (!parts.is_empty()).then(|| plain(&parts.join("; ")))
}

/// Adds to a report what became of each path in the end, and the paths that carried nothing.
pub fn add(report: &mut Report, progress: &Progress, known: &Known) {
    for path in &progress.paths {
        let (peer, fingerprint) = (path.peer.to_string(), path.fingerprint.to_string());
        let verdict = path.decision.as_ref().map(|one| one.verdict.to_string());
        let decided = path.decision.as_ref().map(|one| one.reason.to_string());
        let reason = decided.or_else(|| path.last_error.clone());
        let mut used = report.paths.iter_mut();
        match used.find(|one| one.peer == peer && one.fingerprint == fingerprint) {
            Some(used) => {
                used.verdict = verdict;
                used.reason = reason;
            }
            None => {
                let offered = known.paths.get(&path.fingerprint);
                let interfaces = offered.map(|known| &known.info().interfaces);
                report.unused_paths.push(PathReport {
                    peer,
                    fingerprint,
                    hops: path.hops,
                    bytes: 0,
                    mtu: offered.map(Path::mtu),
                    path_bytes: offered.map(|known| known.raw().len()),
                    interfaces: interfaces
                        .into_iter()
                        .flatten()
                        .map(Interface::to_string)
                        .collect(),
                    verdict,
                    reason,
                });
            }
        }
    }
}

/// Prints a line for each path of a report; for some of the unused ones only, unless `verbose`.
pub fn print(report: &Report, verbose: bool) {
    for line in lines(report, verbose) {
        outwrapped(&line, 6);
    }
}

fn lines(report: &Report, verbose: bool) -> Vec<String> {
    let line = |path: &PathReport| {
        let why = match (&path.verdict, &path.reason) {
            (Some(verdict), Some(reason)) => plain(&format!("  {verdict}: {reason}")),
            (None, Some(reason)) => plain(&format!("  {reason}")),
            _ => String::new(),
        };
        let way = match path.peer.parse() {
            Ok(PeerAddr::Ip(peer)) => peer.to_string(),
            _ => format!(
                "{}  {:<7}",
                &path.fingerprint[..8.min(path.fingerprint.len())],
                format::hops(path.hops)
            ),
        };
        format!("  {way}  {:>9}{why}", format::bytes(path.bytes))
    };
    let unused = &report.unused_paths;
    let shown = if verbose { unused.len() } else { UNUSED };
    let mut lines: Vec<String> = report.paths.iter().map(line).collect();
    lines.extend(unused.iter().take(shown).map(line));
    if let Some(more) = unused.len().checked_sub(shown).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more not used: --verbose tells why"));
    }
    lines
}

/// Prints a line on standard error for each path of which there is news.
pub fn show(news: &mut News, progress: &Progress) {
    for path in &progress.paths {
        if let Some(why) = why(path)
            && news.is_news(path.peer, path.fingerprint, &why)
        {
            errln!("{} over {}: {why}", path.peer, path.fingerprint.short());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: usize, reason: &str) -> PathReport {
        PathReport {
            peer: "1-ff00:0:4,10.0.4.1:31000".to_owned(),
            fingerprint: format!("{number:064x}"),
            hops: 2,
            bytes: 0,
            mtu: None,
            path_bytes: None,
            interfaces: Vec::new(),
            verdict: Some("left".to_owned()),
            reason: Some(reason.to_owned()),
        }
    }

    fn report(unused: usize) -> Report {
        Report {
            name: "data".to_owned(),
            info_hash: String::new(),
            bytes: 0,
            listening: None,
            listening_tcp: None,
            fetched_bytes: 0,
            resumed_bytes: 0,
            wasted_bytes: 0,
            uploaded_bytes: 0,
            seconds: 0.0,
            check_seconds: 0.0,
            goodput_mbit: 0.0,
            paths: Vec::new(),
            unused_paths: (0..unused).map(|number| path(number, "limit")).collect(),
            samples: Vec::new(),
        }
    }

    #[test]
    fn many_unused_paths_are_counted_unless_all_are_wanted() {
        assert_eq!(lines(&report(UNUSED), false).len(), UNUSED);
        let many = lines(&report(UNUSED + 3), false);
        assert_eq!(many.len(), UNUSED + 1);
        assert!(many[UNUSED].contains("and 3 more"), "{many:?}");
        assert_eq!(lines(&report(UNUSED + 3), true).len(), UNUSED + 3);
    }

    #[test]
    fn what_a_peer_tells_does_not_move_the_cursor() {
        let mut report = report(0);
        report.unused_paths.push(path(1, "\x1b[2Jgone"));
        let lines = lines(&report, false);
        assert_eq!(
            lines,
            ["  00000000  2 hops         0 B  left: \\u{1b}[2Jgone"]
        );
    }
}
