//! The JSON API of what is looked at while torrents run: what has changed, peers, pieces, rates.

use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use hawser_http::describe::NamesOne;
use hawser_http::{JsonError, json};
use utoipa::IntoParams;

use super::Daemon;
use super::body::{self, Changes, FullPeer, Peers, Pieces, RatesOverTime};
use super::caller::Authorized;
use super::describe::{OfTorrent, Refused};
use super::feed::Cursor;
use super::torrents::{bad, hash, refused};

/// The peers of a torrent, each with the paths to it as hops
#[utoipa::path(
    get, path = "/torrents/{hash}/peers", operation_id = "list_peers", params(OfTorrent),
    responses((status = 200, description = "They", body = Peers), Refused, NamesOne,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn peers(
    State(daemon): State<Daemon>,
    _: Authorized,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let (hash, client) = (hash(&text)?, &daemon.inner.client);
    let view = client.view(hash).await.map_err(|error| refused(&error))?;
    let peers = view.with_progress(|progress| {
        let peers = crate::peers::peers(progress);
        (peers, progress.files.pieces.count())
    });
    let (peers, pieces) = peers.unwrap_or_default();
    let peers = peers.into_iter().map(|peer| FullPeer::new(peer, pieces));
    let peers = peers.collect();
    Ok(json(StatusCode::OK, &Peers { peers }))
}

/// Which pieces of a torrent are verified
#[utoipa::path(
    get, path = "/torrents/{hash}/pieces", operation_id = "show_pieces", params(OfTorrent),
    responses((status = 200, description = "They", body = Pieces), Refused, NamesOne,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn pieces(
    State(daemon): State<Daemon>,
    _: Authorized,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let (hash, client) = (hash(&text)?, &daemon.inner.client);
    let view = client.view(hash).await.map_err(|error| refused(&error))?;
    let metainfo = client.metainfo(&view).await;
    let metainfo = metainfo.map_err(|error| refused(&error))?;
    let pieces = match &metainfo {
        Some(metainfo) => {
            let (count, length) = (metainfo.pieces.count(), metainfo.pieces.length);
            let files = client.files(&view, metainfo).await;
            Pieces::new(count, length, files.as_ref().map(|files| &files.pieces))
        }
        None => Pieces::new(0, 0, None),
    };
    Ok(json(StatusCode::OK, &pieces))
}

/// The rates of a torrent over the last five minutes
#[utoipa::path(
    get, path = "/torrents/{hash}/rates", operation_id = "show_rates", params(OfTorrent),
    responses((status = 200, description = "They", body = RatesOverTime), Refused, NamesOne,
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn rates(
    State(daemon): State<Daemon>,
    _: Authorized,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let (hash, client) = (hash(&text)?, &daemon.inner.client);
    let samples = client
        .history(hash)
        .await
        .map_err(|error| refused(&error))?;
    Ok(json(StatusCode::OK, &RatesOverTime::from(samples)))
}

/// Since when changes are asked for.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Since {
    /// The cursor of an answer before; all torrents are sent when not given.
    since: Option<String>,
}

impl Since {
    fn read(query: Option<&str>) -> Result<Option<Cursor>, JsonError> {
        let mut read = Self { since: None };
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if key != "since" {
                return Err(bad(format!("{key}: write since=CURSOR, or nothing")));
            }
            read.since = Some(value.into_owned());
        }
        let cursor = read.since.map(|text| {
            let wrong = || {
                bad(format!(
                    "since={text}: write the cursor of an answer before"
                ))
            };
            Cursor::read(&text).ok_or_else(wrong)
        });
        cursor.transpose()
    }
}

/// What has changed of the torrents since an answer before
///
/// A program that shows all torrents asks once without `since`, then again and again with the cursor of the
/// last answer.
#[utoipa::path(
    get, path = "/changes", operation_id = "list_changes", params(Since),
    responses((status = 200, description = "It", body = Changes), Refused,
        (status = 400, response = hawser_http::describe::BadRequest),
        (status = 503, response = hawser_http::describe::NotStored)),
)]
pub(super) async fn changes(
    State(daemon): State<Daemon>,
    _: Authorized,
    RawQuery(query): RawQuery,
) -> Result<Response, JsonError> {
    let cursor = Since::read(query.as_deref())?;
    let inner = &daemon.inner;
    let mut feed = inner.feed.lock().await;
    if feed.is_stale(inner.began.elapsed()) {
        let views = inner.client.views().await;
        let views = views.map_err(|error| refused(&error))?;
        let torrents = views.iter().map(body::Torrent::from).collect();
        feed.observe(torrents, inner.began.elapsed());
    }
    let changes = feed.since(cursor);
    drop(feed);
    Ok(json(StatusCode::OK, &changes))
}
