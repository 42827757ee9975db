//! Methods that change torrents.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::call::Call;
use crate::args::Args;
use crate::change::{Add, Change, Files, Source};
use crate::error::CallError;
use crate::ids::{TorrentRef, hex};
use crate::json::Object;
use crate::names::Name;
use crate::parts::Priority;
use crate::torrent::SeedMode;
use crate::tracker_url::{is_announce, tiers};

/// Base64 with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const ID: Name = Name::same("id");
const NAME: Name = Name::same("name");

pub(super) fn add(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let args = call.args;
    let download_dir = args.folder("download_dir", "download directory path")?;
    let mut changes = changes(args, ADDED)?;
    // For an added torrent an empty list is none, not all.
    changes.retain(|change| {
        !matches!(
            change,
            Change::Wanted(Files::All, _) | Change::FilePriority(Files::All, _)
        )
    });
    let add = Add {
        source: source(args)?,
        download_dir,
        is_paused: args.bool("paused")?,
        changes,
    };
    let added = call.client.add(add)?;
    let name = match added.is_duplicate {
        false => Name::new("torrent_added", "torrent-added"),
        true => Name::new("torrent_duplicate", "torrent-duplicate"),
    };
    result.key(name).object(|torrent| {
        torrent.field(Name::new("hash_string", "hashString"), &hex(&added.hash));
        torrent.field(ID, &added.id);
        torrent.field(NAME, &added.name);
    });
    Ok(())
}

/// What a torrent is added from: `filename` comes before `metainfo`.
fn source(args: &Args) -> Result<Source, CallError> {
    if let Some(name) = args.text("filename")?.filter(|name| !name.is_empty()) {
        return Ok(named(name, args.text("cookies")?));
    }
    let Some(text) = args.text("metainfo")?.filter(|text| !text.is_empty()) else {
        return Err(CallError::invalid("no filename or metainfo specified"));
    };
    let is_blank = |char: char| char.is_ascii_whitespace();
    let decoded = match text.contains(is_blank) {
        false => BASE64.decode(text),
        true => BASE64.decode(text.replace(is_blank, "")),
    };
    decoded
        .map(Source::Metainfo)
        .map_err(|_| CallError::UnrecognizedInfo)
}

fn named(name: &str, cookies: Option<&str>) -> Source {
    let scheme = name
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("magnet") => Source::Magnet(name.to_owned()),
        Some("http" | "https") => Source::Url {
            url: name.to_owned(),
            cookies: cookies.map(str::to_owned),
        },
        _ => match TorrentRef::from_text(name) {
            TorrentRef::Hash(hash) => Source::Magnet(format!("magnet:?xt=urn:btih:{}", hex(&hash))),
            _ => Source::Path(name.to_owned()),
        },
    }
}

pub(super) fn remove(call: &mut Call<'_>) -> Result<(), CallError> {
    let torrents = call.torrents()?;
    let deletes = call.args.bool("delete_local_data")?.unwrap_or(false);
    call.client.remove(&torrents, deletes)
}

/// Makes the changes to each of the torrents, also if they fail for one. The first error is
/// answered.
pub(super) fn set(call: &mut Call<'_>) -> Result<(), CallError> {
    let torrents = call.torrents()?;
    let changes = changes(call.args, CHANGED)?;
    if changes.is_empty() {
        return Ok(());
    }
    let mut outcome = Ok(());
    for id in torrents {
        outcome = outcome.and(call.client.change(id, &changes));
    }
    outcome
}

pub(super) fn relocate(call: &mut Call<'_>) -> Result<(), CallError> {
    let Some(folder) = call.args.folder("location", "new location path")? else {
        return Err(CallError::invalid("no location"));
    };
    let torrents = call.torrents()?;
    let moves = call.args.bool("move")?.unwrap_or(false);
    call.client.relocate(&torrents, &folder, moves)
}

pub(super) fn rename(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let [id] = call.torrents()?[..] else {
        return Err(CallError::invalid("torrent-rename-path requires 1 torrent"));
    };
    let path = call.args.text("path")?.unwrap_or_default();
    let name = call.args.text("name")?.unwrap_or_default();
    let invalid = |what: &str| Err(CallError::invalid(format!("invalid {what}")));
    if !path.split('/').all(is_part) {
        return invalid("path");
    }
    if name.contains('/') || !is_part(name) {
        return invalid("name");
    }
    call.client.rename(id, path, name)?;
    result.field(ID, &id);
    result.field(NAME, name);
    result.field(Name::same("path"), path);
    Ok(())
}

/// Whether a text is one part of a path below a folder.
fn is_part(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains('\0')
}

/// Reads the argument of this name.
type Read = fn(&Args, &str) -> Result<Option<Change>, CallError>;

/// Arguments of `torrent-add` that are changes.
#[rustfmt::skip]
const ADDED: &[(&str, Read)] = &[
    ("bandwidth_priority", |a, n| Ok(priority(a, n)?.map(Change::Priority))),
    ("labels", labels),
    ("peer_limit", |a, n| Ok(a.amount(n)?.map(Change::PeerLimit))),
    ("files_unwanted", |a, n| Ok(files(a, n)?.map(|files| Change::Wanted(files, false)))),
    ("files_wanted", |a, n| Ok(files(a, n)?.map(|files| Change::Wanted(files, true)))),
    ("priority_low", |a, n| Ok(files(a, n)?.map(|files| Change::FilePriority(files, Priority::Low)))),
    ("priority_normal", |a, n| Ok(files(a, n)?.map(|files| Change::FilePriority(files, Priority::Normal)))),
    ("priority_high", |a, n| Ok(files(a, n)?.map(|files| Change::FilePriority(files, Priority::High)))),
    ("sequential_download", |a, n| Ok(a.bool(n)?.map(Change::Sequential))),
    ("sequential_download_from_piece", |a, n| Ok(a.amount(n)?.map(Change::SequentialFrom))),
];

/// Arguments of `torrent-set`, in the order in which they are changed.
#[rustfmt::skip]
const CHANGED: &[(&str, Read)] = &[
    ("bandwidth_priority", |a, n| Ok(priority(a, n)?.map(Change::Priority))),
    ("group", |a, n| Ok(a.text(n)?.map(|group| Change::Group(group.to_owned())))),
    ("labels", labels),
    ("files_unwanted", |a, n| Ok(files(a, n)?.map(|files| Change::Wanted(files, false)))),
    ("files_wanted", |a, n| Ok(files(a, n)?.map(|files| Change::Wanted(files, true)))),
    ("peer_limit", |a, n| Ok(a.amount(n)?.map(Change::PeerLimit))),
    ("priority_high", |a, n| Ok(files(a, n)?.map(|files| Change::FilePriority(files, Priority::High)))),
    ("priority_low", |a, n| Ok(files(a, n)?.map(|files| Change::FilePriority(files, Priority::Low)))),
    ("priority_normal", |a, n| Ok(files(a, n)?.map(|files| Change::FilePriority(files, Priority::Normal)))),
    ("download_limit", |a, n| Ok(a.amount(n)?.map(Change::DownLimit))),
    ("sequential_download", |a, n| Ok(a.bool(n)?.map(Change::Sequential))),
    ("sequential_download_from_piece", |a, n| Ok(a.amount(n)?.map(Change::SequentialFrom))),
    ("download_limited", |a, n| Ok(a.bool(n)?.map(Change::DownLimited))),
    ("honors_session_limits", |a, n| Ok(a.bool(n)?.map(Change::HonorsSessionLimits))),
    ("upload_limit", |a, n| Ok(a.amount(n)?.map(Change::UpLimit))),
    ("upload_limited", |a, n| Ok(a.bool(n)?.map(Change::UpLimited))),
    ("seed_idle_limit", |a, n| Ok(a.amount(n)?.map(Change::IdleLimit))),
    ("seed_idle_mode", |a, n| Ok(mode(a, n)?.map(Change::IdleMode))),
    ("seed_ratio_limit", |a, n| Ok(a.real(n)?.map(Change::RatioLimit))),
    ("seed_ratio_mode", |a, n| Ok(mode(a, n)?.map(Change::RatioMode))),
    ("queue_position", |a, n| Ok(a.amount(n)?.map(Change::QueuePosition))),
    ("tracker_add", trackers_added),
    ("tracker_remove", |a, n| Ok(a.indices(n)?.map(Change::TrackersRemoved))),
    ("tracker_replace", trackers_replaced),
    ("tracker_list", |a, n| Ok(a.text(n)?.map(tiers).transpose()?.map(Change::Trackers))),
];

fn changes(args: &Args, reads: &[(&str, Read)]) -> Result<Vec<Change>, CallError> {
    let read = |(name, read): &(&str, Read)| read(args, name).transpose();
    reads.iter().filter_map(read).collect()
}

fn priority(args: &Args, name: &str) -> Result<Option<Priority>, CallError> {
    Ok(Some(match args.int(name)? {
        None => return Ok(None),
        Some(-1) => Priority::Low,
        Some(0) => Priority::Normal,
        Some(1) => Priority::High,
        Some(_) => return Err(CallError::invalid(format!("{name} must be -1, 0 or 1"))),
    }))
}

fn mode(args: &Args, name: &str) -> Result<Option<SeedMode>, CallError> {
    Ok(Some(match args.int(name)? {
        None => return Ok(None),
        Some(0) => SeedMode::Session,
        Some(1) => SeedMode::Own,
        Some(2) => SeedMode::Unlimited,
        Some(_) => return Err(CallError::invalid(format!("{name} must be 0, 1 or 2"))),
    }))
}

/// An empty list is all files.
fn files(args: &Args, name: &str) -> Result<Option<Files>, CallError> {
    let files = |list: Vec<u64>| match list.is_empty() {
        true => Files::All,
        false => Files::Some(list),
    };
    Ok(args.indices(name)?.map(files))
}

fn labels(args: &Args, name: &str) -> Result<Option<Change>, CallError> {
    let Some(labels) = args.texts(name)? else {
        return Ok(None);
    };
    let trim = |label: &String| {
        let invalid = |what: &str| Err(CallError::invalid(format!("labels cannot {what}")));
        match label.trim() {
            "" => invalid("be empty"),
            label if label.contains(',') => invalid("contain comma (,) character"),
            label => Ok(label.to_owned()),
        }
    };
    let labels: Vec<_> = labels.iter().map(trim).collect::<Result<_, _>>()?;
    Ok(Some(Change::Labels(labels)))
}

fn trackers_added(args: &Args, name: &str) -> Result<Option<Change>, CallError> {
    match args.texts(name)? {
        Some(urls) if !urls.iter().all(|url| is_announce(url)) => Err(CallError::AnnounceList),
        urls => Ok(urls.map(Change::TrackersAdded)),
    }
}

fn trackers_replaced(args: &Args, name: &str) -> Result<Option<Change>, CallError> {
    match args.pairs(name)? {
        Some(pairs) if !pairs.iter().all(|(_, url)| is_announce(url)) => {
            Err(CallError::AnnounceList)
        }
        pairs => Ok(pairs.map(Change::TrackersReplaced)),
    }
}
