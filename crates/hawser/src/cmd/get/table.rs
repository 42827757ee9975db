//! The report of a download, for people.

use hawser_torrent::PeerAddr;

use super::report::{PathReport, Report};
use crate::format;
use crate::out::{outln, outwrapped, plain};

/// Unused paths that have a line, unless all are requested.
const UNUSED: usize = 8;

/// Prints a report for people, with some of the unused paths; with all if `verbose`.
pub fn print(report: &Report, verbose: bool) {
    outln!(
        "{}: {} fetched in {:.1} s, {}{}",
        plain(&report.name),
        format::bytes(report.fetched_bytes),
        report.seconds,
        format::rate(report.goodput_mbit * 1e6),
        if report.resumed_bytes > 0 {
            format!(
                ", {} were there already",
                format::bytes(report.resumed_bytes)
            )
        } else {
            String::new()
        },
    );
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
        let place = match path.peer.parse() {
            Ok(PeerAddr::Ip(peer)) => peer.to_string(),
            _ => format!(
                "{}  {:<7}",
                &path.fingerprint[..8.min(path.fingerprint.len())],
                format::hops(path.hops)
            ),
        };
        format!("  {place}  {:>9}{why}", format::bytes(path.bytes))
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
