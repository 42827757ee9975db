//! The page: files that are inside the program.

use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use hawser_http::page::{HTML, PageFile, page_file};

const INDEX: &str = include_str!("assets/index.html");

/// The files that the pages of hawser do not share.
const ASSETS: &[PageFile] = hawser_http::page_files! {
    "views.css": CSS,
    "admin.js": JS,
    "app.js": JS,
    "as_links.js": JS,
    "changes.js": JS,
    "graph.js": JS,
    "labels.js": JS,
    "layout.js": JS,
    "link.js": JS,
    "links.js": JS,
    "live.js": JS,
    "machine.js": JS,
    "map.js": JS,
    "names.js": JS,
    "rate.js": JS,
};

/// `GET /`
pub(crate) async fn index(headers: HeaderMap) -> Response {
    hawser_http::asset(&headers, HTML, INDEX)
}

/// `GET /assets/{name}`
pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    page_file(ASSETS, &name, &headers)
}
