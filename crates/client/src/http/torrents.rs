//! The JSON API.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hawser_http::describe::{NamesOne, ReadsBody};
use hawser_http::{JsonError, json, read_json};
use hawser_torrent::InfoHash;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::Daemon;
use super::body::{self, About, DaemonChange, Detail, NetworkState, Torrent, TorrentChange};
use super::caller::Authorized;
use super::describe::{ChangesOne, OfTorrent, Refused};
use crate::choice::{Choice, SeedChoice};
use crate::error::ClientError;
use crate::fetch::FetchError;
use crate::files::FileChanges;
use crate::groups::OuterChange;
use crate::peer_limits::PeerChanges;
use crate::record::parse_hash;
use crate::renames::Rename;
use crate::settings::{IncompleteChange, RateChanges};
use crate::torrents::{CommandError, Move, Torrents, check_folder};
use crate::trackers::TrackerChange;

/// Longest body of a change, in bytes: the indices of many files.
const MAX_CHANGE_BODY: usize = 256 * 1024;

/// Longest time for which a request waits that a torrent settles or is removed.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a refused command is answered.
pub(super) fn refused(error: &ClientError) -> JsonError {
    let status = match error {
        ClientError::Refused(CommandError::Unknown(_)) => StatusCode::NOT_FOUND,
        ClientError::Refused(CommandError::Value(_)) | ClientError::Invalid(_) => {
            StatusCode::BAD_REQUEST
        }
        ClientError::Fetch(FetchError::Url(_)) => StatusCode::BAD_REQUEST,
        ClientError::Fetch(_) => StatusCode::BAD_GATEWAY,
        ClientError::Refused(_) | ClientError::NotRemoved(_) | ClientError::NotRenamed(_) => {
            StatusCode::CONFLICT
        }
        ClientError::NotSaved(_) | ClientError::State(_) | ClientError::Stopping => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    JsonError(status, error.to_string())
}

pub(super) fn hash(text: &str) -> Result<InfoHash, JsonError> {
    let unknown = || {
        let reason =
            format!("there is no torrent {text:?}: write an info-hash of 40 hexadecimal digits");
        JsonError(StatusCode::NOT_FOUND, reason)
    };
    parse_hash(text).ok_or_else(unknown)
}

pub(super) fn bad(reason: impl Into<String>) -> JsonError {
    JsonError(StatusCode::BAD_REQUEST, reason.into())
}

/// The torrents
#[utoipa::path(
    get, path = "/torrents", operation_id = "list_torrents",
    responses((status = 200, description = "They", body = body::Torrents), Refused,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn list(
    State(daemon): State<Daemon>,
    _: Authorized,
) -> Result<Response, JsonError> {
    let views = daemon
        .inner
        .client
        .views()
        .await
        .map_err(|error| refused(&error))?;
    let torrents = views.iter().map(Torrent::from).collect();
    Ok(json(StatusCode::OK, &body::Torrents { torrents }))
}

/// Answers with a torrent.
async fn shown(daemon: &Daemon, hash: InfoHash, status: StatusCode) -> Result<Response, JsonError> {
    let view = daemon
        .inner
        .client
        .view(hash)
        .await
        .map_err(|error| refused(&error))?;
    Ok(json(status, &Torrent::from(&view)))
}

/// A torrent with its files, peers and trackers
#[utoipa::path(
    get, path = "/torrents/{hash}", operation_id = "show_torrent", params(OfTorrent),
    responses((status = 200, description = "It", body = Detail), Refused, NamesOne,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn show(
    State(daemon): State<Daemon>,
    _: Authorized,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let (hash, client) = (hash(&text)?, &daemon.inner.client);
    let view = client.view(hash).await.map_err(|error| refused(&error))?;
    let metainfo = client
        .metainfo(&view)
        .await
        .map_err(|error| refused(&error))?;
    let verified = match &metainfo {
        Some(metainfo) => client.files(&view, metainfo).await,
        None => None,
    };
    let mut verified = verified.iter().flat_map(|files| files.each.iter());
    let files = metainfo.iter().flat_map(|metainfo| &metainfo.files);
    let choice = &view.record.settings.files;
    let files = files.zip(0..).filter(|(file, _)| !file.padding);
    let files = files.map(|(file, index)| {
        let wish = choice.wish(index as usize);
        // Both are without padding, and in the order of the torrent.
        let known = verified.next();
        body::File {
            path: file.path.display().to_string(),
            bytes: file.length,
            index,
            wanted: wish.is_wanted,
            priority: wish.priority,
            verified_bytes: known.map(|file| file.verified_bytes),
        }
    });
    let (trackers, now) = (view.trackers(metainfo.as_deref()), Instant::now());
    let tracker = |status| body::Tracker::new(status, now);
    let detail = Detail {
        torrent: Torrent::from(&view),
        files: files.collect(),
        peers: view.peers().into_iter().map(peer).collect(),
        trackers: trackers.iter().map(tracker).collect(),
    };
    Ok(json(StatusCode::OK, &detail))
}

/// Wait up to 30 s until a torrent is complete, was stopped, or has failed
#[utoipa::path(
    get, path = "/torrents/{hash}/settled", operation_id = "await_torrent", params(OfTorrent),
    responses((status = 200, description = "The torrent as it is then", body = Torrent), Refused, NamesOne,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn settled(
    State(daemon): State<Daemon>,
    _: Authorized,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let hash = hash(&text)?;
    let waited = timeout(SETTLE_TIMEOUT, daemon.inner.client.settled(hash)).await;
    match waited {
        Ok(view) => {
            let view = view.map_err(|error| refused(&error))?;
            Ok(json(StatusCode::OK, &Torrent::from(&view)))
        }
        Err(_) => shown(&daemon, hash, StatusCode::OK).await,
    }
}

fn peer(peer: crate::view::PeerNumbers) -> body::Peer {
    body::Peer {
        address: peer.peer.to_string(),
        path: peer.path,
        download_rate: peer.down,
        upload_rate: peer.up,
        downloaded_bytes: peer.downloaded,
        uploaded_bytes: peer.uploaded,
        rtt_ms: peer.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
    }
}

/// Change a torrent: labels, limits of seeding and of rates, files, trackers, position, folder, the name of a file
#[utoipa::path(
    patch, path = "/torrents/{hash}", operation_id = "change_torrent", params(OfTorrent),
    request_body = TorrentChange,
    responses(
        (status = 200, description = "The torrent", body = Torrent),
        Refused, ReadsBody, ChangesOne,
        (status = 404, response = hawser_http::describe::NotFound),
    ),
)]
pub(super) async fn change(
    State(daemon): State<Daemon>,
    _: Authorized,
    Path(text): Path<String>,
    body: Body,
) -> Result<Response, JsonError> {
    let (hash, mut change): (_, TorrentChange) =
        (hash(&text)?, read_json(body, MAX_CHANGE_BODY).await?);
    let client = &daemon.inner.client;
    let files = body::file_changes(std::mem::take(&mut change.files), change.sequential);
    let (trackers, mut named) = (change.trackers.take(), None);
    if !files.each.is_empty() || trackers.is_some() {
        let view = client.view(hash).await.map_err(|error| refused(&error))?;
        let metainfo = client.metainfo(&view).await;
        let metainfo = metainfo.map_err(|error| refused(&error))?;
        named = view.record.named_trackers(metainfo.as_deref());
        if !files.each.is_empty() {
            let metainfo = metainfo.ok_or_else(|| {
                bad("files: they are not known before the metadata of the magnet link is: start the torrent first")
            })?;
            if let Some(fault) = files.fault(metainfo.files.len()) {
                return Err(bad(fault));
            }
        }
    }
    let rename = change.rename.take();
    let rename = rename.map(|body::Rename { path, name }| Rename { path, name });
    let trackers: Option<Vec<TrackerChange>> = trackers.map(Into::into);
    let seconds = |limit: Option<body::Limit>| limit.map(body::Limit::seconds).transpose();
    let seeding = SeedTimes {
        time: seconds(change.seconds).map_err(bad)?,
        idle: seconds(change.idle_seconds).map_err(bad)?,
    };
    if rename.is_some() && change.folder.is_some() {
        return Err(bad(
            "rename and folder: change one after the other, in two requests",
        ));
    }
    if let Some(rename) = &rename {
        let checked = client.check_rename(hash, rename).await;
        checked.map_err(|error| refused(&error))?;
    }
    let changed = client.change(move |all| {
        all.change_one(hash, |all| {
            if let Some(trackers) = trackers {
                all.change_trackers(hash, &named.unwrap_or_default(), &trackers)?;
            }
            apply(all, hash, change, &seeding, &files)
        })
    });
    changed.await.map_err(|error| refused(&error))?;
    if let Some(rename) = rename {
        client.rename(hash, rename).await.map_err(|error| {
            let JsonError(status, reason) = refused(&error);
            JsonError(
                status,
                format!("{reason}; what else the request changes is changed"),
            )
        })?;
    }
    shown(&daemon, hash, StatusCode::OK).await
}

/// Times after which the seeding of a torrent ends; those that are `None` stay.
struct SeedTimes {
    /// Of seeding.
    time: Option<Choice<u64>>,
    /// Without an upload.
    idle: Option<Choice<u64>>,
}

/// Makes a change. Those before a wrong one may have been made, but for that of the position in the queue.
fn apply(
    all: &mut Torrents,
    hash: InfoHash,
    change: TorrentChange,
    times: &SeedTimes,
    files: &FileChanges,
) -> Result<(), CommandError> {
    let record = all.record(hash).ok_or(CommandError::Unknown(hash))?;
    let limits = record.settings.seeding;
    if let Some(folder) = change.folder.as_deref() {
        check_folder(folder.as_ref())?;
    }
    if let Some(labels) = change.labels {
        all.set_labels(hash, labels)?;
    }
    if change.ratio.is_some() || times.time.is_some() || times.idle.is_some() {
        let limits = SeedChoice {
            ratio: change.ratio.map_or(limits.ratio, body::Limit::choice),
            time: times.time.unwrap_or(limits.time),
            idle: times.idle.unwrap_or(limits.idle),
        };
        all.set_limits(hash, limits)?;
    }
    let rates = RateChanges {
        download: body::RateLimit::change(change.download_rate),
        upload: body::RateLimit::change(change.upload_rate),
    };
    all.change_rates(hash, rates)?;
    let outer = OuterChange {
        group: change.group,
        is_exempt: change.exempt,
        priority: change.priority,
    };
    all.change_outer(hash, outer)?;
    if let Some(max) = change.max_peers {
        all.set_max_peers(hash, max.peers())?;
    }
    all.change_files(hash, files)?;
    if let Some(position) = change.position {
        all.reorder(hash, Move::To(position as usize))?;
    }
    if let Some(folder) = change.folder {
        all.relocate(hash, folder.into(), true)?;
    }
    Ok(())
}

/// An operation on a torrent that has no body.
macro_rules! action {
    ($name:ident, $path:literal, $operation:literal, $about:literal, $call:expr) => {
        #[doc = $about]
        #[utoipa::path(
            post, path = $path, operation_id = $operation, params(OfTorrent),
            responses((status = 200, description = "The torrent", body = Torrent), Refused, NamesOne,
                ChangesOne),
        )]
        pub(super) async fn $name(
            State(daemon): State<Daemon>,
            _: Authorized,
            Path(text): Path<String>,
        ) -> Result<Response, JsonError> {
            let (hash, call) = (hash(&text)?, $call);
            let done = daemon.inner.client.change(move |all| call(all, hash));
            done.await.map_err(|error| refused(&error))?;
            shown(&daemon, hash, StatusCode::OK).await
        }
    };
}

action!(
    start,
    "/torrents/{hash}/start",
    "start_torrent",
    "Start a torrent when it is its turn",
    Torrents::start
);
action!(
    start_now,
    "/torrents/{hash}/start-now",
    "start_torrent_now",
    "Start a torrent beside the queue",
    Torrents::start_now
);
action!(
    announce,
    "/torrents/{hash}/announce",
    "announce_torrent",
    "Announce a torrent to its trackers as soon as they allow it",
    Torrents::reannounce
);
action!(
    stop,
    "/torrents/{hash}/stop",
    "stop_torrent",
    "Stop a torrent until it is started",
    Torrents::stop
);
action!(
    verify,
    "/torrents/{hash}/verify",
    "verify_torrent",
    "Verify the content of a torrent",
    Torrents::verify
);

/// How a torrent is removed.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Removal {
    /// Whether its content is deleted as well: true or false, which it is when not given.
    content: bool,
}

impl Removal {
    fn read(query: Option<&str>) -> Result<Self, JsonError> {
        let mut removal = Self { content: false };
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            removal.content = match (&*key, &*value) {
                ("content", "true") => true,
                ("content", "false") => false,
                _ => {
                    return Err(bad(format!(
                        "{key}={value}: write content=true or content=false"
                    )));
                }
            };
        }
        Ok(removal)
    }
}

/// Remove a torrent, with its content or without
#[utoipa::path(
    delete, path = "/torrents/{hash}", operation_id = "remove_torrent", params(OfTorrent, Removal),
    responses(
        (status = 204, description = "It is removed"),
        (status = 202, description = "It is being removed, also if the daemon ends meanwhile"),
        Refused, NamesOne, ChangesOne),
)]
pub(super) async fn remove(
    State(daemon): State<Daemon>,
    _: Authorized,
    Path(text): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, JsonError> {
    let (hash, removal) = (hash(&text)?, Removal::read(query.as_deref())?);
    let client = daemon.inner.client.clone();
    // It is carried out also if the caller does not wait.
    let removing = client.remove(hash, removal.content);
    match timeout(SETTLE_TIMEOUT, removing).await {
        Ok(Ok(())) => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(Err(error)) => Err(refused(&error)),
        Err(_) => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// The daemon
#[utoipa::path(
    get, path = "/daemon", operation_id = "show_daemon",
    responses((status = 200, description = "It", body = About), Refused,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn about(
    State(daemon): State<Daemon>,
    _: Authorized,
) -> Result<Response, JsonError> {
    described(&daemon).await
}

/// Change the daemon: limits of all torrents and of groups of them, the folder for downloads, how peers are
/// reached
#[utoipa::path(
    patch, path = "/daemon", operation_id = "change_daemon", request_body = DaemonChange,
    responses((status = 200, description = "The daemon", body = About), Refused, ReadsBody,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn change_daemon(
    State(daemon): State<Daemon>,
    _: Authorized,
    body: Body,
) -> Result<Response, JsonError> {
    let change: DaemonChange = read_json(body, MAX_CHANGE_BODY).await?;
    let rates = RateChanges {
        download: body::RateLimit::change(change.download_rate),
        upload: body::RateLimit::change(change.upload_rate),
    };
    let peers = PeerChanges {
        all: change.max_peers.map(|max| max as usize),
        each: change.max_torrent_peers.map(|max| max as usize),
    };
    let alternative = change.alternative.unwrap_or_default().into();
    let queue = change.queue.unwrap_or_default().read().map_err(bad)?;
    let network = change.network.unwrap_or_default();
    let network = network.read().map_err(bad)?;
    let client = &daemon.inner.client;
    let changed = client.change_all(network, move |all| {
        all.change_alternative(alternative)?;
        all.change_queue(queue)?;
        all.change_peer_limits(peers);
        if let Some(folder) = change.download_dir {
            all.set_download_dir(folder.into())?;
        }
        if let Some(folder) = change.incomplete_dir {
            let folder = Some(folder).filter(|it| !it.is_empty());
            all.change_incomplete(IncompleteChange::to(folder.map(Into::into)))?;
        }
        for group in &change.groups {
            all.change_group(&group.name, group.into())?;
        }
        all.change_all_rates(rates);
        Ok(())
    });
    changed.await.map_err(|error| refused(&error))?;
    described(&daemon).await
}

/// Answers with the daemon.
async fn described(daemon: &Daemon) -> Result<Response, JsonError> {
    let inner = &daemon.inner;
    let views = inner.client.views().await;
    let views = views.map_err(|error| refused(&error))?;
    let bounds = inner.client.bounds().await;
    let bounds = bounds.map_err(|error| refused(&error))?;
    let folder = inner.client.download_dir_of(&bounds);
    let all = bounds.all;
    let rates = all.rates;
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        download_dir: folder.display().to_string(),
        incomplete_dir: all.incomplete.in_force().map(|it| it.display().to_string()),
        scion: inner.addresses.scion.map(|address| address.to_string()),
        tcp: inner.addresses.tcp.map(|address| address.to_string()),
        port_mapping: inner.client.port_mapping().map(Into::into),
        torrents: views.len() as u64,
        download_rate: rates.download.in_force().into(),
        upload_rate: rates.upload.in_force().into(),
        alternative: all.alternative.into(),
        groups: all.groups.iter().map(Into::into).collect(),
        queue: all.queue.into(),
        max_peers: all.peers.all as u64,
        max_torrent_peers: all.peers.each as u64,
        network: NetworkState::of(
            inner.client.network(),
            &all.network.ways_on(&inner.addresses),
        ),
    };
    Ok(json(StatusCode::OK, &about))
}
