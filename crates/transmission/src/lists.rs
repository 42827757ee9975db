//! The fields of `torrent-get` that are lists or objects.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hawser_address::PeerAddr;

use crate::json::{Json, Object};
use crate::names::Name;
use crate::parts::{FileView, Outcome, PeerView, Priority, TrackerView};
use crate::torrent::Sources;
use crate::tracker_url::{host, site};

const ANNOUNCE: Name = Name::same("announce");
const BYTES_COMPLETED: Name = Name::new("bytes_completed", "bytesCompleted");
const ID: Name = Name::same("id");
const SCRAPE: Name = Name::same("scrape");
const SITENAME: Name = Name::same("sitename");
const TIER: Name = Name::same("tier");

/// A priority as a number.
pub(crate) const fn priority(priority: Priority) -> i8 {
    priority as i8
}

pub(crate) fn completed(files: &[FileView], json: &mut Json) {
    json.array(files, |json, file| json.value(&file.completed));
}

pub(crate) fn priorities(files: &[FileView], json: &mut Json) {
    json.array(files, |json, file| json.value(&priority(file.priority)));
}

pub(crate) fn files(files: &[FileView], json: &mut Json) {
    json.array(files, |json, file| {
        json.object(|object| {
            object.field(Name::same("begin_piece"), &file.pieces.start);
            object.field(BYTES_COMPLETED, &file.completed);
            object.field(Name::same("end_piece"), &file.pieces.end);
            object.field(Name::same("length"), &file.size);
            object.field(Name::same("name"), &file.name);
        });
    });
}

pub(crate) fn file_stats(files: &[FileView], json: &mut Json) {
    json.array(files, |json, file| {
        json.object(|object| {
            object.field(BYTES_COMPLETED, &file.completed);
            object.field(Name::same("priority"), &priority(file.priority));
            object.field(Name::same("wanted"), &file.is_wanted);
        });
    });
}

pub(crate) fn webseeds(urls: &[String], json: &mut Json) {
    json.array(urls, |json, url| {
        json.object(|object| {
            object.field(Name::same("url"), url);
            object.field(Name::same("is_downloading"), &false);
            object.field(Name::same("download_bytes_per_second"), &0);
        });
    });
}

#[rustfmt::skip]
pub(crate) fn sources(sources: &Sources, json: &mut Json) {
    json.object(|object| {
        object.field(Name::new("from_cache", "fromCache"), &sources.cache);
        object.field(Name::new("from_dht", "fromDht"), &sources.dht);
        object.field(Name::new("from_incoming", "fromIncoming"), &sources.incoming);
        object.field(Name::new("from_lpd", "fromLpd"), &sources.lpd);
        object.field(Name::new("from_ltep", "fromLtep"), &sources.ltep);
        object.field(Name::new("from_pex", "fromPex"), &sources.pex);
        object.field(Name::new("from_tracker", "fromTracker"), &sources.tracker);
    });
}

#[rustfmt::skip]
pub(crate) fn peers(peers: &[PeerView], json: &mut Json) {
    json.array(peers, |json, peer| {
        json.object(|object| {
            let (address, port) = address(peer.addr);
            let flags = &peer.flags;
            object.field(Name::same("address"), &address);
            object.field(Name::same("bytes_to_client"), &peer.downloaded);
            object.field(Name::same("bytes_to_peer"), &peer.uploaded);
            object.field(Name::new("client_is_choked", "clientIsChoked"), &flags.chokes_us);
            object.field(Name::new("client_is_interested", "clientIsInterested"), &flags.interests_us);
            object.field(Name::new("client_name", "clientName"), &peer.client);
            object.field(Name::new("flag_str", "flagStr"), &flags.text());
            object.field(Name::new("is_downloading_from", "isDownloadingFrom"), &flags.is_sending);
            object.field(Name::new("is_encrypted", "isEncrypted"), &flags.is_encrypted);
            object.field(Name::new("is_incoming", "isIncoming"), &flags.is_incoming);
            object.field(Name::new("is_uploading_to", "isUploadingTo"), &flags.is_getting);
            object.field(Name::new("is_utp", "isUTP"), &flags.is_utp);
            object.field(Name::same("peer_id"), &STANDARD.encode(peer.id));
            object.field(Name::new("peer_is_choked", "peerIsChoked"), &flags.is_choked);
            object.field(Name::new("peer_is_interested", "peerIsInterested"), &flags.is_interested);
            object.field(Name::same("port"), &port);
            object.key(Name::same("progress")).real(peer.progress);
            object.field(Name::new("rate_to_client", "rateToClient"), &peer.down_rate);
            object.field(Name::new("rate_to_peer", "rateToPeer"), &peer.up_rate);
        });
    });
}

/// The text of an address without its port, and the port.
fn address(addr: PeerAddr) -> (String, u16) {
    match addr {
        PeerAddr::Ip(addr) => (addr.ip().to_string(), addr.port()),
        PeerAddr::Scion(addr) => {
            let (text, port) = (addr.to_string(), addr.host.port());
            let end = format!(":{port}");
            (text.strip_suffix(&end).unwrap_or(&text).to_owned(), port)
        }
    }
}

/// URLs in lines, with an empty line between tiers.
pub(crate) fn tracker_list(trackers: &[TrackerView]) -> String {
    let mut list = String::new();
    let mut tier = None;
    for tracker in trackers {
        if tier.is_some_and(|tier| tier != tracker.tier) {
            list.push('\n');
        }
        tier = Some(tracker.tier);
        list.push_str(&tracker.announce);
        list.push('\n');
    }
    list
}

pub(crate) fn trackers(trackers: &[TrackerView], json: &mut Json) {
    json.array(trackers, |json, tracker| {
        json.object(|object| {
            object.field(ANNOUNCE, &tracker.announce);
            object.field(ID, &tracker.id);
            object.field(SCRAPE, &tracker.scrape);
            object.field(SITENAME, site(&tracker.announce));
            object.field(TIER, &tracker.tier);
        });
    });
}

#[rustfmt::skip]
pub(crate) fn tracker_stats(trackers: &[TrackerView], json: &mut Json) {
    json.array(trackers, |json, tracker| {
        json.object(|object| {
            object.field(ANNOUNCE, &tracker.announce);
            object.field(Name::new("download_count", "downloadCount"), &count(tracker.downloads));
            object.field(Name::same("downloader_count"), &count(tracker.downloaders));
            object.field(Name::same("host"), &host(&tracker.announce));
            object.field(ID, &tracker.id);
            object.field(Name::new("is_backup", "isBackup"), &tracker.is_backup);
            object.field(Name::new("last_announce_peer_count", "lastAnnouncePeerCount"), &tracker.peers);
            object.field(Name::new("leecher_count", "leecherCount"), &count(tracker.leechers));
            object.field(SCRAPE, &tracker.scrape);
            object.field(Name::new("seeder_count", "seederCount"), &count(tracker.seeders));
            object.field(SITENAME, site(&tracker.announce));
            object.field(TIER, &tracker.tier);
            announces(tracker, object);
            scrapes(tracker, object);
        });
    });
}

#[rustfmt::skip]
fn announces(tracker: &TrackerView, object: &mut Object<'_>) {
    let requests = &tracker.announces;
    let outcome = requests.outcome.as_ref();
    object.field(Name::new("announce_state", "announceState"), &(requests.state as u8));
    object.field(Name::new("has_announced", "hasAnnounced"), &outcome.is_some());
    object.field(Name::new("last_announce_result", "lastAnnounceResult"), result(outcome));
    object.field(Name::new("last_announce_start_time", "lastAnnounceStartTime"), &requests.begun);
    object.field(Name::new("last_announce_succeeded", "lastAnnounceSucceeded"), &(outcome == Some(&Outcome::Success)));
    object.field(Name::new("last_announce_time", "lastAnnounceTime"), &requests.ended);
    object.field(Name::new("last_announce_timed_out", "lastAnnounceTimedOut"), &(outcome == Some(&Outcome::TimedOut)));
    object.field(Name::new("next_announce_time", "nextAnnounceTime"), &requests.next);
}

#[rustfmt::skip]
fn scrapes(tracker: &TrackerView, object: &mut Object<'_>) {
    let requests = &tracker.scrapes;
    let outcome = requests.outcome.as_ref();
    object.field(Name::new("scrape_state", "scrapeState"), &(requests.state as u8));
    object.field(Name::new("has_scraped", "hasScraped"), &outcome.is_some());
    object.field(Name::new("last_scrape_result", "lastScrapeResult"), result(outcome));
    object.field(Name::new("last_scrape_start_time", "lastScrapeStartTime"), &requests.begun);
    object.field(Name::new("last_scrape_succeeded", "lastScrapeSucceeded"), &(outcome == Some(&Outcome::Success)));
    object.field(Name::new("last_scrape_time", "lastScrapeTime"), &requests.ended);
    object.field(Name::new("last_scrape_timed_out", "lastScrapeTimedOut"), &(outcome == Some(&Outcome::TimedOut)));
    object.field(Name::new("next_scrape_time", "nextScrapeTime"), &requests.next);
}

/// A number that a tracker may not have told.
fn count(number: Option<u64>) -> i64 {
    number.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX))
}

/// Clients compare with `Success`.
fn result(outcome: Option<&Outcome>) -> &str {
    match outcome {
        None => "",
        Some(Outcome::Success) => "Success",
        Some(Outcome::TimedOut) => "Tracker did not respond",
        Some(Outcome::Failed(reason)) => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_their_ports() {
        for (addr, shown) in [
            ("10.0.0.1:6881", "10.0.0.1"),
            ("[fd00::1]:6881", "fd00::1"),
            ("1-ff00:0:110,10.0.0.1:6881", "1-ff00:0:110,10.0.0.1"),
            ("64-559,[fd00::1]:6881", "64-559,[fd00::1]"),
        ] {
            let addr: PeerAddr = addr.parse().unwrap();
            assert_eq!(address(addr), (shown.to_owned(), 6881));
        }
    }

    #[test]
    fn tiers_are_divided_by_empty_lines() {
        let tracker = |tier, announce: &str| TrackerView {
            tier,
            announce: announce.to_owned(),
            ..TrackerView::default()
        };
        let trackers = [
            tracker(0, "udp://a"),
            tracker(0, "udp://b"),
            tracker(1, "udp://c"),
        ];
        assert_eq!(tracker_list(&trackers), "udp://a\nudp://b\n\nudp://c\n");
        assert_eq!(tracker_list(&[]), "");
    }
}
