//! The page: files that are inside the program. None of them needs the token; what they show does.

use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use hawser_http::page::{HTML, PageFile, page_file};

const INDEX: &str = include_str!("assets/index.html");

/// The files that the pages of hawser do not share.
const ASSETS: &[PageFile] = hawser_http::page_files! {
    "detail.css": CSS,
    "torrents.css": CSS,
    "actions.js": JS,
    "add.js": JS,
    "app.js": JS,
    "controls.js": JS,
    "detail.js": JS,
    "dialogs.js": JS,
    "each.js": JS,
    "files.js": JS,
    "groups.js": JS,
    "limits.js": JS,
    "list.js": JS,
    "menu.js": JS,
    "order.js": JS,
    "peers.js": JS,
    "pieces.js": JS,
    "queue.js": JS,
    "rates.js": JS,
    "rows.js": JS,
    "settings.js": JS,
    "store.js": JS,
    "trackers.js": JS,
    "transfers.js": JS,
    "trend.js": JS,
    "words.js": JS,
};

/// `GET /`
pub(super) async fn index(headers: HeaderMap) -> Response {
    hawser_http::asset(&headers, HTML, INDEX)
}

/// `GET /assets/{name}`
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    page_file(ASSETS, &name, &headers)
}
