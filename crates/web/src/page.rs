//! The page: files that are inside the program.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hawser_http::{JsonError, TokenHash};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const INDEX: &str = include_str!("assets/index.html");

/// Name, kind and text of the files.
macro_rules! assets {
    ($($name:literal: $kind:ident),* $(,)?) => {
        &[$(($name, $kind, include_str!(concat!("assets/", $name)))),*]
    };
}

const ASSETS: &[(&str, &str, &str)] = assets! {
    "icon.svg": SVG,
    "base.css": CSS,
    "layout.css": CSS,
    "controls.css": CSS,
    "views.css": CSS,
    "admin.js": JS,
    "api.js": JS,
    "app.js": JS,
    "changes.js": JS,
    "dom.js": JS,
    "format.js": JS,
    "graph.js": JS,
    "labels.js": JS,
    "layout.js": JS,
    "link.js": JS,
    "links.js": JS,
    "live.js": JS,
    "login.js": JS,
    "machine.js": JS,
    "map.js": JS,
    "rate.js": JS,
    "theme.js": JS,
};

/// `GET /`
pub(crate) async fn index(headers: HeaderMap) -> Response {
    file(&headers, HTML, INDEX)
}

/// `GET /assets/{name}`
pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match ASSETS.iter().find(|(of, _, _)| *of == name) {
        Some((_, kind, text)) => file(&headers, kind, text),
        None => {
            let reason = format!("the page has no file {name:?}");
            JsonError(StatusCode::NOT_FOUND, reason).into_response()
        }
    }
}

/// A file, which browsers keep and ask for again each time.
fn file(headers: &HeaderMap, kind: &'static str, text: &'static str) -> Response {
    let hash = TokenHash::of(text).to_string();
    let tag = format!("\"{}\"", hash.get(..16).unwrap_or_default());
    let known = headers.get(header::IF_NONE_MATCH);
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let cached = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
    ];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, cached).into_response(),
        false => (cached, [(header::CONTENT_TYPE, kind)], text).into_response(),
    }
}
