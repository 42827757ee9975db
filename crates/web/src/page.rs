//! The page: files that are inside the program.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hawser_http::JsonError;

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
    hawser_http::asset(&headers, HTML, INDEX)
}

/// `GET /assets/{name}`
pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match ASSETS.iter().find(|(of, _, _)| *of == name) {
        Some((_, kind, text)) => hawser_http::asset(&headers, kind, text),
        None => {
            let reason = format!("the page has no file {name:?}");
            JsonError(StatusCode::NOT_FOUND, reason).into_response()
        }
    }
}
