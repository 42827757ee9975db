//! Files of torrents over HTTP, also while they are fetched.

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hawser_http::JsonError;
use hawser_http::describe::{ErrorBody, NamesOne};

use super::Daemon;
use super::caller::Authorized;
use super::describe::{OfFile, Refused};
use super::range::{Wanted, media_type, wanted};
use super::torrents::{bad, hash, refused};
use crate::stream::{FileReader, StreamError};

/// What browsers may do with content of others: show it, and nothing else.
const POLICY: &str = "default-src 'none'; img-src 'self'; media-src 'self'; sandbox";

fn answer(error: &StreamError) -> JsonError {
    let status = match error {
        StreamError::Client(error) => return refused(error),
        StreamError::NoFile { .. } => StatusCode::NOT_FOUND,
        StreamError::Disk { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::CONFLICT,
    };
    JsonError(status, error.to_string())
}

/// Read a file, also while it is downloaded
///
/// What is about to be read is downloaded first; the answer waits for it, and for the disk to be verified. One
/// range of bytes may be named (`Range`). An answer that ends early was cut off because the torrent was stopped.
#[utoipa::path(
    get, path = "/torrents/{hash}/files/{index}", operation_id = "read_file", params(OfFile),
    responses(
        (status = 200, description = "All of it; its type is that of its name", content_type = "*/*"),
        (status = 206, description = "The bytes that the range names", content_type = "*/*",
            headers(("Content-Range" = String))),
        (status = 409, response = hawser_http::describe::Conflict),
        (status = 416, body = ErrorBody, headers(("Content-Range" = String)),
            description = "The file has no such bytes"),
        (status = 503, response = hawser_http::describe::NotStored),
        Refused, NamesOne,
    ),
)]
pub(super) async fn read(
    State(daemon): State<Daemon>,
    _: Authorized,
    method: Method,
    Path((text, index)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Response> {
    let respond = IntoResponse::into_response;
    let hash = hash(&text).map_err(respond)?;
    let wrong = || {
        bad(format!(
            "the index {index:?} of a file is no number from 0 on"
        ))
    };
    let index: u32 = index.parse().map_err(|_| wrong().into_response())?;
    let client = &daemon.inner.client;
    let file = client.file(hash, index as usize).await;
    let file = file.map_err(|error| answer(&error).into_response())?;
    let length = file.length();
    // The content of a torrent never changes.
    let tag = format!("\"{hash}-{index}\"");
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same = text(header::IF_RANGE).is_none_or(|known| known == tag);
    let range = text(header::RANGE).filter(|_| is_same);
    let (status, part) = match wanted(range, length) {
        Wanted::Whole => (StatusCode::OK, 0..length),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Nothing => {
            let reason = format!("the file has {length} bytes, and none of this range");
            let refusal = JsonError(StatusCode::RANGE_NOT_SATISFIABLE, reason);
            return Err((
                [(header::CONTENT_RANGE, format!("bytes */{length}"))],
                refusal,
            )
                .into_response());
        }
    };
    let kind = file.name().and_then(media_type);
    let mut head = HeaderMap::new();
    let mut set = |name: header::HeaderName, value: String| {
        // Numbers, and texts of this program: they are valid.
        if let Ok(value) = value.try_into() {
            head.insert(name, value);
        }
    };
    set(header::ACCEPT_RANGES, "bytes".to_owned());
    set(header::CONTENT_LENGTH, (part.end - part.start).to_string());
    set(header::CONTENT_SECURITY_POLICY, POLICY.to_owned());
    set(
        header::CONTENT_TYPE,
        kind.unwrap_or("application/octet-stream").to_owned(),
    );
    set(header::ETAG, tag);
    if kind.is_none() {
        set(header::CONTENT_DISPOSITION, "attachment".to_owned());
    }
    if status == StatusCode::PARTIAL_CONTENT {
        let (first, last) = (part.start, part.end - 1);
        set(
            header::CONTENT_RANGE,
            format!("bytes {first}-{last}/{length}"),
        );
    }
    let body = match method == Method::HEAD {
        // Nothing is read, and nothing fetched first.
        true => Body::empty(),
        false => body(file.read(part)),
    };
    Ok((status, head, body).into_response())
}

/// A body that reads on when what it has read is sent. It is dropped with the connection, and the reader with it.
fn body(reader: FileReader) -> Body {
    let parts = stream::unfold(Some(reader), async |reader| {
        let mut reader = reader?;
        match reader.next().await {
            Ok(None) => None,
            Ok(Some(bytes)) => Some((Ok(Bytes::from(bytes)), Some(reader))),
            Err(error) => {
                tracing::warn!("a file that is read: {error}");
                Some((Err(error), None))
            }
        }
    });
    Body::from_stream(parts)
}
