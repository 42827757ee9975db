//! The report on a download, for programs and for people.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hawser_endhost::{Endhost, Path};
use hawser_experiments::{
    Sample, TransferBytes, TransferCost, TransferPath, TransferReport, TransferWebSeed, peak_memory,
};
use hawser_path::{Fingerprint, Interface};
use hawser_topology::IsdAsn;
use hawser_torrent::{PeerAddr, Progress, Summary, WebSeedProgress};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cmd::network::Addresses;
use crate::format;
use crate::out::{outln, outwrapped, plain};

/// Number of unused paths that are listed unless all are requested.
const MAX_UNUSED_PATHS: usize = 8;

/// Longest wait for the paths to peers that were found shortly before the end.
const PATHS_WAIT: Duration = Duration::from_secs(5);

/// The download that a report is about.
pub struct Job {
    /// The torrent's name.
    pub name: String,
    /// Its info-hash, in hex.
    pub info_hash: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// Addresses that peers connect to.
    pub addresses: Addresses,
    /// Whether the content is seeded after the download.
    pub seeds: bool,
    /// Whether every path is reported.
    pub verbose: bool,
    /// Whether the report is JSON.
    pub json: bool,
    /// Whether the report includes the progress.
    pub samples: bool,
}

/// Every path to the SCION peers that was offered during the download, also those that are no
/// longer offered.
pub struct OfferedPaths {
    /// `None` without SCION.
    host: Option<Endhost>,
    watched: BTreeMap<IsdAsn, watch::Receiver<Arc<Vec<Path>>>>,
    paths: BTreeMap<Fingerprint, Path>,
}

impl OfferedPaths {
    /// The paths to these peers.
    pub fn new(host: Option<Endhost>, peers: &[PeerAddr]) -> Self {
        let mut offered = Self {
            host,
            watched: BTreeMap::new(),
            paths: BTreeMap::new(),
        };
        offered.update(peers.iter().copied());
        offered
    }

    /// Adds the paths that are offered now, also those to peers that were found since: `peers`.
    pub fn update(&mut self, peers: impl IntoIterator<Item = PeerAddr>) {
        if let Some(host) = &self.host {
            for peer in peers.into_iter().filter_map(|peer| peer.scion()) {
                let watched = self.watched.entry(peer.isd_as);
                watched.or_insert_with(|| host.watch(peer.isd_as));
            }
        }
        for watched in self.watched.values_mut() {
            for path in watched.borrow_and_update().iter() {
                self.paths.insert(path.fingerprint(), path.clone());
            }
        }
    }

    /// Adds the paths to all peers of a completed download. Waits for them where none is known yet, at
    /// most [`PATHS_WAIT`]: the download may have ended before its progress named a peer.
    pub async fn complete(&mut self, summary: &Summary) {
        self.update(summary.paths.iter().map(|path| path.peer));
        let Some(host) = self.host.clone() else {
            return;
        };
        let is_empty = |paths: &watch::Receiver<Arc<Vec<Path>>>| paths.borrow().is_empty();
        let watched = self.watched.iter().filter(|(_, paths)| is_empty(paths));
        let unknown: Vec<IsdAsn> = watched.map(|(isd_as, _)| *isd_as).collect();
        let known = &mut self.paths;
        let ask = async {
            for isd_as in unknown {
                // Where there is none, the report has none.
                for path in host.paths(isd_as).await.unwrap_or_default() {
                    known.insert(path.fingerprint(), path);
                }
            }
        };
        let _ = timeout(PATHS_WAIT, ask).await;
    }

    /// The report on a path that carried nothing.
    fn report(&self, peer: PeerAddr, fingerprint: Fingerprint, hops: usize) -> TransferPath {
        let known = self.paths.get(&fingerprint);
        let interfaces = known.into_iter().flat_map(|known| &known.info().interfaces);
        TransferPath {
            peer: peer.to_string(),
            fingerprint: fingerprint.to_string(),
            hops,
            mtu: known.map(Path::mtu),
            path_bytes: known.map(|known| known.raw().len()),
            interfaces: interfaces.map(Interface::to_string).collect(),
            ..TransferPath::default()
        }
    }
}

/// The current progress.
pub fn sample(progress: &Progress) -> Sample {
    let mut paths = BTreeMap::new();
    for path in progress.paths.iter().filter(|path| path.bytes > 0) {
        *paths.entry(path.fingerprint.to_string()).or_default() += path.bytes;
    }
    Sample {
        seconds: progress.elapsed.as_secs_f64(),
        bytes: progress.fetched_bytes.saturating_sub(progress.wasted_bytes),
        paths,
    }
}

/// The report on a completed download, with the last progress that was shown.
pub fn report(
    job: &Job,
    summary: &Summary,
    progress: &Progress,
    offered: &OfferedPaths,
    samples: Vec<Sample>,
) -> TransferReport {
    let seconds = summary.download_time.as_secs_f64();
    let paths = summary.paths.iter().map(|path| {
        let mut used = offered.report(path.peer, path.fingerprint, path.hops);
        used.bytes = path.bytes;
        if used.mtu.is_none() {
            // A path that only the peer knows has the peer's direction.
            let interfaces = path.interfaces.iter().rev();
            used.interfaces = interfaces.map(Interface::to_string).collect();
        }
        used
    });
    let mut report = TransferReport {
        name: job.name.clone(),
        info_hash: job.info_hash.clone(),
        bytes: job.bytes,
        listening: job.addresses.scion.map(|address| address.to_string()),
        listening_tcp: job.addresses.tcp.map(|address| address.to_string()),
        transferred: TransferBytes {
            fetched_bytes: summary.fetched_bytes,
            resumed_bytes: summary.resumed_bytes,
            wasted_bytes: summary.wasted_bytes,
            uploaded_bytes: summary.uploaded_bytes,
        },
        seconds,
        cost: TransferCost {
            check_seconds: summary.check_time.as_secs_f64(),
            cpu_seconds: hawser_perf::cpu_time().as_secs_f64(),
            peak_memory: peak_memory(std::process::id()).unwrap_or_default(),
        },
        goodput_mbit: if seconds > 0.0 {
            summary.fetched_bytes as f64 * 8.0 / seconds / 1e6
        } else {
            0.0
        },
        paths: paths.collect(),
        unused_paths: Vec::new(),
        web_seeds: summary.web_seeds.iter().map(web_seed).collect(),
        samples,
    };
    // Add the verdict on each path at the end, and the paths that carried nothing.
    for path in &progress.paths {
        let unused = offered.report(path.peer, path.fingerprint, path.hops);
        let decision = path.decision.as_ref();
        let verdict = decision.map(|one| one.verdict.to_string());
        let decided = decision.map(|one| one.reason.to_string());
        let reason = decided.or_else(|| path.last_error.clone());
        let mut used = report.paths.iter_mut();
        match used.find(|one| (&one.peer, &one.fingerprint) == (&unused.peer, &unused.fingerprint))
        {
            Some(used) => (used.verdict, used.reason) = (verdict, reason),
            None => report.unused_paths.push(TransferPath {
                verdict,
                reason,
                ..unused
            }),
        }
    }
    report
}

/// The report on a web seed.
fn web_seed(seed: &WebSeedProgress) -> TransferWebSeed {
    TransferWebSeed {
        url: seed.url.clone(),
        bytes: seed.bytes,
        state: seed.state.to_string(),
        error: seed.last_error.clone(),
    }
}

/// Prints a report for people, with some of the unused paths; with all if `verbose`.
pub fn print(report: &TransferReport, verbose: bool) {
    let (name, fetched) = (
        plain(&report.name),
        format::bytes(report.transferred.fetched_bytes),
    );
    let (seconds, goodput) = (report.seconds, format::mbit(report.goodput_mbit));
    let resumed = match report.transferred.resumed_bytes {
        0 => String::new(),
        bytes => format!(", {} were there already", format::bytes(bytes)),
    };
    outln!("{name}: {fetched} fetched in {seconds:.1} s, {goodput}{resumed}");
    for line in lines(report, verbose) {
        outwrapped(&line, 6);
    }
}

fn lines(report: &TransferReport, verbose: bool) -> Vec<String> {
    let line = |path: &TransferPath| {
        let why = match (&path.verdict, &path.reason) {
            (Some(verdict), Some(reason)) => plain(&format!("  {verdict}: {reason}")),
            (None, Some(reason)) => plain(&format!("  {reason}")),
            _ => String::new(),
        };
        let place = match path.peer.parse() {
            Ok(PeerAddr::Ip(peer)) => peer.to_string(),
            _ => {
                let fingerprint = &path.fingerprint[..8.min(path.fingerprint.len())];
                format!("{fingerprint}  {:<7}", format::hops(path.hops))
            }
        };
        format!("  {place}  {:>9}{why}", format::bytes(path.bytes))
    };
    let unused = &report.unused_paths;
    let shown = if verbose {
        unused.len()
    } else {
        MAX_UNUSED_PATHS
    };
    let mut lines: Vec<String> = report.paths.iter().map(line).collect();
    lines.extend(report.web_seeds.iter().map(|seed| {
        let error = seed
            .error
            .as_ref()
            .map(|error| plain(&format!("  {error}")));
        let (url, bytes) = (plain(&seed.url), format::bytes(seed.bytes));
        format!("  {url}  {bytes:>9}{}", error.unwrap_or_default())
    }));
    lines.extend(unused.iter().take(shown).map(line));
    if let Some(more) = unused.len().checked_sub(shown).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more not used: --explain tells why"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: usize, reason: &str) -> TransferPath {
        TransferPath {
            peer: "1-ff00:0:4,10.0.4.1:31000".to_owned(),
            fingerprint: format!("{number:064x}"),
            hops: 2,
            verdict: Some("left".to_owned()),
            reason: Some(reason.to_owned()),
            ..TransferPath::default()
        }
    }

    fn report(unused: usize) -> TransferReport {
        TransferReport {
            name: "data".to_owned(),
            info_hash: String::new(),
            bytes: 0,
            listening: None,
            listening_tcp: None,
            transferred: TransferBytes::default(),
            seconds: 0.0,
            cost: TransferCost::default(),
            goodput_mbit: 0.0,
            paths: Vec::new(),
            unused_paths: (0..unused).map(|number| path(number, "limit")).collect(),
            web_seeds: Vec::new(),
            samples: Vec::new(),
        }
    }

    #[test]
    fn many_unused_paths_are_counted_unless_all_are_requested() {
        assert_eq!(
            lines(&report(MAX_UNUSED_PATHS), false).len(),
            MAX_UNUSED_PATHS
        );
        let many = lines(&report(MAX_UNUSED_PATHS + 3), false);
        assert_eq!(many.len(), MAX_UNUSED_PATHS + 1);
        assert!(many[MAX_UNUSED_PATHS].contains("and 3 more"), "{many:?}");
        assert_eq!(
            lines(&report(MAX_UNUSED_PATHS + 3), true).len(),
            MAX_UNUSED_PATHS + 3
        );
    }

    #[test]
    fn web_seeds_are_listed_with_what_is_wrong_with_them() {
        let mut report = report(0);
        report.web_seeds.push(TransferWebSeed {
            url: "https://w.example/data".to_owned(),
            bytes: 2_000_000,
            state: "dropped".to_owned(),
            error: Some("it lies\x1b[2J".to_owned()),
        });
        let [line] = &lines(&report, false)[..] else {
            panic!("one line")
        };
        assert!(line.starts_with("  https://w.example/data  "), "{line}");
        assert!(line.ends_with("  it lies\\u{1b}[2J"), "{line}");
    }

    #[test]
    fn text_of_a_peer_does_not_move_the_cursor() {
        let mut report = report(0);
        report.unused_paths.push(path(1, "\x1b[2Jgone"));
        let lines = lines(&report, false);
        assert_eq!(
            lines,
            ["  00000000  2 hops         0 B  left: \\u{1b}[2Jgone"]
        );
    }
}
