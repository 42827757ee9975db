//! The fields of `torrent-get`: each name in both forms, the part of a view it needs, and its
//! value.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::ids::hex;
use crate::json::Json;
use crate::lists::{self, priority};
use crate::names::{Form, Name, canonical};
use crate::torrent::{Parts, State, TorrentView};

/// A field of `torrent-get`.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: Name,
    /// What it needs of [`Detail`](crate::Detail).
    pub parts: Parts,
    /// Writes its value.
    pub write: fn(&TorrentView, &mut Json),
}

/// A field by a name as a client writes it.
pub(crate) fn field(name: &str) -> Option<&'static Field> {
    static BY_NAME: LazyLock<HashMap<&str, &Field>> =
        LazyLock::new(|| FIELDS.iter().map(|field| (field.name.new, field)).collect());
    BY_NAME.get(&*canonical(name)).copied()
}

/// A row of the table.
const fn row(
    new: &'static str,
    old: &'static str,
    parts: Parts,
    write: fn(&TorrentView, &mut Json),
) -> Field {
    let name = Name::new(new, old);
    Field { name, parts, write }
}

const NONE: Parts = Parts::NONE;
const TEXTS: Parts = Parts::TEXTS;
const FILES: Parts = Parts::FILES;
const PEERS: Parts = Parts::PEERS;
const TRACKERS: Parts = Parts::TRACKERS;

/// All fields of Transmission 4.1. hawser has no fact for `manual_announce_time`, nor for the
/// traffic of each web seed in `webseeds_ex`: these have neutral values.
#[rustfmt::skip]
pub(crate) static FIELDS: &[Field] = &[
    row("activity_date", "activityDate", NONE, |t, j| j.value(&t.dates.active)),
    row("added_date", "addedDate", NONE, |t, j| j.value(&t.dates.added)),
    row("availability", "availability", Parts::AVAILABILITY, |t, j| j.value(&t.detail.availability)),
    row("bandwidth_priority", "bandwidthPriority", NONE, |t, j| j.value(&priority(t.options.priority))),
    row("bytes_completed", "bytesCompleted", FILES, |t, j| lists::completed(&t.detail.files, j)),
    row("comment", "comment", TEXTS, |t, j| j.value(&t.detail.texts.comment)),
    row("corrupt_ever", "corruptEver", NONE, |t, j| j.value(&t.traffic.corrupt)),
    row("creator", "creator", TEXTS, |t, j| j.value(&t.detail.texts.creator)),
    row("date_created", "dateCreated", NONE, |t, j| j.value(&t.content.created)),
    row("desired_available", "desiredAvailable", NONE, |t, j| j.value(&t.progress.available)),
    row("done_date", "doneDate", NONE, |t, j| j.value(&t.dates.done)),
    row("download_dir", "downloadDir", NONE, |t, j| j.value(&t.download_dir)),
    row("download_limit", "downloadLimit", NONE, |t, j| j.value(&t.options.down.kilobytes)),
    row("download_limited", "downloadLimited", NONE, |t, j| j.value(&t.options.down.is_enabled)),
    row("downloaded_ever", "downloadedEver", NONE, |t, j| j.value(&t.traffic.downloaded)),
    row("edit_date", "editDate", NONE, |t, j| j.value(&t.dates.edited)),
    row("error", "error", NONE, |t, j| j.value(&t.error.as_ref().map_or(0, |e| e.kind as u8))),
    row("error_string", "errorString", NONE, |t, j| j.value(t.error.as_ref().map_or("", |e| &e.text))),
    row("eta", "eta", NONE, |t, j| j.value(&eta(t))),
    row("eta_idle", "etaIdle", NONE, |t, j| j.value(&signed(t.progress.eta_idle))),
    row("file_count", "file-count", NONE, |t, j| j.value(&t.content.files)),
    row("file_stats", "fileStats", FILES, |t, j| lists::file_stats(&t.detail.files, j)),
    row("files", "files", FILES, |t, j| lists::files(&t.detail.files, j)),
    row("group", "group", NONE, |t, j| j.value(&t.options.group)),
    row("hash_string", "hashString", NONE, |t, j| j.value(&hex(&t.hash))),
    row("have_unchecked", "haveUnchecked", NONE, |t, j| j.value(&t.progress.unchecked)),
    row("have_valid", "haveValid", NONE, |t, j| j.value(&t.progress.valid)),
    row("honors_session_limits", "honorsSessionLimits", NONE, |t, j| j.value(&t.options.honors_session_limits)),
    row("id", "id", NONE, |t, j| j.value(&t.id)),
    row("is_finished", "isFinished", NONE, |t, j| j.value(&t.progress.is_finished)),
    row("is_private", "isPrivate", NONE, |t, j| j.value(&t.content.is_private)),
    row("is_stalled", "isStalled", NONE, |t, j| j.value(&t.progress.is_stalled)),
    row("labels", "labels", NONE, |t, j| j.value(&t.options.labels)),
    row("left_until_done", "leftUntilDone", NONE, |t, j| j.value(&t.progress.left)),
    row("magnet_link", "magnetLink", TEXTS, |t, j| j.value(&t.detail.texts.magnet_link)),
    row("manual_announce_time", "manualAnnounceTime", NONE, |_, j| j.value(&-1)),
    row("max_connected_peers", "maxConnectedPeers", NONE, |t, j| j.value(&t.options.peer_limit)),
    row("metadata_percent_complete", "metadataPercentComplete", NONE, |t, j| j.real(t.content.metadata)),
    row("name", "name", NONE, |t, j| j.value(&t.name)),
    row("peer_limit", "peer-limit", NONE, |t, j| j.value(&t.options.peer_limit)),
    row("peers", "peers", PEERS, |t, j| lists::peers(&t.detail.peers, j)),
    row("peers_connected", "peersConnected", NONE, |t, j| j.value(&t.swarm.connected)),
    row("peers_from", "peersFrom", NONE, |t, j| lists::sources(&t.swarm.sources, j)),
    row("peers_getting_from_us", "peersGettingFromUs", NONE, |t, j| j.value(&t.swarm.getting)),
    row("peers_sending_to_us", "peersSendingToUs", NONE, |t, j| j.value(&t.swarm.sending)),
    row("percent_complete", "percentComplete", NONE, |t, j| j.real(complete(t))),
    row("percent_done", "percentDone", NONE, |t, j| j.real(done(t))),
    row("piece_count", "pieceCount", NONE, |t, j| j.value(&t.content.pieces)),
    row("piece_size", "pieceSize", NONE, |t, j| j.value(&t.content.piece_size)),
    row("pieces", "pieces", Parts::PIECES, |t, j| j.value(&STANDARD.encode(&t.detail.pieces))),
    row("primary_mime_type", "primary-mime-type", TEXTS, |t, j| j.value(&t.detail.texts.media_type)),
    row("priorities", "priorities", FILES, |t, j| lists::priorities(&t.detail.files, j)),
    row("queue_position", "queuePosition", NONE, |t, j| j.value(&t.options.queue_position)),
    row("rate_download", "rateDownload", NONE, |t, j| j.value(&t.traffic.down_rate)),
    row("rate_upload", "rateUpload", NONE, |t, j| j.value(&t.traffic.up_rate)),
    row("recheck_progress", "recheckProgress", NONE, |t, j| j.real(t.progress.checked)),
    row("seconds_downloading", "secondsDownloading", NONE, |t, j| j.value(&t.dates.downloading)),
    row("seconds_seeding", "secondsSeeding", NONE, |t, j| j.value(&t.dates.seeding)),
    row("seed_idle_limit", "seedIdleLimit", NONE, |t, j| j.value(&t.options.idle_minutes)),
    row("seed_idle_mode", "seedIdleMode", NONE, |t, j| j.value(&(t.options.idle_mode as u8))),
    row("seed_ratio_limit", "seedRatioLimit", NONE, |t, j| j.real(t.options.ratio)),
    row("seed_ratio_mode", "seedRatioMode", NONE, |t, j| j.value(&(t.options.ratio_mode as u8))),
    row("sequential_download", "sequential_download", NONE, |t, j| j.value(&t.options.sequential.is_some())),
    row("sequential_download_from_piece", "sequential_download_from_piece", NONE, |t, j| j.value(&t.options.sequential.unwrap_or(0))),
    row("size_when_done", "sizeWhenDone", NONE, |t, j| j.value(&t.content.wanted_size)),
    row("source", "source", TEXTS, |t, j| j.value(&t.detail.texts.source)),
    row("start_date", "startDate", NONE, |t, j| j.value(&t.dates.started)),
    row("status", "status", NONE, |t, j| j.value(&(t.state as u8))),
    row("torrent_file", "torrentFile", TEXTS, |t, j| j.value(&t.detail.texts.metainfo_path)),
    row("total_size", "totalSize", NONE, |t, j| j.value(&t.content.size)),
    row("tracker_list", "trackerList", TRACKERS, |t, j| j.value(&lists::tracker_list(&t.detail.trackers))),
    row("tracker_stats", "trackerStats", TRACKERS, |t, j| lists::tracker_stats(&t.detail.trackers, j)),
    row("trackers", "trackers", TRACKERS, |t, j| lists::trackers(&t.detail.trackers, j)),
    row("upload_limit", "uploadLimit", NONE, |t, j| j.value(&t.options.up.kilobytes)),
    row("upload_limited", "uploadLimited", NONE, |t, j| j.value(&t.options.up.is_enabled)),
    row("upload_ratio", "uploadRatio", NONE, |t, j| j.real(ratio(t))),
    row("uploaded_ever", "uploadedEver", NONE, |t, j| j.value(&t.traffic.uploaded)),
    row("wanted", "wanted", FILES, wanted),
    row("webseeds", "webseeds", TEXTS, |t, j| j.value(&t.detail.texts.webseeds)),
    row("webseeds_ex", "webseeds_ex", TEXTS, |t, j| lists::webseeds(&t.detail.texts.webseeds, j)),
    row("webseeds_sending_to_us", "webseedsSendingToUs", NONE, |t, j| j.value(&t.swarm.webseeds_sending)),
];

/// A number that may not be known.
fn signed(number: Option<u64>) -> i64 {
    number.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX))
}

/// Seconds until it is done; -1 where there is no such time, -2 where it is not known.
fn eta(torrent: &TorrentView) -> i64 {
    match (torrent.progress.eta, torrent.state) {
        (None, State::Download) => -2,
        (eta, _) => signed(eta),
    }
}

fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64).min(1.0)
}

/// The fraction of the content that is there.
fn complete(torrent: &TorrentView) -> f64 {
    let progress = &torrent.progress;
    let here = progress.valid.saturating_add(progress.unchecked);
    fraction(here, torrent.content.size)
}

/// The fraction of the wanted content that is there.
fn done(torrent: &TorrentView) -> f64 {
    let wanted = torrent.content.wanted_size;
    fraction(wanted.saturating_sub(torrent.progress.left), wanted)
}

/// Uploaded by downloaded, or by what is there of a torrent that was complete from the start; -2
/// for a ratio without end, -1 for none.
fn ratio(torrent: &TorrentView) -> f64 {
    let traffic = &torrent.traffic;
    let base = match traffic.downloaded {
        0 => torrent.progress.valid,
        downloaded => downloaded,
    };
    match (traffic.uploaded, base) {
        (0, 0) => -1.0,
        (_, 0) => -2.0,
        (uploaded, base) => uploaded as f64 / base as f64,
    }
}

/// Whether each file is wanted: booleans, which are 0 and 1 in the old form.
fn wanted(torrent: &TorrentView, json: &mut Json) {
    let form = json.form();
    json.array(&torrent.detail.files, |json, file| match form {
        Form::Old => json.value(&u8::from(file.is_wanted)),
        Form::New => json.value(&file.is_wanted),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torrent::{Content, Progress, Traffic};

    #[test]
    fn each_field_is_found_by_both_of_its_names() {
        for row in FIELDS {
            for name in [row.name.new, row.name.old] {
                let found = field(name).unwrap_or_else(|| panic!("{name} is no field"));
                assert_eq!(found.name, row.name);
            }
        }
        assert!(field("port").is_none());
    }

    fn torrent(size: u64, valid: u64, downloaded: u64, uploaded: u64) -> TorrentView {
        TorrentView {
            content: Content {
                size,
                wanted_size: size,
                ..Content::default()
            },
            progress: Progress {
                valid,
                left: size - valid,
                ..Progress::default()
            },
            traffic: Traffic {
                downloaded,
                uploaded,
                ..Traffic::default()
            },
            ..TorrentView::default()
        }
    }

    #[test]
    fn ratios_and_fractions_have_ends() {
        assert_eq!(ratio(&torrent(10, 0, 0, 0)), -1.0);
        assert_eq!(ratio(&torrent(10, 0, 0, 5)), -2.0);
        assert_eq!(ratio(&torrent(10, 10, 0, 5)), 0.5);
        assert_eq!(ratio(&torrent(10, 10, 20, 5)), 0.25);
        assert_eq!(done(&torrent(0, 0, 0, 0)), 0.0);
        assert_eq!(done(&torrent(10, 5, 0, 0)), 0.5);
        assert_eq!(complete(&torrent(10, 10, 0, 0)), 1.0);
        assert_eq!(eta(&torrent(10, 5, 0, 0)), -1);
    }
}
