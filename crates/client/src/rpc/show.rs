//! What a client of Transmission's RPC is shown.

use std::path::Path;
use std::time::Instant;

use hawser_torrent::{EncryptionPolicy, FilesProgress, Metainfo, WebSeedState};
use hawser_tracker::{TrackerState, TrackerStatus};
use hawser_transmission::{
    Adding, AlternativeLimits, Content, Count, Dates, Detail, Encryption, ErrorKind, FileView,
    Folders, GroupView, Network, Options, Outcome, Parts, PeerFlags, PeerView, Priority, Progress,
    Queues, RequestState, Requests, SeedLimits, SeedMode, SessionView, SpeedLimits, State, Swarm,
    Texts, TorrentError, TorrentView, TrackerView, Traffic,
};

use super::change::{kilobytes, limit};
use crate::addresses::PeerAddresses;
use crate::choice::{Choice, SeedNumbers};
use crate::files::FilePriority;
use crate::groups::{BandwidthPriority, GroupLimits};
use crate::record::{self, Origin};
use crate::settings::{AllLimits, Limit};
use crate::torrents::{Bounds, Status};
use crate::trackers;
use crate::view::View;

/// Whether the numbers of a torrent need its metainfo.
pub(super) fn needs_content(view: &View) -> bool {
    view.record.origin == Origin::Metainfo
}

fn state(view: &View) -> State {
    let is_complete = view.record.dates.completed.is_some();
    match view.status {
        Status::CheckQueued => State::CheckWait,
        Status::Checking => State::Check,
        Status::Queued if is_complete => State::SeedWait,
        Status::Queued => State::DownloadWait,
        Status::Resolving | Status::Downloading => State::Download,
        Status::Seeding => State::Seed,
        _ => State::Stopped,
    }
}

fn date(unix: u64) -> i64 {
    i64::try_from(unix).unwrap_or(i64::MAX)
}

/// What is known of a torrent beside its view, as far as it is needed.
pub(super) struct Kept<'a> {
    pub metainfo: Option<&'a Metainfo>,
    /// Where that is kept.
    pub path: &'a Path,
    /// What of its files is verified.
    pub files: Option<&'a FilesProgress>,
    /// The peers that a torrent may be connected to that has no limit of its own.
    pub max_peers: usize,
    /// The numbers of limits of seeding of one that has none of its own.
    pub numbers: SeedNumbers,
}

/// A torrent, with these parts of its detail.
pub(super) fn torrent(view: &View, kept: &Kept<'_>, parts: Parts) -> TorrentView {
    let metainfo = kept.metainfo;
    let (record, rates) = (&view.record, view.rates());
    let (size, verified) = (record.size.unwrap_or_default(), view.verified());
    let error = view.error().map(|text| TorrentError {
        kind: ErrorKind::Local,
        text: text.to_owned(),
    });
    let wanted = metainfo.map_or(size, |it| record.settings.files.wanted_bytes(&it.files));
    let left = missing(view, wanted);
    let eta = (rates.down > 0 && left > 0).then(|| left.saturating_mul(8) / rates.down);
    TorrentView {
        id: super::id(view),
        hash: record.info_hash.0,
        name: record.name.clone(),
        download_dir: record.final_folder().display().to_string(),
        state: state(view),
        error,
        content: content(view, metainfo, size),
        progress: Progress {
            valid: verified,
            left,
            checked: view.checked().unwrap_or_default(),
            eta,
            is_finished: matches!(record.outcome, Some(record::Outcome::Finished(_))),
            ..Progress::default()
        },
        traffic: Traffic {
            down_rate: rates.down / 8,
            up_rate: rates.up / 8,
            downloaded: record.totals.downloaded,
            uploaded: record.totals.uploaded,
            corrupt: 0,
        },
        dates: Dates {
            added: date(record.dates.added),
            done: record.dates.completed.map_or(0, date),
            active: record.dates.active.map_or(0, date),
            started: record.dates.started.map_or(0, date),
            downloading: record.totals.downloading,
            seeding: record.totals.seeded,
            ..Dates::default()
        },
        swarm: Swarm {
            connected: rates.peers as u64,
            sending: rates.sending as u64,
            getting: rates.getting as u64,
            webseeds_sending: view.with_progress(web_seeds_sending).unwrap_or_default(),
            ..Swarm::default()
        },
        options: options(view, kept),
        detail: detail(view, kept, parts),
    }
}

/// Number of web seeds that are fetched from.
fn web_seeds_sending(progress: &hawser_torrent::Progress) -> u64 {
    let seeds = progress.web_seeds.iter();
    let active = seeds.filter(|seed| seed.state == WebSeedState::Fetching);
    active.count() as u64
}

/// Bytes of the wanted files, `wanted` altogether, that are missing.
fn missing(view: &View, wanted: u64) -> u64 {
    let known = view.with_progress(|progress| {
        let files = &progress.files;
        let is_known = progress.phase != hawser_torrent::Phase::Checking;
        let missing = files
            .wanted_bytes
            .saturating_sub(files.wanted_verified_bytes);
        is_known.then_some(missing)
    });
    match (known.flatten(), view.record.dates.completed) {
        // Pieces at the ends of files have bytes of others.
        (Some(missing), _) => missing.min(wanted),
        (None, Some(_)) => 0,
        (None, None) => wanted.saturating_sub(view.verified()),
    }
}

fn content(view: &View, metainfo: Option<&Metainfo>, size: u64) -> Content {
    let Some(metainfo) = metainfo else {
        return Content::default();
    };
    let files = metainfo.files.iter().filter(|file| !file.padding);
    Content {
        size,
        wanted_size: view.record.settings.files.wanted_bytes(&metainfo.files),
        files: files.count() as u64,
        pieces: metainfo.pieces.count().into(),
        piece_size: metainfo.pieces.length.into(),
        is_private: metainfo.private,
        created: metainfo.provenance.creation_date.unwrap_or_default(),
        metadata: 1.0,
    }
}

fn options(view: &View, kept: &Kept<'_>) -> Options {
    let record = &view.record;
    let numbers = record.settings.seed_numbers.or(kept.numbers);
    let ratio = numbers.ratio.unwrap_or_default();
    let minutes = numbers.idle.unwrap_or_default().div_ceil(60);
    let (ratio_mode, ratio) = match record.settings.seeding.ratio {
        Choice::Default => (SeedMode::Session, ratio),
        Choice::Unlimited => (SeedMode::Unlimited, ratio),
        Choice::Own(ratio) => (SeedMode::Own, ratio),
    };
    let (idle_mode, idle_minutes) = match record.settings.seeding.idle {
        Choice::Default => (SeedMode::Session, minutes),
        Choice::Unlimited => (SeedMode::Unlimited, minutes),
        Choice::Own(seconds) => (SeedMode::Own, seconds.div_ceil(60)),
    };
    Options {
        queue_position: view.position as u64,
        sequential: record.settings.files.is_sequential.then_some(0),
        labels: record.labels.clone(),
        down: limit(record.settings.rates.download),
        up: limit(record.settings.rates.upload),
        group: record.settings.group.clone(),
        honors_session_limits: !record.settings.is_exempt,
        priority: match record.settings.priority {
            BandwidthPriority::Low => Priority::Low,
            BandwidthPriority::Normal => Priority::Normal,
            BandwidthPriority::High => Priority::High,
        },
        peer_limit: record.settings.max_peers.unwrap_or(kept.max_peers) as u64,
        ratio_mode,
        ratio,
        idle_mode,
        idle_minutes,
    }
}

fn detail(view: &View, kept: &Kept<'_>, parts: Parts) -> Detail {
    let mut detail = Detail::default();
    if parts.contains(Parts::PEERS) {
        let pieces = kept.metainfo.map_or(0, |it| it.pieces.count());
        let peers = view.peers().into_iter();
        detail.peers = peers.map(|it| peer(it, pieces)).collect();
    }
    if parts.contains(Parts::TRACKERS) {
        let now = Instant::now();
        let trackers = view.trackers(kept.metainfo).into_iter();
        let all: Vec<TrackerStatus> = trackers.collect();
        let shown = |at: usize| tracker(&all[at], is_backup(&all, at), now);
        detail.trackers = (0..all.len()).map(shown).collect();
    }
    let (Some(metainfo), verified) = (kept.metainfo, kept.files) else {
        return detail;
    };
    if parts.contains(Parts::TEXTS) {
        detail.texts = texts(view, metainfo, kept.path);
    }
    if parts.contains(Parts::FILES) {
        detail.files = files(view, metainfo, verified);
    }
    if parts.contains(Parts::PIECES)
        && let Some(verified) = verified
    {
        detail.pieces = verified.pieces.as_bytes().to_vec();
    }
    // How many peers have a piece is not known here.
    if parts.contains(Parts::AVAILABILITY) && view.verified() >= metainfo.pieces.total {
        detail.availability = vec![-1; metainfo.pieces.count() as usize];
    }
    detail
}

fn texts(view: &View, metainfo: &Metainfo, path: &Path) -> Texts {
    let trackers = view.record.trackers(Some(metainfo)).unwrap_or_default();
    let magnet = hawser_magnet::Magnet {
        info_hashes: metainfo.info_hashes(),
        name: Some(metainfo.name.clone()),
        trackers: trackers.concat(),
        web_seeds: metainfo.sources.web_seeds.clone(),
        ..hawser_magnet::Magnet::default()
    };
    Texts {
        comment: metainfo.provenance.comment.clone().unwrap_or_default(),
        creator: metainfo.provenance.created_by.clone().unwrap_or_default(),
        source: metainfo.provenance.source.clone().unwrap_or_default(),
        magnet_link: magnet.to_string(),
        metainfo_path: path.display().to_string(),
        media_type: String::new(),
        webseeds: metainfo.sources.web_seeds.clone(),
    }
}

/// The files, with what is verified of each as far as that is known.
fn files(view: &View, metainfo: &Metainfo, verified: Option<&FilesProgress>) -> Vec<FileView> {
    let length = u64::from(metainfo.pieces.length).max(1);
    let mut verified = verified.into_iter().flat_map(|files| files.each.iter());
    let mut start = 0;
    let mut files = Vec::new();
    for (index, file) in metainfo.files.iter().enumerate() {
        let end = start + file.length;
        if !file.padding {
            let wish = view.record.settings.files.wish(index);
            files.push(FileView {
                name: file.path.display().to_string(),
                size: file.length,
                completed: verified.next().map_or(0, |file| file.verified_bytes),
                is_wanted: wish.is_wanted,
                priority: match wish.priority {
                    FilePriority::Low => Priority::Low,
                    FilePriority::Normal => Priority::Normal,
                    FilePriority::High => Priority::High,
                },
                pieces: start / length..end.div_ceil(length),
            });
        }
        start = end;
    }
    files
}

/// A peer of a torrent that has this number of pieces.
fn peer(peer: crate::view::PeerNumbers, pieces: u32) -> PeerView {
    let (down, up) = (peer.down > 0, peer.up > 0);
    let state = peer.state.unwrap_or_default();
    PeerView {
        addr: peer.peer,
        client: state.client.as_deref().unwrap_or_default().to_owned(),
        id: [0; 20],
        progress: match pieces {
            0 => 0.0,
            all => f64::from(state.pieces.min(all)) / f64::from(all),
        },
        down_rate: peer.down / 8,
        up_rate: peer.up / 8,
        downloaded: peer.downloaded,
        uploaded: peer.uploaded,
        flags: PeerFlags {
            chokes_us: !state.serves,
            interests_us: state.is_interesting,
            is_choked: !state.is_served,
            is_interested: state.is_interested,
            is_sending: down,
            is_getting: up,
            is_incoming: state.is_incoming,
            ..PeerFlags::default()
        },
    }
}

/// Whether another tracker of its tier is in use: of those of a tier that nothing asks, that is the first.
fn is_backup(all: &[TrackerStatus], at: usize) -> bool {
    let tier = || all.iter().filter(|it| it.tier == all[at].tier);
    let is_used = |it: &TrackerStatus| {
        use TrackerState::{Announcing, Failing, Working};
        matches!(it.state, Announcing | Working | Failing)
    };
    match tier().any(is_used) {
        true => !is_used(&all[at]),
        false => tier().next().is_some_and(|it| it.url != all[at].url),
    }
}

fn tracker(status: &TrackerStatus, is_backup: bool, now: Instant) -> TrackerView {
    let unix = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let unix = unix.map_or(0, |unix| date(unix.as_secs()));
    let seconds = |time: std::time::Duration| date(time.as_secs());
    let ago = |at: Instant| unix - seconds(now.saturating_duration_since(at));
    let ended = status.error.as_ref().map(|(at, _)| *at).or(status.answered);
    let outcome = match (&status.error, status.answered) {
        (Some((_, error)), _) => Some(Outcome::Failed(error.clone())),
        (None, Some(_)) => Some(Outcome::Success),
        // Its URL is not supported: the only warning without an answer.
        (None, None) => status.warning.clone().map(Outcome::Failed),
    };
    TrackerView {
        id: trackers::number(&status.url),
        tier: status.tier as u64,
        announce: status.url.clone(),
        is_backup,
        announces: Requests {
            state: match (status.state, status.next) {
                (TrackerState::Announcing, _) => RequestState::Active,
                (_, Some(_)) => RequestState::Waiting,
                (_, None) => RequestState::Inactive,
            },
            begun: status.asked.map_or(0, ago),
            ended: ended.map_or(0, ago),
            next: status.next.map_or(0, |next| {
                unix + seconds(next.saturating_duration_since(now))
            }),
            outcome,
        },
        peers: status.peers as u64,
        seeders: status.complete.map(Into::into),
        leechers: status.incomplete.map(Into::into),
        ..TrackerView::default()
    }
}

/// A bandwidth group.
pub(super) fn group((name, limits): (String, GroupLimits)) -> GroupView {
    GroupView {
        name,
        honors_session_limits: !limits.is_exempt,
        down: limit(limits.rates.download),
        up: limit(limits.rates.upload),
    }
}

/// How IP peers are reached now.
pub(super) fn network(network: &hawser_torrent::Network, shown: &mut Network) {
    let transports = network.transports();
    (shown.tcp, shown.utp) = (transports.has_tcp(), transports.has_utp());
    shown.encryption = match network.encryption() {
        Some(EncryptionPolicy::Require) => Encryption::Required,
        Some(EncryptionPolicy::Prefer) => Encryption::Preferred,
        // Transmission has no name for connections that are never encrypted.
        Some(EncryptionPolicy::Allow | EncryptionPolicy::Disable) | None => Encryption::Allowed,
    };
}

/// The session.
pub(super) fn session(
    bounds: &Bounds,
    addresses: &PeerAddresses,
    folder: &Path,
    free_space: Option<u64>,
) -> SessionView {
    let AllLimits {
        rates,
        queue,
        alternative,
        peers,
        ref incomplete,
        ..
    } = bounds.all;
    let schedule = alternative.schedule;
    let addresses = bounds.all.network.ways_on(addresses);
    let count = |limit: Limit<usize>| Count {
        is_enabled: limit.holds,
        value: limit.value as u64,
    };
    SessionView {
        software: format!("hawser {}", env!("CARGO_PKG_VERSION")),
        speed: SpeedLimits {
            down: limit(rates.download),
            up: limit(rates.upload),
            alternative: AlternativeLimits {
                is_enabled: alternative.holds,
                down: kilobytes(alternative.download),
                up: kilobytes(alternative.upload),
                is_scheduled: schedule.is_on,
                begin: schedule.begin.into(),
                end: schedule.end.into(),
                days: schedule.days.into(),
            },
        },
        folders: Folders {
            download_dir: folder.display().to_string(),
            // As Transmission, the folder for downloads while none is named.
            incomplete_dir: incomplete
                .folder
                .as_deref()
                .unwrap_or(folder)
                .display()
                .to_string(),
            uses_incomplete_dir: incomplete.in_force().is_some(),
            free_space,
            ..Folders::default()
        },
        adding: Adding {
            starts: queue.starts_added,
            ..Adding::default()
        },
        seeding: SeedLimits {
            ratio: queue.ratio.value,
            has_ratio: queue.ratio.holds,
            idle_minutes: queue.idle.value.div_ceil(60),
            has_idle: queue.idle.holds,
        },
        queues: Queues {
            download: count(queue.downloads),
            seed: count(queue.seeds),
            ..Queues::default()
        },
        network: Network {
            port: addresses.tcp.map_or(0, |tcp| tcp.port()),
            dht: addresses.dht,
            lpd: addresses.local,
            pex: addresses.exchange,
            peer_limit: peers.all as u64,
            torrent_peer_limit: peers.each as u64,
            ..Network::default()
        },
        ..SessionView::default()
    }
}

#[cfg(test)]
mod tests {
    use hawser_torrent::PeerState;

    use super::*;
    use crate::view::PeerNumbers;

    #[test]
    fn what_a_peer_has_wants_and_does_is_shown() {
        let mut state = PeerState::default();
        state.client = Some("Transmission 3.00".into());
        state.pieces = 30;
        (state.is_incoming, state.is_interested) = (true, true);
        let numbers = |state| PeerNumbers {
            peer: hawser_torrent::PeerAddr::Ip(([127, 0, 0, 1], 6881).into()),
            path: String::new(),
            down: 80,
            up: 0,
            downloaded: 7,
            uploaded: 0,
            rtt: None,
            state,
        };
        let shown = peer(numbers(Some(state)), 120);
        assert_eq!(
            (&*shown.client, shown.progress, shown.down_rate),
            ("Transmission 3.00", 0.25, 10)
        );
        let flags = PeerFlags {
            chokes_us: true,
            is_choked: true,
            is_interested: true,
            is_sending: true,
            is_incoming: true,
            ..PeerFlags::default()
        };
        assert_eq!(shown.flags, flags);
        // Of a magnet link, whose pieces are not known, and before its handshake.
        assert_eq!(peer(numbers(None), 0).progress, 0.0);
    }

    #[test]
    fn a_tracker_that_is_not_supported_says_so() {
        let status = TrackerStatus::idle("wss://a.example/", 0);
        let shown = tracker(&status, false, Instant::now());
        let Some(Outcome::Failed(why)) = shown.announces.outcome else {
            panic!("{:?}", shown.announces.outcome)
        };
        assert!(why.starts_with("not supported"), "{why}");
    }

    #[test]
    fn a_tracker_shows_when_it_was_asked() {
        let now = Instant::now();
        let asked = |at: Option<Instant>| {
            let idle = TrackerStatus::idle("udp://a:1", 0);
            let status = TrackerStatus { asked: at, ..idle };
            tracker(&status, false, now).announces.begun
        };
        assert_eq!(asked(None), 0);
        let minute = std::time::Duration::from_secs(60);
        let (later, earlier) = (asked(Some(now)), asked(now.checked_sub(minute)));
        // A second may begin between the two.
        assert!((60..=61).contains(&(later - earlier)), "{earlier} {later}");
    }

    #[test]
    fn one_tracker_of_a_tier_is_no_backup() {
        let mut all: Vec<TrackerStatus> = [("udp://a:1", 0), ("udp://b:1", 0), ("udp://c:1", 1)]
            .map(|(url, tier)| TrackerStatus::idle(url, tier))
            .into();
        let backups = |all: &[TrackerStatus]| [0, 1, 2].map(|at| is_backup(all, at));
        assert_eq!(backups(&all), [false, true, false]);
        all[1].state = TrackerState::Announcing;
        assert_eq!(backups(&all), [true, false, false]);
    }
}
