//! Torrents added by the JSON API.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use data_encoding::BASE64;
use hawser_http::describe::ReadsBody;
use hawser_http::{JsonError, json, read_json};

use super::Daemon;
use super::body::{self, AddedTorrent, NewTorrent, Torrent};
use super::caller::Authorized;
use super::describe::{ChangesOne, Refused};
use super::torrents::{bad, refused};
use crate::client::Source;
use crate::record::MAX_PEERS;
use crate::settings::Settings;

/// Longest body of a torrent to add, in bytes: the longest `.torrent` file in base64.
const MAX_ADD_BODY: usize = 24 << 20;

/// Add a torrent, by its .torrent file, the URL of one, or a magnet link
#[utoipa::path(
    post, path = "/torrents", operation_id = "add_torrent", request_body = NewTorrent,
    responses(
        (status = 201, description = "It is on disk", body = AddedTorrent),
        (status = 200, description = "It was there before, and was given the peers and, unless it is private, the trackers that it did not have", body = AddedTorrent),
        (status = 502, body = hawser_http::describe::ErrorBody, description = "The .torrent file cannot be fetched"),
        Refused, ReadsBody, ChangesOne,
    ),
)]
pub(super) async fn add(
    State(daemon): State<Daemon>,
    _: Authorized,
    body: Body,
) -> Result<Response, JsonError> {
    let new: NewTorrent = read_json(body, MAX_ADD_BODY).await?;
    let client = &daemon.inner.client;
    let added = client
        .add(new_torrent(new)?)
        .await
        .map_err(|error| refused(&error))?;
    let view = client.view(added.info_hash).await;
    let view = view.map_err(|error| refused(&error))?;
    let status = match added.merged {
        Some(_) => StatusCode::OK,
        None => StatusCode::CREATED,
    };
    let answer = AddedTorrent {
        torrent: Torrent::from(&view),
        merged: added.merged.map(Into::into),
    };
    Ok(json(status, &answer))
}

/// What a body says of a new torrent.
fn new_torrent(new: NewTorrent) -> Result<crate::client::NewTorrent, JsonError> {
    let source = match (new.metainfo, new.magnet, new.url) {
        (Some(text), None, None) => {
            let bytes = BASE64.decode(text.as_bytes());
            Source::Metainfo(bytes.map_err(|error| bad(format!("metainfo: not base64: {error}")))?)
        }
        (None, Some(link), None) => Source::Magnet(link),
        (None, None, Some(url)) => Source::Url { url, cookies: None },
        _ => return Err(bad("give one of metainfo, magnet and url")),
    };
    if new.peers.len() > MAX_PEERS {
        return Err(bad(format!("peers: name at most {MAX_PEERS}")));
    }
    let peer = |text: &String| {
        text.parse()
            .map_err(|error| bad(format!("peers: {text:?}: {error}")))
    };
    let peers = new.peers.iter().map(peer).collect::<Result<_, _>>()?;
    let mut settings = Settings::default();
    let files = body::file_changes(new.files, Some(new.sequential));
    settings.files.change(&files);
    Ok(crate::client::NewTorrent {
        source,
        folder: new.folder.map(Into::into),
        started: new.stopped.map(|stopped| !stopped),
        labels: new.labels,
        peers,
        settings,
    })
}
