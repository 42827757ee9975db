//! Torrents of the daemon, for people.

use hawser_client::FilePriority;
use hawser_client::http::body::{Detail, Merged, Torrent};

use crate::format;
use crate::out::{errln, outln, plain};

/// How many digits of an info-hash or a fingerprint are shown.
const DIGITS: usize = 8;

/// How much there is of the files that are downloaded or, while content is checked, how much is checked.
fn share(torrent: &Torrent) -> String {
    match (torrent.content.checked, torrent.content.done) {
        (Some(done), _) | (None, Some(done)) => percent(done),
        (None, None) => "-".to_owned(),
    }
}

/// A fraction in percent, rounded down, so that 100 % means all.
fn percent(fraction: f64) -> String {
    format!("{:.0} %", (fraction * 100.0).floor())
}

/// Says on stderr what a torrent was given that was to be added and is there already.
pub fn merged(torrent: &Torrent, merged: Merged) {
    let count = |number: u64, what: &str| match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    };
    let name = plain(&torrent.name);
    match merged {
        Merged {
            peers: 0,
            trackers: 0,
        } => errln!("{name} is there already, and stays as it is"),
        Merged { peers, trackers } => errln!(
            "{name} is there already, and was given {} and {} that it did not have",
            count(peers, "peer"),
            count(trackers, "tracker"),
        ),
    }
}

/// Prints a table of torrents, with the reason below each that has failed.
pub fn table(torrents: &[Torrent]) {
    if torrents.is_empty() {
        outln!("no torrents: add one with hawser torrent add");
        return;
    }
    outln!(
        "{:DIGITS$}  {:12}  {:>6}  {:>9}  {:>12}  {:>12}  {:>5}  name",
        "hash",
        "status",
        "done",
        "size",
        "down",
        "up",
        "ratio"
    );
    for torrent in torrents {
        let traffic = &torrent.traffic;
        outln!(
            "{}  {:12}  {:>6}  {:>9}  {:>12}  {:>12}  {:>5.2}  {}",
            torrent
                .info_hash
                .get(..DIGITS)
                .unwrap_or(&torrent.info_hash),
            torrent.status,
            share(torrent),
            torrent
                .content
                .bytes
                .map_or_else(|| "-".to_owned(), format::bytes),
            format::rate(traffic.download_rate as f64),
            format::rate(traffic.upload_rate as f64),
            traffic.ratio,
            plain(&torrent.name),
        );
        if let Some(error) = &torrent.error {
            outln!("{:DIGITS$}  {}", "", plain(error));
        }
    }
}

/// Prints what has become of a torrent.
pub fn status(torrent: &Torrent) {
    let (hash, name) = (&torrent.info_hash, plain(&torrent.name));
    outln!("{hash}: {name}: {}", torrent.status);
}

/// Prints a torrent with its files, peers and trackers.
pub fn detail(detail: &Detail) {
    let torrent = &detail.torrent;
    status(torrent);
    outln!(
        "folder {}, {} there",
        plain(&torrent.folder),
        share(torrent)
    );
    if let Some(folder) = &torrent.destination {
        outln!("moved to {} once it is complete", plain(folder));
    }
    for reason in torrent.error.iter().chain(&torrent.hint) {
        outln!("{}", plain(reason));
    }
    for (number, file) in (1..).zip(&detail.files) {
        let wish = match (file.wanted, file.priority) {
            (false, _) => "skip",
            (true, FilePriority::Low) => "low",
            (true, FilePriority::Normal) => "normal",
            (true, FilePriority::High) => "high",
        };
        let there = match (file.verified_bytes, file.bytes) {
            (None, _) => "-".to_owned(),
            (Some(_), 0) => percent(1.0),
            (Some(verified), bytes) => percent(verified as f64 / bytes as f64),
        };
        outln!(
            "file  {number:>4}  {wish:6}  {there:>6}  {:>9}  {}",
            format::bytes(file.bytes),
            plain(&file.path)
        );
    }
    for peer in &detail.peers {
        let (down, up) = (
            format::rate(peer.download_rate as f64),
            format::rate(peer.upload_rate as f64),
        );
        // As fingerprints are shortened elsewhere.
        let path = peer.path.get(..DIGITS).unwrap_or(&peer.path);
        outln!("peer  {} over {path}  down {down}, up {up}", peer.address);
    }
    trackers(detail);
}

/// Prints the trackers of a torrent.
pub fn trackers(detail: &Detail) {
    for tracker in &detail.trackers {
        let said = tracker.error.as_ref().or(tracker.warning.as_ref());
        let said = said.map_or(String::new(), |said| format!(": {}", plain(said)));
        outln!("tracker  {}  {}{said}", plain(&tracker.url), tracker.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_100_percent() {
        assert_eq!(
            [0.0, 0.5, 0.9999, 1.0].map(percent),
            ["0 %", "50 %", "99 %", "100 %"]
        );
    }
}
