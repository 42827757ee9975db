//! What the pages of hawser share: files, and what browsers may do with a page.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::JsonError;
use crate::asset::asset;

/// Media types of files.
pub const HTML: &str = "text/html; charset=utf-8";
/// Of style sheets.
pub const CSS: &str = "text/css; charset=utf-8";
/// Of scripts.
pub const JS: &str = "text/javascript; charset=utf-8";
/// Of pictures.
pub const SVG: &str = "image/svg+xml";

/// A file of a page: its name, media type and text.
pub type PageFile = (&'static str, &'static str, &'static str);

/// The files of a page, by their names in the folder `assets` beside the source.
#[macro_export]
macro_rules! page_files {
    ($($name:literal: $kind:ident),* $(,)?) => {
        &[$(($name, $crate::page::$kind, include_str!(concat!("assets/", $name)))),*]
    };
}

/// The files that every page may use.
const SHARED: &[PageFile] = page_files! {
    "icon.svg": SVG,
    "base.css": CSS,
    "layout.css": CSS,
    "controls.css": CSS,
    "api.js": JS,
    "buttons.js": JS,
    "dom.js": JS,
    "format.js": JS,
    "login.js": JS,
    "theme.js": JS,
};

/// What browsers may do with a page: run and show what this server sends, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Answers with the file of a page that has this name, one of `own` or of those that all pages share.
#[must_use]
pub fn page_file(own: &[PageFile], name: &str, headers: &HeaderMap) -> Response {
    let mut files = own.iter().chain(SHARED);
    match files.find(|(of, _, _)| *of == name) {
        Some((_, kind, text)) => asset(headers, kind, text),
        None => {
            let reason = format!("the page has no file {name:?}");
            JsonError(StatusCode::NOT_FOUND, reason).into_response()
        }
    }
}

/// Adds to each answer what keeps browsers from doing more with it than it is for; for
/// [`from_fn`](axum::middleware::from_fn).
pub async fn secure(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Content of others has a stricter one.
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(POLICY));
    // What a user sees is for that user's eyes. Assets have their own rule.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_name() {
        let own: &[PageFile] = &[("own.js", JS, "export {};")];
        let status = |name| page_file(own, name, &HeaderMap::new()).status();
        assert_eq!(status("own.js"), StatusCode::OK);
        assert_eq!(status("base.css"), StatusCode::OK);
        assert_eq!(status("../lib.rs"), StatusCode::NOT_FOUND);
        let kind = page_file(own, "icon.svg", &HeaderMap::new());
        assert_eq!(kind.headers()[header::CONTENT_TYPE], SVG);
    }
}
